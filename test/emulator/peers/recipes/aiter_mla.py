"""AITER's attention of one query a sequence over a latent cache (MLA): bf16, 576 columns of K, of which the first 512 are V, 16 or 128 heads.

The kernel splits the keys into shares; a second kernel adds them up, in AITER a Triton kernel of its own (aiter/mla.py), here ours that does the same.
The names in the metadata are those of another kernel; what they mean was read from the launcher in the wheel (csrc/py_itfs_cu/asm_mla.cu).
"""
import pathlib

import numpy as np

from launch import judge, oracle
from launch.recipe import Recipe
from modelled import triton
from recipes.aiter_tensors import HSA, Tensor, per_head

DIM, DIM_V = 576, 512
HEADS = {16: "mla_dec_stage1_bf16_a16w16_subQ16_mqa16", 128: "mla_dec_stage1_bf16_a16w16_subQ128_mqa128"}


def launch(hip, objects, folder, q, kv, o, starts, pages, last, splits, part, part_lse):
    """q, o (B, 1, H, .) and kv (keys, 1, 1, 576) are Tensors: pages of one key, with larger ones results are wrong. `starts` (B + 1): first page of
    each sequence in `pages`; `last` (B): keys of its last page; part (B, splits, H, 512), part_lse (B, splits, H): FP32 scratch."""
    batch, _, heads, _ = q.shape
    kernel = hip.load(pathlib.Path(folder, "aiter", HSA, "mla", f"{HEADS[heads]}.co"))
    values = dict(O=part, Q=part_lse, K=q.buffer, V=kv.buffer, BT=starts, CL=pages, KQ=last, sclg=DIM**-0.5, mblk=heads, batch=splits, Qs=q.batch,
                  Bs=kv.batch, Cs=0)
    if heads == 128:
        values["QT"] = hip.buffer(np.arange(batch + 1, dtype=np.int32))
    kernel.launch_named((1, batch, splits), (256,), values)
    triton.launch_join(hip, objects, splits, part, part_lse, (heads * splits, 1, heads), o)


def decode(folder, heads):
    def run(hip):
        rng = np.random.default_rng(17)
        lengths, splits = np.array([512, 700, 1023], np.int32), 8
        starts = np.cumsum([0, *lengths]).astype(np.int32)
        pages = rng.permutation(starts[-1]).astype(np.int32)
        q = Tensor(hip, rng, "bf16", 3, 1, heads, DIM)
        kv = Tensor(hip, rng, "bf16", int(starts[-1]), 1, 1, DIM)
        o = Tensor(hip, rng, "bf16", 3, 1, heads, DIM_V, fill=0xA5A5)
        part, part_lse = hip.buffer(np.float32, (3, splits, heads, DIM_V)), hip.buffer(np.float32, (3, splits, heads))
        launch(hip, triton.Objects(folder), folder, q, kv, o, hip.buffer(starts), hip.buffer(pages),
               hip.buffer(np.ones(3, np.int32)), splits, part, part_lse)
        got, found = o.result(), []
        for i, length in enumerate(lengths):
            keys = kv.exact[pages[starts[i]:starts[i + 1]], 0].transpose(1, 0, 2)
            want, _, _ = oracle.forward(per_head(q.exact, i, slice(None)), keys, keys[..., :DIM_V], DIM**-0.5, oracle.seen(1, length, "none"))
            found.append(judge.close("O", per_head(got, i, slice(None)), want, 5e-3))
        return found

    return run


def recipes(folder):
    for heads, name in HEADS.items():
        yield Recipe(f"aiter/{name}", "aiter/mla", "gfx950", decode(folder.parent, heads))
