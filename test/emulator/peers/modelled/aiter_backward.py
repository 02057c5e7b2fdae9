"""AITER's attention backward on problems of any size, without data: every launch of a call, in the order in which AITER makes them.

What surrounds the assembly kernel is compiled from C++ and is not in the wheel, but for dq_shuffle. Triton kernels of our own stand for the rest; they move the
same bytes and compute next to nothing, so that memory is what they take: zeroing dQ's sums, D = rowsum(O dO), FP32 sums to dQ, and with grouped
queries the sums of dK and dV over a group, which the assembly writes for each query head.
"""
import pathlib

from launch.recipe import ceil
from modelled import triton
from modelled.tensors import Unsupported, untouched
from recipes import aiter_backward
from recipes.aiter_tensors import HSA, Sequences

HELPER_DIM = 128  # of the helpers: other head dims are so many bytes of this one
NAMES = {(64, 64): "hd64", (128, 128): "hd128", (192, 128): "hd192_hd128", (192, 192): "hd192"}
ENDINGS = ("_psskddv", "_pssk")
KINDS = dict(bf16="bf16", fp16="f16")  # as recipes name them
ROUNDINGS = ("", "_rtne", "_rtna", "_rtz")  # FP32 to bf16 in software, where there is a choice


class Call:
    """One call: tensors, and the launches of the object `path`."""

    def __init__(self, objects, path, batch, heads_q, heads_kv, seqlen_q, seqlen_k, head_dim, head_dim_v, layout, dtype):
        self.objects, self.path, self.form = objects, path, aiter_backward.Kind.of(path.stem)
        self.batch, self.heads_q, self.heads_kv, self.seqlen_q, self.seqlen_k = batch, heads_q, heads_kv, seqlen_q, seqlen_k
        self.head_dim, self.head_dim_v, self.layout, self.dtype = head_dim, head_dim_v, layout, dtype

    def __call__(self, hip):
        def tensor(rows, heads, dim):
            return untouched(hip, self.batch, rows, heads, dim, self.layout, KINDS[self.dtype])

        rows_q, rows_k = self.seqlen_q, self.seqlen_k
        q, dq = tensor(rows_q, self.heads_q, self.head_dim), tensor(rows_q, self.heads_q, self.head_dim)
        do, o = tensor(rows_q, self.heads_q, self.head_dim_v), tensor(rows_q, self.heads_q, self.head_dim_v)
        k, v = tensor(rows_k, self.heads_kv, self.head_dim), tensor(rows_k, self.heads_kv, self.head_dim_v)
        dk, dv = tensor(rows_k, self.heads_q, self.head_dim), tensor(rows_k, self.heads_q, self.head_dim_v)
        rows = self.batch * self.heads_q * rows_q
        padded = ceil(rows_q, 16) * 16
        sums_bytes = 2 * self.batch * self.heads_q * padded * self.head_dim if self.form.a16 else 4 * rows * self.head_dim
        sums, lse, delta = hip.memory(sums_bytes), hip.memory(4 * rows), hip.memory(4 * rows)
        helpers = triton.Helpers(hip, self.objects)
        helpers.fill_zero(sums, sums_bytes // 4)
        helpers.row_dot(o.buffer, do.buffer, delta, self.batch, self.in_helper_heads(self.heads_q, self.head_dim_v), rows_q)
        sequences = Sequences(self.batch, rows_q, rows_k)
        aiter_backward.launch(hip, self.path, sequences, self.form, (q, k, v, do), (dk, dv), sums, padded if self.form.a16 else rows_q, lse, delta)
        if self.form.a16:
            self.shuffle(hip, sums, padded, dq)
        else:
            helpers.heads_to_rows(sums, dq.buffer, self.batch, self.in_helper_heads(self.heads_q, self.head_dim), rows_q)
        if self.heads_kv != self.heads_q:
            # Reads 2 bytes of each query head and writes 2 of each head of K; the helper reads 4 and writes 2.
            heads = ceil(self.heads_q + self.heads_kv, 3)
            wide = hip.memory(4 * self.batch * rows_k * heads * max(self.head_dim, HELPER_DIM))
            for gradient, dim in ((dk, self.head_dim), (dv, self.head_dim_v)):
                helpers.heads_to_rows(wide, gradient.buffer, self.batch, self.in_helper_heads(heads, dim), rows_k)

    @staticmethod
    def in_helper_heads(heads, dim):
        """Heads of HELPER_DIM that have as many bytes."""
        return ceil(heads * dim, HELPER_DIM)

    def shuffle(self, hip, sums, padded, dq):
        head_bytes = padded * self.head_dim * 2
        values = dict(dQ_acc=sums, dQ=dq.buffer, Ts=64 * dq.row, Hs_dq_acc=head_bytes, BAs_dq_acc=head_bytes * self.heads_q, Seqs_dq_acc=self.head_dim * 2,
                      Hs_dq=dq.head, BAs_dq=dq.batch, Seqs_dq=dq.row, seqlen_q=self.seqlen_q, head_dim=self.head_dim, max_seqlen_dq=padded)
        path = self.path.with_name(f"bwd_hd{self.head_dim}_dq_shuffle.co")
        hip.load(path).launch_named((ceil(self.seqlen_q, 64), self.heads_q, self.batch), (256,), values)


def masked(causal, seqlen_q, seqlen_k):
    """How an object's name says it."""
    if causal == "none":
        return ("",)
    if causal not in ("top-left", "bottom-right"):
        raise Unsupported(f"AITER's assembly backward is known here without a mask and with a causal one, not with {causal}")
    names = {"top-left": "_causal", "bottom-right": "_causal_br"}
    return tuple(names.values()) if seqlen_q == seqlen_k else (names[causal],)


def attention_backward(objects, batch, heads_q, heads_kv, seqlen_q, seqlen_k, head_dim, head_dim_v, causal, dtype="bf16", layout="bshd"):
    """{name: a function of hip that launches it}. a32: dQ summed by FP32 atomics; a16: by bf16 or fp16 ones, which rounds each sum."""
    shape = NAMES.get((head_dim, head_dim_v))
    if shape is None or dtype not in KINDS:
        raise Unsupported(f"AITER's assembly backward takes bf16 and fp16 with head dims 64, 128, 192 and 192/128; not {dtype} {head_dim}/{head_dim_v}")
    if batch * heads_q * seqlen_q * max(head_dim, HELPER_DIM) >= 2**31:
        raise Unsupported("the helpers count elements in 32 bits")
    folder = pathlib.Path(objects, "aiter", HSA, "fmha_v3_bwd")
    found = {}
    for mask in masked(causal, seqlen_q, seqlen_k):
        for sums in ("a32", "a16"):
            if sums == "a16" and shape == "hd64":
                continue  # adds into dQ itself, at equal lengths only
            for rounding in ROUNDINGS:
                for ending in ENDINGS:
                    path = folder / f"bwd_{shape}_{dtype}{mask}_{sums}{rounding}{ending}.co"
                    if path.is_file() and (sums == "a32" or head_dim in (128, 192)):
                        found[f"{sums}{rounding}{mask}"] = Call(objects, path, batch, heads_q, heads_kv, seqlen_q, seqlen_k, head_dim, head_dim_v,
                                                               layout, dtype)
    if not found:
        raise Unsupported(f"the wheel has no backward kernel for {dtype} {head_dim}/{head_dim_v}, causal {causal}")
    return found
