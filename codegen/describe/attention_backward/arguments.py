"""Kernel arguments of attention_backward, one structure for every pass. Names that attention_forward has too mean the same."""

from ..attention_arguments import SCORE_FEATURES, strides
from ..model import Argument


_EVERY_INSTANCE = (
    (
        Argument("const void *", "q"),
        Argument("const void *", "k"),
        Argument("const void *", "v"),
        Argument("const void *", "dout", "after `prepare` its copy, if it has one"),
        Argument("void *", "dq", "null: not wanted"),
        Argument("void *", "dk", "null: not wanted"),
        Argument("void *", "dv", "null: not wanted"),
        Argument("float *", "row_lse", "written by `prepare`, kernels/attention_backward/planes.hip.h"),
        Argument("float *", "row_delta", "the same"),
        Argument("int64_t", "rows_stride", "of both, from head to head (dense: of each sequence); a multiple of 128"),
    )
    + tuple(stride for tensor in ("q", "k", "v", "dout", "dq", "dk", "dv") for stride in strides(tensor, "bhs"))
    + (
        Argument("int32_t", "seq_q", "the longest, when sequences differ"),
        Argument("int32_t", "seq_k", "the longest, when sequences differ"),
        Argument("int32_t", "heads_q"),
        Argument("int32_t", "heads_kv"),
        Argument("int32_t", "heads_per_kv", "query heads that share a key head"),
        Argument("int32_t", "batches"),
        Argument("int32_t", "window_left", "in [0, 2^30], or -1: unlimited"),
        Argument("int32_t", "window_right", "in [0, 2^30], or -1: unlimited"),
        Argument("uint32_t", "bottom_right", "1: bounds count from key i + seq_k - seq_q, 0: from key i"),
        Argument("uint32_t", "grid_x", "of this launch"),
        Argument("uint32_t", "row_tiles", "of this launch: ceil(seq_q / tile[0]), `keys` and `fused`: ceil(seq_k / tile[1]); "
                 "of all sequences together, and maybe more, when they differ"),
        Argument("float", "scale_log2", "|scale| * log2(e), > 0; 1 when scale is 0"),
        Argument("uint32_t", "q_and", "applied to each pair of q values; 0 when scale is 0"),
        Argument("uint32_t", "q_xor", "then this; 0x80008000 when scale is negative"),
        Argument("float", "scale", "signed, of dq and dk"),
        Argument("const int32_t *", "cu_seqlens_q", "null: dense"),
        Argument("const int32_t *", "cu_seqlens_k", "null: dense"),
        Argument("const int32_t *", "seqused_q", "null: all rows"),
        Argument("const int32_t *", "seqused_k", "null: all keys"),
        Argument("int32_t", "total_q", "rows of the packed tensor"),
        Argument("int32_t", "total_k"),
        Argument("int32_t", "head_dim_qk", "at most that of the instance's class"),
        Argument("int32_t", "head_dim_v"),
    )
)

_FUSED_INSTANCES = (
    Argument("float *", "dq_accumulator", "rows of dq_accumulator_stride floats, numbered as those of row_lse; without the scale"),
    Argument("int64_t", "dq_accumulator_stride"),
    Argument("void *", "dq_counters", "numbers of 32 bits, set to 0 by `prepare`"),
    Argument("int64_t", "dq_counter_count"),
)

_GENERAL_INSTANCES = (
    Argument("uint32_t", "score_terms", "1: scores are more than scale * q . k"),
    *SCORE_FEATURES,
)

_BIAS_PASS = (
    Argument("void *", "dbias"),
    Argument("uint32_t", "dbias_is_fp32", "else of q's dtype"),
    *strides("dbias", "bhqk"),
    Argument("int32_t", "dbias_batches", "as the three below: the problem's, or 1: summed"),
    Argument("int32_t", "dbias_heads"),
    Argument("int32_t", "dbias_rows"),
    Argument("int32_t", "dbias_keys"),
    Argument("uint32_t", "dbias_row_tiles", "ceil(dbias_rows / tile[0])"),
    Argument("uint32_t", "dbias_key_tiles", "ceil(dbias_keys / tile[1])"),
)

_OTHER_PASSES = (
    Argument("const void *", "out"),
    *strides("out", "bhs"),
    Argument("const float *", "lse"),
    *strides("lse", "bhs"),
    Argument("uint32_t", "lse_is_padded", "1: rows of lse count from the sequence's first, 0: from the packed tensor's"),
    Argument("int64_t", "dout_stride_d", "of `prepare`; for all others it is 1"),
    Argument("void *", "dout_copy", "written by `prepare`; null: none"),
    *strides("dout_copy", "bhs"),
    Argument("float *", "dsinks"),
    *strides("dsinks", "h"),
)

ARGUMENTS = _EVERY_INSTANCE + _FUSED_INSTANCES + _GENERAL_INSTANCES + _BIAS_PASS + _OTHER_PASSES
