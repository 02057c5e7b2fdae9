"""Instances for problems of a class's head dims, or less by 8, 16 or 24, and no feature but bounds and lengths
(attention_backward_plain.hip.h). One serves all masks: whether pairs are to be hidden is asked once for 32 x 32 of them."""

from ..model import Instance
from .general import CLASSES, TILES, dims_of, is_wide
from .keys import ELEMENTS, LENGTHS, key

# pass -> (D, Dv) -> waves a SIMD: as many as registers allow without spills, and LDS (256 bytes a column of each operand) of
# 160 KiB; 1 where nothing is said.
_WAVES_PER_SIMD = {
    "keys": {(32, 32): 4, (64, 64): 3, (96, 96): 2, (128, 128): 2},
    "queries": {(32, 32): 4, (64, 64): 3, (96, 96): 2, (128, 128): 2, (160, 160): 2, (192, 128): 2},
}


def _instance(dtype, dims, pass_name):
    rows, keys = TILES[pass_name]
    return Instance(
        name=f"attention_backward_{dtype}_{dims_of(*dims)}_{pass_name}_plain_m{rows}n{keys}",
        header="attention_backward/attention_backward_plain.hip.h",
        entry=f"attention_backward_plain<{ELEMENTS[dtype]}, {dims[0]}, {dims[1]}, Pass::{pass_name}>",
        key=key(dtype, *dims, pass_name, padded=1),
        preference=0,
        align_bytes=16,
        block=(256, 1, 1),
        tile=(rows, keys, 0),
        lds_dynamic_bytes=0,
        waves_per_simd=_WAVES_PER_SIMD[pass_name].get(dims, 1),
        seq_q=LENGTHS,
        seq_k=LENGTHS,
    )


def instances(arch):
    if arch != "gfx950":  # two buffers of both operands, filled by copies beside the products
        return ()
    return tuple(
        _instance(dtype, dims, pass_name)
        for dtype in ELEMENTS
        for dims in CLASSES
        if not is_wide(arch, dims)
        for pass_name in _WAVES_PER_SIMD
    )
