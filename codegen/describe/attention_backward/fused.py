"""Instances that compute all three gradients at once, dQ as fp32 sums in the workspace (kernels/attention_backward/fused/)."""

from ..model import Instance
from .general import TILES
from .keys import ELEMENTS, LENGTHS, MASKS, key

_KEYS = 256
# By head dim: rows of a step, header.
_SHAPES = {64: (64, "attention_backward_fused_d64"), 128: (32, "attention_backward_fused")}


# Rows that a work-group owns, and what a pair of one of them and a row that it meets costs: by a work-group alone on its compute unit, and by
# one of many. Ten times the products of `fused`, measured against each other (kernels/attention_backward/NOTES.md).
COSTS = (("fused", _KEYS, 50, 50), ("keys", TILES["keys"][1], 64, 44), ("queries", TILES["queries"][0], 48, 38))


def _instance(dtype, head_dim, mask):
    rows, header = _SHAPES[head_dim]
    return Instance(
        name=f"attention_backward_{dtype}_d{head_dim}_{mask}_fused_m{rows}n{_KEYS}",
        header=f"attention_backward/fused/{header}.hip.h",
        entry=f"fused::attention_backward_fused<{ELEMENTS[dtype]}, {head_dim}, Mask::{mask}>",
        key=key(dtype, head_dim, head_dim, "fused", mask=MASKS[mask]),
        preference=0,
        align_bytes=16,
        block=(256, 1, 1),
        tile=(rows, _KEYS, 0),
        lds_dynamic_bytes=0,
        waves_per_simd=1,
        seq_q=LENGTHS,
        seq_k=LENGTHS,
        hides_accumulators=True,
    )


def instances(arch):
    if arch != "gfx950":  # hides accumulators of 32x32x16 products, and keeps more than 64 KiB in LDS
        return ()
    return tuple(
        _instance(dtype, head_dim, mask)
        for dtype in ELEMENTS
        for head_dim in _SHAPES
        for mask in ("none", "causal")
    )
