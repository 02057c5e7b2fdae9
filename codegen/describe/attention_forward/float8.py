"""Instances for e4m3 queries, keys and values, descaled or not: scores at the 8-bit rate (float8/)."""

from ..model import Instance
from .keys import ELEMENTS, KEYS, LENGTHS, MASKS, key

# head dim -> waves a SIMD of the direct instances, as many as registers allow without spills.
_WAVES_PER_SIMD = {64: 4, 128: 3}
# (head dim, mask) -> rows from which one wave a SIMD with all registers is faster: shorter problems fill the device better with
# smaller tiles, and windows have few tiles that all rows see completely.
_PIPELINED_FROM = {(64, "none"): 2048, (64, "causal"): 8192, (128, "none"): 2048, (128, "causal"): 4096}


def _instance(dtype, head_dim, mask, pipelined):
    kind, rows, entry, suffix = ("pipelined", 256, "", "") if pipelined else ("direct", 128, "_direct", "_direct")
    return Instance(
        name=f"attention_forward_e4m3_{dtype}_d{head_dim}_{mask}_{kind}_m{rows}n{KEYS}",
        header=f"attention_forward/float8/attention_forward_float8{suffix}.hip.h",
        entry=f"float8::attention_forward{entry}<{ELEMENTS[dtype]}, {head_dim}, Mask::{mask}>",
        key=key(dtype, head_dim, head_dim, mask=MASKS[mask], float8=1),
        preference=0 if pipelined else 1,
        align_bytes=16,
        block=(256, 1, 1),
        tile=(rows, KEYS, 0),
        lds_dynamic_bytes=0,
        waves_per_simd=1 if pipelined else _WAVES_PER_SIMD[head_dim],
        seq_q=(_PIPELINED_FROM[head_dim, mask], LENGTHS[1]) if pipelined else LENGTHS,
        seq_k=LENGTHS,
    )


def instances(arch):
    if arch != "gfx950":  # 8-bit matrix products of the OCP formats
        return ()
    return tuple(
        _instance(dtype, head_dim, mask, pipelined)
        for dtype in ELEMENTS
        for head_dim in _WAVES_PER_SIMD
        for mask in MASKS
        for pipelined in (True, False)
        if not pipelined or (head_dim, mask) in _PIPELINED_FROM
    )
