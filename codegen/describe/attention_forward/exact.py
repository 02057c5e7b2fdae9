"""Instances for problems of a class's head dims, or less by 8, 16 or 24, and no feature but bounds and lengths (attention_forward.hip.h)."""

from ..model import Instance
from .keys import ELEMENTS, KEYS, LENGTHS, MASKS, key

# How K and V reach LDS, best first: (name, required alignment in bytes).
_STAGINGS = (("direct", 16), ("staged", 2))
_ROWS_OF_WAVE = 32
# (D, Dv, staging) -> waves of a work-group, waves a SIMD: as many as registers allow without spills, and LDS (256 bytes a
# column of K and V each) of 160 KiB. Where one work-group of 4 waves would take more than half the LDS, 8 share it.
_WAVES = {
    (32, 32, "direct"): (4, 5),
    (64, 64, "direct"): (4, 4),
    (64, 64, "staged"): (4, 3),
    (96, 96, "direct"): (4, 3),
    (128, 128, "direct"): (4, 2),
    (128, 128, "staged"): (4, 2),
    (160, 160, "direct"): (4, 2),
    (192, 128, "direct"): (4, 2),
    (192, 192, "direct"): (8, 2),
    (224, 224, "direct"): (8, 2),
    (256, 256, "direct"): (8, 2),
}
# Where LDS is 64 KiB and copies pass registers: `staged` fetches a tile ahead in them.
_WAVES_OF_SMALL_LDS = {
    (32, 32, "staged"): (4, 4),
    (64, 64, "staged"): (4, 2),
    (96, 96, "staged"): (4, 1),
    (128, 128, "staged"): (4, 1),
}
# Those whose softmax stands beside their own products (interleaved/), without windows: D, Dv -> waves a SIMD.
_INTERLEAVED = {(128, 128): 2, (160, 160): 2, (192, 128): 2}


def _waves(arch):
    return _WAVES if arch == "gfx950" else _WAVES_OF_SMALL_LDS


def _instance(arch, dtype, dims, mask, preference):
    staging, align_bytes = _STAGINGS[preference]
    head_dim_qk, head_dim_v = dims
    waves, waves_per_simd = _waves(arch)[*dims, staging]
    rows = _ROWS_OF_WAVE * waves
    header = "attention_forward/attention_forward.hip.h"
    entry = f"attention_forward<{ELEMENTS[dtype]}, {head_dim_qk}, {head_dim_v}, Mask::{mask}, Staging::{staging}, {waves}>"
    if staging == "direct" and mask != "window" and dims in _INTERLEAVED:
        waves_per_simd = _INTERLEAVED[dims]
        header = "attention_forward/interleaved/attention_forward_interleaved.hip.h"
        entry = f"interleaved::attention_forward<{ELEMENTS[dtype]}, {head_dim_qk}, {head_dim_v}, Mask::{mask}>"
    name = f"{head_dim_qk}" if head_dim_qk == head_dim_v else f"{head_dim_qk}x{head_dim_v}"
    return Instance(
        name=f"attention_forward_{dtype}_d{name}_{mask}_{staging}_m{rows}n{KEYS}",
        header=header,
        entry=entry,
        key=key(dtype, head_dim_qk, head_dim_v, mask=MASKS[mask], padded=1),
        preference=preference,
        align_bytes=align_bytes,
        block=(64 * waves, 1, 1),
        tile=(rows, KEYS, 0),
        lds_dynamic_bytes=0,
        waves_per_simd=waves_per_simd,
        seq_q=LENGTHS,
        seq_k=LENGTHS,
    )


def instances(arch):
    return tuple(
        _instance(arch, dtype, dims, mask, preference)
        for dtype in ELEMENTS
        for dims in dict.fromkeys((head_dim_qk, head_dim_v) for head_dim_qk, head_dim_v, _ in _waves(arch))
        for mask in MASKS
        for preference, (staging, _) in enumerate(_STAGINGS)
        if (*dims, staging) in _waves(arch)
    )
