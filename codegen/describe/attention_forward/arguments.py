"""Kernel arguments of attention_forward. Instances without features read the first group, and the head dims."""

from ..attention_arguments import SCORE_FEATURES, strides
from ..model import Argument


_EVERY_INSTANCE = (
    (
        Argument("const void *", "q"),
        Argument("const void *", "k"),
        Argument("const void *", "v"),
        Argument("void *", "out"),
        Argument("float *", "lse", "null: not wanted"),
    )
    + tuple(stride for tensor in ("q", "k", "v", "out", "lse") for stride in strides(tensor, "bhs"))
    + (
        Argument("int32_t", "seq_q", "the longest, when sequences differ"),
        Argument("int32_t", "seq_k", "the longest, when sequences differ"),
        Argument("int32_t", "heads_q"),
        Argument("int32_t", "heads_per_kv", "query heads that share a key head"),
        Argument("int32_t", "batches"),
        Argument("int32_t", "window_left", "in [0, 2^30], or -1: unlimited"),
        Argument("int32_t", "window_right", "in [0, 2^30], or -1: unlimited"),
        Argument("uint32_t", "bottom_right", "1: bounds count from key i + seq_k - seq_q, 0: from key i"),
        Argument("uint32_t", "grid_x"),
        Argument("uint32_t", "row_tiles", "ceil(seq_q / tile[0]); of all sequences together, and maybe more, when they differ"),
        Argument("float", "scale_log2", "|scale| * log2(e), > 0; 1 when scale is 0"),
        Argument("uint32_t", "q_and", "applied to each pair of q values; 0 when scale is 0"),
        Argument("uint32_t", "q_xor", "then this; 0x80008000 when scale is negative"),
        Argument("const int32_t *", "cu_seqlens_q", "null: dense"),
        Argument("const int32_t *", "cu_seqlens_k", "null: dense"),
        Argument("const int32_t *", "seqused_q", "null: all rows"),
        Argument("const int32_t *", "seqused_k", "null: all keys"),
        Argument("int32_t", "total_q", "rows of the packed tensor"),
        Argument("int32_t", "total_k"),
    )
)

_GENERAL_INSTANCES = (
    Argument("int32_t", "head_dim_qk", "at most that of the instance's class"),
    Argument("int32_t", "head_dim_v"),
    Argument("const int32_t *", "block_table", "null: keys are not paged; else k_stride_b is that of blocks"),
    *strides("block_table", "b"),
    Argument("uint32_t", "block_shift", "keys of a block are 2^this"),
    Argument("int32_t", "last_block", "numbers in the table are clamped to [0, last_block]"),
    Argument("uint32_t", "q_format", "0: the instance's element type, 1: e4m3, 2: e5m2"),
    Argument("uint32_t", "kv_format", "the same of k and v"),
    Argument("uint32_t", "q_descale_by_kv", "1: q_descale has a number per key head"),
    Argument("const float *", "q_descale", "null: 1"),
    *strides("q_descale", "bh"),
    Argument("const float *", "k_descale", "null: 1"),
    *strides("k_descale", "bh"),
    Argument("const float *", "v_descale", "null: 1"),
    *strides("v_descale", "bh"),
    Argument("uint32_t", "score_terms", "1: scores are more than scale * q . k: q_descale, k_descale or any up to sinks"),
    *SCORE_FEATURES,
    Argument("uint64_t *", "dropout_seed_out", "null: not wanted"),
    Argument("uint64_t *", "dropout_offset_out", "null: not wanted"),
    Argument("void *", "kept", "bytes, whether a weight is kept; null: not wanted"),
    *strides("kept", "bhqk"),
)

ARGUMENTS = _EVERY_INSTANCE + _GENERAL_INSTANCES
