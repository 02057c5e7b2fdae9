"""Instances for few rows of A, K contiguous in both operands: a work-group has few columns and all of K (gemm_few_rows.hip.h)."""

from ..model import Instance
from .keys import SIZES, TILES, key

_ELEMENTS = ("bf16", "fp16")
# tile -> steps of 32 k that are loaded together, and waves a SIMD: as much is under way either way (kernels/gemm/NOTES.md).
_TILES = {"m16n16": (4, 4), "m32n16": (8, 2), "m32n32": (2, 4), "m64n16": (2, 3), "m64n32": (2, 2)}
# Two forms of each product need more registers (kernels/common/exact_mfma.hip.h).
_TILES_OF_GFX90A = {"m16n16": (4, 2), "m32n16": (4, 2), "m32n32": (2, 2), "m64n16": (2, 2)}


def _instance(dtype, tile, steps, waves):
    _, rows, columns = TILES[tile]
    return Instance(
        name=f"gemm_{dtype}_kk_{tile}",
        header="gemm/gemm_few_rows.hip.h",
        entry=f"gemm_few_rows<{dtype}, {rows // 16}, {columns // 16}, {steps}>",
        key=key(dtype, dtype, tile, "kk"),
        preference=0,
        align_bytes=16,
        block=(256, 1, 1),
        tile=(rows, columns, 0),
        lds_dynamic_bytes=0,
        waves_per_simd=waves,
        seq_q=SIZES,
        seq_k=SIZES,
    )


def instances(arch):
    tiles = _TILES_OF_GFX90A if arch == "gfx90a" else _TILES
    return tuple(_instance(dtype, tile, *budget) for dtype in _ELEMENTS for tile, budget in tiles.items())
