"""What instances of every family share: element types, masks, passes, the functional key, limits of lengths."""

from ..model import DTYPES, KeyField

KEY_FIELDS = (
    KeyField("dtype", 0, 8, "flydsl_aot_dtype; 0 for `sinks`"),
    KeyField("head_dim_qk", 8, 12, "of the class; 0 for `prepare`, `sinks`, `convert` and those in rows"),
    KeyField("head_dim_v", 20, 12, "of the class; the same"),
    KeyField("mask", 32, 4, "0 none, 1 bounded on the right, 2 on the left too; 0 for the general instance; from 8 up AITER's"),
    KeyField("pass", 36, 4, "PASSES"),
    KeyField("general", 40, 1, "1: the general instance of the class; of tuning rows of `fused`, that query heads share key heads"),
    KeyField("padded", 41, 1, "1: the instance takes head dims less by 8, 16 or 24 too; 0 for the general instance"),
)

# What a call launches, in this order, as far as it is wanted; `keys` and `queries`, or `fused` and `convert`. A kernel of others for
# `fused` has dq's sums in rows: `prepare_rows` and `convert_rows` are for it what `prepare` and `convert` are.
PASSES = {
    "prepare": 0,  # row_lse, row_delta
    "keys": 1,  # dk, dv
    "queries": 2,  # dq
    "bias": 3,  # dbias
    "sinks": 4,  # dsinks
    "fused": 5,  # dk, dv, and dq in dq_accumulator
    "convert": 6,  # dq from dq_accumulator
    "prepare_rows": 7,
    "convert_rows": 8,
}
MASKS = {"none": 0, "causal": 1, "window": 2}
ELEMENTS = {"bf16": "bf16", "fp16": "fp16"}  # name -> element type in kernels/common/
LENGTHS = (0, 1 << 30)


def key(dtype, head_dim_qk, head_dim_v, pass_name, **others):
    return (
        ("dtype", DTYPES[dtype]),
        ("head_dim_qk", head_dim_qk),
        ("head_dim_v", head_dim_v),
        ("pass", PASSES[pass_name]),
        *others.items(),
    )
