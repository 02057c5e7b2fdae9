"""Compiles the attention kernels of triton_features.py, each with one feature, for gfx950, in many configurations.

usage: compile_triton_features.py <output folder> few|sweep
Writes feature/<name>.co and triton_features.json, which says how each is launched. `few` are one or two a feature, which the tests run; `sweep` is what
an autotuner would try. Needs the `triton` wheel only; no device.
"""
import itertools
import pathlib
import sys

import triton_features as kernels
import triton_offline as offline

B, F, I32 = "*bf16", "*fp32", "i32"
LDS_BYTES = 163840
# What --problem calls it: FEATURE, the type of `extra`, keys of a page.
FEATURES = {"bias_fp32": ("bias", F, 0), "bias_bf16": ("bias", B, 0), "visible": ("visible", "*i8", 0), "alibi": ("alibi", F, 0),
            "softcap": ("softcap", F, 0), "dropout": ("dropout", F, 0), "paged64": ("paged", "*i32", 64)}
HEAD_DIMS = (64, 128)
CAUSAL = ("alibi", "softcap", "dropout", "paged64")  # also compiled with a causal mask


def configurations(label):
    """As in compile_triton_attention.py, without the tiles of 64 rows a warp: a feature leaves no room for them.

    What a feature adds: with a tensor for scores one stage of the pipeline, which takes it past LDS, and sequences side by side that share it;
    of dropout one word of a Philox call used and four; of pages three stages, the first for the look at the table.
    """
    scores = FEATURES[label][0] in ("bias", "visible")
    for (rows, warps), keys in itertools.product(((128, 4), (256, 8), (64, 2)), (32, 64, 128)):
        tile = dict(BM=rows, warps=warps, BN=keys, waves=0, stages=2)
        if scores:
            for stages, sharing in itertools.product((1,) if keys == 128 else (1, 2), (0, 1)):
                yield tile | dict(stages=stages, sharing=sharing)
            continue
        plain = tile | (dict(words=4) if label == "dropout" else {})
        yield plain
        if rows > 64:
            yield plain | dict(waves=2)
        if label == "dropout":
            yield plain | dict(words=1)
        if label.startswith("paged"):
            yield plain | dict(stages=3)


def compile_feature(folder, label, dim, causal, config):
    """(kind, name, how to launch it) or (kind, None, why an autotuner would drop it)."""
    feature, extra, page = FEATURES[label]
    fn, types = kernels.flash_attention_feature, [B, B, B, B, F, extra, "*i32", "fp32", "fp32", "fp32", I32, I32] + [I32] * 19
    constants = dict(FEATURE=feature, D=dim, V=dim, BM=config["BM"], BN=config["BN"], CAUSAL=causal, PAGE=page, WORDS=config.get("words", 0),
                     SHARING=config.get("sharing", 0))
    name = f"bf16_d{dim}_{'causal' if causal else 'full'}_{label}_" + "_".join(f"{key.lower()}{value}" for key, value in config.items())
    multiples = [n for n, t in offline.arguments(fn, types, constants) if n.startswith(("stride", "seq"))]
    if feature in ("alibi", "paged"):
        multiples = [n for n in multiples if not n.startswith("stride_e")]
    done = offline.compile_kernel(fn, types, constants, "gfx950", multiples, within_2gb=True, num_warps=config["warps"],
                                  num_stages=config["stages"], waves_per_eu=config["waves"])
    if done.metadata.shared > LDS_BYTES:
        return "feature", None, "more LDS than there is"
    entry = offline.store(done, folder / "feature" / f"{name}.co", fn, types, constants, config["warps"])
    return "feature", name, entry | dict(problem=dict(head_dim=dim, causal=causal, feature=label))


def few():
    plain = dict(BM=128, warps=4, BN=64, waves=0, stages=2)
    for label in FEATURES:
        words = dict(words=4) if label == "dropout" else {}
        yield compile_feature, (label, 128, False, plain | words)
        yield compile_feature, (label, 64, label in CAUSAL, dict(BM=64, warps=2, BN=32, waves=0, stages=1) | words)
    yield compile_feature, ("bias_bf16", 64, False, plain | dict(sharing=1))
    yield compile_feature, ("dropout", 64, False, plain | dict(words=1))
    yield compile_feature, ("paged64", 64, False, plain | dict(BN=128))


def sweep():
    for label, dim, causal in itertools.product(FEATURES, HEAD_DIMS, (False, True)):
        if not causal or label in CAUSAL:
            for config in configurations(label):
                yield compile_feature, (label, dim, causal, config)


if __name__ == "__main__":
    offline.compile_jobs(pathlib.Path(sys.argv[1]), "triton_features.json", dict(few=few, sweep=sweep)[sys.argv[2]]())
