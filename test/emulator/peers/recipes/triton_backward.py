"""The objects of fetch/compile_triton_backward.py: attention backward in two kernels."""
import math

import numpy as np

from launch import judge, oracle
from launch.recipe import Recipe
from modelled import triton_backward
from recipes.aiter_tensors import Tensor, per_head

BATCH, SEQ_Q, SEQ_K, HEADS = 2, 256, 512, 2
BOUND = 8e-3  # P, dS and the outputs are rounded to bf16


class Problem:
    """Random tensors, what forward gives the kernels, and the gradients of the definition."""

    def __init__(self, hip, dim, dim_v, causal):
        rng = np.random.default_rng(18)
        self.q, self.do = (Tensor(hip, rng, "bf16", BATCH, SEQ_Q, HEADS, width) for width in (dim, dim_v))
        self.k, self.v = (Tensor(hip, rng, "bf16", BATCH, SEQ_K, HEADS, width) for width in (dim, dim_v))
        lse, delta, self.want = np.zeros((BATCH, HEADS, SEQ_Q), np.float32), np.zeros((BATCH, HEADS, SEQ_Q), np.float32), []
        visible = oracle.seen(SEQ_Q, SEQ_K, "bottom_right" if causal else "none")
        for i in range(BATCH):
            q, k, v, do = (per_head(x.exact, i, slice(None)) for x in (self.q, self.k, self.v, self.do))
            out, lse[i], p = oracle.forward(q, k, v, 1 / math.sqrt(dim), visible)
            delta[i] = np.sum(out * do, -1)
            self.want.append(oracle.backward(q, k, v, do, 1 / math.sqrt(dim), p, out))
        self.lse, self.delta = hip.buffer(lse), hip.buffer(delta)

    def judged(self, names, results):
        """`names`: places in self.want."""
        return [judge.close(name, per_head(got, i, slice(None)), self.want[i]["dQ dK dV".split().index(name)], BOUND)
                for name, got in zip(names, results) for i in range(BATCH)]


def gradient(objects, kind, name):
    problem = objects.index[kind][name]["problem"]

    def run(hip):
        made = Problem(hip, problem["head_dim"], problem["head_dim_v"], problem["causal"])
        like = (made.k, made.v) if kind == "keys" else (made.q,)
        gradients = [Tensor(hip, None, "bf16", *tensor.shape, fill=0xA5A5) for tensor in like]
        triton_backward.launch(hip, objects, kind, name, made.q, made.k, made.v, made.do, made.lse, made.delta, gradients)
        return made.judged(("dK", "dV") if kind == "keys" else ("dQ",), [x.result() for x in gradients])

    return run


def sums(objects, dim):
    def run(hip):
        rng = np.random.default_rng(19)
        o, do = (Tensor(hip, rng, "bf16", BATCH, SEQ_Q, HEADS, dim) for _ in range(2))
        delta = hip.buffer(np.float32, (BATCH, HEADS, SEQ_Q))
        triton_backward.launch_sums(hip, objects, o, do, delta)
        return [judge.close("delta", delta.read(), (o.exact * do.exact).sum(-1).transpose(0, 2, 1), 1e-6)]

    return run


def recipes(folder):
    objects = triton_backward.objects_of(folder.parent)
    for kind in ("keys", "queries"):
        for name in objects.index[kind]:
            yield Recipe(f"triton_backward/{kind}_{name}", "triton_backward/gradients", "gfx950", gradient(objects, kind, name))
    for name, entry in objects.index["sums"].items():
        yield Recipe(f"triton_backward/sums_{name}", "triton_backward/sums", "gfx950", sums(objects, entry["constants"]["V"]))
