"""topk_softmax: kernel arguments, functional key and instances."""

from .attention_arguments import strides
from .model import Argument, Instance, KeyField, Operator
from .rows import ARCHITECTURES, BYTES, REALS

_ARGUMENTS = (
    Argument("const void *", "x"),
    Argument("void *", "weights"),
    Argument("void *", "indices"),
    *strides("x", "oi", "bytes"),
    *strides("weights", "oik", "bytes"),
    *strides("indices", "oik", "bytes"),
    Argument("uint64_t", "rows"),
    Argument("uint64_t", "rows_inner", "of the inner axis of rows"),
    Argument("uint64_t", "tiles", "times the rows of a work-group"),
    Argument("uint32_t", "groups", "work-groups"),
    Argument("uint32_t", "length"),
    Argument("uint32_t", "k"),
    Argument("uint32_t", "chosen_only", "1: the sum is over the K chosen"),
    Argument("uint32_t", "weights_are_fp32", "else of x's dtype"),
    Argument("uint32_t", "wide_indices", "1: int64"),
)

_KEY_FIELDS = (KeyField("dtype", 0, 8, "flydsl_aot_dtype of x"),)

_THREADS = 256
_MOST_K = 16  # a team of threads has as many at least
_SPREADS = ((16, 8), (16, 16), (32, 16))  # threads of a row, elements of each


def _instance(dtype, wide, preference, team, elements):
    longest = team * elements
    vectors = elements * BYTES[dtype] // 16
    return Instance(
        name=f"topk_softmax_{dtype}_n{longest}{'' if wide else '_narrow'}",
        header="topk_softmax/topk_softmax.hip.h",
        entry=f"topk_softmax<{dtype}, {_THREADS}, RowTile<{dtype}, {team}, {vectors}, {str(wide).lower()}>>",
        key=(("dtype", REALS[dtype]),),
        preference=preference,
        align_bytes=16 if wide else 1,
        block=(_THREADS, 1, 1),
        tile=(_THREADS // team, 0, 0),
        lds_dynamic_bytes=0,
        waves_per_simd=4,
        seq_q=(1, _MOST_K),
        seq_k=(1, longest),
    )


def _instances(arch):
    if arch not in ARCHITECTURES:
        return ()
    return tuple(
        _instance(dtype, wide, preference, *spread)
        for dtype in REALS
        for preference, (wide, spread) in enumerate((wide, spread) for wide in (True, False) for spread in _SPREADS)
    )


OPERATOR = Operator(
    name="topk_softmax",
    grid_rule="persistent",
    arguments=_ARGUMENTS,
    key_fields=_KEY_FIELDS,
    instances=_instances,
    compiled=_instances,
)
