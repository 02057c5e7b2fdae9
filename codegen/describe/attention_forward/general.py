"""One instance a head-dim class and element type with every feature (attention_forward_general.hip.h)."""

from .. import architectures
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
# Further ones, that only run-time compilation has: rare, and compiled for seconds each. Of them the first where LDS is small.
COMPILED_CLASSES = ((640, 512), (768, 512), (768, 768))
_LARGEST_COLUMNS = 256
_ROWS = 128


def _row_bytes(head_dim_qk, columns):
    """Of a key and its value in LDS (kernels/attention_forward/general/padded_tile.hip.h)."""
    return 2 * head_dim_qk + 16 + 2 * columns + (64 if columns % 64 == 0 else 0)


def _keys(arch, head_dim_qk, columns, work_groups):
    """Of a tile: as many as leave room in LDS for all work-groups."""
    return KEYS if work_groups * KEYS * _row_bytes(head_dim_qk, columns) <= architectures.lds_bytes(arch) else KEYS // 2


def _instance(arch, dtype, head_dim_qk, head_dim_v):
    dims = f"{head_dim_qk}" if head_dim_qk == head_dim_v else f"{head_dim_qk}x{head_dim_v}"
    columns = min(head_dim_v, _LARGEST_COLUMNS)
    waves_per_simd = 2 if head_dim_qk <= 128 or (head_dim_qk, head_dim_v) == (192, 128) else 1
    keys = _keys(arch, head_dim_qk, columns, waves_per_simd)
    of_keys = "" if keys == KEYS else f", {keys}"
    return Instance(
        name=f"attention_forward_{dtype}_d{dims}_general_m{_ROWS}n{keys}",
        header="attention_forward/attention_forward_general.hip.h",
        entry=f"attention_forward_general<{ELEMENTS[dtype]}, {head_dim_qk}, {head_dim_v}, "
        f"{columns}{of_keys}>",
        key=key(dtype, head_dim_qk, head_dim_v, general=1),
        preference=0,
        align_bytes=1,  # 8-bit elements
        block=(256, 1, 1),
        tile=(_ROWS, keys, 0),
        lds_dynamic_bytes=0,
        waves_per_simd=waves_per_simd,
        seq_q=LENGTHS,
        seq_k=LENGTHS,
    )


def _fits(arch, head_dim_qk, head_dim_v):
    """Half a tile of keys, at least."""
    row_bytes = _row_bytes(head_dim_qk, min(head_dim_v, _LARGEST_COLUMNS))
    return KEYS // 2 * row_bytes <= architectures.lds_bytes(arch)


def instances(arch):
    return tuple(_instance(arch, dtype, *dims) for dtype in ELEMENTS for dims in CLASSES)


def compiled(arch):
    classes = CLASSES + tuple(dims for dims in COMPILED_CLASSES if _fits(arch, *dims))
    return tuple(_instance(arch, dtype, *dims) for dtype in ELEMENTS for dims in classes)
