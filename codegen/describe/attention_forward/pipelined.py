"""Instances for long rows: one wave a SIMD with all registers (pipelined/)."""

from ..model import Instance
from .keys import ELEMENTS, KEYS, LENGTHS, MASKS, key

_HEAD_DIMS = (128,)
_ROWS = 256
# mask -> rows from which they are faster; shorter problems fill the device better with smaller tiles.
_FROM = {"none": 2048, "causal": 4096}


def _instance(dtype, head_dim, mask):
    return Instance(
        name=f"attention_forward_{dtype}_d{head_dim}_{mask}_pipelined_m{_ROWS}n{KEYS}",
        header="attention_forward/pipelined/attention_forward_pipelined.hip.h",
        entry=f"pipelined::attention_forward<{ELEMENTS[dtype]}, {head_dim}, Mask::{mask}>",
        key=key(dtype, head_dim, head_dim, mask=MASKS[mask]),
        preference=-1,  # before all of exact.py
        align_bytes=16,
        block=(256, 1, 1),
        tile=(_ROWS, KEYS, 0),
        lds_dynamic_bytes=0,
        waves_per_simd=1,
        seq_q=(_FROM[mask], LENGTHS[1]),
        seq_k=LENGTHS,
    )


def instances():
    return tuple(
        _instance(dtype, head_dim, mask) for dtype in ELEMENTS for head_dim in _HEAD_DIMS for mask in _FROM
    )
