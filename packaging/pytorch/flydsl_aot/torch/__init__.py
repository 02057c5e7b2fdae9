"""flydsl_aot on PyTorch's tensors: functions with PyTorch's arguments, gradients and torch.compile, and `install()`, which lets PyTorch's
own functions use them.

    import flydsl_aot.torch
    out = flydsl_aot.torch.scaled_dot_product_attention(q, k, v, is_causal=True)    # or, once:
    flydsl_aot.torch.install()                                                      # F.scaled_dot_product_attention, F.rms_norm, ...

On ROCm devices the kernels run on the current stream. What is not supported goes to ATen, with the reason in the log "flydsl_aot.torch".
`emulate()` lets CPU tensors run on the emulator. docs/pytorch.md says more."""

from __future__ import annotations

from .attention import attention_varlen, scaled_dot_product_attention
from .norms import layer_norm, rms_norm
from .overrides import install, uninstall
from .products import addmm, bmm, grouped_mm, linear, mm, scaled_grouped_mm, scaled_mm
from .runtime import emulate
from .selection import topk

__all__ = ["addmm", "attention_varlen", "bmm", "emulate", "grouped_mm", "install", "layer_norm", "linear", "mm", "rms_norm",
           "scaled_dot_product_attention", "scaled_grouped_mm", "scaled_mm", "topk", "uninstall"]
