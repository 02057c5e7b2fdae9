"""One instance an operand type of 16 bits, by matrix products of 16 x 16 of any architecture (gemm_portable.hip.h): for those without
instances of their own."""

from .general import PASSES_BESIDE_PRODUCTS, tiled


def instances(arch):
    waves = 1 if arch in ("gfx90a", "gfx942") else 2  # 64 KiB of LDS a compute unit, and a work-group takes it
    return tuple(tiled(dtype, "portable", dtype, dtype, waves) for dtype in ("bf16", "fp16")) + PASSES_BESIDE_PRODUCTS
