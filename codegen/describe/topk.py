"""topk: kernel arguments, functional key and instances."""

from .attention_arguments import strides
from .model import Argument, Instance, KeyField, Operator, Table
from .rows import ARCHITECTURES, wave_size

_ARGUMENTS = (
    Argument("const void *", "x"),
    Argument("void *", "values"),
    Argument("void *", "indices"),
    Argument("void *", "workspace", "candidates; row_candidates of each row"),
    *(stride for tensor in ("x", "values", "indices") for stride in strides(tensor, "012k", "bytes")),
    Argument("uint64_t", "rows"),
    Argument("uint64_t", "tiles", "times the rows of a work-group, or rows times parts"),
    Argument("uint64_t", "row_candidates", "of the workspace"),
    Argument("uint32_t", "groups", "work-groups"),
    Argument("uint32_t", "axes", "of rows; places on the last two are counted by size_1 and size_2"),
    Argument("uint32_t", "size_1"),
    Argument("uint32_t", "size_2"),
    Argument("uint32_t", "length"),
    Argument("uint32_t", "k"),
    Argument("uint32_t", "parts", "of a row"),
    Argument("uint32_t", "part_length", "of all but the last part, which has the rest"),
    Argument("uint32_t", "leaves_candidates", "1: a part's go to the workspace"),
    Argument("uint32_t", "flip", "all ones: the smallest are wanted; else 0"),
    Argument("uint32_t", "wide_indices", "1: int64"),
)

_KEY_FIELDS = (
    KeyField("dtype", 0, 8, "flydsl_aot_dtype of x"),
    KeyField("method", 8, 3, "0 few, 1 registers, 2 memory, 3 candidates, 4 few candidates"),
)

_ELEMENTS = {"bf16": 4, "fp16": 3, "fp32": 2, "int32": 20}  # flydsl_aot_dtype
FEW, REGISTERS, MEMORY, CANDIDATES, FEW_CANDIDATES = range(5)
_MOST_FEW = 32  # of K: a wave of any size has as many threads
_FEW_THREADS = 128
_REGISTER_THREADS = 256
_OF_THREAD = 32  # elements
_CANDIDATE_THREADS = 512
_CANDIDATES_OF_THREAD = 8
_MEMORY_THREADS = 1024
_LARGEST_ROW = (1 << 32) - 2
_MOST_ROWS = 1 << 62


def _instance(dtype, name, header, entry, method, preference, align_bytes, threads, teams, most_k, most_n, waves=4):
    """Limits of lengths: of K where attention has queries, of N where it has keys."""
    return Instance(
        name=f"topk_{dtype}_{name}",
        header=f"topk/{header}.hip.h",
        entry=entry,
        key=(("dtype", _ELEMENTS[dtype]), ("method", method)),
        preference=preference,
        align_bytes=align_bytes,
        block=(threads, 1, 1),
        tile=(teams, 0, 0),
        lds_dynamic_bytes=0,
        waves_per_simd=waves,
        seq_q=(1, most_k),
        seq_k=(1, most_n),
    )


def _few(dtype, arch):
    """A wave a row; of rows that are one tile, all of it is in registers, 32 elements a lane."""
    for preference, (wide, one_tile) in enumerate((wide, one_tile) for wide in (True, False) for one_tile in (True, False)):
        yield _instance(
            dtype,
            f"few{'' if one_tile else '_tiles'}{'' if wide else '_narrow'}",
            "topk_few",
            f"topk_few<{dtype}, {_FEW_THREADS}, {str(wide).lower()}, {str(one_tile).lower()}>",
            FEW,
            preference,
            16 if wide else 1,
            _FEW_THREADS,
            _FEW_THREADS // wave_size(arch),
            _MOST_FEW,
            32 * wave_size(arch) if one_tile else _LARGEST_ROW,
        )


def _select(dtype, arch):
    # A part of a row in registers, and addresses of its elements where they come one by one. Without the LDS of gfx950 fewer work-groups
    # fit anyway.
    waves_with_registers = 2 if arch in ("gfx90a", "gfx942") else 3
    for preference, (name, method, align_bytes, threads) in enumerate(
        (
            ("registers", REGISTERS, 16, _REGISTER_THREADS),
            ("narrow_registers", REGISTERS, 1, _REGISTER_THREADS),
            ("memory", MEMORY, 1, _MEMORY_THREADS),
            ("candidates", CANDIDATES, 1, _MEMORY_THREADS),
            ("few_candidates", FEW_CANDIDATES, 1, _CANDIDATE_THREADS),
        )
    ):
        yield _instance(
            dtype,
            f"select_{name}",
            "topk_select",
            f"topk_select<{dtype}, Held::{name}, {threads}>",
            method,
            preference,
            align_bytes,
            threads,
            1,
            _LARGEST_ROW,
            _LARGEST_ROW,
            waves_with_registers if method == REGISTERS else 4,
        )


def _instances(arch):
    if arch not in ARCHITECTURES:
        return ()
    return tuple(instance for dtype in _ELEMENTS for instances in (_few(dtype, arch), _select(dtype, arch)) for instance in instances)


OPERATOR = Operator(
    name="topk",
    grid_rule="persistent",
    arguments=_ARGUMENTS,
    key_fields=_KEY_FIELDS,
    instances=_instances,
    compiled=_instances,
    tables=(
        Table("most_few", "X(K) up to which instances for few elements go.", ((_MOST_FEW,),)),
        Table("few_candidates", "X(candidates) that a work-group holds in registers.", ((_CANDIDATE_THREADS * _CANDIDATES_OF_THREAD,),)),
        Table("part_length", "X(elements) of a part that a work-group holds in registers.", ((_REGISTER_THREADS * _OF_THREAD,),)),
    ),
)
