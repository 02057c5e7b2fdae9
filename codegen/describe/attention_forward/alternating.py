"""Instances for long rows of head dim 64: two waves a SIMD whose matrix and vector phases take turns (alternating/)."""

from ..model import Instance
from .keys import ELEMENTS, KEYS, LENGTHS, MASKS, key

_HEAD_DIM = 64
_ROWS = 128
# mask -> rows from which they are faster; shorter problems fill the device better with smaller tiles.
_FROM = {"none": 4096, "causal": 4096}


def _instance(dtype, mask):
    return Instance(
        name=f"attention_forward_{dtype}_d{_HEAD_DIM}_{mask}_alternating_m{_ROWS}n{KEYS}",
        header="attention_forward/alternating/attention_forward_alternating.hip.h",
        entry=f"alternating::attention_forward<{ELEMENTS[dtype]}, {_HEAD_DIM}, Mask::{mask}>",
        key=key(dtype, _HEAD_DIM, _HEAD_DIM, mask=MASKS[mask]),
        preference=-1,  # before all of exact.py
        align_bytes=16,
        block=(128, 1, 1),
        tile=(_ROWS, KEYS, 0),
        lds_dynamic_bytes=0,
        waves_per_simd=2,
        seq_q=(_FROM[mask], LENGTHS[1]),
        seq_k=LENGTHS,
    )


def instances():
    return tuple(_instance(dtype, mask) for dtype in ELEMENTS for mask in _FROM)
