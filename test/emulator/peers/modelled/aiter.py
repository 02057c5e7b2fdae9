"""AITER's objects on problems of any size, without data: what they compute is judged elsewhere (recipes/)."""
import pathlib

import numpy as np

from launch.recipe import ceil
from modelled import triton
from modelled.tensors import Unsupported, untouched
from recipes import aiter_forward, aiter_gemm, aiter_mla
from recipes.aiter_tensors import HSA, Sequences


def attention_forward(objects, batch, heads_q, heads_kv, seqlen_q, seqlen_k, head_dim, head_dim_v, causal, dtype="bf16", layout="bshd"):
    """A function of hip that launches the forward kernel. `causal`: "none", "top-left" or "bottom-right"."""
    if dtype != "bf16" or (head_dim, head_dim_v) not in ((128, 128), (192, 128)):
        raise Unsupported(f"AITER's assembly forward takes bf16 with head dims 128, or 192 with 128 of V; not {dtype} {head_dim}/{head_dim_v}")
    if causal not in ("none", "bottom-right") and not (causal == "top-left" and seqlen_q == seqlen_k):
        raise Unsupported("AITER's assembly forward takes no mask, or a causal one aligned with the bottom right")
    name = f"fwd_hd{128 if head_dim == 128 else '192_hd128'}_bf16{'' if causal == 'none' else '_causal'}.co"
    path = pathlib.Path(objects, "aiter", HSA, "fmha_v3_fwd", name)

    def run(hip):
        q, o = (untouched(hip, batch, seqlen_q, heads_q, dim, layout) for dim in (head_dim, head_dim_v))
        k, v = (untouched(hip, batch, seqlen_k, heads_kv, dim, layout) for dim in (head_dim, head_dim_v))
        aiter_forward.launch(hip, path, Sequences(batch, seqlen_q, seqlen_k), q, k, v, o, hip.memory(4 * batch * heads_q * seqlen_q))

    return run


def attention_decode(folder, batch, heads_q, heads_kv, lengths, block_size, head_dim, head_dim_v, dtype, kv_dtype):
    """{number of shares: a function of hip that launches both stages}; AITER takes 1 to 16. A dense cache is one of pages of one key, in order."""
    if (dtype, kv_dtype, head_dim, head_dim_v, heads_kv) != ("bf16", "bf16", aiter_mla.DIM, aiter_mla.DIM_V, 1) or heads_q not in aiter_mla.HEADS:
        raise Unsupported(f"AITER's assembly that is known here takes bf16, head dims 576/512, 16 or 128 heads to one of K; not {dtype} {kv_dtype} "
                          f"{head_dim}/{head_dim_v}, {heads_q}/{heads_kv}")
    if block_size > 1:
        raise Unsupported(f"AITER's assembly takes pages of one key, not of {block_size}")
    objects = triton.Objects(folder)

    def launcher(splits):
        def run(hip):
            q, o = (untouched(hip, batch, 1, heads_q, dim) for dim in (head_dim, head_dim_v))
            total = sum(lengths)
            kv = untouched(hip, total, 1, 1, head_dim)
            starts, pages, last = (hip.memory(4 * count) for count in (batch + 1, total, batch))
            starts.write(np.cumsum([0, *lengths]).astype(np.int32))
            pages.write(np.arange(total, dtype=np.int32))
            last.write(np.ones(batch, np.int32))
            part, part_lse = (hip.memory(4 * batch * heads_q * splits * width) for width in (head_dim_v, 1))
            aiter_mla.launch(hip, objects, folder, q, kv, o, starts, pages, last, splits, part, part_lse)

        return run

    counts = [entry["constants"]["SPLITS"] for entry in objects.index["join"].values() if entry["constants"]["V"] == head_dim_v]
    return {f"{aiter_mla.HEADS[heads_q]}_splits{count}": launcher(count) for count in sorted(set(counts)) if count <= 16}


def objects_named(objects, folder, pattern):
    return sorted(pathlib.Path(objects, "aiter", HSA, folder).glob(pattern))


def splits_of(tiles):
    """Log2 of how many ways K is split: never, or so that there are at most about two work-groups a compute unit."""
    return [0, *(log2 for log2 in (1, 2, 3, 4) if tiles << log2 <= 512)]


def bf16gemm(objects, m, n, k, dtype, dtype_out, layout):
    """{object and split: a function of hip that launches it}. Parts of a split K are added to D, which is zero before."""
    if (dtype, dtype_out, layout) != ("bf16", "fp32", "nt") or n % 64 or k % 64:
        raise Unsupported(f"AITER's assembly takes bf16 with K contiguous in both, N and K multiples of 64, and gives FP32; not {dtype}, {layout}, {n}, {k}, {dtype_out}")
    found = {}
    for path in objects_named(objects, "bf16gemm", "*.co"):
        tile_m = int(path.stem.split("_")[3].split("x")[0])
        for log2 in splits_of(ceil(m, tile_m) * (n // 64)):
            def run(hip, path=path, log2=log2):
                a, b, d = (hip.memory(size) for size in (m * k * 2, n * k * 2, m * n * 4))
                if log2:
                    triton.Helpers(hip, objects).fill_zero(d, m * n)
                aiter_gemm.launch_bf16gemm(hip, path, m, n, k, d, a, b, 1 << log2)

            found[f"{path.stem}_splits{1 << log2}"] = run
    return found


def f4gemms(objects, m, n, k, dtypes, scales):
    """{object and split: a function of hip that launches it}. Both scales shuffled, B too unless the object's name says otherwise."""
    if dtypes != ("e2m1", "e2m1") or scales != "shuffled" or k % 256:
        raise Unsupported(f"AITER's assembly takes e2m1 with shuffled scales and K a multiple of 256; not {dtypes[0]} and {dtypes[1]}, {scales}, {k}")
    found = {}
    for path in objects_named(objects, "f4gemm", "*.co"):
        tile_m, tile_n = aiter_gemm.tile_of(path)
        shuffled = "noBpreShuffle" not in path.stem
        if n % tile_n:
            continue
        for log2 in splits_of(ceil(m, tile_m) * (n // tile_n)) if shuffled else [0]:
            if (k >> log2) >= 256:
                found[path.stem.split("Fp4_")[1] + f"_splits{1 << log2}"] = f4gemm_of(objects, path, m, n, k, log2)
    if not found:
        raise Unsupported(f"no tile of AITER's assembly divides an N of {n}")
    return found


def f4gemm_of(objects, path, m, n, k, log2_split):
    def run(hip):
        rows = ceil(m, aiter_gemm.padding_of(path)) * aiter_gemm.padding_of(path)
        whole_tiles = ceil(m, next(aiter_gemm.tile_of(path))) * next(aiter_gemm.tile_of(path))
        scales = [hip.memory(ceil(x, 256) * 256 * ceil(k // 32, 8) * 8) for x in (m, n)]
        d = hip.memory(rows * n * 2)
        if log2_split:
            triton.Helpers(hip, objects).fill_zero(d, rows * n // 2)
        aiter_gemm.launch_f4gemm(hip, path, m, n, k, d, hip.memory(whole_tiles * k // 2), hip.memory(n * k // 2), *scales, log2_split)

    return run


def f4gemm(objects, m, n, k, tile):
    (path,) = objects_named(objects, "f4gemm", f"f4gemm_bf16_per1x32Fp4_BpreShuffle_{tile}.co")
    return f4gemm_of(objects, path, m, n, k, 0)
