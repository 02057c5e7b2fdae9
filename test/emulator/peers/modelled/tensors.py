"""Tensors whose contents do not matter."""
from recipes.aiter_tensors import Tensor


class Unsupported(ValueError):
    """The peer has no kernel for the problem."""


def untouched(hip, batch, rows, heads, dim, layout="bshd", kind="bf16"):
    """In the order (B, S, H, D) or (B, H, S, D)."""
    made = Tensor(hip, None, kind, batch, rows, heads, dim, fill=Tensor.UNTOUCHED)
    if layout == "bhsd":
        made.row, made.head = made.head, made.head * rows
    elif layout != "bshd":
        raise Unsupported(f"layout {layout}")
    return made
