"""attention_forward: functional key, head-dim classes and instances.

A new variant is one more value in the lists below, and its code in kernels/attention_forward/.
"""

from .attention_forward_arguments import ARGUMENTS
from .model import DTYPES, Instance, KeyField, Operator, Table

_KEY_FIELDS = (
    KeyField("dtype", 0, 8, "flydsl_aot_dtype"),
    KeyField("head_dim_qk", 8, 12, "of the class"),
    KeyField("head_dim_v", 20, 12, "of the class"),
    KeyField("mask", 32, 4, "0 none, 1 bounded on the right, 2 on the left too; 0 for the general instance"),
    KeyField("general", 36, 1, "1: the general instance of the class"),
)

_MASKS = {"none": 0, "causal": 1, "window": 2}
_ELEMENTS = {"bf16": "bf16", "fp16": "fp16"}  # name -> element type in kernels/common/
# How K and V reach LDS, best first: (name, required alignment in bytes).
_STAGINGS = (("direct", 16), ("staged", 2))
_ROWS, _KEYS = 128, 64
_LARGEST_LENGTH = 1 << 30

# (D, Dv) of the classes, best first: a problem belongs to the first that holds it, and its head dims are padded with
# zeros inside the kernel. Multiples of 32, the block of a matrix instruction; of 256 output columns a pass from 512 up.
_CLASSES = (
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
_LARGEST_COLUMNS = 256
# Classes with instances for problems of exactly these head dims and no feature but bounds and lengths:
# (head dim, staging) -> waves a SIMD, as many as registers allow without spills (LDS: 66.5 KiB and
# 33.3 KiB of 160 KiB a work-group for head dims 128 and 64).
_EXACT_WAVES_PER_SIMD = {
    (64, "direct"): 4,
    (64, "staged"): 3,
    (128, "direct"): 2,
    (128, "staged"): 2,
}
# Where masking both sides of every tile takes more registers.
_WINDOW_WAVES_PER_SIMD = {(64, "direct"): 3, (64, "staged"): 2}
_EXACT = tuple(dict.fromkeys(head_dim for head_dim, _ in _EXACT_WAVES_PER_SIMD))


def _exact_instance(dtype, head_dim, mask, preference):
    staging, align_bytes = _STAGINGS[preference]
    waves = _EXACT_WAVES_PER_SIMD[head_dim, staging]
    if mask == "window":
        waves = _WINDOW_WAVES_PER_SIMD.get((head_dim, staging), waves)
    return Instance(
        name=f"attention_forward_{dtype}_d{head_dim}_{mask}_{staging}_m{_ROWS}n{_KEYS}",
        header="attention_forward/attention_forward.hip.h",
        entry=f"attention_forward<{_ELEMENTS[dtype]}, {head_dim}, Mask::{mask}, Staging::{staging}>",
        key=(
            ("dtype", DTYPES[dtype]),
            ("head_dim_qk", head_dim),
            ("head_dim_v", head_dim),
            ("mask", _MASKS[mask]),
        ),
        preference=preference,
        align_bytes=align_bytes,
        block=(256, 1, 1),
        tile=(_ROWS, _KEYS, 0),
        lds_dynamic_bytes=0,
        waves_per_simd=waves,
        seq_q=(0, _LARGEST_LENGTH),
        seq_k=(0, _LARGEST_LENGTH),
    )


# Instances for long rows (kernels/attention_forward/pipelined/): one wave a SIMD with all registers.
_PIPELINED = (128,)
_PIPELINED_ROWS = 256
# mask -> rows from which they are faster; shorter problems fill the device better with smaller tiles.
_PIPELINED_FROM = {"none": 2048, "causal": 4096}


def _pipelined_instance(dtype, head_dim, mask):
    return Instance(
        name=f"attention_forward_{dtype}_d{head_dim}_{mask}_pipelined_m{_PIPELINED_ROWS}n{_KEYS}",
        header="attention_forward/pipelined/attention_forward_pipelined.hip.h",
        entry=f"pipelined::attention_forward<{_ELEMENTS[dtype]}, {head_dim}, Mask::{mask}>",
        key=(
            ("dtype", DTYPES[dtype]),
            ("head_dim_qk", head_dim),
            ("head_dim_v", head_dim),
            ("mask", _MASKS[mask]),
        ),
        preference=-1,  # before all of _STAGINGS
        align_bytes=16,
        block=(256, 1, 1),
        tile=(_PIPELINED_ROWS, _KEYS, 0),
        lds_dynamic_bytes=0,
        waves_per_simd=1,
        seq_q=(_PIPELINED_FROM[mask], _LARGEST_LENGTH),
        seq_k=(0, _LARGEST_LENGTH),
    )


def _general_instance(dtype, head_dim_qk, head_dim_v):
    dims = f"{head_dim_qk}" if head_dim_qk == head_dim_v else f"{head_dim_qk}x{head_dim_v}"
    return Instance(
        name=f"attention_forward_{dtype}_d{dims}_general_m{_ROWS}n{_KEYS}",
        header="attention_forward/attention_forward_general.hip.h",
        entry=f"attention_forward_general<{_ELEMENTS[dtype]}, {head_dim_qk}, {head_dim_v}, "
        f"{min(head_dim_v, _LARGEST_COLUMNS)}>",
        key=(
            ("dtype", DTYPES[dtype]),
            ("head_dim_qk", head_dim_qk),
            ("head_dim_v", head_dim_v),
            ("general", 1),
        ),
        preference=0,
        align_bytes=1,  # 8-bit elements
        block=(256, 1, 1),
        tile=(_ROWS, _KEYS, 0),
        lds_dynamic_bytes=0,
        waves_per_simd=2 if head_dim_qk <= 128 else 1,
        seq_q=(0, _LARGEST_LENGTH),
        seq_k=(0, _LARGEST_LENGTH),
    )


def _instances(arch):
    if arch != "gfx950":  # 32x32x16 matrix instructions, ds_read_tr and 16-byte copies to LDS
        return ()
    exact = (
        _exact_instance(dtype, head_dim, mask, preference)
        for dtype in _ELEMENTS
        for head_dim in _EXACT
        for mask in _MASKS
        for preference in range(len(_STAGINGS))
    )
    pipelined = (
        _pipelined_instance(dtype, head_dim, mask)
        for dtype in _ELEMENTS
        for head_dim in _PIPELINED
        for mask in _PIPELINED_FROM
    )
    general = (_general_instance(dtype, *dims) for dtype in _ELEMENTS for dims in _CLASSES)
    return tuple(pipelined) + tuple(exact) + tuple(general)


OPERATOR = Operator(
    name="attention_forward",
    grid_rule="linear_tiles",
    arguments=ARGUMENTS,
    key_fields=_KEY_FIELDS,
    instances=_instances,
    tables=(
        Table("head_dim_classes", "X(D, Dv) of each head-dim class, the first that holds a problem serves it.", _CLASSES),
        Table("exact_head_dims", "X(D): D == Dv with instances of exactly that head dim.", tuple((d,) for d in _EXACT)),
    ),
)
