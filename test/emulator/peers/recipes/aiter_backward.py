"""AITER's attention backward: head dims 64, 128, 192 and 192 with V of 128; dQ summed in FP32 (a32) or in 16 bits (a16)."""
import dataclasses
import math
import pathlib

import numpy as np

from launch import formats, judge, oracle
from launch.code_object import kernel_metadata
from launch.recipe import Recipe, ceil
from recipes.aiter_tensors import HSA, Sequences, Tensor, per_head

# Head dims of Q and V, and rows of K that a work-group owns.
SHAPES = {"hd192_hd128": (192, 128, 192), "hd192": (192, 192, 64), "hd128": (128, 128, 256), "hd64": (64, 64, 192)}


@dataclasses.dataclass
class Kind:
    """What the name of a backward object says."""
    kind: str
    dim_q: int
    dim_v: int
    keys: int
    mask: str
    a16: bool
    window: tuple = None  # left and right, for the sliding-window forms

    @staticmethod
    def of(name):
        dim_q, dim_v, keys = SHAPES[next(shape for shape in SHAPES if shape in name)]
        mask = "bottom_right" if "causal_br" in name else "top_left" if "causal" in name else "none"
        window = (50, 20) if "_swa_" in name else None
        return Kind("f16" if "fp16" in name else "bf16", dim_q, dim_v, 192 if window else keys, mask, "_a16" in name, window)


def expected(seq, form, tensors, scale):
    """LSE and D = rowsum(O x dO), which are inputs here, and (dQ, dK, dV) of each sequence."""
    q, k, v, do = tensors
    shape = (seq.batch, q.shape[2], seq.rows_q)
    lse, delta, gradients = np.zeros(shape, np.float32), np.zeros(shape, np.float32), []
    for i, rows, keys in seq:
        qe, ke, ve, doe = q.of(i, rows), k.of(i, keys), v.of(i, keys), do.of(i, rows)
        visible = oracle.seen(qe.shape[1], ke.shape[1], form.mask, form.window)
        out, logs, p = oracle.forward(qe, ke, ve, scale, visible)
        lse[i, :, rows], delta[i, :, rows] = logs, np.sum(out * doe, -1)
        gradients.append(oracle.backward(qe, ke, ve, doe, scale, p, out))
    return lse, delta, gradients


class Accumulator:
    """Where the kernel adds up dQ. a32: (B, H, S, D) in FP32. a16: 16-bit tiles that a second kernel, dq_shuffle, puts in order; the
    oldest a16 form (hd64) adds into dQ itself."""

    def __init__(self, hip, rng, seq, form, hq, poison, in_place):
        self.hip, self.seq, self.form, self.in_place = hip, seq, form, in_place
        self.padded = ceil(seq.longest_q, 16) * 16
        self.final = Tensor(hip, rng, form.kind, seq.batch, seq.rows_q, hq, form.dim_q, fill=0 if in_place else poison)
        if form.a16:
            shape = (seq.count, hq, self.padded, form.dim_q if form.dim_q == 192 else 128)
            self.sums = self.final.buffer if in_place else hip.buffer(np.zeros(shape, formats.STORAGE[form.kind]))
        else:
            self.sums = hip.buffer(np.zeros((seq.batch, hq, seq.rows_q, form.dim_q), np.float32))

    def shuffle(self, path):
        final, seq = self.final, self.seq
        entries, heads, _, columns = self.sums.array.shape
        head_bytes = self.sums.array[0, 0].nbytes
        values = dict(dQ_acc=self.sums, dQ=final.buffer, Ts=64 * final.row, Hs_dq_acc=head_bytes, BAs_dq_acc=head_bytes * heads,
                      Seqs_dq_acc=columns * 2, Hs_dq=final.head, BAs_dq=seq.batch_stride(final), Seqs_dq=final.row, seqlen_q=seq.longest_q,
                      head_dim=self.form.dim_q, max_seqlen_dq=self.padded)
        if seq.group:
            starts = self.hip.buffer(seq.starts[0])
            values |= dict(ptr_seqstart_q=starts, ptr_seqstart_q_padded=starts)
        self.hip.load(path).launch_named((ceil(seq.longest_q, 64), heads, entries), (256,), values)

    def result(self, shuffle_path):
        """dQ as (B, S, H, D)."""
        if not self.form.a16:
            return self.sums.read().astype(np.float64).transpose(0, 2, 1, 3)
        if not self.in_place:
            self.shuffle(shuffle_path)
        return self.final.result()


def launch(hip, path, seq, form, tensors, gradients, sums, padded, lse, delta):
    """The object `path` on `tensors` Q, K, V, dO; `gradients` dK, dV take results, `sums` what becomes dQ."""
    q, k, v, do = tensors
    dk, dv = gradients
    hq, hk = q.shape[2], k.shape[2]
    kernel = hip.load(path)
    named = {a[".name"] for a in kernel.meta[".args"] if ".name" in a}
    # All names of all layouts; a kernel takes those that its metadata has. dK and dV are per query head: the caller sums over a group.
    values = dict(dQ=sums, dK=dk.buffer, dV=dv.buffer, Q=q.buffer, K=k.buffer, V=v.buffer, dO=do.buffer, Lse=lse, D=delta,
                  scalar=1 / math.sqrt(form.dim_q), log2e=math.log2(math.e), seqlen_q=seq.longest_q, seq_len=seq.longest_q,
                  seqlen_k=seq.rows_k, Ts=form.keys * k.row, ratio=hq // hk, head_dim=form.dim_q, head_dim_q=form.dim_q,
                  head_dim_k=form.dim_v, nhead=hq, nhead_q=hq, Hs=q.head, BAs=q.batch, Seqs=q.row, Hs_kv=k.head, BAs_kv=k.batch,
                  Seqs_kv=k.row, Seqs_dkv=dk.row, Hs_lsed=seq.rows_q * 4, s_Hs_lsed=seq.rows_q * 4,
                  max_seq_len_dq=padded if form.a16 else seq.longest_q)
    for label, tensor in (("q", q), ("k", k), ("v", v), ("do", do), ("dk", dk), ("dv", dv)):
        values |= {f"Hs_{label}": tensor.head, f"BAs_{label}": seq.batch_stride(tensor), f"Seqs_{label}": tensor.row}
    if form.window:
        values |= dict(mask_x=form.window[1] + 1, mask_y=form.window[0] + 1)
    if seq.group:
        for side, starts in zip("qk", map(hip.buffer, seq.starts)):
            for name in (f"seqstart_{side}", f"{side}seq"):
                values |= {f"ptr_{name}": starts, f"ptr_{name}_padded": starts}
    tiles = ceil(ceil(seq.longest_k, form.keys), 1 if form.mask == "none" else 2)
    kernel.launch_named(seq.grid(hq, tiles), (256,), {name: value for name, value in values.items() if name in named})


def backward(path, hq, hk, **lengths):
    form, seq = Kind.of(path.stem), Sequences(**lengths)
    shuffle_path = path.with_name(f"bwd_hd{192 if form.dim_q == 192 else 128}_dq_shuffle{'_group' if seq.group else ''}.co")

    def run(hip):
        rng = np.random.default_rng(11)

        def random(rows, heads, dim):
            return Tensor(hip, rng, form.kind, seq.batch, rows, heads, dim)

        q, do = random(seq.rows_q, hq, form.dim_q), random(seq.rows_q, hq, form.dim_v)
        k, v = random(seq.rows_k, hk, form.dim_q), random(seq.rows_k, hk, form.dim_v)
        poison = 0xA5A5 if form.kind == "bf16" else np.float16(-0.02)
        dk, dv = (Tensor(hip, rng, form.kind, seq.batch, seq.rows_k, hq, dim, fill=poison) for dim in (form.dim_q, form.dim_v))
        scale = 1 / math.sqrt(form.dim_q)
        lse, delta, gradients = expected(seq, form, (q, k, v, do), scale)
        names = {a[".name"] for a in kernel_metadata(path)[".args"] if ".name" in a}
        dq = Accumulator(hip, rng, seq, form, hq, poison, in_place=form.a16 and "Hs_dk" not in names)
        launch(hip, path, seq, form, (q, k, v, do), (dk, dv), dq.sums, dq.padded, hip.buffer(lse), hip.buffer(delta))
        got = dq.result(shuffle_path), dk.result(), dv.result()
        # P, dS and the outputs are rounded to 16 bits; a16 also rounds every partial sum of dQ; rtz truncates.
        bound = 2e-2 if "rtz" in path.stem else 8e-3
        found = []
        for (i, rows, keys), want in zip(seq, gradients):
            found += [judge.close("dQ", per_head(got[0], i, rows), want[0], 2 * bound if form.a16 else bound),
                      judge.close("dK", per_head(got[1], i, keys), want[1], bound),
                      judge.close("dV", per_head(got[2], i, keys), want[2], bound)]
        return found

    return run


def recipes(folder):
    for path in sorted(pathlib.Path(folder, HSA, "fmha_v3_bwd").glob("*.co")):
        name, heads = path.stem, (2, 1)
        if "dq_shuffle" in name:  # runs after each a16 object
            continue
        if "group" in name:
            lengths = dict(lengths=[(130, 130), (64, 64)])
        elif "hd64" in name and "a16" in name:  # this form wants Sq = Sk, a multiple of 64, and no GQA
            lengths, heads = dict(sq=256, sk=256), (2, 2)
        elif "_swa_" in name:
            lengths = dict(sq=256, sk=256)
        else:
            lengths = dict(sq=200, sk=200 if "causal" in name else 270)
        yield Recipe(f"aiter/{name}", "aiter/fmha_v3_bwd", "gfx950", backward(path, *heads, **lengths))
