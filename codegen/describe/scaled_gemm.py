"""scaled_gemm: kernel arguments, functional key and instances.

A problem whose D has contiguous columns reaches the kernels transposed, with A and B, M and N exchanged (v2src/scaled_gemm_describe.cc).
"""

from .architectures import MATRIX
from .attention_arguments import strides
from .model import Argument, Instance, KeyField, Operator, Table

_DTYPE = "flydsl_aot_dtype"

_ARGUMENTS = (
    Argument("const void *", "a"),
    *strides("a", "bmk", "bytes; of k 1 where two elements share one"),
    Argument("const void *", "b"),
    *strides("b", "bnk", "bytes"),
    Argument("const void *", "a_scale", "E8M0"),
    *strides("a_scale", "bmk", "bytes; shuffled: m is one of a row's scales, padded"),
    Argument("const void *", "b_scale"),
    *strides("b_scale", "bnk", "bytes"),
    Argument("const void *", "bias", "null: none"),
    *strides("bias", "bmn"),
    Argument("void *", "d"),
    *strides("d", "bmn"),
    Argument("float *", "partials", "(splits, batches, m, n), sums of each part of K; unused when splits is 1"),
    Argument("uint32_t", "d_dtype", _DTYPE),
    Argument("uint32_t", "bias_dtype", _DTYPE),
    Argument("uint32_t", "scales_shuffled", "1: in blocks of 32 rows and 8 columns; 0: as the strides say"),
    Argument("int32_t", "m"),
    Argument("int32_t", "n"),
    Argument("int32_t", "k", "a multiple of 32"),
    Argument("uint32_t", "batches"),
    Argument("uint32_t", "row_tiles", "ceil(m / tile[0])"),
    Argument("uint32_t", "column_tiles", "ceil(n / tile[1])"),
    Argument("uint32_t", "splits", "parts of K, each a work-group's; above 1 a second pass adds them"),
    Argument("int32_t", "split_k", "K of a part, but for the last: a multiple of K_GRANULE; of an instance without parts unused"),
    Argument("uint32_t", "tiles", "row_tiles * column_tiles * splits * batches; of the second pass blocks of 8 columns of D"),
    Argument("uint32_t", "grid_x", "work-groups along x; of an instance with tile[2] all, that many a compute unit"),
)

_KEY_FIELDS = (
    KeyField("a_dtype", 0, 8, "flydsl_aot_dtype"),
    KeyField("b_dtype", 8, 8, "flydsl_aot_dtype"),
    KeyField("tile", 16, 3, "number of TILES; 0 for the general instance"),
    KeyField("scales_shuffled", 19, 1, "0 for the general instance"),
    KeyField("second_pass", 20, 1, "1: adds the parts of K and makes D of the sums; all others are 0"),
)

_DTYPES = {"e4m3": 10, "e5m2": 11, "e2m1": 15}
_FORMATS = {"e4m3": 0, "e5m2": 1, "e2m1": 4}  # of the matrix instruction's operands
_PAIRS = (("e4m3", "e4m3"), ("e4m3", "e5m2"), ("e5m2", "e4m3"), ("e5m2", "e5m2"), ("e2m1", "e2m1"))
# name: number in the key, rows, columns
_TILES = {"m256n256": (1, 256, 256), "m16n16": (2, 16, 16), "m32n16": (3, 32, 16), "m64n16": (4, 64, 16), "m256n128": (5, 256, 128), "m128n128": (6, 128, 128)}
K_GRANULE = 1024  # of a part of K
_LARGE_TILES = ("m256n256", "m256n128")
_SMALL_TILES = ("m128n128",)  # of _FEW_ROWS
_FEW_ROWS, _FEW_ROWS_TILES = ("e4m3", "e2m1"), ("m16n16", "m32n16", "m64n16")
_SIZES = (0, 1 << 30)


def _name(a, b):
    return f"scaled_gemm_{a}" if a == b else f"scaled_gemm_{a}_{b}"


def _general(a, b):
    return Instance(
        name=f"{_name(a, b)}_general_m128n128",
        header="scaled_gemm/scaled_gemm_general.hip.h",
        entry=f"scaled_gemm_general<{_FORMATS[a]}, {_FORMATS[b]}>",
        key=(("a_dtype", _DTYPES[a]), ("b_dtype", _DTYPES[b])),
        preference=0,
        align_bytes=1,
        block=(256, 1, 1),
        tile=(128, 128, 0),
        lds_dynamic_bytes=0,
        waves_per_simd=2,
        seq_q=_SIZES,
        seq_k=_SIZES,
    )


def _tiles(a, b, shuffled, tile):
    number, rows, columns = _TILES[tile]
    return Instance(
        name=f"{_name(a, b)}{'_shuffled' if shuffled else ''}_{tile}",
        header="scaled_gemm/scaled_gemm_tiles.hip.h",
        entry=f"scaled_gemm_small_tiles<{_FORMATS[a]}, {_FORMATS[b]}, {str(shuffled).lower()}>"
        if tile in _SMALL_TILES
        else f"scaled_gemm_tiles<{_FORMATS[a]}, {_FORMATS[b]}, {str(shuffled).lower()}, {columns}>",
        key=(("a_dtype", _DTYPES[a]), ("b_dtype", _DTYPES[b]), ("tile", number), ("scales_shuffled", int(shuffled))),
        preference=0,
        align_bytes=16,
        block=(256, 1, 1),
        tile=(rows, columns, 2 if tile in _SMALL_TILES else 1),
        lds_dynamic_bytes=0,
        waves_per_simd=2 if tile in _SMALL_TILES else 1,
        seq_q=_SIZES,
        seq_k=_SIZES,
        hides_accumulators=True,
    )


def _few_rows(element, tile, shuffled):
    number, rows, columns = _TILES[tile]
    formats = f"{_FORMATS[element]}, {_FORMATS[element]}"
    dtype = _DTYPES[element]
    return Instance(
        name=f"scaled_gemm_{element}{'_shuffled' if shuffled else ''}_{tile}",
        header="scaled_gemm/scaled_gemm_few_rows.hip.h",
        entry=f"scaled_gemm_few_rows<{formats}, {str(shuffled).lower()}, {rows // 16}>",
        key=(("a_dtype", dtype), ("b_dtype", dtype), ("tile", number), ("scales_shuffled", int(shuffled))),
        preference=0,
        align_bytes=16,
        block=(256, 1, 1),
        tile=(rows, columns, 0),
        lds_dynamic_bytes=0,
        waves_per_simd=2,
        seq_q=_SIZES,
        seq_k=_SIZES,
    )


def _second_pass():
    return Instance(
        name="scaled_gemm_second_pass",
        header="scaled_gemm/scaled_gemm_second_pass.hip.h",
        entry="add_parts_of_scaled_gemm",
        key=(("second_pass", 1),),
        preference=0,
        align_bytes=1,
        block=(256, 1, 1),
        tile=(2048, 0, 0),
        lds_dynamic_bytes=0,
        waves_per_simd=4,
        seq_q=_SIZES,
        seq_k=_SIZES,
    )


def _compiled(arch):
    """Those that fit any problem: none of them takes parts of K, so that no second pass is needed."""
    return tuple(_general(a, b) for a, b in _PAIRS) if arch in MATRIX else ()


def _instances(arch):
    if arch not in MATRIX:
        return ()
    general = _compiled(arch)
    if arch != "gfx950":  # no matrix instructions that take scales
        return general
    tiles = tuple(_tiles(a, b, shuffled, tile) for shuffled in (False, True) for a, b in _PAIRS for tile in _LARGE_TILES)
    tiles += tuple(_tiles(element, element, shuffled, tile) for element in _FEW_ROWS for shuffled in (False, True) for tile in _SMALL_TILES)
    few_rows = tuple(_few_rows(element, tile, shuffled) for element in _FEW_ROWS for shuffled in (False, True)
                     for tile in _FEW_ROWS_TILES)
    return tiles + few_rows + general + (_second_pass(),)


OPERATOR = Operator(
    name="scaled_gemm",
    grid_rule="linear_tiles",
    arguments=_ARGUMENTS,
    key_fields=_KEY_FIELDS,
    instances=_instances,
    compiled=_compiled,
    tables=(
        Table(
            "tiles",
            "X(a_dtype, b_dtype, tile, rows, columns) of each pair of types that has fast instances, of either order of scales.",
            tuple((_DTYPES[a], _DTYPES[b], *_TILES[tile]) for a, b in _PAIRS for tile in _LARGE_TILES)
            + tuple((_DTYPES[element], _DTYPES[element], *_TILES[tile]) for element in _FEW_ROWS for tile in _SMALL_TILES + _FEW_ROWS_TILES),
        ),
        Table("k_granule", "X(K): parts of K are multiples.", ((K_GRANULE,),)),
    ),
)
