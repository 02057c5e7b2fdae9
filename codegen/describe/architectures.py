"""Architectures with matrix instructions on waves of 64 lanes, and what descriptions ask about them (kernels/common/isa.hip.h)."""

MATRIX = ("gfx90a", "gfx942", "gfx950")


def lds_bytes(arch):
    """Of a work-group, and of a compute unit."""
    return 160 * 1024 if arch == "gfx950" else 64 * 1024
