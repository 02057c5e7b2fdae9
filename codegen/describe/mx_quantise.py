"""mx_quantise: kernel arguments, functional key and instances."""

from .architectures import MATRIX
from .attention_arguments import strides
from .model import Argument, Instance, KeyField, Operator

_ARGUMENTS = (
    Argument("const void *", "x"),
    *strides("x", "bm", "bytes"),
    Argument("void *", "out"),
    *strides("out", "bm", "bytes"),
    Argument("void *", "scale"),
    *strides("scale", "bmk", "bytes; shuffled: m is one of a row's scales, padded"),
    Argument("uint64_t", "seed", "of stochastic rounding"),
    Argument("uint64_t", "offset"),
    Argument("uint32_t", "x_dtype", "flydsl_aot_dtype"),
    Argument("uint32_t", "out_dtype", "flydsl_aot_dtype"),
    Argument("uint32_t", "scales_shuffled", "1: in blocks of 32 rows and 8 columns"),
    Argument("uint32_t", "rows", "of all batches"),
    Argument("uint32_t", "m", "of a batch"),
    Argument("uint32_t", "k", "a multiple of 32"),
    Argument("uint32_t", "lanes_log2", "of a row: each has 8 neighbours at a time, a power of two from 4 to 256"),
    Argument("uint32_t", "groups", "work-groups"),
)

_KEY_FIELDS = (KeyField("stochastic", 0, 1, "1: stochastic rounding"),)


def _instance(stochastic):
    return Instance(
        name="mx_quantise_stochastic" if stochastic else "mx_quantise",
        header="mx_quantise/mx_quantise.hip.h",
        entry=f"mx_quantise<{str(stochastic).lower()}>",
        key=(("stochastic", int(stochastic)),),
        preference=0,
        align_bytes=1,
        block=(256, 1, 1),
        tile=(1, 0, 0),
        lds_dynamic_bytes=0,
        waves_per_simd=4,
        seq_q=(0, (1 << 31)),
        seq_k=(0, (1 << 30)),
    )


def _instances(arch):
    if arch not in MATRIX:
        return ()
    return (_instance(False), _instance(True))


OPERATOR = Operator(
    name="mx_quantise",
    grid_rule="persistent",
    arguments=_ARGUMENTS,
    key_fields=_KEY_FIELDS,
    instances=_instances,
    compiled=_instances,
)
