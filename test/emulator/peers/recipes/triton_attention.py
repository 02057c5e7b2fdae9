"""The objects of fetch/compile_triton_attention.py: every configuration of the attention kernel, and the helpers around AITER's backward."""
import math

import numpy as np

from launch import formats, judge, oracle
from launch.recipe import Recipe
from modelled import triton
from recipes.aiter_tensors import Tensor, per_head


def attention(objects, name):
    constants = objects.index["attention"][name]["constants"]
    dim, causal = constants["D"], constants["CAUSAL"]

    def run(hip):
        rng = np.random.default_rng(13)
        seq_q, seq_k = 272, 336  # multiples of 16, as the objects take for granted, and of no tile
        q, k, v = (Tensor(hip, rng, "bf16", 2, rows, heads, dim) for rows, heads in ((seq_q, 2), (seq_k, 1), (seq_k, 1)))
        o = Tensor(hip, rng, "bf16", 2, seq_q, 2, dim, fill=0xA5A5)
        lse = hip.buffer(np.float32, (2, 2, seq_q))
        triton.launch_attention(hip, objects, name, q, k, v, o, lse)
        got, logs, found = o.result(), lse.read().astype(np.float64), []
        for i in range(2):
            visible = oracle.seen(seq_q, seq_k, "bottom_right" if causal else "none")
            want, want_lse, _ = oracle.forward(*(per_head(x.exact, i, slice(None)) for x in (q, k, v)), 1 / math.sqrt(dim), visible)
            found += [judge.close("O", per_head(got, i, slice(None)), want, 5e-3), judge.close("LSE", logs[i], want_lse, 1e-5)]
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
    for name in objects.index["attention"]:
        yield Recipe(f"triton_attention/{name}", "triton_attention/forward", "gfx950", attention(objects, name))
    for run in (fill_zero, row_dot, heads_to_rows):
        yield Recipe(f"triton_attention/{run.__name__}", "triton_attention/helpers", "gfx950",
                     lambda hip, run=run: run(triton.Helpers(hip, folder.parent), hip))
