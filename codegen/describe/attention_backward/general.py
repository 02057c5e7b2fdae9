"""One instance a head-dim class, element type and pass with every feature (attention_backward_general.hip.h, above 256
attention_backward_wide.hip.h; attention_backward_bias.hip.h)."""

from .. import architectures
from ..model import Instance
from .keys import ELEMENTS, LENGTHS, key

# (D, Dv) of the classes, best first: a problem belongs to the first that holds it, and its head dims are padded with
# zeros inside the kernel.
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
# Further ones, that only run-time compilation has, as attention_forward's.
COMPILED_CLASSES = ((640, 512), (768, 512), (768, 768))
# pass -> (rows, keys) of a step: those of a work-group, and those that it meets.
TILES = {"keys": (64, 128), "queries": (128, 64), "bias": (64, 128)}
# The same of classes whose waves share their rows; where 64 rows of them do not fit into LDS (rows_of_wide_tile of
# kernels/attention_backward/wide_wave.hip.h).
_WIDE_TILES = {"keys": (64, 32), "queries": (32, 64), "bias": (64, 32)}
_WIDEST_TILES = {"keys": (32, 32), "queries": (32, 32), "bias": (32, 32)}


def _small_lds(arch):
    return architectures.lds_bytes(arch) < 128 * 1024


def is_wide(arch, dims):
    """As in kernels/attention_backward/wide_wave.hip.h."""
    return max(dims) > (192 if _small_lds(arch) else 256)


def _tile(arch, dims, pass_name):
    if not is_wide(arch, dims):
        return TILES[pass_name]
    return (_WIDEST_TILES if _small_lds(arch) or sum(dims) > 576 + 512 else _WIDE_TILES)[pass_name]


def dims_of(head_dim_qk, head_dim_v):
    return f"d{head_dim_qk}" if head_dim_qk == head_dim_v else f"d{head_dim_qk}x{head_dim_v}"


def _instance(arch, dtype, dims, pass_name):
    rows, keys = _tile(arch, dims, pass_name)
    parameters = f"{ELEMENTS[dtype]}, {dims[0]}, {dims[1]}"
    if pass_name == "bias":
        header, entry = "bias", f"attention_backward_bias<{parameters}>"
    else:
        header = "wide" if is_wide(arch, dims) else "general"
        entry = f"attention_backward_{header}<{parameters}, Pass::{pass_name}>"
    return Instance(
        name=f"attention_backward_{dtype}_{dims_of(*dims)}_{pass_name}_general_m{rows}n{keys}",
        header=f"attention_backward/attention_backward_{header}.hip.h",
        entry=entry,
        key=key(dtype, *dims, pass_name, general=1),
        preference=0,
        align_bytes=2,
        block=(256, 1, 1),
        tile=(rows, keys, 0),
        lds_dynamic_bytes=0,
        waves_per_simd=1,
        seq_q=LENGTHS,
        seq_k=LENGTHS,
    )


def _instances_of(arch, classes):
    return tuple(_instance(arch, dtype, dims, pass_name) for dtype in ELEMENTS for dims in classes for pass_name in TILES)


def instances(arch):
    return _instances_of(arch, CLASSES)


def _fits(arch, dims):
    """Where LDS is small a tile of either operand lies beside what the waves exchange (16 KiB), lse, delta and sums."""
    return not _small_lds(arch) or 32 * 2 * max(dims) + 17 * 1024 <= architectures.lds_bytes(arch)


def compiled(arch):
    return _instances_of(arch, CLASSES + tuple(dims for dims in COMPILED_CLASSES if _fits(arch, dims)))
