"""Instances for many rows of head dim 64: two waves a SIMD whose matrix and vector phases take turns (alternating/)."""

from ..model import Instance
from .keys import ELEMENTS, KEYS, LENGTHS, MASKS, key

_HEAD_DIM = 64
_ROWS = 128
# Of problems with many rows over all heads and sequences (v2src/attention_forward_describe.cc): mask -> rows of a
# sequence from which they are faster.
_FROM = {"none": 512, "causal": 1024}


def _instance(dtype, mask):
    return Instance(
        name=f"attention_forward_{dtype}_d{_HEAD_DIM}_{mask}_alternating_m{_ROWS}n{KEYS}",
        header="attention_forward/alternating/attention_forward_alternating.hip.h",
        entry=f"alternating::attention_forward<{ELEMENTS[dtype]}, {_HEAD_DIM}, Mask::{mask}>",
        key=key(dtype, _HEAD_DIM, _HEAD_DIM, mask=MASKS[mask], many_rows=1),
        preference=0,
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
