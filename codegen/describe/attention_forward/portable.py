"""One instance a head-dim class and element type with every feature, by matrix products of 16 x 16 of any architecture
(portable/attention_forward_portable.hip.h): for those without instances of their own."""

from ..model import Instance
from ..rows import wave_size
from .general import CLASSES
from .keys import ELEMENTS, LENGTHS, key

_LARGEST_HEAD_DIM = 256
_KEYS = 32
_ROWS_OF_WAVE = 16


def _instance(dtype, head_dim_qk, head_dim_v, arch):
    dims = f"{head_dim_qk}" if head_dim_qk == head_dim_v else f"{head_dim_qk}x{head_dim_v}"
    waves = 2 if head_dim_qk + head_dim_v > 448 else 4  # as Shape of portable/tiles.hip.h
    rows = _ROWS_OF_WAVE * waves
    return Instance(
        name=f"attention_forward_{dtype}_d{dims}_portable_m{rows}n{_KEYS}",
        header="attention_forward/portable/attention_forward_portable.hip.h",
        entry=f"attention_forward_portable<{ELEMENTS[dtype]}, {head_dim_qk}, {head_dim_v}>",
        key=key(dtype, head_dim_qk, head_dim_v, general=1),
        preference=0,
        align_bytes=1,  # 8-bit elements
        block=(wave_size(arch) * waves, 1, 1),
        tile=(rows, _KEYS, 0),
        lds_dynamic_bytes=0,
        waves_per_simd=2 if head_dim_qk + head_dim_v <= 256 else 1,  # those whose queries are in LDS take most of it
        seq_q=LENGTHS,
        seq_k=LENGTHS,
    )


def instances(arch):
    return tuple(
        _instance(dtype, *dims, arch) for dtype in ELEMENTS for dims in CLASSES if max(dims) <= _LARGEST_HEAD_DIM
    )
