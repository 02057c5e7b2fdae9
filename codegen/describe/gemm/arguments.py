"""Kernel arguments of gemm, the same for all instances.

A problem whose D has contiguous columns reaches the kernels transposed, with A and B, M and N exchanged (v2src/gemm_describe.cc): so
d_stride_n is 1 wherever either stride of D is.
"""

from ..attention_arguments import strides
from ..model import Argument

_DTYPE = "flydsl_aot_dtype"

ARGUMENTS = (
    Argument("const void *", "a"),
    *strides("a", "bmk"),
    Argument("const void *", "b"),
    *strides("b", "bkn"),
    Argument("const void *", "c", "null: beta is 0"),
    *strides("c", "bmn"),
    Argument("void *", "d"),
    *strides("d", "bmn"),
    Argument("const void *", "residual", "null: none"),
    *strides("residual", "bmn"),
    Argument("void *", "aux", "null: not wanted; read where gradient is 1"),
    *strides("aux", "bmn"),
    Argument("const void *", "bias_m", "null: none"),
    *strides("bias_m", "bm"),
    Argument("const void *", "bias_n", "null: none"),
    *strides("bias_n", "bn"),
    Argument("const float *", "a_descale", "null: 1"),
    *strides("a_descale", "bm"),
    Argument("const float *", "b_descale", "null: 1"),
    *strides("b_descale", "bn"),
    Argument("const float *", "d_scale", "null: 1"),
    Argument("float *", "partials", "(splits, batches, m, n), sums of each part of K; unused when splits is 1"),
    Argument("uint32_t", "a_dtype", _DTYPE),
    Argument("uint32_t", "b_dtype", _DTYPE),
    Argument("uint32_t", "c_dtype", _DTYPE),
    Argument("uint32_t", "d_dtype", _DTYPE),
    Argument("uint32_t", "residual_dtype", _DTYPE),
    Argument("uint32_t", "aux_dtype", _DTYPE),
    Argument("uint32_t", "bias_m_dtype", _DTYPE),
    Argument("uint32_t", "bias_n_dtype", _DTYPE),
    Argument("float", "alpha"),
    Argument("float", "beta"),
    Argument("uint32_t", "activation", "flydsl_aot_activation"),
    Argument("uint32_t", "gradient", "1: its derivative at aux is a factor"),
    Argument("int32_t", "m"),
    Argument("int32_t", "n"),
    Argument("int32_t", "k", "0 too when alpha is 0"),
    Argument("uint32_t", "batches"),
    Argument("uint32_t", "row_tiles", "ceil(m / tile[0])"),
    Argument("uint32_t", "column_tiles", "ceil(n / tile[1])"),
    Argument("uint32_t", "splits", "parts of K, each a work-group's; above 1 a second pass adds them"),
    Argument("int32_t", "split_k", "K of a part, but for the last: a multiple of K_GRANULE; 0 when k is"),
    Argument("uint32_t", "whole_tiles", "tiles of all batches before those in parts; 0: all are in `splits` parts"),
    Argument("uint32_t", "part_tiles", "those after them, where there are whole ones: partials are (splits, part_tiles, tile_rows, tile_columns)"),
    Argument("uint32_t", "tile_rows", "tile[0]"),
    Argument("uint32_t", "tile_columns", "tile[1]"),
    Argument("uint32_t", "tiles", "whole_tiles + part_tiles * splits, or row_tiles * column_tiles * splits * batches; of the second pass blocks of 8 columns of D"),
    Argument("uint32_t", "grid_x"),
)
