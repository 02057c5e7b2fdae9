"""Compiles triton_attention.py for gfx950: attention/<name>.co for every configuration, helper/<name>.co, triton_attention.json.

usage: compile_triton_attention.py <output folder>
Needs the `triton` wheel only; no device.
"""
import collections
import itertools
import json
import pathlib
import sys

import triton_attention as kernels
import triton_offline as offline

B, F, I32 = "*bf16", "*fp32", "i32"
LDS_BYTES = 163840
# What an autotuner would try: rows of a tile and warps, keys of a step, pipeline stages, waves a SIMD that the register allocator is to
# make room for (0: no wish). 16 rows a warp and loops without a pipeline (one stage) were at less than two thirds of the best wherever
# they were tried.
CONFIGS = [dict(BM=rows, warps=warps, BN=keys, stages=stages, waves=waves)
           for (rows, warps), keys, stages, waves in itertools.product(((128, 4), (256, 4), (256, 8)), (32, 64, 128), (2, 3), (0, 2))]
HEAD_DIMS = (64, 128)
HELPERS = {"fill_zero": ([F, I32], dict(BLOCK=4096)), "row_dot": ([B, B, F, I32, I32], dict(D=128, BM=64)),
           "heads_to_rows": ([F, B, I32, I32], dict(D=128, BM=64))}


def compile_attention(folder, head_dim, causal, config):
    """(name, how to launch it) or (None, why an autotuner would drop it)."""
    fn, types = kernels.flash_attention, [B, B, B, B, F, "fp32"] + [I32] * 10
    constants = dict(D=head_dim, BM=config["BM"], BN=config["BN"], CAUSAL=causal)
    sizes = [n for n, t in offline.arguments(fn, types, constants) if n.startswith(("stride", "seq"))]
    done = offline.compile_kernel(fn, types, constants, "gfx950", sizes, within_2gb=True, num_warps=config["warps"],
                                  num_stages=config["stages"], waves_per_eu=config["waves"])
    if done.metadata.shared > LDS_BYTES:
        return None, "more LDS than there is"
    name = f"d{head_dim}_{'causal' if causal else 'full'}_" + "_".join(f"{key.lower()}{value}" for key, value in config.items())
    entry = offline.store(done, folder / "attention" / f"{name}.co", fn, types, constants, config["warps"])
    return name, entry | dict(config=config)


def compile_helper(folder, name):
    types, constants = HELPERS[name]
    fn = getattr(kernels, name)
    done = offline.compile_kernel(fn, types, constants, "gfx950", ("n", "seq"), num_warps=4)
    return name, offline.store(done, folder / "helper" / f"{name}.co", fn, types, constants, 4)


def main():
    folder = pathlib.Path(sys.argv[1])
    attention = offline.in_parallel(compile_attention, [(folder, d, c, config) for d in HEAD_DIMS for c in (False, True) for config in CONFIGS])
    index = dict(attention={name: entry for name, entry in attention if name},
                 helper=dict(offline.in_parallel(compile_helper, [(folder, name) for name in HELPERS])),
                 dropped=collections.Counter(entry for name, entry in attention if not name))
    (folder / "triton_attention.json").write_text(json.dumps(index, indent=1))


if __name__ == "__main__":
    main()
