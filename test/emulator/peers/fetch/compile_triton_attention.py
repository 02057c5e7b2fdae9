"""Compiles the attention kernels of triton_attention.py and triton_decode.py for gfx950, in many configurations.

usage: compile_triton_attention.py <output folder> few|sweep
Writes {attention,split,join,helper}/<name>.co and triton_attention.json, which says how each is launched. `few` are the helpers and one or two
configurations a kind, which the tests run; `sweep` is what an autotuner would try. Needs the `triton` wheel only; no device.
"""
import itertools
import pathlib
import sys

import triton_attention as kernels
import triton_decode
import triton_offline as offline

B, F, I32 = "*bf16", "*fp32", "i32"
ELEMENTS = {"bf16": B, "e4m3": "*fp8e4nv"}
LDS_BYTES = 163840
HEAD_DIMS = {  # (D, D2, V, V2) of flash_attention
    "32": (32, 0, 32, 0), "64": (64, 0, 64, 0), "96": (64, 32, 64, 32), "128": (128, 0, 128, 0), "160": (128, 32, 128, 32),
    "192": (128, 64, 128, 64), "192_128": (128, 64, 128, 0), "256": (256, 0, 256, 0)}
HELPERS = {"fill_zero": ([F, I32], dict(BLOCK=4096)), "row_dot": ([B, B, F, I32, I32], dict(D=128, BM=64)),
           "heads_to_rows": ([F, B, I32, I32], dict(D=128, BM=64))}


def configurations(dims, element):
    """Rows of a tile and warps, keys of a step, waves a SIMD that the register allocator is to make room for (0: no wish).

    Two pipeline stages, V loaded where it is used, 32x32 matrix instructions, which is what the compiler takes without a wish. Elsewhere one stage cost
    15 to 90 %, three won nowhere, 16x16 instructions cost 13 %, 16 rows a warp 40 to 100 %, room for three waves 4 to 120 %; loading V early changed nothing
    (D 64, 128; 4 x 16 heads of 4096 rows).
    """
    wide = sum(dims) > 256
    for (rows, warps), keys, waves in itertools.product(((128, 4), (256, 8), (64, 2), (256, 4)), (32, 64, 128), (0, 2)):
        many = rows == 64 * warps  # 64 rows a warp: without room for it
        if wide and (many or keys == 128):
            continue
        if element == "e4m3" and (keys == 32 or waves or many or rows == 64):
            continue
        if waves and (dims not in (HEAD_DIMS["64"], HEAD_DIMS["128"]) or many or rows == 64):
            continue
        yield dict(BM=rows, warps=warps, BN=keys, waves=waves)


def compile_attention(folder, label, element, causal, widen, config):
    """(kind, name, how to launch it) or (kind, None, why an autotuner would drop it)."""
    E, dims = ELEMENTS[element], HEAD_DIMS[label]
    fn, types = kernels.flash_attention, [E, E, E, B, F, "fp32", "fp32"] + [I32] * 16
    constants = dict(zip(("D", "D2", "V", "V2"), dims)) | dict(BM=config["BM"], BN=config["BN"], CAUSAL=causal, WIDEN=widen)
    name = f"{element}_d{label}_{'causal' if causal else 'full'}_" + ("widen_" if widen else "") + "_".join(
        f"{key.lower()}{value}" for key, value in config.items())
    multiples = [n for n, t in offline.arguments(fn, types, constants) if n.startswith(("stride", "seq"))]
    done = offline.compile_kernel(fn, types, constants, "gfx950", multiples, within_2gb=True, num_warps=config["warps"], num_stages=2,
                                  waves_per_eu=config["waves"])
    if done.metadata.shared > LDS_BYTES:
        return "attention", None, "more LDS than there is"
    entry = offline.store(done, folder / "attention" / f"{name}.co", fn, types, constants, config["warps"])
    problem = dict(head_dim=dims[0] + dims[1], head_dim_v=dims[2] + dims[3], dtype=element, causal=causal)
    return "attention", name, entry | dict(problem=problem)


def compile_split(folder, label, element, group, page, config):
    fn, types = triton_decode.decode_split, [B, ELEMENTS[element], ELEMENTS[element], F, F, "*i32", "*i32", "fp32"] + [I32] * 9
    D, D2, V = {"64": (64, 0, 64), "128": (128, 0, 128), "192_128": (128, 64, 128), "256": (256, 0, 256), "576_512": (512, 64, 512)}[label]
    constants = dict(GROUP=group, D=D, D2=D2, V=V, BH=min(64, max(16, group)), BN=config["BN"], PAGE=page, SHARED=label == "576_512")
    name = f"{element}_d{label}_group{group}_page{page}_" + "_".join(f"{key.lower()}{value}" for key, value in config.items())
    multiples = [n for n, t in offline.arguments(fn, types, constants) if n.startswith("stride") and n != "stride_tb"]
    done = offline.compile_kernel(fn, types, constants, "gfx950", multiples, num_warps=config["warps"], num_stages=config["stages"])
    if done.metadata.shared > LDS_BYTES:
        return "split", None, "more LDS than there is"
    entry = offline.store(done, folder / "split" / f"{name}.co", fn, types, constants, config["warps"])
    return "split", name, entry | dict(problem=dict(head_dim=D + D2, head_dim_v=V, dtype_kv=element, group=group, page=page))


def compile_join(folder, splits, head_dim_v):
    fn, types, constants = triton_decode.decode_join, [F, F, B] + [I32] * 5, dict(SPLITS=splits, V=head_dim_v)
    done = offline.compile_kernel(fn, types, constants, "gfx950", ("stride_ob", "stride_oh"), num_warps=4)
    return "join", f"splits{splits}_d{head_dim_v}", offline.store(done, folder / "join" / f"splits{splits}_d{head_dim_v}.co", fn, types, constants, 4)


def compile_helper(folder, name):
    types, constants = HELPERS[name]
    fn = getattr(kernels, name)
    done = offline.compile_kernel(fn, types, constants, "gfx950", ("n", "seq"), num_warps=4)
    return "helper", name, offline.store(done, folder / "helper" / f"{name}.co", fn, types, constants, 4)


SPLITS = (4, 8, 16, 32, 64, 128)
# Head dim, element of the cache, query heads to one of K and V, keys of a page (0: no pages): attention of language models in use.
DECODE = [("64", "bf16", 8, 0), ("128", "bf16", 1, 0), ("128", "bf16", 8, 0), ("128", "bf16", 8, 64), ("128", "e4m3", 8, 0), ("192_128", "bf16", 1, 0),
          ("256", "bf16", 8, 0), ("576_512", "bf16", 16, 0), ("576_512", "bf16", 128, 0)]


def few():
    plain = dict(BM=128, warps=4, BN=64, waves=0)
    for causal in (False, True):
        for label in ("64", "96", "128", "192_128"):
            yield compile_attention, (label, "bf16", causal, False, plain)
        yield compile_attention, ("128", "bf16", causal, False, dict(BM=256, warps=8, BN=64, waves=2))
        yield compile_attention, ("256", "bf16", causal, False, dict(BM=64, warps=2, BN=32, waves=0))
        for widen in (False, True):
            yield compile_attention, ("128", "e4m3", causal, widen, plain)
    for kind in (("128", "bf16", 8, 0), ("128", "e4m3", 8, 64), ("576_512", "bf16", 16, 0)):
        yield compile_split, (*kind, dict(BN=32, warps=4, stages=2 if kind[0] == "128" else 1))
    for head_dim_v in (128, 512):
        yield compile_join, (8, head_dim_v)
    for name in HELPERS:
        yield compile_helper, (name,)


def sweep():
    for element, widen in (("bf16", False), ("e4m3", False), ("e4m3", True)):
        for label, dims in HEAD_DIMS.items():
            if element == "e4m3" and label not in ("64", "128"):
                continue
            for causal, config in itertools.product((False, True), configurations(dims, element)):
                yield compile_attention, (label, element, causal, widen, config)
    for kind in DECODE:
        for keys, (warps, stages) in itertools.product((16, 32) if kind[0] == "576_512" else (32, 64, 128), ((2, 2), (4, 2))):
            yield compile_split, (*kind, dict(BN=keys, warps=warps, stages=stages))
    for splits, head_dim_v in itertools.product(SPLITS, (64, 128, 256, 512)):
        yield compile_join, (splits, head_dim_v)


if __name__ == "__main__":
    offline.compile_jobs(pathlib.Path(sys.argv[1]), "triton_attention.json", dict(few=few, sweep=sweep)[sys.argv[2]]())
