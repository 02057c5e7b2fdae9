"""One instance a head-dim class and element type with every feature (attention_forward_general.hip.h)."""

from ..model import Instance
from .keys import ELEMENTS, KEYS, LENGTHS, key

# (D, Dv) of the classes, best first: a problem belongs to the first that holds it, and its head dims are padded with
# zeros inside the kernel. Multiples of 32, the block of a matrix instruction; of 256 output columns a pass from 512 up.
CLASSES = (
    (32, 32),
    (64, 64),
    (96, 96),
    (128, 128),
    (160, 160),
    (192, 128),
    (192, 192),
    (224, 224),
    (256, 256),
    (512, 512),
    (576, 512),
)
# Further ones, that only run-time compilation has: rare, and compiled for seconds each.
COMPILED_CLASSES = ((640, 512), (768, 512), (768, 768))
_LARGEST_COLUMNS = 256
_ROWS = 128


def _instance(dtype, head_dim_qk, head_dim_v):
    dims = f"{head_dim_qk}" if head_dim_qk == head_dim_v else f"{head_dim_qk}x{head_dim_v}"
    return Instance(
        name=f"attention_forward_{dtype}_d{dims}_general_m{_ROWS}n{KEYS}",
        header="attention_forward/attention_forward_general.hip.h",
        entry=f"attention_forward_general<{ELEMENTS[dtype]}, {head_dim_qk}, {head_dim_v}, "
        f"{min(head_dim_v, _LARGEST_COLUMNS)}>",
        key=key(dtype, head_dim_qk, head_dim_v, general=1),
        preference=0,
        align_bytes=1,  # 8-bit elements
        block=(256, 1, 1),
        tile=(_ROWS, KEYS, 0),
        lds_dynamic_bytes=0,
        waves_per_simd=2 if head_dim_qk <= 128 or (head_dim_qk, head_dim_v) == (192, 128) else 1,
        seq_q=LENGTHS,
        seq_k=LENGTHS,
    )


def instances():
    return tuple(_instance(dtype, *dims) for dtype in ELEMENTS for dims in CLASSES)


def compiled():
    return tuple(_instance(dtype, *dims) for dtype in ELEMENTS for dims in CLASSES + COMPILED_CLASSES)
