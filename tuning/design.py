"""Writes tuning/cases/<operator>.txt: problems that cover the key space, the cheap ones for the timing model first.

usage: python3 tuning/design.py

Parts: shapes of models: Llama 3 8B and 70B, Qwen3, Mixtral, DeepSeek-V3 (head dims, GQA, widths of layers) at usual lengths and batches. And a Latin
hypercube (McKay, Beckman, Conover, Technometrics 1979) for each of the keys that have several kernels: of n points each axis, logarithmic, is cut in n
equal parts, and each part holds one point. And `NEAR`: beside problems that the other rows did not foretell within 15 % another one. Seeds are fixed: the same
files on every machine.
"""
import itertools
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


# Of 256 keys: work-groups of the backward share their work as they run, which the timing model cannot follow with fewer.
FEWEST_BLOCKS = 16
NEAR_FORWARD = (  # batch, heads, key heads, rows, keys, D, Dv, type, mask
    (1, 16, 16, 3776, 192, 128, 128, "fp16", "none"),
    (1, 64, 8, 1088, 1088, 64, 64, "fp16", "top-left"),
    (1, 8, 8, 2816, 7680, 192, 128, "bf16", "none"),
    (1, 32, 8, 4096, 4608, 96, 96, "bf16", "none"),
    (1, 32, 32, 3584, 5632, 96, 96, "bf16", "none"),
    (1, 16, 16, 3648, 576, 64, 64, "fp16", "none"),
    (1, 32, 8, 1984, 1984, 64, 64, "bf16", "none"),
    (1, 64, 8, 960, 960, 64, 64, "bf16", "none"),
    (4, 16, 16, 4096, 4096, 128, 128, "bf16", "top-left"),
    (4, 16, 16, 4096, 4096, 192, 128, "bf16", "top-left"),
    (16, 32, 8, 8192, 8192, 128, 128, "bf16", "top-left"),
)


NEAR_BACKWARD = (
    (2, 32, 32, 896, 1024, 64, 64, "fp16", "none"),
    *((4, 32, 8, 2048, 2048, dim, dim, dtype, causal) for dim in (128, 64) for dtype in ("bf16", "fp16") for causal in ("none", "top-left")),
)


def near(name, problems):
    for *problem, dtype, causal in problems:
        yield attention(name, *problem, f"dtype={dtype}", f"causal={causal}")


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
                    heads = min(up(parallel, 8), 32)  # of other counts work-groups of the backward share their work as they run
                    batch = max(1, round(parallel / heads))
                    while rows * keys * batch * heads > most and batch > 1:
                        batch -= 1
                    if name == "attention_backward" and math.ceil(keys / 256) * batch * heads < FEWEST_BLOCKS:
                        continue
                    yield attention(name, batch, heads, heads, rows, keys, dim, dim_v, *settings)


def gemm(m, n, k, dtype, transpose_b, batch=1):
    a, b = ((m, k), (n, k) if transpose_b else (k, n))
    if batch > 1:
        a, b = (batch, *a), (batch, *b)
    return m * n * k * batch, f"a={shape(*a)} b={shape(*b)} dtype={dtype}{' transpose_b=yes' if transpose_b else ''}"


LAYERS = ((4096, 4096), (6144, 4096), (28672, 4096), (4096, 14336), (8192, 8192), (10240, 8192), (7168, 2048), (2048, 7168))  # N, K


NEAR_GEMM = ((704, 1856, 8960, "e4m3", True), (1, 3584, 4096, "bf16", True), (16, 3584, 4096, "bf16", True), (48, 896, 6976, "bf16", True))  # M, N, K


def gemms():
    for problem in NEAR_GEMM:
        yield gemm(*problem)
    for m in (1, 16, 64, 128, 512, 2048):
        for n, k in LAYERS:
            yield gemm(m, n, k, "bf16", True)
    for dtype, transpose_b in (("bf16", True), ("bf16", False), ("fp16", True), ("e4m3", True)):
        for m, n, k in hypercube(30, ((1, 4096), (256, 16384), (256, 16384)), f"gemm {dtype} {transpose_b}"):
            yield gemm(up(m, 1 if m < 64 else 8), up(n, 64), up(k, 64), dtype, transpose_b)


def scaled_gemm(m, n, k, dtype, scales):
    """The factors of a and b stand for 32 elements along K; shuffled ones are padded to 32 rows and 8 columns."""
    columns = k // (2 if dtype == "e2m1" else 1)
    factors = [(m, k // 32), (n, k // 32)]
    if scales == "shuffled":
        factors = [(up(rows, 32), up(blocks, 8)) for rows, blocks in factors]
    return m * n * k, (
        f"a={shape(m, columns)} b={shape(n, columns)} a_scale={shape(*factors[0])} b_scale={shape(*factors[1])} dtype={dtype} scales={scales}"
    )


NEAR_SCALED = ((3072, 3072, 2560, "e2m1", "shuffled"), (320, 2560, 2560, "e4m3", "shuffled"))  # M, N, K


def scaled_gemms():
    for problem in NEAR_SCALED:
        yield scaled_gemm(*problem)
    for dtype in ("e4m3", "e2m1"):
        for scales in ("plain", "shuffled"):
            for m in (16, 512, 4096):
                for n, k in ((6144, 4096), (4096, 14336)):  # Llama 3 8B
                    yield scaled_gemm(m, n, k, dtype, scales)
            for m, n, k in hypercube(12, ((16, 4096), (256, 16384), (512, 16384)), f"scaled_gemm {dtype} {scales}"):
                yield scaled_gemm(up(m, 1 if m < 64 else 8), up(n, 64), up(k, 256), dtype, scales)


WIDTHS = (128, 768, 1024, 2048, 4096, 5120, 7168, 8192, 16384)  # head norms, GPT-2, Llama 3, Qwen3, DeepSeek-V3


def norm(name, rows, width, dtype):
    tensors = {"x": shape(rows, width), "weight": width}
    if "backward" in name:
        tensors |= {"dout": shape(rows, width), "rstd": rows}
    if name == "layer_norm":
        tensors["bias"] = width
    if name == "layer_norm_backward":
        tensors["mean"] = rows
    return rows * width, " ".join(f"{key}={value}" for key, value in tensors.items()) + f" dtype={dtype}"


NEAR = {  # rows, width, type
    "layer_norm": (
        (4100, 160, "fp32"), (7900, 4096, "bf16"), (2, 128, "bf16"), (72, 128, "bf16"), (150, 1976, "bf16"), (8, 944, "bf16"),
        (1400, 10232, "fp32"), (46, 2080, "fp32"), (280, 2192, "fp32"), (1, 4992, "bf16"), (72, 5120, "bf16"),
    ),
    "rms_norm": ((3600, 232, "bf16"), (72, 128, "bf16"), (2, 5120, "bf16"), (72, 5120, "bf16")),
    "rms_norm_backward": ((4400, 176, "fp32"),),
}


def norms(name, counts, many_rows):
    for problem in NEAR.get(name, ()):
        yield norm(name, *problem)
    for rows in (1, 64, many_rows):
        for width in WIDTHS:
            yield norm(name, rows, width, "bf16")
    for dtype in ("bf16", "fp32"):
        for rows, width in hypercube(counts, ((1, many_rows), (128, 16384)), f"{name} {dtype}"):
            yield norm(name, rows, up(width, 8), dtype)


def topks():
    for rows, length, k in ((1, 128256, 50), (8, 151936, 20), (64, 129280, 1), (128, 32768, 64), (512, 4096, 16), (2048, 1024, 8)):
        yield rows * length, f"x={shape(rows, length)} k={k} dtype=bf16"


def topk_softmaxes():
    for rows in (1, 64, 4096):
        for length, k in ((8, 2), (128, 8), (256, 8), (512, 10)):  # Mixtral, Qwen3, DeepSeek-V3, Qwen3-Next
            yield rows * length, f"x={shape(rows, length)} k={k} dtype=bf16"


def write(name, cases):
    seen = sorted(set(cases))
    lines = [line for _, line in seen]
    head = f"# Written by tuning/design.py, which says how they are chosen; {len(lines)} problems, by the work in them.\n"
    (HERE / f"{name}.txt").write_text(head + "".join(f"{line}\n" for line in lines))
    print(f"{name}: {len(lines)}")


def main():
    types = ("bf16", "fp16")
    dims = ((128, 128, types), (64, 64, types), (192, 128, ("bf16",)), (96, 96, ("bf16",)))
    write("attention_forward", itertools.chain(attentions("attention_forward", dims, 20, 1 << 33, 1), near("attention_forward", NEAR_FORWARD)))
    dims = ((128, 128, types), (64, 64, types))
    write("attention_backward", itertools.chain(attentions("attention_backward", dims, 12, 1 << 32, 2), near("attention_backward", NEAR_BACKWARD)))
    write("gemm", gemms())
    write("scaled_gemm", scaled_gemms())
    for name in ("rms_norm", "layer_norm"):
        write(name, norms(name, 12, 8192))
    for name in ("rms_norm_backward", "layer_norm_backward"):
        write(name, norms(name, 8, 8192))
    write("topk", topks())
    write("topk_softmax", topk_softmaxes())


if __name__ == "__main__":
    main()
