"""The objects of fetch/compile_triton_features.py: attention forward with one feature."""
import math

import numpy as np

from launch import formats, judge, oracle
from launch.philox import philox
from launch.recipe import Recipe, ceil
from modelled import triton_features
from recipes.aiter_tensors import Tensor, per_head
from recipes.triton_attention import BOUNDS

SOFTCAP, SEED, DROPOUT_P = 2.0, 77, 0.25
BATCH, SEQ_Q, HEADS = 2, 272, 2  # a multiple of 16, as the objects take for granted, and of no tile
LENGTHS = (336, 176)  # of K where it is paged; elsewhere the first


def drawn(words, seq_k):
    """(B, H, Sq, Sk): the word of each weight, as `kept` of fetch/triton_features.py draws it."""
    rows = np.arange(BATCH * HEADS * SEQ_Q).reshape(BATCH, HEADS, SEQ_Q, 1)
    keys = np.arange(seq_k)
    if words == 1:
        return philox(SEED, (rows * seq_k + keys, 0, 0, 0))[0]
    of_quads = philox(SEED, np.broadcast_arrays(keys // 4, 0, rows, 0))
    return np.choose(keys % 4, of_quads)


class Feature:
    """`change` and `weight` of oracle.forward for each batch and head, what else is visible, and what the launch gets."""

    def __init__(self, hip, rng, label, words, seq_k):
        shape = (BATCH, HEADS, SEQ_Q, seq_k)
        self.visible, self.weight, self.change = np.True_, np.ones(shape), lambda i, s: s
        self.buffer, self.steps, self.options = hip.buffer(np.zeros(4, np.float32)), [0, 0, 0], {}
        whole = [HEADS * SEQ_Q * seq_k, SEQ_Q * seq_k, seq_k]
        if label.startswith("bias"):
            raw, exact = formats.random_floats(rng, shape, "bf16")
            self.buffer, self.steps = hip.buffer(exact.astype(np.float32) if label == "bias_fp32" else raw), whole
            self.change = lambda i, s: s + exact[i]
        elif label == "visible":
            seen = rng.random(shape) < 0.5
            seen[0, 0, :40] = False  # rows without a key
            self.buffer, self.steps, self.visible = hip.buffer(seen.astype(np.int8)), whole, seen
        elif label == "alibi":
            slopes = rng.random((BATCH, HEADS)).astype(np.float32)
            distance = np.abs(np.arange(SEQ_Q)[:, None] + seq_k - SEQ_Q - np.arange(seq_k))
            self.buffer, self.steps = hip.buffer(slopes), [HEADS, 1, 0]
            self.change = lambda i, s: s - slopes[i, :, None, None].astype(np.float64) * distance
        elif label == "softcap":
            self.options, self.change = dict(softcap=SOFTCAP), lambda i, s: SOFTCAP * np.tanh(s / SOFTCAP)
        elif label == "dropout":
            self.options = dict(seed=SEED, dropout_p=DROPOUT_P)
            self.weight = (drawn(words, seq_k) >= DROPOUT_P * 2**32) / (1 - DROPOUT_P)


def attention(objects, name):
    info = objects.index["feature"][name]
    problem, page = info["problem"], info["constants"]["PAGE"]
    dim, label = problem["head_dim"], problem["feature"]

    def run(hip):
        rng = np.random.default_rng(17)
        seq_k = LENGTHS[0]
        pages = ceil(seq_k, page) if page else 0
        q = Tensor(hip, rng, "bf16", BATCH, SEQ_Q, HEADS, dim)
        k, v = (Tensor(hip, rng, "bf16", *((BATCH * pages, page) if page else (BATCH, seq_k)), 1, dim) for _ in range(2))
        o = Tensor(hip, rng, "bf16", BATCH, SEQ_Q, HEADS, dim, fill=0xA5A5)
        lse = hip.buffer(np.float32, (BATCH, HEADS, SEQ_Q))
        feature = Feature(hip, rng, label, info["constants"]["WORDS"], seq_k)
        if page:
            table = rng.permutation(BATCH * pages).astype(np.int32).reshape(BATCH, pages)
            triton_features.launch(hip, objects, name, q, k, v, o, lse, hip.buffer(table), [pages, 0, 0],
                                   lengths=hip.buffer(np.array(LENGTHS, np.int32)))
        else:
            triton_features.launch(hip, objects, name, q, k, v, o, lse, feature.buffer, feature.steps, seq_k=seq_k, **feature.options)
        got, logs, found = o.result(), lse.read().astype(np.float64), []
        for i in range(BATCH):
            keys = LENGTHS[i] if page else seq_k
            kept = [np.concatenate([x.exact[block] for block in table[i]])[:keys].transpose(1, 0, 2) if page else per_head(x.exact, i, slice(None))
                    for x in (k, v)]
            visible = oracle.seen(SEQ_Q, keys, "bottom_right" if problem["causal"] else "none") & (feature.visible if label != "visible" else
                                                                                                   feature.visible[i])
            want, want_lse, _ = oracle.forward(per_head(q.exact, i, slice(None)), *kept, 1 / math.sqrt(dim), visible,
                                               lambda s, i=i: feature.change(i, s), feature.weight[i][..., :keys])
            found += [judge.close("O", per_head(got, i, slice(None)), want, BOUNDS["bf16"]), judge.close("LSE", logs[i], want_lse, 1e-5)]
        return found

    return run


def recipes(folder):
    objects = triton_features.objects_of(folder.parent)
    for name in objects.index["feature"]:
        yield Recipe(f"triton_features/{name}", "triton_features/forward", "gfx950", attention(objects, name))
