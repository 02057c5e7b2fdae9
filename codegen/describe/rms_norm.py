"""rms_norm: kernel arguments, functional key and instances.

Another length of rows to be read once is one more row of _SPREADS.
"""

from .attention_arguments import strides
from .model import Argument, Instance, KeyField, Operator
from .rows import ARCHITECTURES, REALS, Spread

_ARGUMENTS = (
    Argument("const void *", "x"),
    Argument("const void *", "residual", "null: none"),
    Argument("void *", "sum", "null: not wanted"),
    Argument("void *", "out"),
    Argument("const void *", "weight", "null: 1"),
    Argument("float *", "rstd", "null: not wanted"),
    Argument("void *", "out_scale", "of quantised outputs"),
    *(stride for tensor in ("x", "residual", "sum", "out") for stride in strides(tensor, "oi", "bytes")),
    *strides("rstd", "oi"),
    *strides("out_scale", "oig"),
    Argument("uint64_t", "rows", "outer times inner"),
    Argument("uint64_t", "rows_inner"),
    Argument("uint64_t", "tiles", "ceil(rows / rows of a work-group)"),
    Argument("uint32_t", "groups", "work-groups"),
    Argument("uint32_t", "row_length"),
    Argument("float", "eps"),
    Argument("float", "weight_offset", "1 of gemma-style weights, else 0"),
    Argument("uint32_t", "weight_dtype", "flydsl_aot_dtype"),
    Argument("uint32_t", "out_dtype", "flydsl_aot_dtype"),
    Argument("uint32_t", "block_scales", "1: a scale for 32 neighbours; 0: for a row"),
)

_KEY_FIELDS = (
    KeyField("dtype", 0, 8, "flydsl_aot_dtype of x"),
    KeyField("quantised", 8, 1, "1: 8-bit out with scales"),
)

# In the order of preference; the first that has room for a row is taken.
_SPREADS = (
    Spread(256, 16, 1),
    Spread(256, 32, 2),
    Spread(128, 32, 4),
    Spread(128, 128, 2),
    Spread(128, 128, 4),
    Spread(128, 128, 5),
    Spread(256, 256, 3),
    Spread(256, 256, 4),
    Spread(512, 512, 4),
    Spread(1024, 1024, 4),
    Spread(1024, 1024, 8),
    Spread(1024, 1024, 4, looped=True),
    Spread(256, 32, 1, wide=False),
    Spread(256, 256, 1, wide=False),
    Spread(1024, 1024, 1, wide=False),
    Spread(1024, 1024, 1, wide=False, looped=True),
)
_QUANTISED_SPREADS = (
    Spread(256, 32, 2),
    Spread(256, 256, 2),
    Spread(1024, 1024, 2),
    Spread(1024, 1024, 2, looped=True),
    Spread(256, 256, 1, wide=False),
    Spread(1024, 1024, 1, wide=False, looped=True),
)


def _instance(dtype, spread, preference, quantised):
    return Instance(
        name=f"rms_norm_{dtype}_{spread.name}{'_quantised' if quantised else ''}",
        header="rms_norm/rms_norm.hip.h",
        entry=f"rms_norm<{spread.threads}, {spread.tile(dtype)}, {str(spread.looped).lower()}, {str(quantised).lower()}>",
        key=(("dtype", REALS[dtype]), ("quantised", int(quantised))),
        preference=preference,
        align_bytes=spread.align_bytes,
        block=(spread.threads, 1, 1),
        tile=(spread.threads // spread.team, 0, 0),
        lds_dynamic_bytes=0,
        waves_per_simd=4 if quantised else spread.waves_per_simd,
        seq_q=(1, (1 << 62)),
        seq_k=(1, spread.capacity(dtype)),
    )


def _instances(arch):
    if arch not in ARCHITECTURES:
        return ()
    return tuple(
        _instance(dtype, spread, preference, quantised)
        for dtype in REALS
        for quantised, spreads in ((False, _SPREADS), (True, _QUANTISED_SPREADS))
        for preference, spread in enumerate(spreads)
        # 16-bit elements become twice the registers; work-groups of 1024 have 64 registers a thread on sm_90.
        if spread.vectors < 8 or (dtype == "fp32" and arch.startswith("gfx"))
    )


OPERATOR = Operator(
    name="rms_norm",
    grid_rule="persistent",
    arguments=_ARGUMENTS,
    key_fields=_KEY_FIELDS,
    instances=_instances,
)
