"""Instances for problems of exactly their head dims and no feature but bounds and lengths (attention_forward.hip.h)."""

from ..model import Instance
from .keys import ELEMENTS, KEYS, LENGTHS, MASKS, key

# How K and V reach LDS, best first: (name, required alignment in bytes).
_STAGINGS = (("direct", 16), ("staged", 2))
_ROWS = 128
# (head dim, staging) -> waves a SIMD, as many as registers allow without spills (LDS: 66.5 KiB and
# 33.3 KiB of 160 KiB a work-group for head dims 128 and 64).
_WAVES_PER_SIMD = {
    (64, "direct"): 4,
    (64, "staged"): 3,
    (128, "direct"): 2,
    (128, "staged"): 2,
}
# Where masking both sides of every tile takes more registers.
_WINDOW_WAVES_PER_SIMD = {(64, "direct"): 3, (64, "staged"): 2}
HEAD_DIMS = tuple(dict.fromkeys(head_dim for head_dim, _ in _WAVES_PER_SIMD))


def _instance(dtype, head_dim, mask, preference):
    staging, align_bytes = _STAGINGS[preference]
    waves = _WAVES_PER_SIMD[head_dim, staging]
    if mask == "window":
        waves = _WINDOW_WAVES_PER_SIMD.get((head_dim, staging), waves)
    return Instance(
        name=f"attention_forward_{dtype}_d{head_dim}_{mask}_{staging}_m{_ROWS}n{KEYS}",
        header="attention_forward/attention_forward.hip.h",
        entry=f"attention_forward<{ELEMENTS[dtype]}, {head_dim}, Mask::{mask}, Staging::{staging}>",
        key=key(dtype, head_dim, head_dim, mask=MASKS[mask]),
        preference=preference,
        align_bytes=align_bytes,
        block=(256, 1, 1),
        tile=(_ROWS, KEYS, 0),
        lds_dynamic_bytes=0,
        waves_per_simd=waves,
        seq_q=LENGTHS,
        seq_k=LENGTHS,
    )


def instances():
    return tuple(
        _instance(dtype, head_dim, mask, preference)
        for dtype in ELEMENTS
        for head_dim in HEAD_DIMS
        for mask in MASKS
        for preference in range(len(_STAGINGS))
    )
