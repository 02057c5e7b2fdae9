"""Instances for long rows: one wave a SIMD with all registers (pipelined/)."""

from ..model import Instance
from .keys import ELEMENTS, KEYS, LENGTHS, MASKS, key

_HEAD_DIMS = ((128, 128), (192, 128))
_ROWS = 256
# mask -> rows from which they are faster; shorter problems fill the device better with smaller tiles.
_FROM = {"none": 2048, "causal": 4096}
# Causal tiles of 256 rows differ so much in work that it takes many of them, of other heads and sequences, to fill the device.
_MANY_ROWS = {"none": 0, "causal": 1}


def _instance(dtype, head_dim_qk, head_dim_v, mask):
    dims = f"{head_dim_qk}" if head_dim_qk == head_dim_v else f"{head_dim_qk}x{head_dim_v}"
    return Instance(
        name=f"attention_forward_{dtype}_d{dims}_{mask}_pipelined_m{_ROWS}n{KEYS}",
        header="attention_forward/pipelined/attention_forward_pipelined.hip.h",
        entry=f"pipelined::attention_forward<{ELEMENTS[dtype]}, {head_dim_qk}, {head_dim_v}, Mask::{mask}>",
        key=key(dtype, head_dim_qk, head_dim_v, mask=MASKS[mask], many_rows=_MANY_ROWS[mask]),
        preference=-1,  # before all of exact.py
        align_bytes=16,
        block=(256, 1, 1),
        tile=(_ROWS, KEYS, 1),  # a work-group a compute unit that goes on with the next tile
        lds_dynamic_bytes=0,
        waves_per_simd=1,
        seq_q=(_FROM[mask], LENGTHS[1]),
        seq_k=LENGTHS,
        hides_accumulators=True,
    )


def instances(arch):
    if arch != "gfx950":  # hides accumulators of 32x32x16 products, and keeps more than 64 KiB in LDS
        return ()
    return tuple(
        _instance(dtype, *head_dims, mask) for dtype in ELEMENTS for head_dims in _HEAD_DIMS for mask in _FROM
    )
