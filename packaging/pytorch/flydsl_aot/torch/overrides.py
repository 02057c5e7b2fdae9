"""install(): ATen operators that take this library's kernels when eligible, and otherwise run as before with a logged reason.

scaled_dot_product_attention, rms_norm and layer_norm are taken over where autograd would split them into smaller operators, and bring
their own gradients; topk and the products are taken over as kernels of the device, below autograd, so that ATen's own formulas of their
gradients (products again) come through here too. The kernels that were there before are kept and called for all else."""

from __future__ import annotations

import warnings
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import torch

from . import attention, norms, products, runtime, selection

# Operator -> (a function of ATen's arguments that returns a reason to fall back and a function that computes, where it is registered).
_Plan = Tuple[str, Optional[Callable[[], Any]]]


def _attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None, enable_gqa=False) -> _Plan:
    if query.is_nested:
        return "nested tensors (flydsl_aot.torch.scaled_dot_product_attention takes them)", None
    reason = attention.refusal(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa)
    return reason, lambda: attention.attend(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)


def _rms_norm(input, normalized_shape, weight=None, eps=None) -> _Plan:
    return norms.refusal(input, normalized_shape, weight), lambda: norms.normalise(input, normalized_shape, weight, eps)[0]


def _layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True) -> _Plan:
    return norms.refusal(input, normalized_shape, weight, bias), lambda: norms.layer_normalise(input, normalized_shape, weight, bias, eps)[0]


def _topk(self, k, dim=-1, largest=True, sorted=True) -> _Plan:
    return selection.refusal(self, k, dim), lambda: selection.topk_op(self, k, dim, largest, sorted)


def _topk_out(self, k, dim=-1, largest=True, sorted=True, *, values, indices) -> _Plan:
    def compute() -> Any:
        for out, result in zip((values, indices), selection.topk_op(self, k, dim, largest, sorted)):
            out.resize_(result.shape).copy_(result)
        return values, indices

    reason = selection.refusal(self, k, dim)
    if not reason and (values.dtype != self.dtype or indices.dtype != torch.int64 or values.device != self.device):
        reason = "out tensors of other types"
    return reason, compute


def _native_layer_norm(input, normalized_shape, weight, bias, eps) -> _Plan:
    def compute() -> Any:
        out, mean, rstd = norms.layer_normalise(input, normalized_shape, weight, bias, eps)
        sizes = [*input.shape[:input.dim() - len(normalized_shape)], *(1 for _ in normalized_shape)]
        return out, mean.reshape(sizes), rstd.reshape(sizes)

    return norms.refusal(input, normalized_shape, weight, bias), compute


def _native_layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask) -> _Plan:
    reason = norms.refusal(input, normalized_shape, weight, bias)
    if not reason and (mean.dtype != torch.float32 or rstd.dtype != torch.float32 or grad_out.dtype != input.dtype):
        reason = f"grad_out, mean and rstd are {grad_out.dtype}, {mean.dtype} and {rstd.dtype} of input of {input.dtype}"
    return reason, lambda: norms.layer_gradients(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask)


def _mm(self, mat2) -> _Plan:
    return products.product_refusal(self, mat2, 2), lambda: products.gemm_op(self, mat2, None, None, 1.0, 0.0)


def _bmm(self, mat2) -> _Plan:
    return products.product_refusal(self, mat2, 3), lambda: products.gemm_op(self, mat2, None, None, 1.0, 0.0)


def _addmm(self, mat1, mat2, *, beta=1, alpha=1) -> _Plan:
    return (products.addmm_refusal(self, mat1, mat2),
            lambda: products.add_product(self, mat1, mat2, float(beta), float(alpha)))


def _mm_out(self, mat2, *, out) -> _Plan:
    reason = products.product_refusal(self, mat2, 2) or products.out_refusal(out, self, mat2)
    return reason, lambda: products.product_into(out, self, mat2, None, 1.0, 0.0)


def _bmm_out(self, mat2, *, out) -> _Plan:
    reason = products.product_refusal(self, mat2, 3) or products.out_refusal(out, self, mat2)
    return reason, lambda: products.product_into(out, self, mat2, None, 1.0, 0.0)


def _addmm_out(self, mat1, mat2, *, beta=1, alpha=1, out) -> _Plan:
    reason = products.addmm_refusal(self, mat1, mat2) or products.out_refusal(out, mat1, mat2, self)
    return reason, lambda: products.product_into(out, mat1, mat2, self.expand(out.shape), float(alpha), float(beta))


def _grouped_mm(self, mat2, offs=None, bias=None, out_dtype=None) -> _Plan:
    return (products.grouped_refusal(self, mat2, offs, bias, out_dtype),
            lambda: products.grouped_gemm_op(self, mat2, offs, bias, out_dtype or self.dtype))


def _scaled_mm(self, mat2, scale_a, recipe_a, swizzle_a, scale_b, recipe_b, swizzle_b, bias, out_dtype, contraction_dim=(),
               use_fast_accum=False) -> _Plan:
    if len(scale_a) != 1 or len(scale_b) != 1 or len(recipe_a) != 1 or len(recipe_b) != 1:
        return "several scales for one operand", None
    if tuple(contraction_dim) not in ((), (1, 0), (-1, -2)):
        return f"contraction_dim is {tuple(contraction_dim)}", None
    swizzle = (swizzle_a[0] if swizzle_a else 0, swizzle_b[0] if swizzle_b else 0)
    reason = products.scaled_refusal(self, mat2, scale_a[0], recipe_a[0], scale_b[0], recipe_b[0], *swizzle, bias, out_dtype)
    return reason, lambda: products.scaled_product(self, mat2, scale_a[0], recipe_a[0], scale_b[0], swizzle[0], bias, out_dtype)


def _scaled_mm_without_recipes(self, mat2, scale_a, scale_b, bias=None, scale_result=None, out_dtype=None, use_fast_accum=False) -> _Plan:
    if scale_result is not None:
        return "scale_result is given", None
    recipes = products.recipes_of(scale_a, scale_b)  # ROCm's blocks of 32 are not swizzled
    reason = products.scaled_refusal(self, mat2, scale_a, recipes[0], scale_b, recipes[1], 0, 0, bias, out_dtype)
    return reason, lambda: products.scaled_product(self, mat2, scale_a, recipes[0], scale_b, 0, bias, out_dtype)


def _scaled_grouped_mm(self, mat2, scale_a, recipe_a, swizzle_a, scale_b, recipe_b, swizzle_b, offs=None, bias=None, out_dtype=None,
                       contraction_dim=(), use_fast_accum=False) -> _Plan:
    if len(scale_a) != 1 or len(scale_b) != 1 or len(recipe_a) != 1 or len(recipe_b) != 1 or tuple(contraction_dim):
        return "several scales for one operand, or contraction_dim", None
    swizzle = (swizzle_a[0] if swizzle_a else 0, swizzle_b[0] if swizzle_b else 0)
    reason = products.scaled_grouped_refusal(self, mat2, scale_a[0], recipe_a[0], scale_b[0], recipe_b[0], *swizzle, bias, offs, out_dtype)
    return reason, lambda: products.scaled_grouped_product(self, mat2, scale_a[0], scale_b[0], bias, offs, out_dtype)


# Where an operator is taken over: above autograd, with gradients of its own, or as a kernel of the device.
_ABOVE, _BELOW = True, False
# Name for `install` -> ATen operators, their plans and where.
OPERATORS: Dict[str, Sequence[Tuple[str, Callable[..., _Plan], bool]]] = {
    "scaled_dot_product_attention": [("scaled_dot_product_attention", _attention, _ABOVE)],
    "rms_norm": [("rms_norm", _rms_norm, _ABOVE)],
    "layer_norm": [("layer_norm", _layer_norm, _ABOVE), ("native_layer_norm", _native_layer_norm, _BELOW),
                   ("native_layer_norm_backward", _native_layer_norm_backward, _BELOW)],
    "topk": [("topk", _topk, _BELOW), ("topk.values", _topk_out, _BELOW)],
    "mm": [("mm", _mm, _BELOW), ("mm.out", _mm_out, _BELOW)],
    "addmm": [("addmm", _addmm, _BELOW), ("addmm.out", _addmm_out, _BELOW)],
    "bmm": [("bmm", _bmm, _BELOW), ("bmm.out", _bmm_out, _BELOW)],
    "grouped_mm": [("_grouped_mm", _grouped_mm, _BELOW)],
    "scaled_mm": [("_scaled_mm_v2", _scaled_mm, _BELOW), ("_scaled_mm", _scaled_mm_without_recipes, _BELOW)],
    "scaled_grouped_mm": [("_scaled_grouped_mm_v2", _scaled_grouped_mm, _BELOW)],
}

_installed: Dict[Tuple[str, str], List[torch.library.Library]] = {}


def _kernel(name: str, plan: Callable[..., _Plan], previous: Any) -> Callable[..., Any]:
    def call(keyset: Any, *args: Any, **kwargs: Any) -> Any:
        reason, compute = plan(*args, **kwargs)
        if not reason and compute is not None:
            return compute()
        if not torch.compiler.is_compiling():
            runtime.note_fallback(f"aten::{name}", reason)
        return previous.call_boxed(keyset, *args, **kwargs)

    return call


def _register(name: str, plan: Callable[..., _Plan], dispatch_key: str) -> torch.library.Library:
    previous = torch.library.get_kernel(f"aten::{name}", dispatch_key)
    library = torch.library.Library("aten", "IMPL", dispatch_key)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*(Overriding a previously registered kernel|operators may also be overridden)")
        library.impl(name, _kernel(name, plan, previous), dispatch_key, with_keyset=True)
    return library


def _forget_kernels(name: str) -> None:
    """What torch.compile remembers of an operator's ATen operators: which of their kernels it is to trace."""
    for operator, _plan, _above in OPERATORS[name]:
        packet, _, overload = operator.partition(".")
        getattr(getattr(getattr(torch.ops.aten, packet, None), overload or "default", None), "_dispatch_cache", {}).clear()


def install(operators: Optional[Sequence[str]] = None, device: str = "cuda") -> List[str]:
    """Overrides ATen's operators on ROCm devices (`device` "cuda", PyTorch's name for them) and returns the names of those that are
    overridden now (without those that this PyTorch lacks; the log names them). operators: some of OPERATORS, by default all. With device "cpu" CPU tensors take the emulator, for tests; that needs
    `emulate()`. Where the device is none that can be used nothing is installed, the reason is logged, and the result is empty."""
    names = list(OPERATORS) if operators is None else list(operators)
    for name in names:
        if name not in OPERATORS:
            raise ValueError(f"operators has {name!r}; it may have {', '.join(OPERATORS)}")
    if device not in ("cuda", "cpu"):
        raise ValueError(f"device is {device!r}; it may be 'cuda' or 'cpu'")
    if not hasattr(torch.library, "get_kernel"):
        reason = f"PyTorch {torch.__version__} has no torch.library.get_kernel (2.9 has it)"
    elif device == "cuda" and torch.version.hip is None:
        reason = "this PyTorch is not built for ROCm"
    elif device == "cuda" and not torch.cuda.is_available():
        reason = "there is no ROCm device"
    else:
        reason = runtime.device_refusal(device, torch.cuda.current_device() if device == "cuda" else 0)
    if reason:
        runtime.log.warning("flydsl_aot.torch.install: nothing is overridden: %s", reason)
        return []
    backend = device.upper()
    for name in names:
        if (name, device) in _installed:
            continue
        try:
            _installed[name, device] = [
                _register(operator, plan, key) for operator, plan, above in OPERATORS[name]
                for key in ([f"Autograd{backend}", backend] if above else [backend])]
            _forget_kernels(name)
            runtime.forget_graphs()
        except RuntimeError as reason:  # this PyTorch has no such operator, or no kernel of it to fall back to
            runtime.log.warning("flydsl_aot.torch.install: %s is not overridden: %s", name, reason)
    return [name for name, where in _installed if where == device]


def uninstall(operators: Optional[Sequence[str]] = None, device: str = "cuda") -> None:
    """Gives ATen its own kernels back."""
    for name in list(OPERATORS) if operators is None else operators:
        for library in _installed.pop((name, device), []):
            library._destroy()
            _forget_kernels(name)
            runtime.forget_graphs()
