"""attention_decode: kernel arguments, functional key, head-dim classes and instances.

A new head dim is one more row of _CLASSES, and its code in kernels/attention_decode/.
"""

from .model import DTYPES, Argument, Instance, KeyField, Operator, Table


def _strides(tensor, axes):
    return tuple(Argument("int64_t", f"{tensor}_stride_{axis}", "elements") for axis in axes)


_ARGUMENTS = (
    Argument("const void *", "q"),
    Argument("const void *", "k"),
    Argument("const void *", "v"),
    Argument("void *", "out"),
    Argument("float *", "lse", "null: not wanted"),
    *(stride for tensor in ("q", "k", "v", "out", "lse") for stride in _strides(tensor, "bhs")),
    Argument("const int32_t *", "seqused_k", "null: all keys"),
    Argument("const int32_t *", "block_table", "null: keys are not paged; else k_stride_b is that of blocks"),
    *_strides("block_table", "b"),
    Argument("uint32_t", "block_shift", "keys of a block are 2^this"),
    Argument("int32_t", "last_block", "numbers in the table are clamped to [0, last_block]"),
    Argument("uint32_t", "batches"),
    Argument("uint32_t", "heads_kv"),
    Argument("uint32_t", "heads_per_kv", "query heads that share a key head"),
    Argument("int32_t", "seq_q"),
    Argument("int32_t", "seq_k", "the longest"),
    Argument("uint32_t", "head_dim_qk"),
    Argument("uint32_t", "head_dim_v"),
    Argument("uint32_t", "row_tiles", "ceil(heads_per_kv * seq_q / tile[0])"),
    Argument("uint32_t", "rows_of_tile", "tile[0]"),
    Argument("uint32_t", "rows_of_slot", "of a partial result: as many, or fewer if the pair has fewer"),
    Argument("uint32_t", "workers", "work-groups that share the keys"),
    Argument("uint32_t", "reduce_grid_x", "of the second pass"),
    Argument("int32_t", "window_left", "in [0, 2^30], or -1: unlimited"),
    Argument("int32_t", "window_right", "in [0, 2^30], or -1: unlimited"),
    Argument("uint32_t", "bottom_right", "1: bounds count from key i + keys - seq_q, 0: from key i"),
    Argument("float", "scale_log2", "|scale| * log2(e), > 0; 1 when scale is 0"),
    Argument("float", "scale_sign", "-1, 0 or 1"),
    Argument("uint32_t", "score_terms", "1: softcap, ALiBi or sinks"),
    Argument("float", "softcap_ratio", "|scale| / softcap"),
    Argument("float", "softcap_log2", "softcap * log2(e); 0: none"),
    Argument("const float *", "alibi_slopes", "null: none"),
    *_strides("alibi", "bh"),
    Argument("const float *", "sinks", "null: none"),
    *_strides("sinks", "h"),
    Argument("void *", "partial_heads", "16 bytes a slot and row"),
    Argument("void *", "partial_outs", "head_dim_v floats a slot and row"),
)

_KEY_FIELDS = (
    KeyField("dtype", 0, 8, "flydsl_aot_dtype"),
    KeyField("head_dim_qk", 8, 12, "0 for the second pass"),
    KeyField("head_dim_v", 20, 12, "0 for the second pass"),
    KeyField("row_blocks", 32, 4, "tiles have 16 times as many rows; 0 for the second pass"),
)

_ELEMENTS = {"bf16": "bf16", "fp16": "fp16"}  # name -> element type in kernels/common/
_KEYS = 32
_LARGEST_LENGTH = 1 << 30
_ROW_BLOCKS = (1, 2, 4)

# (D, Dv, most row blocks that registers allow, work-groups a compute unit). A work-group's LDS is
# 128 (D + Dv) bytes; of a compute unit's 160 KiB this leaves 96 KiB or more of copies on their way.
_CLASSES = (
    (64, 64, 4, 8),
    (128, 128, 2, 4),
    (192, 128, 2, 4),
    (256, 256, 2, 2),
)


def _instance(dtype, name, header, entry, key, align_bytes, block, tile):
    return Instance(
        name=f"attention_decode_{dtype}_{name}",
        header=f"attention_decode/{header}.hip.h",
        entry=entry,
        key=(("dtype", DTYPES[dtype]), *key),
        preference=0,
        align_bytes=align_bytes,
        block=(block, 1, 1),
        tile=tile,
        lds_dynamic_bytes=0,
        waves_per_simd=1,
        seq_q=(0, 16),
        seq_k=(0, _LARGEST_LENGTH),
    )


def _pass_over_keys(dtype, head_dim_qk, head_dim_v, row_blocks, groups):
    dims = f"{head_dim_qk}" if head_dim_qk == head_dim_v else f"{head_dim_qk}x{head_dim_v}"
    return _instance(
        dtype,
        name=f"d{dims}_m{16 * row_blocks}n{_KEYS}",
        header="attention_decode",
        entry=f"attention_decode<{_ELEMENTS[dtype]}, {head_dim_qk}, {head_dim_v}, {row_blocks}>",
        key=(("head_dim_qk", head_dim_qk), ("head_dim_v", head_dim_v), ("row_blocks", row_blocks)),
        align_bytes=16,
        block=64,
        tile=(16 * row_blocks, _KEYS, groups),
    )


def _second_pass(dtype):
    return _instance(
        dtype,
        name="reduce",
        header="attention_decode_reduce",
        entry=f"attention_decode_reduce<{_ELEMENTS[dtype]}>",
        key=(),
        align_bytes=2,
        block=256,
        tile=(1, 0, 0),
    )


def _instances(arch):
    if arch != "gfx950":  # 16x16x32 matrix instructions, ds_read_tr and 16-byte copies to LDS
        return ()
    first = (
        _pass_over_keys(dtype, head_dim_qk, head_dim_v, row_blocks, groups)
        for dtype in _ELEMENTS
        for head_dim_qk, head_dim_v, most, groups in _CLASSES
        for row_blocks in _ROW_BLOCKS
        if row_blocks <= most
    )
    return tuple(first) + tuple(_second_pass(dtype) for dtype in _ELEMENTS)


OPERATOR = Operator(
    name="attention_decode",
    grid_rule="persistent",
    arguments=_ARGUMENTS,
    key_fields=_KEY_FIELDS,
    instances=_instances,
    tables=(
        Table("head_dims", "X(D, Dv, most row blocks) of each pair of head dims.", tuple(row[:3] for row in _CLASSES)),
    ),
)
