"""AITER's attention forward: D 128, and 192 with V of 128."""
import math
import pathlib

import numpy as np

from launch import judge, oracle
from launch.recipe import Recipe, ceil
from recipes.aiter_tensors import HSA, Sequences, Tensor, per_head


def launch(hip, path, seq, q, k, v, o, lse):
    """The object `path` on tensors q, k, v; o and lse take the result."""
    causal, (_, _, hq, dim), hk = "causal" in path.stem, q.shape, k.shape[2]
    tile, block = (128, 256) if dim == 192 else (256, 512)
    options = 3 if causal and (hq % 8 or seq.longest_q > 16384) else 5
    values = dict(R=o.buffer, Q=q.buffer, K=k.buffer, V=v.buffer, LSE=lse, scalar=1 / math.sqrt(dim), seq_len=seq.longest_q,
                  Ts=tile * q.row, gqa=hq // hk, msk_opt=options, lse=1, kv_seq_len=seq.longest_k, qk_head_dim=dim, v_head_dim=128,
                  q_head_num=hq, lse_Hs=seq.rows_q * 4)
    for prefix, tensor in (("", q), ("k_", k), ("v_", v), ("r_", o)):
        values |= {f"{prefix}Seqs": tensor.row, f"{prefix}Hs": tensor.head, f"{prefix}Bs": seq.batch_stride(tensor)}
    if seq.group:
        for side, starts in zip("qk", map(hip.buffer, seq.starts)):
            values |= {f"ptr_{side}seq": starts, f"ptr_{side}seq_padding": starts}
    tiles = ceil(ceil(seq.longest_q, tile), 2 if causal else 1)
    hip.load(path).launch_named(seq.grid(hq, tiles, heads_first=seq.group), (block,), values)


def forward(path, hq, hk, **lengths):
    causal, seq = "causal" in path.stem, Sequences(**lengths)
    dim = 192 if "hd192" in path.stem else 128

    def run(hip):
        rng = np.random.default_rng(7)
        q = Tensor(hip, rng, "bf16", seq.batch, seq.rows_q, hq, dim)
        k = Tensor(hip, rng, "bf16", seq.batch, seq.rows_k, hk, dim)
        v = Tensor(hip, rng, "bf16", seq.batch, seq.rows_k, hk, 128)
        o = Tensor(hip, rng, "bf16", seq.batch, seq.rows_q, hq, 128, fill=0xA5A5)
        lse = hip.buffer(np.float32, (seq.batch, hq, seq.rows_q))
        scale = 1 / math.sqrt(dim)
        launch(hip, path, seq, q, k, v, o, lse)
        got, got_lse, found = o.result(), lse.read().astype(np.float64), []
        for i, rows, keys in seq:
            qe, ke, ve = q.of(i, rows), k.of(i, keys), v.of(i, keys)
            visible = oracle.seen(qe.shape[1], ke.shape[1], "bottom_right" if causal else "none")
            want, want_lse, _ = oracle.forward(qe, ke, ve, scale, visible)
            # P and O are rounded to bf16 (2^-9 each); LSE is FP32 arithmetic on exp2.
            found.append(judge.close("O", per_head(got, i, rows), want, 5e-3))
            found.append(judge.close("LSE", got_lse[i, :, rows], want_lse, 1e-5))
        return found

    return run


def recipes(folder):
    for path in sorted(pathlib.Path(folder, HSA, "fmha_v3_fwd").glob("*.co")):
        def recipe(suffix, hq, hk, **lengths):
            return Recipe(f"aiter/{path.stem}{suffix}", "aiter/fmha_v3_fwd", "gfx950", forward(path, hq, hk, **lengths))

        if "group" in path.stem:
            yield recipe("", 4, 2, lengths=[(200, 200), (37, 130), (256, 256)])
        else:
            yield recipe("", 2, 1, batch=2, sq=300, sk=333)
            yield recipe("/512", 2, 2, sq=512, sk=512)
            yield recipe("/8heads", 8, 2, sq=256, sk=256)
