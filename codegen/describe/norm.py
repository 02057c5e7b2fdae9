"""What rms_norm and layer_norm share: kernel arguments, functional key and how instances come from spreads."""

from dataclasses import replace

from .attention_arguments import strides
from .model import Argument, Instance, KeyField, Operator
from .rows import ARCHITECTURES, HELD_ARCHITECTURES, REALS

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


def _lds_bytes(operator, spread, quantised, arch):
    """Of rows, weights and biases (kernels/common/norm_room)."""
    operands = {"layer_norm": 2, "rms_norm": 1}[operator]
    if spread.held:
        beside = min(spread.vectors, (14 - spread.vectors) // operands) if arch.startswith("sm_") else 0
        return 16 * (spread.vectors + operands * beside) * spread.threads
    if spread.looped or quantised or (operator == "rms_norm" and spread.threads < 1024):
        return 0
    of_thread = 16 * operands * spread.vectors
    most, most_of_thread = (131072, 160) if arch == "gfx950" or arch.startswith("sm_") else (32768, 64)
    return of_thread * spread.threads if of_thread <= most_of_thread and of_thread * spread.threads <= most else 0


# Of all work-groups together: as many as MI355X runs at once, twice those of an H200.
_THREADS = 262144


def _instance(operator, dtype, spread, preference, quantised, arch):
    return Instance(
        name=f"{operator}_{dtype}_{spread.name}{'_quantised' if quantised else ''}",
        header=f"{operator}/{operator}.hip.h",
        entry=f"{operator}<{spread.threads}, {spread.tile(dtype)}, {spread.row_in}, {str(quantised).lower()}>",
        key=(("dtype", REALS[dtype]), ("quantised", int(quantised))),
        preference=preference,
        align_bytes=spread.align_bytes,
        block=(spread.threads, 1, 1),
        # Work-groups that keep something are few, so that each has several rows.
        tile=(spread.threads // spread.team, _THREADS // spread.threads if _lds_bytes(operator, spread, quantised, arch) else 0, 0),
        # On sm_90 a kernel declares less than that.
        lds_dynamic_bytes=_lds_bytes(operator, spread, quantised, arch) if arch.startswith("sm_") else 0,
        waves_per_simd=4 if quantised else spread.waves_per_simd,
        seq_q=(1, (1 << 62)),
        seq_k=(1, spread.capacity(dtype)),
    )


def _holds(operator, dtype, spread, arch):
    """Whether LDS holds rows better than registers (kernels/rms_norm/NOTES.md)."""
    if arch not in HELD_ARCHITECTURES:
        return False
    if spread.vectors < 8:
        return dtype != "fp32" or operator == "layer_norm"
    # On AMD GPUs, rms_norm's fp32 rows fit registers, and with biases 64 elements a thread of 16 bits are too many for those.
    return arch.startswith("sm_") or (dtype == "fp32") == (operator == "layer_norm")


def _fits(operator, dtype, spread, spreads, arch):
    if spread.held:
        return _holds(operator, dtype, spread, arch)
    if spread.vectors < 8:
        return replace(spread, held=True) not in spreads or not _holds(operator, dtype, spread, arch)
    # 16-bit elements become twice the registers; work-groups of 1024 have 64 registers a thread on sm_90.
    return dtype == "fp32" and arch.startswith("gfx")


def operator(name, spreads, quantised_spreads, arguments=()):
    """`arguments`: those of this operator only. Of the spreads the first that has room for a row is taken."""

    def instances(arch):
        if arch not in ARCHITECTURES:
            return ()
        return tuple(
            _instance(name, dtype, spread, preference, quantised, arch)
            for dtype in REALS
            for quantised, some in ((False, spreads), (True, quantised_spreads))
            for preference, spread in enumerate(some)
            if _fits(name, dtype, spread, some, arch)
        )

    return Operator(
        name=name,
        grid_rule="persistent",
        arguments=(*_ARGUMENTS, *arguments),
        key_fields=_KEY_FIELDS,
        instances=instances,
        compiled=instances,
    )
