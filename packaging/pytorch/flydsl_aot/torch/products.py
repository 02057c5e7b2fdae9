"""mm, addmm, bmm, linear and grouped_mm with gradients; scaled_mm and scaled_grouped_mm (include/flydsl_aot/gemm.h, grouped_gemm.h, scaled_gemm.h).

Sums are FP32 whatever PyTorch's settings of reduced precision are, and never depend on the order in which work-groups run."""

from __future__ import annotations

import math
from typing import Any, List, Optional, Sequence, Tuple, Union

import torch
import torch.nn.functional as F
from torch import Tensor

from .. import _layout
from . import runtime

_TYPES = (torch.float32, torch.float16, torch.bfloat16)
_FLOAT8 = (torch.float8_e4m3fn, torch.float8_e5m2)
_FLOAT4 = getattr(torch, "float4_e2m1fn_x2", None)
_SCALE8 = getattr(torch, "float8_e8m0fnu", None)
# torch.nn.functional.ScalingType and SwizzleType.
_TENSOR_WISE, _ROW_WISE, _BLOCKS_OF_32 = 0, 1, 3
_NO_SWIZZLE, _SWIZZLE_32_8 = 0, 2


def _product_sizes(a: Tensor, b: Tensor) -> List[int]:
    return [*a.shape[:-1], b.shape[-1]]


@torch.library.custom_op("flydsl_aot::gemm", mutates_args=())
def gemm_op(a: Tensor, b: Tensor, c: Optional[Tensor], bias: Optional[Tensor], alpha: float, beta: float) -> Tensor:
    """alpha a b + beta c + bias: a (M, K) or (batch, M, K), b (K, N) likewise, c of the product's sizes, bias (N)."""
    d = a.new_empty(_product_sizes(a, b))
    fields = {"a": a, "b": b, "c": c if beta else None, "epilogue.bias_n": bias, "d": d, "alpha": alpha, "beta": beta if c is not None else 0.0}
    runtime.launch("gemm", fields, ("d",), a.device)
    return d


@gemm_op.register_fake
def _gemm_fake(a, b, c, bias, alpha, beta):
    return a.new_empty(_product_sizes(a, b))


def _gemm_save(ctx, inputs, output):
    a, b, c, bias, ctx.alpha, ctx.beta = inputs
    ctx.has_c, ctx.has_bias = c is not None, bias is not None
    ctx.save_for_backward(a, b)


def _gemm_backward(ctx, dd):
    a, b = ctx.saved_tensors
    want_a, want_b, want_c, want_bias = ctx.needs_input_grad[:4]
    da = gemm_op(dd, b.transpose(-2, -1), None, None, ctx.alpha, 0.0) if want_a else None
    db = gemm_op(a.transpose(-2, -1), dd, None, None, ctx.alpha, 0.0) if want_b else None
    dc = dd * ctx.beta if want_c else None
    dbias = dd.sum(list(range(dd.dim() - 1))) if want_bias else None
    return da, db, dc, dbias, None, None


gemm_op.register_autograd(_gemm_backward, setup_context=_gemm_save)


@torch.library.custom_op("flydsl_aot::grouped_gemm", mutates_args=())
def grouped_gemm_op(a: Tensor, b: Tensor, offsets: Optional[Tensor], bias: Optional[Tensor], out_dtype: torch.dtype) -> Tensor:
    """Products of groups, as flydsl_aot_grouped_gemm. Rows and columns of no group are 0."""
    d = _grouped_gemm_fake(a, b, offsets, bias, out_dtype)
    runtime.launch("grouped_gemm", {"a": a, "b": b, "offsets": offsets, "bias": bias, "d": d}, ("d",), a.device)
    return d


@grouped_gemm_op.register_fake
def _grouped_gemm_fake(a, b, offsets, bias, out_dtype):
    sizes = [a.shape[-2], b.shape[-1]]
    if a.dim() != b.dim():
        return a.new_zeros(sizes, dtype=out_dtype)
    return a.new_empty([a.shape[0] if a.dim() == 3 else offsets.shape[0], *sizes], dtype=out_dtype)


def _grouped_save(ctx, inputs, output):
    a, b, offsets, bias, _out_dtype = inputs
    ctx.bias_dtype = None if bias is None else bias.dtype
    ctx.bias_axes = 0 if bias is None else bias.dim()
    ctx.save_for_backward(a, b, offsets)


def _grouped_backward(ctx, dd):
    a, b, offsets = ctx.saved_tensors
    want_a, want_b, _, want_bias = ctx.needs_input_grad[:4]
    dd = dd.to(a.dtype)
    da = grouped_gemm_op(dd, b.transpose(-2, -1), offsets, None, a.dtype) if want_a else None
    db = grouped_gemm_op(a.transpose(-2, -1), dd, offsets, None, b.dtype) if want_b else None
    dbias = None
    if want_bias:
        if ctx.bias_axes == 1:
            dbias = dd.reshape(-1, dd.shape[-1]).sum(0)
        elif dd.dim() == 3:
            dbias = dd.sum(1)
        else:  # (G, N): sums of the rows of each group
            ones = dd.new_ones(1, dd.shape[0])
            dbias = grouped_gemm_op(ones, dd, offsets, None, torch.float32).squeeze(1)
        dbias = dbias.to(ctx.bias_dtype)
    return da, db, None, dbias, None


grouped_gemm_op.register_autograd(_grouped_backward, setup_context=_grouped_save)


@torch.library.custom_op("flydsl_aot::scaled_gemm", mutates_args=())
def scaled_gemm_op(a: Tensor, b: Tensor, a_scale: Tensor, b_scale: Tensor, bias: Optional[Tensor], scale_layout: int,
                   out_dtype: torch.dtype) -> Tensor:
    """MXFP8 or MXFP4 product: a (M, K), b (K, N), scales as flydsl_aot_scaled_gemm wants them."""
    d = _scaled_gemm_fake(a, b, a_scale, b_scale, bias, scale_layout, out_dtype)
    fields = {"a": a, "b": b, "a_scale": a_scale, "b_scale": b_scale, "bias": bias, "scale_layout": scale_layout, "d": d}
    runtime.launch("scaled_gemm", fields, ("d",), a.device)
    return d


@scaled_gemm_op.register_fake
def _scaled_gemm_fake(a, b, a_scale, b_scale, bias, scale_layout, out_dtype):
    return a.new_empty([a.shape[0], b.shape[1]], dtype=out_dtype)


@torch.library.custom_op("flydsl_aot::scaled_grouped_gemm", mutates_args=())
def scaled_grouped_gemm_op(a: Tensor, b: Tensor, a_scale: Tensor, b_scale: Tensor, offsets: Optional[Tensor], bias: Optional[Tensor],
                           out_dtype: torch.dtype) -> Tensor:
    """MXFP8 products of groups with plain scales, as flydsl_aot_grouped_gemm. Rows and columns of no group are 0."""
    d = _grouped_gemm_fake(a, b, offsets, bias, out_dtype)
    fields = {"a": a, "b": b, "a_scale": a_scale, "b_scale": b_scale, "offsets": offsets, "bias": bias, "d": d}
    runtime.launch("grouped_gemm", fields, ("d",), a.device)
    return d


@scaled_grouped_gemm_op.register_fake
def _scaled_grouped_gemm_fake(a, b, a_scale, b_scale, offsets, bias, out_dtype):
    return _grouped_gemm_fake(a, b, offsets, bias, out_dtype)


@torch.library.custom_op("flydsl_aot::descaled_gemm", mutates_args=())
def descaled_gemm_op(a: Tensor, b: Tensor, a_descale: Tensor, b_descale: Tensor, bias: Optional[Tensor],
                     out_dtype: torch.dtype) -> Tensor:
    """8-bit product with one factor, or one a row of a and column of b."""
    d = _descaled_gemm_fake(a, b, a_descale, b_descale, bias, out_dtype)
    runtime.launch("gemm", {"a": a, "b": b, "a_descale": a_descale, "b_descale": b_descale, "epilogue.bias_n": bias, "d": d,
                            "alpha": 1.0}, ("d",), a.device)
    return d


@descaled_gemm_op.register_fake
def _descaled_gemm_fake(a, b, a_descale, b_descale, bias, out_dtype):
    return a.new_empty([a.shape[0], b.shape[1]], dtype=out_dtype)


def product_refusal(a: Tensor, b: Tensor, rank: int, *others: Optional[Tensor]) -> str:
    """Why a product of two operands of that rank falls back; empty if it does not."""
    if a.dtype not in _TYPES or b.dtype != a.dtype:
        return f"operands are {a.dtype} and {b.dtype}; one of fp32, fp16 and bf16 is needed"
    if a.layout != torch.strided or b.layout != torch.strided:
        return "operands are not strided"
    if a.dim() != rank or b.dim() != rank or a.shape[-1] != b.shape[-2] or a.shape[:-2] != b.shape[:-2]:
        return f"operands are {list(a.shape)} and {list(b.shape)}"
    for other in (b, *others):
        if other is not None and other.device != a.device:
            return "operands are on different devices"
        if other is not None and other.dtype not in _TYPES:
            return f"an operand is {other.dtype}"
    if runtime.too_large(*a.shape) or runtime.too_large(*b.shape):
        return "sizes beyond 2^30"
    return runtime.tensor_refusal(a)


def _fallback(operator: str, reason: str) -> None:
    if not torch.compiler.is_compiling():
        runtime.note_fallback(operator, reason)


def product_into(out: Tensor, a: Tensor, b: Tensor, c: Optional[Tensor], alpha: float, beta: float) -> Tensor:
    """alpha a b + beta c into `out`, which `out_refusal` has nothing against."""
    runtime.launch("gemm", {"a": a, "b": b, "c": c if beta else None, "d": out, "alpha": alpha, "beta": beta if c is not None else 0.0},
                   ("d",), a.device)
    return out


def out_refusal(out: Tensor, a: Tensor, b: Tensor, *others: Tensor) -> str:
    """Why `out` of a product is not written in place; empty if it is."""
    if list(out.shape) != _product_sizes(a, b) or out.dtype != a.dtype or out.device != a.device:
        return f"out is {out.dtype} {list(out.shape)} on {out.device}"
    storage = out.untyped_storage().data_ptr()
    if any(x.untyped_storage().data_ptr() == storage for x in (a, b, *others)) or torch._debug_has_internal_overlap(out) != 0:
        return "out may overlap an operand or itself"
    return ""


def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """torch.mm through flydsl_aot: (M, K) by (K, N), fp32 (FP32 products), fp16 or bf16, any strides."""
    input, mat2 = runtime.autocast((input, mat2))
    reason = product_refusal(input, mat2, 2)
    if reason:
        _fallback("mm", reason)
        return torch.mm(input, mat2)
    return gemm_op(input, mat2, None, None, 1.0, 0.0)


def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """torch.bmm through flydsl_aot: (batch, M, K) by (batch, K, N)."""
    input, mat2 = runtime.autocast((input, mat2))
    reason = product_refusal(input, mat2, 3)
    if reason:
        _fallback("bmm", reason)
        return torch.bmm(input, mat2)
    return gemm_op(input, mat2, None, None, 1.0, 0.0)


def add_product(input: Tensor, mat1: Tensor, mat2: Tensor, beta: float, alpha: float) -> Tensor:
    """beta input + alpha mat1 mat2 of operands that `addmm_refusal` has nothing against."""
    if beta == 1 and input.dim() == 1 and input.shape[0] == mat2.shape[1]:
        return gemm_op(mat1, mat2, None, input, alpha, 0.0)
    return gemm_op(mat1, mat2, input.expand(mat1.shape[0], mat2.shape[1]), None, alpha, beta)


def addmm_refusal(input: Tensor, mat1: Tensor, mat2: Tensor) -> str:
    """Why addmm falls back; empty if it does not."""
    reason = product_refusal(mat1, mat2, 2, input)
    if not reason and (input.dtype != mat1.dtype or input.dim() > 2):
        return f"input is {input.dtype} of {input.dim()} axes, products are {mat1.dtype}"
    if not reason and any(size not in (1, product) for size, product in zip(reversed(input.shape), (mat2.shape[1], mat1.shape[0]))):
        return f"input of {list(input.shape)} does not broadcast to the product"
    return reason


def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """torch.addmm through flydsl_aot: beta input + alpha mat1 mat2, input broadcast to (M, N)."""
    input, mat1, mat2 = runtime.autocast((input, mat1, mat2))
    reason = addmm_refusal(input, mat1, mat2)
    if reason:
        _fallback("addmm", reason)
        return torch.addmm(input, mat1, mat2, beta=beta, alpha=alpha)
    return add_product(input, mat1, mat2, float(beta), float(alpha))


def linear(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None) -> Tensor:
    """torch.nn.functional.linear through flydsl_aot: input (..., K), weight (N, K), bias (N)."""
    operands = runtime.autocast([x for x in (input, weight, bias) if x is not None])
    input, weight, bias = (*operands, None)[:3]
    flat = input.reshape(-1, input.shape[-1]) if input.dim() != 2 and input.dim() > 0 and input.numel() else input
    reason = product_refusal(flat, weight.transpose(0, 1), 2, bias) if weight.dim() == 2 else "weight has no two axes"
    if not reason and bias is not None and (bias.dtype != input.dtype or bias.dim() != 1):
        reason = f"bias is {bias.dtype} of {bias.dim()} axes"
    if reason:
        _fallback("linear", reason)
        return F.linear(input, weight, bias)
    return gemm_op(flat, weight.transpose(0, 1), None, bias, 1.0, 0.0).reshape(*input.shape[:-1], weight.shape[0])


def grouped_refusal(a: Tensor, b: Tensor, offs: Optional[Tensor], bias: Optional[Tensor], out_dtype: Optional[torch.dtype]) -> str:
    """Why grouped_mm falls back; empty if it does not."""
    if a.dtype not in (torch.bfloat16, torch.float16) or b.dtype != a.dtype:
        return f"operands are {a.dtype} and {b.dtype}; both bf16 or both fp16 are supported"
    return _groups_refusal(a, b, offs, bias, out_dtype)


def _groups_refusal(a: Tensor, b: Tensor, offs: Optional[Tensor], bias: Optional[Tensor], out_dtype: Optional[torch.dtype]) -> str:
    """The same of all but the operands' types."""
    if out_dtype not in (None, *_TYPES):
        return f"out_dtype is {out_dtype}"
    if a.dim() not in (2, 3) or b.dim() not in (2, 3):
        return f"operands have {a.dim()} and {b.dim()} axes"
    if (offs is None) != (a.dim() == 3 and b.dim() == 3):
        return "offs is needed where an operand has two axes, and only there"
    if offs is not None and (offs.dim() != 1 or offs.dtype not in (torch.int32, torch.int64) or offs.device != a.device):
        return f"offs is {offs.dtype} {list(offs.shape)} on {offs.device}"
    groups = [x.shape[0] for x in (a, b) if x.dim() == 3] + ([offs.shape[0]] if offs is not None else [])
    if any(count != groups[0] for count in groups) or a.shape[-1] != b.shape[-2]:
        return f"operands are {list(a.shape)} and {list(b.shape)}"
    if bias is not None and bias.dtype not in _TYPES:
        return f"bias is {bias.dtype}"
    if runtime.too_large(*a.shape) or runtime.too_large(*b.shape):
        return "sizes beyond 2^30"
    return runtime.tensor_refusal(a)


def grouped_mm(mat_a: Tensor, mat_b: Tensor, *, offs: Optional[Tensor] = None, bias: Optional[Tensor] = None,
               out_dtype: Optional[torch.dtype] = None) -> Tensor:
    """torch.nn.functional.grouped_mm through flydsl_aot, with gradients: bf16 or fp16, offs int32 or int64, bias (N) or (G, N), also
    fp32 out. Rows and columns of no group are 0."""
    reason = grouped_refusal(mat_a, mat_b, offs, bias, out_dtype)
    if reason:
        _fallback("grouped_mm", reason)
        return F.grouped_mm(mat_a, mat_b, offs=offs, bias=bias, out_dtype=out_dtype)
    return grouped_gemm_op(mat_a, mat_b, offs, bias, out_dtype or mat_a.dtype)


def _single(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return value[0] if len(value) == 1 else value
    return value


def scaled_refusal(a: Tensor, b: Tensor, scale_a: Any, recipe_a: Any, scale_b: Any, recipe_b: Any, swizzle_a: int, swizzle_b: int,
                   bias: Optional[Tensor], out_dtype: Optional[torch.dtype]) -> str:
    """Why scaled_mm falls back; empty if it does not. Recipes and swizzles are numbers of PyTorch's enumerations."""
    if not isinstance(scale_a, Tensor) or not isinstance(scale_b, Tensor):
        return "several scales for one operand"
    if a.dim() != 2 or b.dim() != 2 or a.shape[1] != b.shape[0]:
        return f"operands are {list(a.shape)} and {list(b.shape)}"
    if out_dtype not in _TYPES:
        return f"output_dtype is {out_dtype or a.dtype}; fp32, fp16 and bf16 are supported"
    if bias is not None and (bias.dtype not in _TYPES or list(bias.shape) != [b.shape[1]]):
        return f"bias is {bias.dtype} {list(bias.shape)}"
    small = (a.dtype in _FLOAT8 and b.dtype in _FLOAT8) or (_FLOAT4 is not None and a.dtype == _FLOAT4 and b.dtype == _FLOAT4)
    if not small:
        return f"operands are {a.dtype} and {b.dtype}; OCP fp8 or fp4 are supported"
    if recipe_a == recipe_b == _BLOCKS_OF_32:
        reason = _blocks_refusal(a, b, scale_a, scale_b, swizzle_a, swizzle_b)
    elif a.dtype in _FLOAT8 and recipe_a == recipe_b and recipe_a in (_TENSOR_WISE, _ROW_WISE):
        rows, columns = (1, 1) if recipe_a == _TENSOR_WISE else (a.shape[0], b.shape[1])
        right = scale_a.numel() == rows and scale_b.numel() == columns and scale_a.dtype == scale_b.dtype == torch.float32
        reason = "" if right else f"scales are {scale_a.dtype} {list(scale_a.shape)} and {scale_b.dtype} {list(scale_b.shape)}"
    else:
        reason = f"scaling recipes {recipe_a} and {recipe_b} of {a.dtype}"
    return reason or runtime.tensor_refusal(a)


def _packed(x: Tensor) -> int:
    return 2 if _FLOAT4 is not None and x.dtype == _FLOAT4 else 1


def _scale_sizes(rows: int, columns: int, swizzle: int) -> Tuple[int, int]:
    blocks = columns // 32
    return (rows, blocks) if swizzle == _NO_SWIZZLE else (-(-rows // 32) * 32, -(-blocks // 8) * 8)


def _blocks_refusal(a: Tensor, b: Tensor, scale_a: Tensor, scale_b: Tensor, swizzle_a: int, swizzle_b: int) -> str:
    if _SCALE8 is None or scale_a.dtype != _SCALE8 or scale_b.dtype != _SCALE8:
        return f"scales are {scale_a.dtype} and {scale_b.dtype}; e8m0 is needed"
    if swizzle_a != swizzle_b or swizzle_a not in (_NO_SWIZZLE, _SWIZZLE_32_8):
        return f"scales are swizzled as {swizzle_a} and {swizzle_b}; NO_SWIZZLE and SWIZZLE_32_8, of both, are supported"
    inner = a.shape[1] * _packed(a)
    if inner % 32:
        return f"K is {inner}; a multiple of 32 is needed"
    if a.dtype == _FLOAT4 and (a.stride(1) != 1 or b.stride(0) != 1):
        return "fp4 operands that are not contiguous along K"
    for scale, rows in ((scale_a, a.shape[0]), (scale_b, b.shape[1])):
        sizes = _scale_sizes(rows, inner, swizzle_a)
        if scale.numel() != sizes[0] * sizes[1] or not (scale.is_contiguous() or list(scale.shape) == list(sizes)):
            return f"a scale is {list(scale.shape)}; {list(sizes)} elements are needed"
    return ""


def recipes_of(scale_a: Tensor, scale_b: Tensor) -> Tuple[int, int]:
    """What torch._scaled_mm, which is not told, makes of scales."""
    if _SCALE8 in (scale_a.dtype, scale_b.dtype):
        return _BLOCKS_OF_32, _BLOCKS_OF_32
    recipe = _TENSOR_WISE if scale_a.numel() == scale_b.numel() == 1 else _ROW_WISE
    return recipe, recipe


def scaled_product(a: Tensor, b: Tensor, scale_a: Tensor, recipe: int, scale_b: Tensor, swizzle: int, bias: Optional[Tensor],
                   out_dtype: torch.dtype) -> Tensor:
    """scaled_mm of operands that `scaled_refusal` has nothing against."""
    if recipe != _BLOCKS_OF_32:
        return descaled_gemm_op(a, b, scale_a.reshape(-1), scale_b.reshape(-1), bias, out_dtype)
    inner = a.shape[1] * _packed(a)
    left, right = (_as_blocks(scale, _scale_sizes(rows, inner, swizzle)) for scale, rows in ((scale_a, a.shape[0]), (scale_b, b.shape[1])))
    layout = _layout.SCALE_LAYOUTS["plain" if swizzle == _NO_SWIZZLE else "shuffled-32-8"]
    return scaled_gemm_op(a, b, left, right, bias, layout, out_dtype)


def _as_blocks(scale: Tensor, sizes: Sequence[int]) -> Tensor:
    return scale if list(scale.shape) == list(sizes) else scale.reshape(sizes)


def scaled_mm(mat_a: Tensor, mat_b: Tensor, scale_a: Union[Tensor, List[Tensor]], scale_recipe_a: Any,
              scale_b: Union[Tensor, List[Tensor]], scale_recipe_b: Any, swizzle_a: Any = None, swizzle_b: Any = None,
              bias: Optional[Tensor] = None, output_dtype: Optional[torch.dtype] = torch.bfloat16, contraction_dim: Sequence[int] = (),
              use_fast_accum: bool = False) -> Tensor:
    """torch.nn.functional.scaled_mm through flydsl_aot: OCP fp8 with factors of the tensor or its rows; MXFP8 and MXFP4 with E8M0 scales
    of 32 along K (BlockWise1x32), plain or SWIZZLE_32_8; fp32, fp16 or bf16 out; any strides of fp8. Not differentiable, as PyTorch's."""
    scales = [_single(scale) for scale in (scale_a, scale_b)]
    recipes = [_number(_single(recipe)) for recipe in (scale_recipe_a, scale_recipe_b)]
    swizzles = [_number(_single(swizzle)) if swizzle else _NO_SWIZZLE for swizzle in (swizzle_a, swizzle_b)]
    reason = scaled_refusal(mat_a, mat_b, scales[0], recipes[0], scales[1], recipes[1], *swizzles, bias, output_dtype)
    if not reason and tuple(contraction_dim) not in ((), (1, 0), (-1, -2)):
        reason = f"contraction_dim is {tuple(contraction_dim)}"
    if reason:
        _fallback("scaled_mm", reason)
        return F.scaled_mm(mat_a, mat_b, scale_a, scale_recipe_a, scale_b, scale_recipe_b, swizzle_a, swizzle_b, bias, output_dtype,
                           contraction_dim, use_fast_accum)
    return scaled_product(mat_a, mat_b, scales[0], recipes[0], scales[1], swizzles[0], bias, output_dtype)


def _number(member: Any) -> Any:
    return member if isinstance(member, (int, list, tuple)) else member.value


def scaled_grouped_refusal(a: Tensor, b: Tensor, scale_a: Any, recipe_a: Any, scale_b: Any, recipe_b: Any, swizzle_a: int, swizzle_b: int,
                           bias: Optional[Tensor], offs: Optional[Tensor], out_dtype: Optional[torch.dtype]) -> str:
    """Why scaled_grouped_mm falls back; empty if it does not."""
    if not isinstance(scale_a, Tensor) or not isinstance(scale_b, Tensor):
        return "several scales for one operand"
    if a.dtype not in _FLOAT8 or b.dtype not in _FLOAT8 or recipe_a != _BLOCKS_OF_32 or recipe_b != _BLOCKS_OF_32:
        return f"operands are {a.dtype} and {b.dtype} of recipes {recipe_a} and {recipe_b}; OCP fp8 by BlockWise1x32 is supported"
    if swizzle_a != _NO_SWIZZLE or swizzle_b != _NO_SWIZZLE:
        return f"scales are swizzled as {swizzle_a} and {swizzle_b}; NO_SWIZZLE is supported"
    if _SCALE8 is None or scale_a.dtype != _SCALE8 or scale_b.dtype != _SCALE8:
        return f"scales are {scale_a.dtype} and {scale_b.dtype}; e8m0 is needed"
    reason = _groups_refusal(a, b, offs, bias, out_dtype)
    if reason:
        return reason
    if a.shape[-1] % 32:
        return f"K is {a.shape[-1]}; a multiple of 32 is needed"
    for scale, sizes in ((scale_a, _grouped_scale_sizes(a)), (scale_b, _grouped_scale_sizes(b.transpose(-2, -1)))):
        if list(scale.shape) != sizes and not (scale.is_contiguous() and scale.numel() == math.prod(sizes)):
            return f"a scale is {list(scale.shape)}; {sizes} is needed"
    return ""


def _grouped_scale_sizes(operand: Tensor) -> List[int]:
    return [*operand.shape[:-1], operand.shape[-1] // 32]


def scaled_grouped_product(a: Tensor, b: Tensor, scale_a: Tensor, scale_b: Tensor, bias: Optional[Tensor], offs: Optional[Tensor],
                           out_dtype: Optional[torch.dtype]) -> Tensor:
    """scaled_grouped_mm of operands that `scaled_grouped_refusal` has nothing against."""
    left, right = _as_blocks(scale_a, _grouped_scale_sizes(a)), _as_blocks(scale_b, _grouped_scale_sizes(b.transpose(-2, -1)))
    return scaled_grouped_gemm_op(a, b, left, right, offs, bias, out_dtype or torch.bfloat16)


def scaled_grouped_mm(mat_a: Tensor, mat_b: Tensor, scale_a: Union[Tensor, List[Tensor]], scale_recipe_a: Any,
                      scale_b: Union[Tensor, List[Tensor]], scale_recipe_b: Any, swizzle_a: Any = None, swizzle_b: Any = None,
                      bias: Optional[Tensor] = None, offs: Optional[Tensor] = None, output_dtype: Optional[torch.dtype] = torch.bfloat16,
                      contraction_dim: Sequence[int] = (), use_fast_accum: bool = False) -> Tensor:
    """torch.nn.functional.scaled_grouped_mm through flydsl_aot: MXFP8 in all forms of grouped_mm, scales plain: (M, K / 32) of mat_a,
    (N, K / 32) of mat_b, with the groups' axis first where the operand has one. Not differentiable."""
    scales = [_single(scale) for scale in (scale_a, scale_b)]
    recipes = [_number(_single(recipe)) for recipe in (scale_recipe_a, scale_recipe_b)]
    swizzles = [_number(_single(swizzle)) if swizzle else _NO_SWIZZLE for swizzle in (swizzle_a, swizzle_b)]
    reason = scaled_grouped_refusal(mat_a, mat_b, scales[0], recipes[0], scales[1], recipes[1], *swizzles, bias, offs, output_dtype)
    if not reason and tuple(contraction_dim):
        reason = f"contraction_dim is {tuple(contraction_dim)}"
    if reason:
        _fallback("scaled_grouped_mm", reason)
        return F.scaled_grouped_mm(mat_a, mat_b, scale_a, scale_recipe_a, scale_b, scale_recipe_b, swizzle_a, swizzle_b, bias, offs,
                                   output_dtype, contraction_dim, use_fast_accum)
    return scaled_grouped_product(mat_a, mat_b, scales[0], scales[1], bias, offs, output_dtype)
