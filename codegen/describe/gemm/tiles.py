"""Instances for large problems of 16-bit and 8-bit operands: tiles of 256 and 128, all sums in hidden registers (gemm_tiles.hip.h)."""

from ..model import Instance
from .keys import LAYOUTS, SIZES, TILES, key

_ELEMENTS = {"bf16": "bf16", "fp16": "fp16", "e4m3": "matmul::e4m3", "e5m2": "matmul::e5m2"}
_ORDERS = {"k": "gemm::Order::k", "r": "gemm::Order::rows"}
# tile -> waves a SIMD. A wave of 256 x 256 needs all registers; one of m128n128_alone has the compute unit's LDS, of which it copies _STAGES far ahead.
_STAGES = {"m128n128_alone": ("4",)}
_TILES = {"m256n256": 1, "m256n128": 1, "m128n128": 2, "m128n128_alone": 1}
_LAYOUTS = {"m256n256": tuple(LAYOUTS), "m256n128": ("kk",), "m128n128": ("kk", "kr"), "m128n128_alone": ("kk", "kr")}


def _variants():
    for tile in _TILES:
        for dtype in ("bf16", "fp16"):
            for layout in _LAYOUTS[tile]:
                yield dtype, dtype, layout, tile
        for a in ("e4m3", "e5m2"):
            for b in ("e4m3", "e5m2"):
                yield a, b, "kk", tile


def _instance(a_dtype, b_dtype, layout, tile):
    _, rows, columns = TILES[tile]
    dtypes = a_dtype if a_dtype == b_dtype else f"{a_dtype}_{b_dtype}"
    template = ", ".join(
        (_ELEMENTS[a_dtype], _ELEMENTS[b_dtype], _ORDERS[layout[0]], _ORDERS[layout[1]], str(rows), str(columns)) + _STAGES.get(tile, ())
    )
    return Instance(
        name=f"gemm_{dtypes}_{layout}_{tile}",
        header="gemm/gemm_tiles.hip.h",
        entry=f"gemm_tiles<{template}>",
        key=key(a_dtype, b_dtype, tile, layout),
        preference=0,
        align_bytes=16,
        block=(256, 1, 1),
        tile=(rows, columns, _TILES[tile]),  # so many work-groups a compute unit that go on with the next tile
        lds_dynamic_bytes=0,
        waves_per_simd=_TILES[tile],
        seq_q=SIZES,
        seq_k=SIZES,
        hides_accumulators=True,
    )


def instances(_arch):
    return tuple(_instance(*variant) for variant in _variants())
