"""Writes tuning/cases/<operator>.txt: problems that cover the key space, the cheap ones for the timing model first.

usage: python3 tuning/design.py

Two parts. Shapes of models: Llama 3 8B and 70B, Qwen3, Mixtral, DeepSeek-V3 (head dims, GQA, widths of layers) at usual lengths and batches. And a Latin
hypercube (McKay, Beckman, Conover, Technometrics 1979) for each of the keys that have several kernels: of n points each axis, logarithmic, is cut in n
equal parts, and each part holds one point. Seeds are fixed: the same files on every machine.
"""
import math
import pathlib
import random

HERE = pathlib.Path(__file__).resolve().parent / "cases"


def hypercube(count, axes, seed):
    """`count` points of whole numbers within [(low, high), ...], logarithmic."""
    generator = random.Random(seed)
    columns = []
    for low, high in axes:
        parts = list(range(count))
        generator.shuffle(parts)
        columns.append([round(low * (high / low) ** ((part + generator.random()) / count)) for part in parts])
    return list(zip(*columns))


def up(value, step):
    return max(step, math.ceil(value / step) * step)


def shape(*sizes):
    return "x".join(map(str, sizes))


def attention(name, batch, heads_q, heads_kv, rows, keys, dim, dim_v, *settings):
    tensors = {"q": shape(batch, heads_q, rows, dim), "k": shape(batch, heads_kv, keys, dim), "v": shape(batch, heads_kv, keys, dim_v)}
    if name == "attention_backward":
        tensors |= {"out": shape(batch, heads_q, rows, dim_v), "dout": shape(batch, heads_q, rows, dim_v), "lse": shape(batch, heads_q, rows)}
    return rows * keys * batch * heads_q * (dim + dim_v), " ".join(f"{key}={value}" for key, value in tensors.items()) + "".join(f" {s}" for s in settings)


def attentions(name, dims, counts, most, seed):
    """`dims`: (D, Dv, types); a hypercube for each type and mask. `most`: multiplications, so that the model takes seconds."""
    for dim, dim_v, types in dims:
        for dtype in types:
            for causal in ("none", "top-left"):
                settings = (f"dtype={dtype}", f"causal={causal}")
                for heads_q, heads_kv in ((32, 8), (64, 8)) if dim == dim_v else ((128, 128),):  # Llama 3 8B, 70B; DeepSeek-V3
                    for length in (512, 1024, 2048, 4096):
                        yield attention(name, 1, heads_q, heads_kv, length, length, dim, dim_v, *settings)
                for rows, keys, parallel in hypercube(counts, ((128, 8192), (128, 8192), (8, 256)), f"{seed} {name} {dim} {dtype} {causal}"):
                    rows, keys = up(rows, 64), up(keys, 64)
                    if causal != "none":
                        keys = rows
                    heads = min(parallel, 32)
                    batch = max(1, round(parallel / heads))
                    while rows * keys * batch * heads > most and batch > 1:
                        batch -= 1
                    yield attention(name, batch, heads, heads, rows, keys, dim, dim_v, *settings)


def gemm(m, n, k, dtype, transpose_b, batch=1):
    a, b = ((m, k), (n, k) if transpose_b else (k, n))
    if batch > 1:
        a, b = (batch, *a), (batch, *b)
    return m * n * k * batch, f"a={shape(*a)} b={shape(*b)} dtype={dtype}{' transpose_b=yes' if transpose_b else ''}"


LAYERS = ((4096, 4096), (6144, 4096), (28672, 4096), (4096, 14336), (8192, 8192), (10240, 8192), (7168, 2048), (2048, 7168))  # N, K


def gemms():
    for m in (1, 16, 64, 128, 512, 2048):
        for n, k in LAYERS:
            yield gemm(m, n, k, "bf16", True)
    for dtype, transpose_b in (("bf16", True), ("bf16", False), ("fp16", True), ("e4m3", True)):
        for m, n, k in hypercube(30, ((1, 4096), (256, 16384), (256, 16384)), f"gemm {dtype} {transpose_b}"):
            yield gemm(up(m, 1 if m < 64 else 8), up(n, 64), up(k, 64), dtype, transpose_b)


def write(name, cases):
    seen = sorted(set(cases))
    lines = [line for _, line in seen]
    head = f"# Written by tuning/design.py, which says how they are chosen; {len(lines)} problems, by the work in them.\n"
    (HERE / f"{name}.txt").write_text(head + "".join(f"{line}\n" for line in lines))
    print(f"{name}: {len(lines)}")


def main():
    types = ("bf16", "fp16")
    write("attention_forward", attentions("attention_forward", ((128, 128, types), (64, 64, types), (192, 128, ("bf16",)), (96, 96, ("bf16",))), 20, 1 << 33, 1))
    write("attention_backward", attentions("attention_backward", ((128, 128, types), (64, 64, types)), 12, 1 << 32, 2))
    write("gemm", gemms())


if __name__ == "__main__":
    main()
