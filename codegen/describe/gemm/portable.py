"""One instance an operand type of 16 bits, by matrix products of 16 x 16 of any architecture (gemm_portable.hip.h): for those without
instances of their own."""

from ..model import Instance
from .general import PASSES_BESIDE_PRODUCTS
from .keys import SIZES, TILES, key


def _instance(dtype, arch):
    _, rows, columns = TILES["general"]
    return Instance(
        name=f"gemm_{dtype}_portable_m{rows}n{columns}",
        header="gemm/gemm_portable.hip.h",
        entry=f"gemm_portable<{dtype}>",
        key=key(dtype, dtype),
        preference=0,
        align_bytes=1,
        block=(256, 1, 1),
        tile=(rows, columns, 0),
        lds_dynamic_bytes=0,
        waves_per_simd=1 if arch in ("gfx90a", "gfx942") else 2,  # 64 KiB of LDS a compute unit, and a work-group takes it
        seq_q=SIZES,
        seq_k=SIZES,
    )


def instances(arch):
    return tuple(_instance(dtype, arch) for dtype in ("bf16", "fp16")) + PASSES_BESIDE_PRODUCTS
