"""Instances for e4m3 queries, keys and values, descaled or not: scores at the 8-bit rate (float8/)."""

from ..model import Instance
from .keys import ELEMENTS, KEYS, LENGTHS, MASKS, key

_HEAD_DIMS = (64, 128)
_MASKS = ("none", "causal")  # others: the general instance
_ROWS = 256


def _instance(dtype, head_dim, mask):
    return Instance(
        name=f"attention_forward_e4m3_{dtype}_d{head_dim}_{mask}_m{_ROWS}n{KEYS}",
        header="attention_forward/float8/attention_forward_float8.hip.h",
        entry=f"float8::attention_forward<{ELEMENTS[dtype]}, {head_dim}, Mask::{mask}>",
        key=key(dtype, head_dim, head_dim, mask=MASKS[mask], float8=1),
        preference=0,
        align_bytes=16,
        block=(256, 1, 1),
        tile=(_ROWS, KEYS, 0),
        lds_dynamic_bytes=0,
        waves_per_simd=1,
        seq_q=LENGTHS,
        seq_k=LENGTHS,
    )


def instances():
    return tuple(_instance(dtype, head_dim, mask) for dtype in ELEMENTS for head_dim in _HEAD_DIMS for mask in _MASKS)
