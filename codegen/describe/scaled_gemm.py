"""scaled_gemm: kernel arguments, functional key and instances.

A problem whose D has contiguous columns reaches the kernels transposed, with A and B, M and N exchanged (v2src/scaled_gemm_describe.cc).
"""

from .attention_arguments import strides
from .model import Argument, Instance, KeyField, Operator

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
    Argument("uint32_t", "d_dtype", _DTYPE),
    Argument("uint32_t", "bias_dtype", _DTYPE),
    Argument("uint32_t", "scales_shuffled", "1: in blocks of 32 rows and 8 columns; 0: as the strides say"),
    Argument("int32_t", "m"),
    Argument("int32_t", "n"),
    Argument("int32_t", "k", "a multiple of 32"),
    Argument("uint32_t", "batches"),
    Argument("uint32_t", "row_tiles", "ceil(m / tile[0])"),
    Argument("uint32_t", "column_tiles", "ceil(n / tile[1])"),
    Argument("uint32_t", "tiles", "row_tiles * column_tiles * batches"),
    Argument("uint32_t", "grid_x", "work-groups along x; of an instance with tile[2] all, that many a compute unit"),
)

_KEY_FIELDS = (
    KeyField("a_dtype", 0, 8, "flydsl_aot_dtype"),
    KeyField("b_dtype", 8, 8, "flydsl_aot_dtype"),
    KeyField("fast", 16, 1, "1: whole slabs of K, contiguous in both operands; 0 for the general instance"),
    KeyField("scales_shuffled", 17, 1, "0 for the general instance"),
)

_DTYPES = {"e4m3": 10, "e5m2": 11, "e2m1": 15}
_FORMATS = {"e4m3": 0, "e5m2": 1, "e2m1": 4}  # of the matrix instruction's operands
_PAIRS = (("e4m3", "e4m3"), ("e4m3", "e5m2"), ("e5m2", "e4m3"), ("e5m2", "e5m2"), ("e2m1", "e2m1"))
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


def _tiles(a, b, shuffled):
    return Instance(
        name=f"{_name(a, b)}{'_shuffled' if shuffled else ''}_m256n256",
        header="scaled_gemm/scaled_gemm_tiles.hip.h",
        entry=f"scaled_gemm_m256n256<{_FORMATS[a]}, {_FORMATS[b]}, {str(shuffled).lower()}>",
        key=(("a_dtype", _DTYPES[a]), ("b_dtype", _DTYPES[b]), ("fast", 1), ("scales_shuffled", int(shuffled))),
        preference=0,
        align_bytes=16,
        block=(256, 1, 1),
        tile=(256, 256, 1),
        lds_dynamic_bytes=0,
        waves_per_simd=1,
        seq_q=_SIZES,
        seq_k=_SIZES,
        hides_accumulators=True,
    )


def _instances(arch):
    if arch != "gfx950":  # matrix instructions that take scales
        return ()
    tiles = tuple(_tiles(a, b, shuffled) for shuffled in (False, True) for a, b in _PAIRS)
    return tiles + tuple(_general(a, b) for a, b in _PAIRS)


OPERATOR = Operator(
    name="scaled_gemm",
    grid_rule="linear_tiles",
    arguments=_ARGUMENTS,
    key_fields=_KEY_FIELDS,
    instances=_instances,
)
