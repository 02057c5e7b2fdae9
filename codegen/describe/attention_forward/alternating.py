"""Instances for many rows of head dims up to 96: two waves a SIMD whose matrix and vector phases take turns (alternating/)."""

from ..model import Instance
from .keys import ELEMENTS, LENGTHS, MASKS, key

_KEYS = {32: 64, 64: 64, 96: 32}  # head dim -> of a tile
_ROWS = 128
# Of problems with many rows over all heads and sequences (v2src/attention_forward_describe.cc): mask -> rows of a
# sequence from which they are faster.
_FROM = {"none": 512, "causal": 1024}


def _instance(dtype, head_dim, mask):
    return Instance(
        name=f"attention_forward_{dtype}_d{head_dim}_{mask}_alternating_m{_ROWS}n{_KEYS[head_dim]}",
        header="attention_forward/alternating/attention_forward_alternating.hip.h",
        entry=f"alternating::attention_forward<{ELEMENTS[dtype]}, {head_dim}, Mask::{mask}>",
        key=key(dtype, head_dim, head_dim, mask=MASKS[mask], many_rows=1),
        preference=0,
        align_bytes=16,
        block=(128, 1, 1),
        tile=(_ROWS, _KEYS[head_dim], 0),
        lds_dynamic_bytes=0,
        waves_per_simd=2,
        seq_q=(_FROM[mask], LENGTHS[1]),
        seq_k=LENGTHS,
    )


def instances(arch):
    if arch != "gfx950":  # copies of 16 bytes to LDS on their way beside other work
        return ()
    return tuple(
        _instance(dtype, head_dim, mask) for dtype in ELEMENTS for head_dim in _KEYS for mask in _FROM
    )
