"""scaled_dot_product_attention and its form for sequences of different lengths, with gradients.

Formulas, rules and error bounds are those of include/flydsl_aot/attention_forward.h and attention_backward.h. A query that sees no key
gives 0, as PyTorch's kernels do. Dropout draws its seed from PyTorch's generator of the device."""

from __future__ import annotations

import math
from typing import Any, Dict, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor

from .. import _layout
from . import runtime

_NONE, _TOP_LEFT, _BOTTOM_RIGHT = (_layout.ANCHORS[name] for name in ("none", "top-left", "bottom-right"))
_LARGEST_HEAD_DIM, _LARGEST_VALUE_DIM = 576, 512
_MOST_DECODE_QUERIES = 16
# Modelled: 32 heads over 8, D 128, one query, attention_decode takes 0.92 of attention_forward's time at 512 keys, 0.45 at 2,048,
# and 0.33 at 1,024 of 32 sequences; at few keys its second launch costs more than it saves.
_FEWEST_DECODE_KEYS = 512


def _fields(q: Tensor, k: Tensor, v: Tensor, bias: Optional[Tensor], visible: Optional[Tensor], seed: Optional[Tensor],
            cu_seqlens_q: Optional[Tensor], cu_seqlens_k: Optional[Tensor], max_seqlen_q: int, max_seqlen_k: int, scale: float,
            anchor: int, left: int, right: int, dropout_p: float) -> Dict[str, Any]:
    """What forward and backward calls share."""
    fields: Dict[str, Any] = {
        "q": q, "k": k, "v": v, "bias": bias, "visible": visible, "scale": scale, "dropout_p": dropout_p,
        "cu_seqlens_q": cu_seqlens_q, "cu_seqlens_k": cu_seqlens_k, "max_seqlen_q": max_seqlen_q, "max_seqlen_k": max_seqlen_k,
        "mask.left": left, "mask.right": right, "mask.anchor": anchor}
    if seed is not None:
        fields["dropout_seed_device"], fields["dropout_offset_device"] = seed[:1], seed[1:]
    return fields


def _forward_or_decode(fields: Dict[str, Any], device: torch.device) -> Tuple[str, Dict[str, Any]]:
    """Few queries over many keys without other features are attention_decode's, if it takes their head dims and alignments."""
    features = ("bias", "visible", "cu_seqlens_q", "cu_seqlens_k", "dropout_seed_device")
    if any(fields.get(name) is not None for name in features):
        return "attention_forward", fields
    if not 1 <= fields["q"].shape[2] <= _MOST_DECODE_QUERIES or fields["k"].shape[2] < _FEWEST_DECODE_KEYS:
        return "attention_forward", fields
    decode = {name: fields[name] for name in ("q", "k", "v", "out", "lse", "scale", "mask.left", "mask.right", "mask.anchor")}
    return ("attention_decode", decode) if runtime.would_run("attention_decode", decode, device) else ("attention_forward", fields)


def _result_like(q: Tensor, v: Tensor) -> Tensor:
    """out in q's memory order where that is dense, so that (B, S, H, D) data stays so."""
    if q.shape[-1] == v.shape[-1]:
        return torch.empty_like(q)
    return q.new_empty((*q.shape[:-1], v.shape[-1]))


@torch.library.custom_op("flydsl_aot::attention_forward", mutates_args=())
def attention_forward(q: Tensor, k: Tensor, v: Tensor, bias: Optional[Tensor], visible: Optional[Tensor], seed: Optional[Tensor],
                      cu_seqlens_q: Optional[Tensor], cu_seqlens_k: Optional[Tensor], max_seqlen_q: int, max_seqlen_k: int,
                      scale: float, anchor: int, left: int, right: int, dropout_p: float) -> Tuple[Tensor, Tensor]:
    """out and lse of q (B, Hq, Sq, D), k, v, or packed (H, total, D) with cu_seqlens. left, right: how many keys before and after
    the diagonal are seen, -1 all; anchor: flydsl_aot_anchor of that diagonal; seed: int64 (2) on the device, seed and offset of dropout."""
    out = _result_like(q, v)
    lse = q.new_empty(q.shape[:-1], dtype=torch.float32)
    fields = _fields(q, k, v, bias, visible, seed, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, scale, anchor, left, right,
                     dropout_p)
    operator, fields = _forward_or_decode({**fields, "out": out, "lse": lse}, q.device)
    runtime.launch(operator, fields, ("out", "lse"), q.device)
    return out, lse


@attention_forward.register_fake
def _attention_forward_fake(q, k, v, bias, visible, seed, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, scale, anchor, left,
                            right, dropout_p):
    return _result_like(q, v), q.new_empty(q.shape[:-1], dtype=torch.float32)


@torch.library.custom_op("flydsl_aot::attention_backward", mutates_args=())
def attention_backward(dout: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, bias: Optional[Tensor],
                       visible: Optional[Tensor], seed: Optional[Tensor], cu_seqlens_q: Optional[Tensor],
                       cu_seqlens_k: Optional[Tensor], max_seqlen_q: int, max_seqlen_k: int, scale: float, anchor: int, left: int,
                       right: int, dropout_p: float, want_dq: bool, want_dk: bool, want_dv: bool,
                       want_dbias: bool) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    """dq, dk, dv and dbias; those that are not wanted have no element."""
    gradients = _gradients(q, k, v, bias, want_dq, want_dk, want_dv, want_dbias)
    fields = _fields(q, k, v, bias, visible, seed, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, scale, anchor, left, right,
                     dropout_p)
    wanted = {name: gradient for name, gradient, want in zip(("dq", "dk", "dv", "dbias"), gradients,
                                                             (want_dq, want_dk, want_dv, want_dbias)) if want}
    if wanted:
        runtime.launch("attention_backward", {**fields, "out": out, "lse": lse, "dout": dout, **wanted}, tuple(wanted), q.device)
    return gradients


def _gradients(q, k, v, bias, want_dq, want_dk, want_dv, want_dbias):
    # Rows of packed tensors that no sequence uses are not written: their gradient is 0.
    make = torch.zeros_like if q.dim() == 3 else torch.empty_like
    none = q.new_empty(0)
    return (make(q) if want_dq else none.clone(), make(k) if want_dk else none.clone(), make(v) if want_dv else none.clone(),
            q.new_empty(bias.shape, dtype=bias.dtype) if want_dbias else none.clone())


@attention_backward.register_fake
def _attention_backward_fake(dout, q, k, v, out, lse, bias, visible, seed, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k,
                             scale, anchor, left, right, dropout_p, want_dq, want_dk, want_dv, want_dbias):
    return _gradients(q, k, v, bias, want_dq, want_dk, want_dv, want_dbias)


def _save(ctx, inputs, output):
    q, k, v, bias, visible, seed, cu_seqlens_q, cu_seqlens_k, *ctx.numbers = inputs
    out, lse = output
    ctx.mark_non_differentiable(lse)
    ctx.save_for_backward(q, k, v, bias, visible, seed, cu_seqlens_q, cu_seqlens_k, out, lse)


def _backward(ctx, dout, _dlse):
    q, k, v, bias, visible, seed, cu_seqlens_q, cu_seqlens_k, out, lse = ctx.saved_tensors
    wanted = ctx.needs_input_grad[:4]
    gradients = attention_backward(dout, q, k, v, out, lse, bias, visible, seed, cu_seqlens_q, cu_seqlens_k, *ctx.numbers, *wanted)
    return (*(gradient if want else None for gradient, want in zip(gradients, wanted)), *(None,) * 11)


attention_forward.register_autograd(_backward, setup_context=_save)


def refusal(q: Tensor, k: Tensor, v: Tensor, attn_mask: Optional[Tensor], dropout_p: float, is_causal: bool,
            enable_gqa: bool) -> str:
    """Why scaled_dot_product_attention falls back for these arguments; empty if it does not. Shapes that PyTorch refuses are left to
    its own message."""
    if q.dtype not in (torch.float16, torch.bfloat16):
        return f"query is {q.dtype}; fp16 and bf16 are supported (FP32 by design not)"
    if k.dtype != q.dtype or v.dtype != q.dtype:
        return f"query, key and value are {q.dtype}, {k.dtype}, {v.dtype}; one type is needed"
    if k.device != q.device or v.device != q.device or (attn_mask is not None and attn_mask.device != q.device):
        return "tensors are on different devices"
    if q.dim() < 2 or k.dim() != q.dim() or v.dim() != q.dim():
        return f"query, key and value have {q.dim()}, {k.dim()} and {v.dim()} axes"
    if q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        return "query, key and value disagree in head dim or number of keys"
    if not 1 <= q.shape[-1] <= _LARGEST_HEAD_DIM or not 1 <= v.shape[-1] <= _LARGEST_VALUE_DIM:
        return f"head dims are {q.shape[-1]} and {v.shape[-1]}; up to {_LARGEST_HEAD_DIM} and {_LARGEST_VALUE_DIM} are supported"
    if not 0 <= dropout_p < 1:
        return f"dropout_p is {dropout_p}; at least 0 and below 1 is supported"
    if attn_mask is not None:
        if is_causal:
            return "attn_mask and is_causal are both given"
        if attn_mask.dtype not in (torch.bool, torch.float32, q.dtype):
            return f"attn_mask is {attn_mask.dtype}; bool, fp32 and query's type are supported"
        if attn_mask.layout != torch.strided:
            return f"attn_mask has layout {attn_mask.layout}"
        sizes = (k.shape[-2], q.shape[-2])
        if attn_mask.dim() > q.dim() or any(size not in (1, full) for size, full in zip(reversed(attn_mask.shape), sizes)):
            return f"attn_mask of {list(attn_mask.shape)} does not broadcast to {list(sizes[::-1])}"
    if enable_gqa:
        if q.dim() < 3 or k.shape[-3] != v.shape[-3] or k.shape[-3] == 0 or q.shape[-3] % k.shape[-3]:
            return "enable_gqa with heads of query that are no multiple of those of key and value"
    if runtime.too_large(*q.shape) or runtime.too_large(*k.shape):
        return "sizes beyond 2^30"
    return runtime.tensor_refusal(q)


def _batched(x: Tensor, batch: Tuple[int, ...], heads: int) -> Tensor:
    """x (..., S, D) as (B, heads, S, D), without a copy where strides allow it, the last axis contiguous."""
    x = x.expand(*batch, heads, *x.shape[-2:])
    x = x.reshape(math.prod(batch), heads, *x.shape[-2:]) if len(batch) != 1 else x
    return x if x.stride(-1) == 1 or x.shape[-1] == 1 else x.contiguous()


def _four_axes(query: Tensor, key: Tensor, value: Tensor, enable_gqa: bool) -> Tuple[Tuple[int, ...], Tensor, Tensor, Tensor]:
    """The axes of the batch, and query, key and value with one such axis, broadcast as PyTorch does."""
    leading = 1 if enable_gqa else 2
    if query.dim() == 4 and query.shape[:leading] == key.shape[:leading] == value.shape[:leading]:
        q, k, v = (x if x.stride(-1) == 1 or x.shape[-1] == 1 else x.contiguous() for x in (query, key, value))
        return (q.shape[0],), q, k, v
    q, k, v = (x if x.dim() > 2 else x.unsqueeze(0) for x in (query, key, value))
    batch, heads, key_heads = tuple(torch.broadcast_shapes(q.shape[:-3], k.shape[:-3], v.shape[:-3])), q.shape[-3], k.shape[-3]
    if not enable_gqa:
        heads = key_heads = torch.broadcast_shapes(q.shape[-3:-2], k.shape[-3:-2], v.shape[-3:-2])[0]
    flat = batch or (1,)
    return batch, _batched(q, flat, heads), _batched(k, flat, key_heads), _batched(v, flat, key_heads)


def _diagonal_of(attn_mask: Any) -> Optional[int]:
    """Which diagonal a torch.nn.attention.bias.CausalBias stands for; None for other masks."""
    variant = getattr(attn_mask, "variant", None)
    return None if variant is None else {"UPPER_LEFT": _TOP_LEFT, "LOWER_RIGHT": _BOTTOM_RIGHT}.get(variant.name)


def _new_seed(q: Tensor) -> Tensor:
    return torch.randint(0, 1 << 62, (2,), dtype=torch.int64, device=q.device)


def attend(query: Tensor, key: Tensor, value: Tensor, attn_mask: Optional[Tensor], dropout_p: float, is_causal: bool,
           scale: Optional[float], enable_gqa: bool) -> Tensor:
    """scaled_dot_product_attention of arguments that `refusal` has nothing against."""
    anchor = _TOP_LEFT if is_causal else _NONE
    if attn_mask is not None and _diagonal_of(attn_mask) is not None:
        anchor, attn_mask = _diagonal_of(attn_mask), None
    batch, q, k, v = _four_axes(query, key, value, enable_gqa)
    bias = visible = None
    if attn_mask is not None:
        mask = attn_mask
        while mask.dim() < 4:
            mask = mask.unsqueeze(0)
        if len(batch) > 1 and (mask.dim() > 4 or mask.shape[0] != 1):  # axes of the batch become one, as query's do
            mask = mask.expand(*batch, *mask.shape[-3:]).reshape(math.prod(batch), *mask.shape[-3:])
        bias, visible = (None, mask) if mask.dtype == torch.bool else (mask, None)
    seed = _new_seed(q) if dropout_p > 0 else None
    number = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    out, _ = attention_forward(q, k, v, bias, visible, seed, None, None, 0, 0, number, anchor, -1,
                               -1 if anchor == _NONE else 0, dropout_p)
    if query.dim() == 4:
        return out
    return out.reshape((*batch, *out.shape[-3:]) if query.dim() > 2 else out.shape[-2:])


def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Optional[Tensor] = None,
                                 dropout_p: float = 0.0, is_causal: bool = False, scale: Optional[float] = None,
                                 enable_gqa: bool = False) -> Tensor:
    """torch.nn.functional.scaled_dot_product_attention through flydsl_aot: the same arguments and result.

    query (..., Hq, L, E), key (..., H, S, E), value (..., H, S, Ev), fp16 or bf16, E to 576, Ev to 512; attn_mask bool or float,
    broadcast to (..., Hq, L, S), also with a gradient, or a torch.nn.attention.bias.CausalBias; jagged nested tensors. What is not
    supported (FP32 among it) goes to PyTorch's own function, with the reason in the log "flydsl_aot.torch"."""
    if query.is_nested:
        return _nested(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    query, key, value = runtime.autocast((query, key, value))
    reason = refusal(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa)
    if reason:
        if not torch.compiler.is_compiling():
            runtime.note_fallback("scaled_dot_product_attention", reason)
        return F.scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
    return attend(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)


def attention_varlen(query: Tensor, key: Tensor, value: Tensor, cu_seqlens_q: Tensor, cu_seqlens_k: Tensor, max_seqlen_q: int,
                     max_seqlen_k: int, *, dropout_p: float = 0.0, is_causal: bool = False, window: Tuple[int, int] = (-1, -1),
                     scale: Optional[float] = None) -> Tensor:
    """Attention of packed sequences, with gradients: query (total_q, Hq, D), key and value (total_k, H, D), sequence b being rows
    cu_seqlens[b] to cu_seqlens[b + 1] (int32, on the device). is_causal and window count from the last query and key of a sequence
    (FlashAttention's convention; of equal lengths PyTorch's). Returns (total_q, Hq, Dv). RuntimeError or flydsl_aot.Error where it
    cannot run: there is nothing to fall back to."""
    q, k, v = (x.transpose(0, 1) for x in (query, key, value))
    q, k, v = (x if x.stride(-1) == 1 else x.contiguous() for x in (q, k, v))
    left, right = (window[0], 0) if is_causal else window
    seed = _new_seed(q) if dropout_p > 0 else None
    number = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    out, _ = attention_forward(q, k, v, None, None, seed, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, number,
                               _BOTTOM_RIGHT, left, right, dropout_p)
    return out.transpose(0, 1)


def _nested(query: Tensor, key: Tensor, value: Tensor, attn_mask: Optional[Tensor], dropout_p: float, is_causal: bool,
            scale: Optional[float], enable_gqa: bool) -> Tensor:
    """Jagged nested tensors (B, H, j, D), transposed from (B, j, H, D) as PyTorch wants them."""
    reason = _nested_refusal(query, key, value, attn_mask, is_causal)
    if reason:
        runtime.note_fallback("scaled_dot_product_attention of nested tensors", reason)
        return F.scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
    q, k, v = (x.transpose(1, 2) for x in (query, key, value))
    lengths_q, lengths_k = q.offsets().diff(), k.offsets().diff()
    longest_q, longest_k = (int(lengths.max()) if lengths.numel() else 0 for lengths in (lengths_q, lengths_k))
    out = attention_varlen(q.values(), k.values(), v.values(), q.offsets().to(torch.int32), k.offsets().to(torch.int32), longest_q,
                           longest_k, dropout_p=dropout_p, is_causal=is_causal, scale=scale)
    return torch.nested.nested_tensor_from_jagged(out, q.offsets()).transpose(1, 2)


def _nested_refusal(query: Tensor, key: Tensor, value: Tensor, attn_mask: Optional[Tensor], is_causal: bool) -> str:
    if not (key.is_nested and value.is_nested) or any(x.layout != torch.jagged or x.dim() != 4 for x in (query, key, value)):
        return "query, key and value are not all jagged nested tensors of 4 axes"
    if any(x._ragged_idx != 2 or x._lengths is not None for x in (query, key, value)):
        return "nested tensors with holes, or whose ragged axis is not the sequence"
    if attn_mask is not None:
        return "attn_mask with nested tensors"
    if is_causal and query.offsets() is not key.offsets() and not torch.equal(query.offsets(), key.offsets()):
        return "is_causal with queries and keys of different lengths, which PyTorch counts from the first key"
    values = query.values()
    if values.dtype not in (torch.float16, torch.bfloat16) or key.dtype != query.dtype or value.dtype != query.dtype:
        return f"nested tensors of {query.dtype}, {key.dtype}, {value.dtype}; fp16 and bf16 are supported"
    if query.shape[-1] > _LARGEST_HEAD_DIM or value.shape[-1] > _LARGEST_VALUE_DIM:
        return f"head dims are {query.shape[-1]} and {value.shape[-1]}"
    return runtime.tensor_refusal(values)
