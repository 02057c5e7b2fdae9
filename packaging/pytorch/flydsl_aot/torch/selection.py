"""topk with a gradient (include/flydsl_aot/topk.h). Ties go to the lower index, NaN is greater than everything: one right answer."""

from __future__ import annotations

from typing import NamedTuple, Tuple

import torch
from torch import Tensor

from . import runtime

_TYPES = (torch.float32, torch.float16, torch.bfloat16, torch.int32)


class TopK(NamedTuple):
    values: Tensor
    indices: Tensor


@torch.library.custom_op("flydsl_aot::topk", mutates_args=())
def topk_op(x: Tensor, k: int, dim: int, largest: bool, sorted: bool) -> Tuple[Tensor, Tensor]:
    """values and int64 indices of the k best along dim."""
    values, indices = _topk_fake(x, k, dim, largest, sorted)
    runtime.launch("topk", {"x": x, "values": values, "indices": indices, "axis": dim, "smallest": int(not largest),
                            "any_order": int(not sorted)}, ("values", "indices"), x.device)
    return values, indices


@topk_op.register_fake
def _topk_fake(x, k, dim, largest, sorted):
    sizes = list(x.shape)
    sizes[dim] = k
    return x.new_empty(sizes), x.new_empty(sizes, dtype=torch.int64)


def _save(ctx, inputs, output):
    x, _k, ctx.dim, _largest, _sorted = inputs
    ctx.sizes = x.shape
    ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(output[1])


def _backward(ctx, dvalues, _dindices):
    (indices,) = ctx.saved_tensors
    return dvalues.new_zeros(ctx.sizes).scatter(ctx.dim, indices, dvalues), None, None, None, None


topk_op.register_autograd(_backward, setup_context=_save)


def refusal(x: Tensor, k: int, dim: int) -> str:
    """Why topk falls back for these arguments; empty if it does not."""
    if x.dtype not in _TYPES:
        return f"input is {x.dtype}; fp32, fp16, bf16 and int32 are supported"
    if not 1 <= x.dim() <= 8:
        return f"input has {x.dim()} axes; 1 to 8 are supported"
    if not -x.dim() <= dim < x.dim() or not 0 <= k <= x.shape[dim]:
        return f"k is {k} along axis {dim} of {list(x.shape)}"
    if x.shape[dim] >= (1 << 32) - 2 or k > 1 << 30:
        return "2^32 elements or more along the axis"
    if _merged_axes(x, dim) > 3:
        return f"input of strides {list(x.stride())} has more than three axes beside the one of topk that are not one"
    return runtime.tensor_refusal(x)


def _merged_axes(x: Tensor, dim: int) -> int:
    """How many axes are left beside `dim` where those that are one longer axis count as one."""
    axes = [(x.shape[axis], x.stride(axis)) for axis in range(x.dim()) if axis != dim % x.dim() and x.shape[axis] != 1]
    count = 0
    for index, (_size, stride) in enumerate(axes):
        following = axes[index + 1] if index + 1 < len(axes) else None
        if following is None or stride != following[0] * following[1]:
            count += 1
    return count


def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> TopK:
    """torch.topk through flydsl_aot: input fp32, fp16, bf16 or int32, any axis and strides, any k."""
    reason = refusal(input, k, dim)
    if reason:
        if not torch.compiler.is_compiling():
            runtime.note_fallback("topk", reason)
        return TopK(*torch.topk(input, k, dim, largest, sorted))
    return TopK(*topk_op(input, k, dim, largest, sorted))
