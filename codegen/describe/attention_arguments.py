"""Kernel arguments that attention operators share."""

from .model import Argument


def strides(tensor, axes, unit="elements"):
    return tuple(Argument("int64_t", f"{tensor}_stride_{axis}", unit) for axis in axes)


# What changes scores, hides keys one by one or drops weights.
SCORE_FEATURES = (
    Argument("float", "softcap_ratio", "|scale| / softcap"),
    Argument("float", "softcap_log2", "softcap * log2(e); 0: none"),
    Argument("uint32_t", "bias_is_fp32", "else of q's dtype"),
    Argument("const void *", "bias", "null: none"),
    *strides("bias", "bhqk"),
    Argument("const float *", "alibi_slopes", "null: none"),
    *strides("alibi", "bh"),
    Argument("const float *", "sinks", "null: none"),
    *strides("sinks", "h"),
    Argument("const void *", "visible", "bytes, 0 hides the key; null: none"),
    *strides("visible", "bhqk"),
    Argument("uint32_t", "dropout_threshold", "a random word below it drops the weight; 0: none"),
    Argument("float", "dropout_scale", "1 / (1 - p)"),
    Argument("uint64_t", "dropout_seed", "without dropout_seed_device"),
    Argument("uint64_t", "dropout_offset", "added to that at dropout_offset_device"),
    Argument("const uint64_t *", "dropout_seed_device", "null: none"),
    Argument("const uint64_t *", "dropout_offset_device", "null: none"),
)
