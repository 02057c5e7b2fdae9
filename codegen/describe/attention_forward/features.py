"""Instances with every feature for 16-bit elements, 16-byte aligned rows, and a class's head dims or less by 8, 16 or 24
(features/attention_forward_features.hip.h); what they do not take is for the general ones."""

from ..model import Instance
from .keys import ELEMENTS, KEYS, LENGTHS, key

_ROWS = 128
# (D, Dv) -> waves a SIMD: as many as registers allow without spills.
_WAVES_PER_SIMD = {
    (32, 32): 2,
    (64, 64): 2,
    (96, 96): 2,
    (128, 128): 2,
}


def _instance(dtype, dims):
    head_dim_qk, head_dim_v = dims
    name = f"{head_dim_qk}" if head_dim_qk == head_dim_v else f"{head_dim_qk}x{head_dim_v}"
    return Instance(
        name=f"attention_forward_{dtype}_d{name}_features_m{_ROWS}n{KEYS}",
        header="attention_forward/features/attention_forward_features.hip.h",
        entry=f"attention_forward_features<{ELEMENTS[dtype]}, {head_dim_qk}, {head_dim_v}>",
        key=key(dtype, head_dim_qk, head_dim_v, general=1, padded=1),
        preference=0,
        align_bytes=16,
        block=(256, 1, 1),
        tile=(_ROWS, KEYS, 0),
        lds_dynamic_bytes=0,
        waves_per_simd=_WAVES_PER_SIMD[dims],
        seq_q=LENGTHS,
        seq_k=LENGTHS,
    )


def instances(arch):
    if arch != "gfx950":  # copies of 16 bytes to LDS on their way beside other work
        return ()
    return tuple(_instance(dtype, dims) for dtype in ELEMENTS for dims in _WAVES_PER_SIMD)
