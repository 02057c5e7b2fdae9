"""Instances that compute all three gradients at once, dQ as fp32 sums in the workspace (kernels/attention_backward/fused/)."""

from ..model import Instance
from .keys import ELEMENTS, LENGTHS, MASKS, key

_HEAD_DIM = 128
_ROWS, _KEYS = 32, 256


def _instance(dtype, mask):
    return Instance(
        name=f"attention_backward_{dtype}_d{_HEAD_DIM}_{mask}_fused_m{_ROWS}n{_KEYS}",
        header="attention_backward/fused/attention_backward_fused.hip.h",
        entry=f"fused::attention_backward_fused<{ELEMENTS[dtype]}, {_HEAD_DIM}, Mask::{mask}>",
        key=key(dtype, _HEAD_DIM, _HEAD_DIM, "fused", mask=MASKS[mask]),
        preference=0,
        align_bytes=16,
        block=(256, 1, 1),
        tile=(_ROWS, _KEYS, 0),
        lds_dynamic_bytes=0,
        waves_per_simd=1,
        seq_q=LENGTHS,
        seq_k=LENGTHS,
        hides_accumulators=True,
    )


def instances():
    return tuple(_instance(dtype, mask) for dtype in ELEMENTS for mask in ("none", "causal"))
