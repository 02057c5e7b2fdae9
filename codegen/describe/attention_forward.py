"""attention_forward: kernel arguments, functional key and instances.

A new variant is one more value in the lists below, and its code in kernels/attention_forward/.
"""

from .model import DTYPES, Argument, Instance, KeyField, Operator

_STRIDES = tuple(
    Argument("int64_t", f"{tensor}_stride_{axis}", "elements")
    for tensor in ("q", "k", "v", "out", "lse")
    for axis in ("b", "h", "s")
)

_ARGUMENTS = (
    (
        Argument("const void *", "q"),
        Argument("const void *", "k"),
        Argument("const void *", "v"),
        Argument("void *", "out"),
        Argument("float *", "lse", "null: not wanted"),
    )
    + _STRIDES
    + (
        Argument("int32_t", "seq_q"),
        Argument("int32_t", "seq_k"),
        Argument("int32_t", "heads_q"),
        Argument("int32_t", "heads_per_kv", "query heads that share a key head"),
        Argument("int32_t", "batches"),
        Argument("int32_t", "mask_shift", "query i sees keys j <= i + mask_shift; in [-seq_q, seq_k]"),
        Argument("uint32_t", "grid_x"),
        Argument("uint32_t", "row_tiles", "ceil(seq_q / tile[0])"),
        Argument("float", "scale_log2", "|scale| * log2(e), > 0; 1 when scale is 0"),
        Argument("uint32_t", "q_and", "applied to each pair of q values; 0 when scale is 0"),
        Argument("uint32_t", "q_xor", "then this; 0x80008000 when scale is negative"),
    )
)

_KEY_FIELDS = (
    KeyField("dtype", 0, 8, "flydsl_aot_dtype"),
    KeyField("head_dim_qk", 8, 12),
    KeyField("head_dim_v", 20, 12),
    KeyField("mask", 32, 4, "0 none, 1 bounded on the right"),
    KeyField("features", 36, 28),
)

_MASKS = {"none": 0, "causal": 1}
_ELEMENTS = {"bf16": "bf16", "fp16": "fp16"}  # name -> element type in kernels/common/
# How K and V reach LDS, best first: (name, required alignment in bytes).
_STAGINGS = (("direct", 16), ("staged", 2))
_ROWS, _KEYS = 128, 64
# (head dim, staging) -> waves a SIMD, as many as registers allow without spills (LDS: 66.5 KiB and
# 33.3 KiB of 160 KiB a work-group for head dims 128 and 64).
_WAVES_PER_SIMD = {
    (64, "direct"): 4,
    (64, "staged"): 3,
    (128, "direct"): 2,
    (128, "staged"): 2,
}
_LARGEST_LENGTH = 1 << 30


def _instance(dtype, head_dim, mask, preference):
    staging, align_bytes = _STAGINGS[preference]
    return Instance(
        name=f"attention_forward_{dtype}_d{head_dim}_{mask}_{staging}_m{_ROWS}n{_KEYS}",
        template=f"<{_ELEMENTS[dtype]}, {head_dim}, Mask::{mask}, Staging::{staging}>",
        key=(
            ("dtype", DTYPES[dtype]),
            ("head_dim_qk", head_dim),
            ("head_dim_v", head_dim),
            ("mask", _MASKS[mask]),
        ),
        preference=preference,
        align_bytes=align_bytes,
        block=(256, 1, 1),
        tile=(_ROWS, _KEYS, 0),
        lds_dynamic_bytes=0,
        waves_per_simd=_WAVES_PER_SIMD[head_dim, staging],
        seq_q=(0, _LARGEST_LENGTH),
        seq_k=(0, _LARGEST_LENGTH),
    )


def _instances(arch):
    if arch != "gfx950":  # 32x32x16 matrix instructions, ds_read_tr and 16-byte copies to LDS
        return ()
    return tuple(
        _instance(dtype, head_dim, mask, preference)
        for dtype in ("bf16", "fp16")
        for head_dim in (64, 128)
        for mask in _MASKS
        for preference in range(len(_STAGINGS))
    )


OPERATOR = Operator(
    name="attention_forward",
    header="attention_forward/attention_forward.hip.h",
    entry="attention_forward",
    grid_rule="linear_tiles",
    arguments=_ARGUMENTS,
    key_fields=_KEY_FIELDS,
    instances=_instances,
)
