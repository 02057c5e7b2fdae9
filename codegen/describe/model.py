"""What a description is made of. Plain data; no computation of layouts, files or names of files."""

from dataclasses import dataclass
from typing import Callable, Tuple

# C types a kernel argument may have, with their size, which is also their alignment, in bytes.
ARGUMENT_TYPES = {
    "const void *": 8,
    "void *": 8,
    "float *": 8,
    "const float *": 8,
    "const int32_t *": 8,
    "const uint64_t *": 8,
    "uint64_t *": 8,
    "int64_t": 8,
    "uint64_t": 8,
    "int32_t": 4,
    "uint32_t": 4,
    "float": 4,
}

# flydsl_aot_dtype of include/flydsl_aot/types.h.
DTYPES = {"fp16": 3, "bf16": 4}


@dataclass(frozen=True)
class Argument:
    """One kernel argument, in the order of the kernel-argument buffer."""

    c_type: str
    name: str
    comment: str = ""


@dataclass(frozen=True)
class KeyField:
    """A bit field of the operator's functional key, from bit `first_bit` up."""

    name: str
    first_bit: int
    bits: int
    comment: str = ""


@dataclass(frozen=True)
class Table:
    """Constants that the host shares with the description: an X-macro of the generated header, X(row) per row."""

    name: str
    comment: str
    rows: Tuple[Tuple[int, ...], ...]


@dataclass(frozen=True)
class Instance:
    """One kernel: its code, the key it serves and how it is launched."""

    name: str
    header: str  # under kernels/
    entry: str  # C++ template with its arguments, which the instance calls
    key: Tuple[Tuple[str, int], ...]  # functional-key field -> value; fields left out are 0
    preference: int  # candidates of one key are tried in ascending order
    align_bytes: int  # of base pointers and of all non-unit strides
    block: Tuple[int, int, int]
    tile: Tuple[int, int, int]
    lds_dynamic_bytes: int
    waves_per_simd: int  # that must fit: caps the registers at 512 / waves_per_simd
    seq_q: Tuple[int, int]  # smallest and largest length served, inclusive
    seq_k: Tuple[int, int]
    hides_accumulators: bool = False  # keeps values in accumulation registers that the compiler must not touch


def _none(_arch):
    return ()


@dataclass(frozen=True)
class Operator:
    """An operator: its kernels' arguments, its functional key and its instances per architecture."""

    name: str
    grid_rule: str  # docs/archive-format.md
    arguments: Tuple[Argument, ...]
    key_fields: Tuple[KeyField, ...]
    instances: Callable[[str], Tuple[Instance, ...]]  # architecture -> kernels
    tables: Tuple[Table, ...] = ()
    # Architecture -> the same by the parts of kernels/common/ that every architecture has, where an operator is so written.
    portable: Callable[[str], Tuple[Instance, ...]] = _none
    # Architecture -> kernels that the library may compile at run time where no archive has them (src/jit/).
    compiled: Callable[[str], Tuple[Instance, ...]] = _none
