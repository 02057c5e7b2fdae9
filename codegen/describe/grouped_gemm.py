"""grouped_gemm: kernel arguments, functional key and instances."""

from .architectures import MATRIX
from .attention_arguments import strides
from .model import DTYPES, Argument, Instance, KeyField, Operator, Table

_DTYPE = "flydsl_aot_dtype"

_ARGUMENTS = (
    Argument("const void *", "a"),
    *strides("a", "gmk", "elements; 0 of an axis that a has not"),
    Argument("const void *", "b"),
    *strides("b", "gkn"),
    Argument("void *", "d"),
    *strides("d", "gmn"),
    Argument("const void *", "a_scale", "E8M0; of 8-bit operands"),
    *strides("a_scale", "gmk", "bytes; shuffled: m is one of a row's scales, padded"),
    Argument("const void *", "b_scale"),
    *strides("b_scale", "gnk", "bytes"),
    Argument("const void *", "bias", "null: none"),
    *strides("bias", "gn"),
    Argument("const void *", "offsets", "int32_t or int64_t; unused where axis is none"),
    *strides("offsets", "g"),
    Argument("uint32_t", "offsets_wide", "1: int64_t"),
    Argument("uint32_t", "axis", "that the groups share: kernels/grouped_gemm/groups.hip.h"),
    Argument("uint32_t", "d_dtype", _DTYPE),
    Argument("uint32_t", "bias_dtype", _DTYPE),
    Argument("uint32_t", "scales_shuffled", "1: in blocks of 32 rows and 8 columns; 0: as the strides say"),
    Argument("uint32_t", "groups"),
    Argument("int32_t", "m", "of all groups if they share it, as n and k"),
    Argument("int32_t", "n"),
    Argument("int32_t", "k"),
    Argument("uint32_t", "workers", "work-groups that share the tiles"),
)

_KEY_FIELDS = (
    KeyField("dtype", 0, 8, "flydsl_aot_dtype of a"),
    KeyField("b_dtype", 8, 8, "flydsl_aot_dtype"),
    KeyField("tile", 16, 8, "_TILES; 0 for the general instance"),
    KeyField("layout", 24, 2, "_LAYOUTS; 0 for the general instance"),
    KeyField("scales_shuffled", 26, 1, "0 for the general instance"),
)

# Which dimension is contiguous: K, or the rows (those of A, the columns of B), of which there are then a multiple of 8.
_LAYOUTS = {"kk": 0, "kr": 1, "rr": 2}
_ORDERS = {"k": "k", "r": "rows"}
# name -> (number, rows, columns, work-groups a compute unit), layouts
_TILES = {
    "m256n256": ((1, 256, 256, 1), ("kk", "kr", "rr")),
    "m256n128": ((2, 256, 128, 1), ("rr",)),
    "m128n128": ((3, 128, 128, 2), ("kk", "kr")),
    "m16n16": ((4, 16, 16, 2), ("kk",)),
    "m32n16": ((5, 32, 16, 2), ("kk",)),
    "m64n16": ((6, 64, 16, 2), ("kk",)),
}
_MX_TILES = ("m256n256", "m128n128", "m16n16", "m32n16")
_SMALL_TILES = ("m128n128",)
_SMALLEST_TILES = ("m16n16", "m32n16", "m64n16")  # those that gfx90a and gfx942 have, too
_MX = {"e4m3": (10, 0), "e5m2": (11, 1)}  # flydsl_aot_dtype; the matrix instruction's number
_AXES = {"none": 0, "rows": 1, "columns": 2, "k": 3}
_SIZES = (0, 1 << 30)


def _general(dtype):
    return Instance(
        name=f"grouped_gemm_{dtype}_general_m128n128",
        header="grouped_gemm/grouped_gemm_general.hip.h",
        entry=f"grouped::grouped_gemm_general<{dtype}>",
        key=(("dtype", DTYPES[dtype]), ("b_dtype", DTYPES[dtype])),
        preference=0,
        align_bytes=1,
        block=(256, 1, 1),
        tile=(128, 128, 2),
        lds_dynamic_bytes=0,
        waves_per_simd=2,
        seq_q=_SIZES,
        seq_k=_SIZES,
    )


def _fast(dtype, layout, tile):
    (number, rows, columns, groups), _ = _TILES[tile]
    orders = ", ".join(f"grouped::Order::{_ORDERS[order]}" for order in layout)
    few = columns == 16
    kind = "few_rows" if few else "small_tiles" if tile in _SMALL_TILES else "tiles"
    return Instance(
        name=f"grouped_gemm_{dtype}_{layout}_{tile}",
        header=f"grouped_gemm/grouped_gemm_{kind}.hip.h",
        entry=f"grouped::grouped_gemm_few_rows<{dtype}, {rows // 16}>"
        if few
        else f"grouped::grouped_gemm_{kind}<{dtype}, {orders}, {rows}, {columns}>",
        key=(("dtype", DTYPES[dtype]), ("b_dtype", DTYPES[dtype]), ("tile", number), ("layout", _LAYOUTS[layout])),
        preference=0,
        align_bytes=16,
        block=(256, 1, 1),
        tile=(rows, columns, groups),
        lds_dynamic_bytes=0,
        waves_per_simd=groups,
        seq_q=_SIZES,
        seq_k=_SIZES,
        hides_accumulators=not few,
    )


def _mx_name(a, b):
    return f"grouped_gemm_{a}" if a == b else f"grouped_gemm_{a}_{b}"


def _mx_general(a, b):
    return Instance(
        name=f"{_mx_name(a, b)}_general_m128n128",
        header="grouped_gemm/grouped_gemm_mx_general.hip.h",
        entry=f"grouped::grouped_gemm_mx_general<{_MX[a][1]}, {_MX[b][1]}>",
        key=(("dtype", _MX[a][0]), ("b_dtype", _MX[b][0])),
        preference=0,
        align_bytes=1,
        block=(256, 1, 1),
        tile=(128, 128, 2),
        lds_dynamic_bytes=0,
        waves_per_simd=2,
        seq_q=_SIZES,
        seq_k=_SIZES,
    )


def _mx_fast(a, b, shuffled, tile):
    number, rows, columns, groups = _TILES[tile][0]
    few = columns == 16
    arguments = f"{_MX[a][1]}, {_MX[b][1]}, {str(shuffled).lower()}"
    return Instance(
        name=f"{_mx_name(a, b)}{'_shuffled' if shuffled else ''}_{tile}",
        header=f"grouped_gemm/grouped_gemm_mx_{'few_rows' if few else 'tiles'}.hip.h",
        entry=f"grouped::grouped_gemm_mx_few_rows<{arguments}, {rows // 16}>"
        if few
        else f"grouped::grouped_gemm_mx_small_tiles<{arguments}>"
        if tile in _SMALL_TILES
        else f"grouped::grouped_gemm_mx_tiles<{arguments}>",
        key=(
            ("dtype", _MX[a][0]),
            ("b_dtype", _MX[b][0]),
            ("tile", number),
            ("layout", _LAYOUTS["kk"]),
            ("scales_shuffled", int(shuffled)),
        ),
        preference=0,
        align_bytes=16,
        block=(256, 1, 1),
        tile=(rows, columns, groups),
        lds_dynamic_bytes=0,
        waves_per_simd=groups,
        seq_q=_SIZES,
        seq_k=_SIZES,
        hides_accumulators=not few,
    )


_PAIRS = tuple((a, b) for a in _MX for b in _MX)


def _compiled(arch):
    """Those that fit any problem."""
    if arch not in MATRIX:
        return ()
    return (*(_general(dtype) for dtype in DTYPES), *(_mx_general(a, b) for a, b in _PAIRS))


def _instances(arch):
    if arch not in MATRIX:
        return ()
    return (
        *(
            _fast(dtype, layout, tile)
            for dtype in DTYPES
            for tile, (_, layouts) in _TILES.items()
            if arch == "gfx950" or tile in _SMALLEST_TILES
            for layout in layouts
        ),
        *(_mx_fast(a, b, shuffled, tile) for tile in _MX_TILES if arch == "gfx950" for shuffled in (False, True) for a, b in _PAIRS),
        *_compiled(arch),
    )


OPERATOR = Operator(
    name="grouped_gemm",
    grid_rule="persistent",
    arguments=_ARGUMENTS,
    key_fields=_KEY_FIELDS,
    instances=_instances,
    compiled=_compiled,
    tables=(
        Table("axes", "X(none, rows, columns, k): values of axis.", (tuple(_AXES.values()),)),
        Table("layouts", "X(kk, kr, rr): values of layout.", (tuple(_LAYOUTS.values()),)),
        Table(
            "tiles",
            "X(tile, rows, columns, work-groups a compute unit, layouts that have instances, a bit each: 1 << layout, whether MXFP8 has it).",
            tuple(
                (*tile, sum(1 << _LAYOUTS[layout] for layout in layouts), int(name in _MX_TILES)) for name, (tile, layouts) in _TILES.items()
            ),
        ),
    ),
)
