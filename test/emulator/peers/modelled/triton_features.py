"""Triton's attention forward with one feature (fetch/triton_features.py) on problems of any size."""
import math

import numpy as np

from launch.recipe import ceil
from modelled.tensors import Unsupported, untouched
from modelled.triton import LARGEST_TENSOR, Objects, strides

# What `flydsl-aot bench` says of a problem's features: how the objects name the one feature.
NAMES = {"alibi_slopes": "alibi", "softcap": "softcap", "dropout": "dropout", "dropout_seed,dropout_offset,dropout": "dropout",
         "visible": "visible"}
WIDTHS = {"fp32": 4, "bf16": 2, "bool": 1}


def objects_of(folder):
    return Objects(folder, "triton_features")


def launch(hip, objects, name, q, k, v, o, lse, extra, steps_extra, *, lengths=None, seq_k=None, softcap=1.0, seed=0, dropout_p=0.0):
    """One configuration. `extra`: the buffer of the feature, `steps_extra` its strides in elements. A paged cache: `lengths` and nothing in seq_k."""
    info = objects.index["feature"][name]
    batch, seq_q, heads_q, dim = q.shape
    steps = [step for tensor in (q, k, v, o) for step in strides(tensor, "batch", "head", "row")]
    threshold = np.uint32(int(dropout_p * 2**32))
    tiles = ceil(seq_q, info["constants"]["BM"])
    grid = (heads_q, batch, tiles) if info["constants"]["SHARING"] else (heads_q, tiles, batch)
    objects.launch(hip, "feature", name, grid, q.buffer, k.buffer, v.buffer, o.buffer, lse, extra,
                   lengths or lse, dim**-0.5 * math.log2(math.e), 1 / (1 - dropout_p), softcap, seed, threshold, *steps, *steps_extra, heads_q,
                   k.shape[2], seq_q, seq_k or 0)


def broadcast(shape, sizes):
    """Bytes of an element's type left out: strides of (batch, head, row), 0 where the tensor's axis has size 1."""
    _, heads, rows, keys = sizes
    if keys != shape[3]:
        raise Unsupported("compiled for one number for each key")
    return [0 if size == 1 else step for size, step in zip(sizes[:3], (heads * rows * keys, rows * keys, keys))]


def feature_of(problem):
    """Its name in the objects, and the type and sizes of its tensor, if it has one of four axes."""
    features = problem["features"]
    if features in ("bias", "visible"):
        kind, sizes = problem[features].split()
        return f"bias_{kind}" if features == "bias" else features, kind, [int(size) for size in sizes.split("x")]
    if features == "seqused_k,block_table":
        return f"paged{problem['block_size']}", None, None
    if features not in NAMES:
        raise Unsupported(f"not compiled with {features}")
    return NAMES[features], None, None


def attention_forward(folder, problem, batch, heads_q, heads_kv, seqlen_q, seqlen_k, head_dim, head_dim_v, causal, dtype, layout):
    """{configuration: a function of hip that launches it}, for everything that was compiled for the problem with its feature."""
    feature, kind, sizes = feature_of(problem)
    paged = int(problem.get("block_size", 0))
    if causal not in ("none", "bottom-right") and not (causal == "top-left" and seqlen_q == seqlen_k):
        raise Unsupported("compiled without a mask and with one aligned with the bottom right")
    objects = objects_of(folder)
    names = objects.of("feature", head_dim=head_dim, feature=feature, causal=causal != "none") if dtype == "bf16" and head_dim == head_dim_v else []
    if not names:
        raise Unsupported(f"not compiled for {dtype}, head dims {head_dim}/{head_dim_v} and {feature}, causal {causal}")
    steps = broadcast((batch, heads_q, seqlen_q, seqlen_k), sizes) if sizes else [heads_q, 1, 0] if feature == "alibi" else [0, 0, 0]
    pages = ceil(seqlen_k, paged) if paged else 0
    size_extra = math.prod(sizes) * WIDTHS[kind] if sizes else 4 * batch * max(heads_q, pages)
    if max(2 * batch * max(heads_q * seqlen_q, heads_kv * seqlen_k) * head_dim, size_extra) > LARGEST_TENSOR:
        raise Unsupported("compiled for tensors of up to 2 GiB")

    def launcher(name):
        def run(hip):
            q, o = (untouched(hip, batch, seqlen_q, heads_q, head_dim, layout) for _ in range(2))
            rows, keys = (batch * pages, paged) if paged else (batch, seqlen_k)
            k, v = (untouched(hip, rows, keys, heads_kv, head_dim, layout) for _ in range(2))
            extra, lengths = hip.memory(size_extra), hip.memory(4 * batch)
            if paged:
                lengths.write(np.array([int(n) for n in problem["seqused_k"].split(",")], np.int32))
                extra.write(np.random.default_rng(5).permutation(rows).astype(np.int32))
            launch(hip, objects, name, q, k, v, o, hip.memory(4 * batch * heads_q * seqlen_q), extra, [pages, 0, 0] if paged else steps,
                   lengths=lengths, seq_k=seqlen_k, softcap=30.0, dropout_p=0.1 if feature == "dropout" else 0.0)

        return run

    return {name: launcher(name) for name in names}
