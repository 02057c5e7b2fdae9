"""One instance an operand type for everything that the header allows (gemm_general.hip.h), the second pass of split-K, and bias gradients."""

from ..model import Instance
from .keys import PASSES, SIZES, TILES, key

# e4m3 stands for e5m2 too: any combination of both.
_OPERANDS = {"bf16": "bf16", "fp16": "fp16", "fp32": "float", "e4m3": "u8"}
_SECOND_PASS_ELEMENTS = 2048  # of D, of a work-group
_ROWS_SUMMED = 32  # the same of sums


def tiled(name, form, operand, dtype, waves_per_simd):
    """An instance of operands of any strides by tiles of TILES["general"], in the kernel gemm_<form>."""
    _, rows, columns = TILES["general"]
    return Instance(
        name=f"gemm_{name}_{form}_m{rows}n{columns}",
        header=f"gemm/gemm_{form}.hip.h",
        entry=f"gemm_{form}<{operand}>",
        key=key(dtype, dtype),
        preference=0,
        align_bytes=1,
        block=(256, 1, 1),
        tile=(rows, columns, 0),
        lds_dynamic_bytes=0,
        waves_per_simd=waves_per_simd,
        seq_q=SIZES,
        seq_k=SIZES,
    )


def _general(dtype):
    return tiled("fp8" if dtype == "e4m3" else dtype, "general", _OPERANDS[dtype], dtype, 2)


def _pass(name, entry, threads, tile):
    """A launch beside that of the products, gemm_<name>."""
    return Instance(
        name=f"gemm_{name}",
        header=f"gemm/gemm_{name}.hip.h",
        entry=entry,
        key=(("pass", PASSES[name]),),
        preference=0,
        align_bytes=1,
        block=(threads, 1, 1),
        tile=(tile, 0, 0),
        lds_dynamic_bytes=0,
        waves_per_simd=4,
        seq_q=SIZES,
        seq_k=SIZES,
    )


_SECOND_PASS = _pass("second_pass", "add_parts_of_k", 256, _SECOND_PASS_ELEMENTS)
_SUMS = _pass("sums", "sum_matrix", 1024, _ROWS_SUMMED)
PASSES_BESIDE_PRODUCTS = (_SECOND_PASS, _SUMS)


def instances(_arch):
    return tuple(_general(dtype) for dtype in _OPERANDS) + PASSES_BESIDE_PRODUCTS
