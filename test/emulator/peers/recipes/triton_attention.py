"""The objects of fetch/compile_triton_attention.py: configurations of the attention kernels, and the helpers around AITER's backward."""
import math

import numpy as np

from launch import formats, judge, oracle
from launch.recipe import Recipe
from modelled import triton
from recipes.aiter_tensors import Tensor, per_head

# Relative Frobenius norm of O: roundings of P and O to bf16 (3e-3); of P to e4m3, up to 2^-4 each and more below 2^-6.
BOUNDS = {"bf16": 5e-3, "e4m3": 6e-2}


def attention(objects, name):
    info = objects.index["attention"][name]
    problem, constants = info["problem"], info["constants"]
    dim, kind = problem["head_dim"], problem["dtype"]
    bound = BOUNDS["bf16" if constants["WIDEN"] else kind]

    def run(hip):
        rng = np.random.default_rng(13)
        seq_q, seq_k = 272, 336  # multiples of 16, as the objects take for granted, and of no tile
        q, k, v = (Tensor(hip, rng, kind, 2, rows, heads, width)
                   for rows, heads, width in ((seq_q, 2, dim), (seq_k, 1, dim), (seq_k, 1, problem["head_dim_v"])))
        o = Tensor(hip, rng, "bf16", 2, seq_q, 2, problem["head_dim_v"], fill=0xA5A5)
        lse = hip.buffer(np.float32, (2, 2, seq_q))
        triton.launch_attention(hip, objects, name, q, k, v, o, lse)
        got, logs, found = o.result(), lse.read().astype(np.float64), []
        for i in range(2):
            visible = oracle.seen(seq_q, seq_k, "bottom_right" if problem["causal"] else "none")
            want, want_lse, _ = oracle.forward(*(per_head(x.exact, i, slice(None)) for x in (q, k, v)), 1 / math.sqrt(dim), visible)
            found += [judge.close("O", per_head(got, i, slice(None)), want, bound), judge.close("LSE", logs[i], want_lse, 1e-5)]
        return found

    return run


def decode(objects, name):
    """Three sequences, one of them shorter than the number of shares, in pages that lie in no order."""
    info = objects.index["split"][name]
    problem, constants = info["problem"], info["constants"]
    dim, page, splits = problem["head_dim"], problem["page"], 8

    def run(hip):
        rng = np.random.default_rng(16)
        lengths, longest, heads_kv = np.array([300, 5, 97], np.int32), 320, 2
        group, per_sequence = problem["group"], longest // page if page else 0
        rows, keys = (3 * per_sequence, page) if page else (3, longest)
        q = Tensor(hip, rng, "bf16", 3, 1, group * heads_kv, dim)
        k = Tensor(hip, rng, problem["dtype_kv"], rows, keys, heads_kv, dim)
        v = k if constants["SHARED"] else Tensor(hip, rng, problem["dtype_kv"], rows, keys, heads_kv, problem["head_dim_v"])
        o = Tensor(hip, rng, "bf16", 3, 1, group * heads_kv, problem["head_dim_v"], fill=0xA5A5)
        table = rng.permutation(rows).astype(np.int32)
        part, part_lse = (hip.buffer(np.float32, (3, group * heads_kv, splits, width)) for width in (problem["head_dim_v"], 1))
        triton.launch_decode(hip, objects, name, splits, q, k, v, o, part, part_lse, hip.buffer(table), hip.buffer(lengths), per_sequence)
        got, found = o.result(), []
        for i, length in enumerate(lengths):
            blocks = table.reshape(3, -1)[i] if page else [i]
            cached = [np.concatenate([x.exact[block] for block in blocks])[:length].transpose(1, 0, 2) for x in (k, v)]
            cached[1] = cached[1][..., :problem["head_dim_v"]]
            want, _, _ = oracle.forward(per_head(q.exact, i, slice(None)), *cached, 1 / math.sqrt(dim), oracle.seen(1, length, "none"))
            found.append(judge.close("O", per_head(got, i, slice(None)), want, BOUNDS["bf16"]))
        return found

    return run


def fill_zero(helpers, hip):
    x = hip.buffer(np.ones(5000, np.float32))
    helpers.fill_zero(x, 4992)
    return [judge.equal("x", x.read(), np.repeat([0, 1], (4992, 8)))]


def row_dot(helpers, hip):
    rng = np.random.default_rng(14)
    (x, xe), (y, ye) = (formats.random_floats(rng, (2, 80, 3, 128), "bf16") for _ in range(2))
    out = hip.buffer(np.float32, (2, 3, 80))
    helpers.row_dot(hip.buffer(x), hip.buffer(y), out, 2, 3, 80)
    return [judge.close("out", out.read(), (xe * ye).sum(-1).transpose(0, 2, 1), 1e-6)]


def heads_to_rows(helpers, hip):
    x = np.random.default_rng(15).standard_normal((2, 3, 80, 128)).astype(np.float32)
    y = hip.buffer(np.uint16, (2, 80, 3, 128))
    helpers.heads_to_rows(hip.buffer(x), y, 2, 3, 80)
    return [judge.equal("y", y.read(), formats.to_bf16(x.transpose(0, 2, 1, 3)))]


def recipes(folder):
    objects = triton.Objects(folder.parent)
    for kind, run, line in (("attention", attention, "forward"), ("split", decode, "decode")):
        for name in objects.index[kind]:
            yield Recipe(f"triton_attention/{name}", f"triton_attention/{line}", "gfx950", run(objects, name))
    for run in (fill_zero, row_dot, heads_to_rows):
        yield Recipe(f"triton_attention/{run.__name__}", "triton_attention/helpers", "gfx950",
                     lambda hip, run=run: run(triton.Helpers(hip, folder.parent), hip))
