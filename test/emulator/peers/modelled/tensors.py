"""Tensors whose contents do not matter."""
from recipes.aiter_tensors import Tensor


class Unsupported(ValueError):
    """The peer has no kernel for the problem."""


def untouched(hip, batch, rows, heads, dim, layout="bshd"):
    """bf16, in the order (B, S, H, D) or (B, H, S, D)."""
    made = Tensor(hip, None, "bf16", batch, rows, heads, dim, fill=Tensor.UNTOUCHED)
    if layout == "bhsd":
        made.row, made.head = 2 * dim, 2 * dim * rows
    elif layout != "bshd":
        raise Unsupported(f"layout {layout}")
    return made
