"""Compiles the kernels of triton_backward.py for gfx950, in many configurations.

usage: compile_triton_backward.py <output folder> few|sweep
Writes {sums,keys,queries}/<name>.co and triton_backward.json, which says how each is launched. `few` are one or two a head dim, which the tests run; `sweep`
is what an autotuner would try. Needs the `triton` wheel only; no device.
"""
import itertools
import pathlib
import sys

import triton_backward as kernels
import triton_offline as offline

B, F, I32 = "*bf16", "*fp32", "i32"
LDS_BYTES = 163840
HEAD_DIMS = {"64": (64, 0, 64), "128": (128, 0, 128), "192_128": (128, 64, 128)}  # D, D2, V
KERNELS = {"keys": kernels.gradient_of_keys, "queries": kernels.gradient_of_queries}


def configurations():
    """What a work-group owns (keys, or queries) and its warps; waves a SIMD that registers are to leave room for; what it takes a step.

    Two pipeline stages: one cost 26 % (keys) and 15 % (queries). 16 rows a warp cost 43 to 69 % (D 128, 4 x 16 heads of 4096 rows, no mask).
    """
    for (own, warps, waves), step in itertools.product(((64, 2, 0), (128, 4, 0), (128, 4, 2), (256, 8, 0), (256, 4, 0), (256, 4, 1)), (16, 32, 64)):
        yield dict(own=own, warps=warps, step=step, stages=2, waves=waves)


def compile_kernel(folder, kind, label, causal, config):
    """(kind, name, how to launch it) or (kind, None, why an autotuner would drop it)."""
    fn, (D, D2, V) = KERNELS[kind], HEAD_DIMS[label]
    BM, BN = (config["step"], config["own"]) if kind == "keys" else (config["own"], config["step"])
    types = [B] * 4 + [F] * 2 + [B] * (2 if kind == "keys" else 1) + ["fp32"] * 2 + [I32] * 15
    constants = dict(D=D, D2=D2, V=V, BM=BM, BN=BN, CAUSAL=causal)
    name = f"bf16_d{label}_{'causal' if causal else 'full'}_" + "_".join(f"{key}{value}" for key, value in config.items())
    multiples = [n for n, t in offline.arguments(fn, types, constants) if n.startswith(("stride", "seq"))]
    done = offline.compile_kernel(fn, types, constants, "gfx950", multiples, within_2gb=True, num_warps=config["warps"],
                                  num_stages=config["stages"], waves_per_eu=config["waves"])
    if done.metadata.shared > LDS_BYTES:
        return kind, None, "more LDS than there is"
    entry = offline.store(done, folder / kind / f"{name}.co", fn, types, constants, config["warps"])
    return kind, name, entry | dict(problem=dict(head_dim=D + D2, head_dim_v=V, causal=causal), own=config["own"])


def compile_sums(folder, dim):
    fn, types, constants = kernels.row_sums, [B, B, F] + [I32] * 4, dict(V=dim, BM=64)
    done = offline.compile_kernel(fn, types, constants, "gfx950", ("stride_b", "stride_h", "stride_s", "seq"), within_2gb=True, num_warps=4)
    return "sums", f"d{dim}", offline.store(done, folder / "sums" / f"d{dim}.co", fn, types, constants, 4)


def few():
    for kind, label, causal in itertools.product(KERNELS, HEAD_DIMS, (False, True)):
        yield compile_kernel, (kind, label, causal, dict(own=64, warps=2, step=32, stages=2, waves=0))
    for kind, causal in itertools.product(KERNELS, (False, True)):
        yield compile_kernel, (kind, "128", causal, dict(own=256, warps=8, step=16, stages=2, waves=0))
    for dim in sorted({V for _, _, V in HEAD_DIMS.values()}):
        yield compile_sums, (dim,)


def sweep():
    for kind, label, causal in itertools.product(KERNELS, HEAD_DIMS, (False, True)):
        for config in configurations():
            yield compile_kernel, (kind, label, causal, config)


if __name__ == "__main__":
    offline.compile_jobs(pathlib.Path(sys.argv[1]), "triton_backward.json", dict(few=few, sweep=sweep)[sys.argv[2]]())
