"""rms_norm and layer_norm with gradients (include/flydsl_aot/rms_norm.h, layer_norm.h and their _backward)."""

from __future__ import annotations

import math
from typing import List, Optional, Sequence, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor

from . import runtime

_TYPES = (torch.float32, torch.float16, torch.bfloat16)
# What ATen takes where no eps is given: the distance of 1 and its neighbour in the type it computes in, fp32.
DEFAULT_EPS = torch.finfo(torch.float32).eps


def _rows(x: Tensor, columns: int) -> Tensor:
    """x as (M, columns) with contiguous rows."""
    flat = x.reshape(-1, columns) if columns else x.reshape(math.prod(x.shape[:-1]), 0)
    return flat if flat.stride(-1) == 1 or columns == 1 else flat.contiguous()


@torch.library.custom_op("flydsl_aot::rms_norm", mutates_args=())
def rms_norm_op(x: Tensor, weight: Optional[Tensor], eps: float) -> Tuple[Tensor, Tensor]:
    """out and rstd (M) of x (M, N), weight (N)."""
    out, rstd = torch.empty_like(x), x.new_empty(x.shape[0], dtype=torch.float32)
    runtime.launch("rms_norm", {"x": x, "weight": weight, "out": out, "rstd": rstd, "eps": eps}, ("out", "rstd"), x.device)
    return out, rstd


@rms_norm_op.register_fake
def _rms_norm_fake(x, weight, eps):
    return torch.empty_like(x), x.new_empty(x.shape[0], dtype=torch.float32)


@torch.library.custom_op("flydsl_aot::rms_norm_backward", mutates_args=())
def rms_norm_backward_op(dout: Tensor, x: Tensor, rstd: Tensor, weight: Optional[Tensor], want_dx: bool,
                         want_dweight: bool) -> Tuple[Tensor, Tensor]:
    """dx and dweight; those that are not wanted have no element."""
    dx, dweight = _norm_gradients(x, weight, want_dx, want_dweight)
    wanted = {name: value for name, value, want in (("dx", dx, want_dx), ("dweight", dweight, want_dweight)) if want}
    if wanted:
        runtime.launch("rms_norm_backward", {"x": x, "weight": weight, "rstd": rstd, "dout": dout, **wanted}, tuple(wanted), x.device)
    return dx, dweight


def _norm_gradients(x, weight, want_dx, want_dweight):
    return (torch.empty_like(x) if want_dx else x.new_empty(0),
            torch.empty_like(weight, memory_format=torch.contiguous_format) if want_dweight else x.new_empty(0))


@rms_norm_backward_op.register_fake
def _rms_norm_backward_fake(dout, x, rstd, weight, want_dx, want_dweight):
    return _norm_gradients(x, weight, want_dx, want_dweight)


def _gradients_with_gradients(x, weight, bias, eps, centred, dout, wanted):
    """Where the gradients are to be differentiated again (create_graph): by PyTorch's own small operators."""
    with torch.enable_grad():
        rows = x.float()
        rows = rows - rows.mean(-1, keepdim=True) if centred else rows
        out = rows * torch.rsqrt((rows * rows).mean(-1, keepdim=True) + eps)
        out = out if weight is None else out * weight.float()
        out = out if bias is None else out + bias.float()
        gradients = iter(torch.autograd.grad(out.to(x.dtype), [y for y, want in zip((x, weight, bias), wanted) if want], dout,
                                             create_graph=True))
    return tuple(next(gradients) if want else None for want in wanted)


def _save(ctx, inputs, output):
    x, weight, ctx.eps = inputs
    ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(x, weight, output[1])


def _backward(ctx, dout, _drstd):
    x, weight, rstd = ctx.saved_tensors
    want_dx, want_dweight = ctx.needs_input_grad[:2]
    if torch.is_grad_enabled():
        return (*_gradients_with_gradients(x, weight, None, ctx.eps, False, dout, (want_dx, want_dweight)), None)
    dout = dout if dout.stride(-1) == 1 or dout.shape[-1] == 1 else dout.contiguous()
    dx, dweight = rms_norm_backward_op(dout, x, rstd, weight, want_dx, want_dweight)
    return dx if want_dx else None, dweight if want_dweight else None, None


rms_norm_op.register_autograd(_backward, setup_context=_save)


@torch.library.custom_op("flydsl_aot::layer_norm", mutates_args=())
def layer_norm_op(x: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], eps: float) -> Tuple[Tensor, Tensor, Tensor]:
    """out, mean (M) and rstd (M) of x (M, N), weight and bias (N)."""
    out, mean, rstd = _layer_norm_fake(x, weight, bias, eps)
    runtime.launch("layer_norm", {"x": x, "weight": weight, "bias": bias, "out": out, "mean": mean, "rstd": rstd, "eps": eps},
                   ("out", "mean", "rstd"), x.device)
    return out, mean, rstd


@layer_norm_op.register_fake
def _layer_norm_fake(x, weight, bias, eps):
    return (torch.empty_like(x), x.new_empty(x.shape[0], dtype=torch.float32), x.new_empty(x.shape[0], dtype=torch.float32))


@torch.library.custom_op("flydsl_aot::layer_norm_backward", mutates_args=())
def layer_norm_backward_op(dout: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, weight: Optional[Tensor], bias: Optional[Tensor],
                           want_dx: bool, want_dweight: bool, want_dbias: bool) -> Tuple[Tensor, Tensor, Tensor]:
    """dx, dweight and dbias; those that are not wanted have no element."""
    gradients = _layer_norm_gradients(x, weight, bias, want_dx, want_dweight, want_dbias)
    wanted = {name: value for name, value, want in zip(("dx", "dweight", "dbias"), gradients, (want_dx, want_dweight, want_dbias)) if want}
    if wanted:
        runtime.launch("layer_norm_backward", {"x": x, "weight": weight, "mean": mean, "rstd": rstd, "dout": dout, **wanted},
                       tuple(wanted), x.device)
    return gradients


def _layer_norm_gradients(x, weight, bias, want_dx, want_dweight, want_dbias):
    return (*_norm_gradients(x, weight, want_dx, want_dweight),
            torch.empty_like(bias, memory_format=torch.contiguous_format) if want_dbias else x.new_empty(0))


@layer_norm_backward_op.register_fake
def _layer_norm_backward_fake(dout, x, mean, rstd, weight, bias, want_dx, want_dweight, want_dbias):
    return _layer_norm_gradients(x, weight, bias, want_dx, want_dweight, want_dbias)


def _layer_save(ctx, inputs, output):
    x, weight, bias, ctx.eps = inputs
    ctx.mark_non_differentiable(output[1], output[2])
    ctx.save_for_backward(x, weight, bias, output[1], output[2])


def _layer_backward(ctx, dout, _dmean, _drstd):
    x, weight, bias, mean, rstd = ctx.saved_tensors
    wanted = ctx.needs_input_grad[:3]
    if torch.is_grad_enabled():
        return (*_gradients_with_gradients(x, weight, bias, ctx.eps, True, dout, wanted), None)
    dout = dout if dout.stride(-1) == 1 or dout.shape[-1] == 1 else dout.contiguous()
    gradients = layer_norm_backward_op(dout, x, mean, rstd, weight, bias, *wanted)
    return (*(gradient if want else None for gradient, want in zip(gradients, wanted)), None)


layer_norm_op.register_autograd(_layer_backward, setup_context=_layer_save)


def refusal(x: Tensor, normalized_shape: Sequence[int], *parameters: Optional[Tensor]) -> str:
    """Why a norm falls back for these arguments; empty if it does not."""
    if x.dtype not in _TYPES:
        return f"input is {x.dtype}; fp32, fp16 and bf16 are supported"
    shape = list(normalized_shape)
    if not shape or list(x.shape[x.dim() - len(shape):]) != shape or x.dim() < len(shape):
        return f"normalized_shape {shape} is not the end of input's {list(x.shape)}"
    if x.numel() == 0:
        return "input has no element"
    for parameter in parameters:
        if parameter is not None:
            if parameter.dtype not in _TYPES or parameter.device != x.device or list(parameter.shape) != shape:
                return f"weight or bias is {parameter.dtype} {list(parameter.shape)} on {parameter.device}"
    columns = math.prod(shape)
    if columns >= 1 << 31 or x.numel() // columns >= 1 << 32:
        return "rows of 2^31 elements or 2^32 rows"
    return runtime.tensor_refusal(x)


def _flat(parameter: Optional[Tensor]) -> Optional[Tensor]:
    return None if parameter is None else parameter.reshape(-1).contiguous()


def normalise(x: Tensor, normalized_shape: Sequence[int], weight: Optional[Tensor], eps: Optional[float]) -> Tuple[Tensor, Tensor]:
    """out as x, rstd (M), of arguments that `refusal` has nothing against."""
    flat = _rows(x, math.prod(normalized_shape))
    out, rstd = rms_norm_op(flat, _flat(weight), DEFAULT_EPS if eps is None else eps)
    return out.reshape(x.shape), rstd


def layer_normalise(x: Tensor, normalized_shape: Sequence[int], weight: Optional[Tensor], bias: Optional[Tensor],
                    eps: float) -> Tuple[Tensor, Tensor, Tensor]:
    """out as x, mean (M) and rstd (M), of arguments that `refusal` has nothing against."""
    flat = _rows(x, math.prod(normalized_shape))
    out, mean, rstd = layer_norm_op(flat, _flat(weight), _flat(bias), eps)
    return out.reshape(x.shape), mean, rstd


def layer_gradients(dout: Tensor, x: Tensor, normalized_shape: Sequence[int], mean: Tensor, rstd: Tensor, weight: Optional[Tensor],
                    bias: Optional[Tensor], wanted: Sequence[bool]) -> Tuple[Optional[Tensor], Optional[Tensor], Optional[Tensor]]:
    """dx, dweight and dbias in the shapes of what they are gradients of, None where not wanted."""
    columns = math.prod(normalized_shape)
    wanted = (wanted[0], wanted[1] and weight is not None, wanted[2] and bias is not None)
    gradients = layer_norm_backward_op(_rows(dout, columns), _rows(x, columns), mean.reshape(-1), rstd.reshape(-1), _flat(weight),
                                       _flat(bias), *wanted)
    return tuple(gradient.reshape(like.shape) if want else None for gradient, like, want in zip(gradients, (x, weight, bias), wanted))


def rms_norm(input: Tensor, normalized_shape: List[int], weight: Optional[Tensor] = None, eps: Optional[float] = None) -> Tensor:
    """torch.nn.functional.rms_norm through flydsl_aot: input fp32, fp16 or bf16 of any strides, weight absent or of any of these."""
    reason = refusal(input, normalized_shape, weight)
    if reason:
        if not torch.compiler.is_compiling():
            runtime.note_fallback("rms_norm", reason)
        return F.rms_norm(input, normalized_shape, weight, eps)
    return normalise(input, normalized_shape, weight, eps)[0]


def layer_norm(input: Tensor, normalized_shape: List[int], weight: Optional[Tensor] = None, bias: Optional[Tensor] = None,
               eps: float = 1e-5) -> Tensor:
    """torch.nn.functional.layer_norm through flydsl_aot: as rms_norm, with bias."""
    reason = refusal(input, normalized_shape, weight, bias)
    if reason:
        if not torch.compiler.is_compiling():
            runtime.note_fallback("layer_norm", reason)
        return F.layer_norm(input, normalized_shape, weight, bias, eps)
    return layer_normalise(input, normalized_shape, weight, bias, eps)[0]
