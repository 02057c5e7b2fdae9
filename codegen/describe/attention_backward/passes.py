"""The passes that only move memory: `prepare`, `sinks` and `convert`, for every head dim and any strides, and two in rows."""

from ..model import DTYPES, Instance
from .keys import ELEMENTS, LENGTHS, PASSES

_ROWS = 128  # of a work-group: kRowsOfPlaneTile of kernels/attention_backward/planes.hip.h


def _instance(pass_name, dtype, rows, block, waves_per_simd, align_bytes):
    of_dtype = f"_{dtype}" if dtype else ""
    entry = pass_name.removesuffix("_rows")
    in_rows = ", true" if entry != pass_name else ""
    return Instance(
        name=f"attention_backward{of_dtype}_{pass_name}",
        header=f"attention_backward/attention_backward_{entry}.hip.h",
        entry=f"attention_backward_{entry}<{ELEMENTS[dtype]}{in_rows}>" if dtype else f"gradient_of_{pass_name}",
        key=(("dtype", DTYPES[dtype] if dtype else 0), ("pass", PASSES[pass_name])),
        preference=0,
        align_bytes=align_bytes,
        block=(block, 1, 1),
        tile=(rows, 0, 0),
        lds_dynamic_bytes=0,
        waves_per_simd=waves_per_simd,
        seq_q=LENGTHS,
        seq_k=LENGTHS,
    )


# pass -> waves a SIMD: the slow path of `convert` needs registers.
_WAVES_PER_SIMD = {"prepare": 8, "convert": 4, "prepare_rows": 8, "convert_rows": 8}


_OF_SEPARATE_PASSES = ("prepare",)  # the others are for one kernel of all gradients


def _instances_of(names):
    return tuple(
        _instance(name, dtype, _ROWS, 512, _WAVES_PER_SIMD[name], 2) for dtype in ELEMENTS for name in names
    ) + (_instance("sinks", None, 1, 1024, 4, 1),)


def instances(arch):
    return _instances_of(_WAVES_PER_SIMD if arch == "gfx950" else _OF_SEPARATE_PASSES)


def compiled(arch):
    return _instances_of(_OF_SEPARATE_PASSES)
