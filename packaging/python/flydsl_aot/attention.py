"""Attention: forward, backward and decode. Formulas, rules and error bounds are the headers' (include/flydsl_aot/attention_*.h)."""

from __future__ import annotations

import math
from typing import Any, Dict, NamedTuple, Optional, Union

from . import _layout, arrays, native
from .core import Core


class Mask(NamedTuple):
    """Query i, at key p(i) of the anchored diagonal, sees keys p(i) - left to p(i) + right; -1 is no bound. anchor: "top-left"
    (p(i) = i, PyTorch's is_causal) or "bottom-right" (p(i) = i + Sk - Sq, FlashAttention's); required with a bound."""

    left: int = -1
    right: int = -1
    anchor: str = "none"


def causal(anchor: str) -> Mask:
    """No key after the diagonal is seen."""
    return Mask(-1, 0, anchor)


class AttentionResult(NamedTuple):
    """out (B, Hq, Sq, Dv); lse (B, Hq, Sq) fp32 natural logarithm, or None; kept (B, Hq, Sq, Sk) bool, or None."""

    out: arrays.DeviceArray
    lse: Optional[arrays.DeviceArray]
    kept: Optional[arrays.DeviceArray]


class AttentionGradients(NamedTuple):
    """Gradients of q, k and v, of bias and sinks; None where they were not wanted."""

    dq: Optional[arrays.DeviceArray]
    dk: Optional[arrays.DeviceArray]
    dv: Optional[arrays.DeviceArray]
    dbias: Optional[arrays.DeviceArray]
    dsinks: Optional[arrays.DeviceArray]


def _mask_fields(mask: Optional[Mask]) -> Dict[str, int]:
    left, right, anchor = mask or Mask()
    return {"mask.left": left, "mask.right": right, "mask.anchor": native.lookup(_layout.ANCHORS, anchor, "mask.anchor")}


class AttentionOperators(Core):
    """The attention operators of a Handle. Operands are DeviceArrays, NumPy arrays (copied to the device) or DLPack producers."""

    def attention_forward(self, q: Any, k: Any, v: Any, *, scale: Optional[float] = None, mask: Optional[Mask] = None,
                          bias: Any = None, visible: Any = None, alibi_slopes: Any = None, sinks: Any = None, softcap: float = 0.0,
                          dropout_p: float = 0.0, dropout_seed: int = 0, dropout_offset: int = 0,
                          cu_seqlens_q: Any = None, cu_seqlens_k: Any = None, seqused_q: Any = None, seqused_k: Any = None,
                          max_seqlen_q: int = 0, max_seqlen_k: int = 0, block_table: Any = None,
                          q_descale: Any = None, k_descale: Any = None, v_descale: Any = None,
                          out: Any = None, out_dtype: Optional[str] = None, lse: Union[bool, Any] = False, kept: bool = False,
                          stream: int = 0) -> AttentionResult:
        """Fused attention.

        q (B, Hq, Sq, D), k (B, Hkv, Sk, D), v (B, Hkv, Sk, Dv): bf16, fp16, e4m3 or e5m2, Hq a multiple of Hkv, D to 576, Dv to 512.
        Packed sequences: (H, total, D) with cu_seqlens (B + 1) int32 and max_seqlen. Paged keys: k and v (blocks, Hkv, block size, D)
        with block_table (B, blocks of a sequence) and seqused_k (B).
        scale: a number, default 1 / sqrt(D). bias (B, Hq, Sq, Sk), added to scores; visible the same, bool; alibi_slopes (Hq) or
        (B, Hq); sinks (Hq); softcap above 0 caps scores; any size of bias and visible may be 1. descales: fp32, of 8-bit operands.
        out: written where given, else made, in `out_dtype`, q's by default (bf16 for 8-bit q). lse: True to make it, or an array.
        Raises Unsupported (fp32 and fp64 among others), InvalidArgument, DeviceError, ArchiveError."""
        given = self.operands(q=q, k=k, v=v, bias=bias, visible=visible, alibi_slopes=alibi_slopes, sinks=sinks,
                          cu_seqlens_q=cu_seqlens_q, cu_seqlens_k=cu_seqlens_k, seqused_q=seqused_q, seqused_k=seqused_k,
                          block_table=block_table, q_descale=q_descale, k_descale=k_descale, v_descale=v_descale)
        query, value = given["q"], given["v"]
        rows = query.sizes[:-1]
        if out is None:
            small = native.dtype_bytes(query.dtype) == 1
            out = self.empty((*rows, value.sizes[-1]), out_dtype or ("bf16" if small else query.dtype))
        if lse is True:
            lse = self.empty(rows, "fp32")
        made = None
        if kept:
            packed_q, packed_k = cu_seqlens_q is not None, cu_seqlens_k is not None
            batch = given["cu_seqlens_q"].sizes[0] - 1 if packed_q else query.sizes[0]
            heads, length = (query.sizes[0], max_seqlen_q) if packed_q else query.sizes[1:3]
            made = self.empty((batch, heads, length, max_seqlen_k if packed_k or block_table is not None else given["k"].sizes[2]), "bool")
        fields = {**given, **_mask_fields(mask), "out": out, "lse": lse if lse is not False else None, "kept": made,
                  "scale": 1 / math.sqrt(query.sizes[-1]) if scale is None else scale, "softcap": softcap, "dropout_p": dropout_p,
                  "dropout_seed": dropout_seed, "dropout_offset": dropout_offset, "max_seqlen_q": max_seqlen_q,
                  "max_seqlen_k": max_seqlen_k}
        self.launch("attention_forward", fields, stream)
        return AttentionResult(out, fields["lse"], made)

    def attention_backward(self, q: Any, k: Any, v: Any, out: Any, lse: Any, dout: Any, *, scale: Optional[float] = None,
                           mask: Optional[Mask] = None, bias: Any = None, visible: Any = None, alibi_slopes: Any = None,
                           sinks: Any = None, softcap: float = 0.0, dropout_p: float = 0.0, dropout_seed: int = 0,
                           dropout_offset: int = 0, cu_seqlens_q: Any = None, cu_seqlens_k: Any = None, seqused_q: Any = None,
                           seqused_k: Any = None, max_seqlen_q: int = 0, max_seqlen_k: int = 0, dq: Union[bool, Any] = True,
                           dk: Union[bool, Any] = True, dv: Union[bool, Any] = True, dbias: Union[bool, Any] = False,
                           dsinks: Union[bool, Any] = False, stream: int = 0) -> AttentionGradients:
        """Gradients of attention_forward: q, k, v (bf16 or fp16) and the options as they were given there, its out (B, Hq, Sq, Dv) and
        lse (B, Hq, Sq), and dout, the gradient of out. dq, dk, dv, dbias, dsinks: True to make one, an array to fill, False for none;
        dbias has bias's sizes (a size of 1 is summed over) and q's dtype, dsinks is fp32.
        Raises as attention_forward."""
        given = self.operands(q=q, k=k, v=v, out=out, lse=lse, dout=dout, bias=bias, visible=visible, alibi_slopes=alibi_slopes,
                          sinks=sinks, cu_seqlens_q=cu_seqlens_q, cu_seqlens_k=cu_seqlens_k, seqused_q=seqused_q, seqused_k=seqused_k)

        def gradient(wanted: Any, of: Optional[arrays.DeviceArray], dtype: Optional[str] = None) -> Any:
            if wanted is False or wanted is None:
                return None
            if wanted is True:
                if of is None:
                    raise ValueError("dbias needs a bias and dsinks needs sinks")
                return self.empty(of.sizes, dtype or of.dtype)
            return wanted

        gradients = AttentionGradients(gradient(dq, given["q"]), gradient(dk, given["k"]), gradient(dv, given["v"]),
                                       gradient(dbias, given["bias"], given["q"].dtype), gradient(dsinks, given["sinks"], "fp32"))
        self.launch("attention_backward", {
            **given, **gradients._asdict(), **_mask_fields(mask),
            "scale": 1 / math.sqrt(given["q"].sizes[-1]) if scale is None else scale, "softcap": softcap, "dropout_p": dropout_p,
            "dropout_seed": dropout_seed, "dropout_offset": dropout_offset, "max_seqlen_q": max_seqlen_q,
            "max_seqlen_k": max_seqlen_k}, stream)
        return gradients

    def attention_decode(self, q: Any, k: Any, v: Any, *, scale: Optional[float] = None, mask: Optional[Mask] = None,
                         seqused_k: Any = None, block_table: Any = None, max_seqlen_k: int = 0, softcap: float = 0.0,
                         alibi_slopes: Any = None, sinks: Any = None, k_descale: Any = None, v_descale: Any = None, out: Any = None,
                         lse: Union[bool, Any] = False, stream: int = 0) -> AttentionResult:
        """Attention of 1 to 16 queries a sequence over a long cache.

        q (B, Hq, Sq, D) bf16 or fp16; k (B, Hkv, Sk, D), v (B, Hkv, Sk, Dv) of q's type, e4m3 or e5m2, or with block_table
        (B, blocks of a sequence) pools (blocks, Hkv, block size, D); seqused_k (B) int32: keys in use. Other options as in
        attention_forward. Raises as attention_forward."""
        given = self.operands(q=q, k=k, v=v, seqused_k=seqused_k, block_table=block_table, alibi_slopes=alibi_slopes, sinks=sinks,
                          k_descale=k_descale, v_descale=v_descale)
        query = given["q"]
        if out is None:
            out = self.empty((*query.sizes[:-1], given["v"].sizes[-1]), query.dtype)
        if lse is True:
            lse = self.empty(query.sizes[:-1], "fp32")
        fields = {**given, **_mask_fields(mask), "out": out, "lse": lse if lse is not False else None, "softcap": softcap,
                  "scale": 1 / math.sqrt(query.sizes[-1]) if scale is None else scale, "max_seqlen_k": max_seqlen_k}
        self.launch("attention_decode", fields, stream)
        return AttentionResult(out, fields["lse"], None)
