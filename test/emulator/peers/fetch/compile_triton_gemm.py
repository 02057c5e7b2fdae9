"""Compiles the matrix products of triton_gemm.py for gfx950, in many configurations.

usage: compile_triton_gemm.py <output folder> few|sweep
Writes {gemm,join,scaled_gemm,grouped_gemm}/<name>.co and triton_gemm.json, which says how each is launched. `few` are those that the tests run; `sweep` is what
an autotuner would try. Needs the `triton` wheel only; no device.
"""
import itertools
import pathlib
import sys

import triton_gemm as kernels
import triton_offline as offline

I32 = "i32"
POINTERS = {"bf16": "*bf16", "fp16": "*fp16", "fp32": "*fp32", "e4m3": "*fp8e4nv", "e2m1": "*u8", "mxfp8": "*fp8e4nv"}
LDS_BYTES = 163840
GROUPS = (8, 256)  # the most groups that a kernel searches
GROUP = 4  # rows of tiles that are walked through column by column


def label(config):
    return "_".join(f"{key.lower()}{value}" for key, value in config.items())


def compiled(folder, kind, name, fn, types, constants, config, multiples, within_2gb, problem):
    """(kind, name, how to launch it) or (kind, None, why an autotuner would drop it)."""
    done = offline.compile_kernel(fn, types, constants, "gfx950", multiples, within_2gb=within_2gb, num_warps=config["warps"],
                                  num_stages=config["stages"], waves_per_eu=config["waves"], matrix_instr_nonkdim=config["mfma"])
    if done.metadata.shared > LDS_BYTES:
        return kind, None, "more LDS than there is"
    return kind, name, offline.store(done, folder / kind / f"{name}.co", fn, types, constants, config["warps"]) | dict(problem=problem)


def tiles(config):
    return {key: config[key] for key in ("BM", "BN", "BK")} | dict(GROUP=GROUP)


def gemm(folder, dtype, layout, tail, splits, config):
    P = POINTERS[dtype]
    types = [P, P, "*fp32" if splits > 1 else P] + [I32] * 6
    constants = dict(A_T=layout[0] == "t", B_T=layout[1] == "t", **tiles(config), SPLITS=splits, TAIL=tail)
    name = f"{dtype}_{layout}_" + label(config) + (f"_splits{splits}" if splits > 1 else "") + ("_tail" if tail else "")
    multiples = ("n", "lda", "ldb", "ldc") + (() if tail else ("k",))
    problem = dict(dtype=dtype, layout=layout, tail=tail)
    return compiled(folder, "gemm", name, kernels.gemm, types, constants, config, multiples, True, problem)


def join(folder, dtype, splits):
    types, constants = ["*fp32", POINTERS[dtype], I32], dict(SPLITS=splits, BLOCK=1024)
    done = offline.compile_kernel(kernels.join, types, constants, "gfx950", ("count",), within_2gb=True, num_warps=4)
    return "join", f"{dtype}_splits{splits}", offline.store(done, folder / "join" / f"{dtype}_splits{splits}.co", kernels.join, types, constants, 4)


def scaled_gemm(folder, fa, fb, shuffled, config):
    types = [POINTERS[fa], POINTERS[fb], "*u8", "*u8", "*bf16"] + [I32] * 7
    constants = dict(**tiles(config), FA=fa, FB=fb, SHUFFLED=shuffled)
    name = f"{fa}_{fb}_{'shuffled' if shuffled else 'plain'}_" + label(config)
    return compiled(folder, "scaled_gemm", name, kernels.scaled_gemm, types, constants, config, ("n", "k", "lda", "ldb", "lead", "ldc"), True,
                    dict(dtype_a=fa, dtype_b=fb, scales="shuffled" if shuffled else "plain"))


def grouped_gemm(folder, dtype, b_t, groups, config):
    scaled, P = dtype == "mxfp8", POINTERS[dtype]
    types = [P, P, "*bf16" if scaled else P, "*u8", "*u8", "*i32"] + [I32] * 7
    constants = dict(B_T=b_t, **tiles(config), TAIL=False, GROUPS=groups, SCALED=scaled)
    name = f"{dtype}_{'nt' if b_t else 'nn'}_groups{groups}_" + label(config)
    return compiled(folder, "grouped_gemm", name, kernels.grouped_gemm, types, constants, config, ("n", "k", "lda", "ldb", "ldc"), True,
                    dict(dtype=dtype, transpose_b=b_t, groups=groups))


def config(BM, BN, BK, warps, stages=2, mfma=16, waves=0):
    return dict(BM=BM, BN=BN, BK=BK, warps=warps, stages=stages, mfma=mfma, waves=waves)


LARGE = ((256, 256, 8), (256, 128, 8), (128, 256, 8), (256, 128, 4), (128, 256, 4), (128, 128, 8), (128, 128, 4), (64, 256, 4), (64, 128, 4), (128, 64, 4),
         (64, 64, 4))


def large():
    """Tiles and warps, K of a step, stages, matrix instructions, waves a SIMD that registers are to leave room for.

    M = N = K = 4096, B as (n, k): 128 of K a step cost 4 % and more, room for two waves changed nothing but with eight warps on large tiles (2 %).
    """
    for (bm, bn, warps), bk, stages, mfma, waves in itertools.product(LARGE, (32, 64), (2, 3), (16, 32), (0, 2)):
        if waves == 0 or (warps == 8 and bm * bn >= 256 * 128):
            yield config(bm, bn, bk, warps, stages, mfma, waves)


def few():
    for dtype, layout in (("bf16", "nn"), ("bf16", "nt"), ("bf16", "tn"), ("fp16", "nt")):
        yield gemm, (dtype, layout, False, 1, config(128, 128, 64, 4))
    yield gemm, ("bf16", "nt", False, 1, config(256, 256, 64, 8))
    yield gemm, ("bf16", "nt", True, 1, config(64, 64, 64, 4, mfma=32))
    yield gemm, ("bf16", "nt", False, 4, config(16, 64, 128, 2))
    yield join, ("bf16", 4)
    for fa, fb, shuffled in (("e4m3", "e4m3", False), ("e4m3", "e4m3", True), ("e2m1", "e2m1", False), ("e2m1", "e2m1", True), ("e4m3", "e2m1", False)):
        yield scaled_gemm, (fa, fb, shuffled, config(128, 128, 256, 4))
    for dtype, b_t in (("bf16", False), ("bf16", True), ("mxfp8", True)):
        yield grouped_gemm, (dtype, b_t, 8, config(64, 128, 128 if dtype == "mxfp8" else 64, 4))


def small():
    """(configuration, parts of K) for 16 to 64 rows. M 16, N = K = 8192: all of about 300 tried were within 8 %; 16 parts, 1 stage and wider tiles won nowhere."""
    for (bm, bn, warps), bk, splits in itertools.product(((16, 32, 2), (16, 64, 4), (32, 64, 4), (64, 64, 4)), (64, 128, 256), (1, 4, 8)):
        if bm < 64 or bk == 64:
            yield config(bm, bn, bk, warps, 3), splits


SCALED = ((256, 256, 8), (256, 128, 8), (128, 256, 8), (128, 128, 8), (128, 128, 4), (64, 256, 4), (64, 128, 4), (32, 128, 4), (32, 64, 2))
GROUPED = ((256, 256, 8), (128, 256, 8), (128, 128, 4), (64, 128, 4))


def sweep():
    for layout, shape in itertools.product(("nn", "nt"), large()):
        yield gemm, ("bf16", layout, False, 1, shape)
    for shape, splits in small():
        yield gemm, ("bf16", "nt", False, splits, shape)
    for splits in (4, 8):
        yield join, ("bf16", splits)
    for (element, steps), shuffled, (bm, bn, warps), stages, mfma in itertools.product(
            (("e4m3", (128, 256)), ("e2m1", (256, 512))), (False, True), SCALED, (2, 3), (16, 32)):
        for bk in steps:
            if (bk >= 256 or not shuffled) and (mfma == 16 or bm >= 128):
                yield scaled_gemm, (element, element, shuffled, config(bm, bn, bk, warps, stages, mfma))
    for (bm, bn, warps), groups in itertools.product(GROUPED, GROUPS):
        for b_t in (False, True):
            yield grouped_gemm, ("bf16", b_t, groups, config(bm, bn, 64, warps))
        for bk in (128, 256):
            yield grouped_gemm, ("mxfp8", True, groups, config(bm, bn, bk, warps))


if __name__ == "__main__":
    offline.compile_jobs(pathlib.Path(sys.argv[1]), "triton_gemm.json", dict(few=few, sweep=sweep)[sys.argv[2]]())
