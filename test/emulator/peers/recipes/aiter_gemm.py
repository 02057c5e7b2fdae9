"""AITER's matrix products for gfx950: bf16 to FP32, and MXFP4 (32 values share an E8M0 scale) to bf16."""
import pathlib

import numpy as np

from launch import formats, judge
from launch.recipe import Recipe, ceil
from recipes.aiter_tensors import HSA


def launch_bf16gemm(hip, path, m, n, k, d, a, b, split):
    """D (m, n) = A (m, k) B (n, k)^T; the parts of a split K are added to D."""
    tile = int(path.name.split("_")[3].split("x")[0])
    hip.load(path).launch_named((n // 64, ceil(m, tile), split), (256,), dict(
        D=d, A=a, B=b, alpha=1.0, beta=0.0, strideC0=n * 4, strideA0=k * 2, strideB0=k * 2, Mdim=m, Ndim=n, Kdim=k, splitk=split))


def bf16gemm(path, m, n, k, split):
    def run(hip):
        rng = np.random.default_rng(3)
        a, ae = formats.random_floats(rng, (m, k), "bf16")
        b, be = formats.random_floats(rng, (n, k), "bf16")
        d = hip.buffer(np.zeros((m, n), np.float32))
        launch_bf16gemm(hip, path, m, n, k, d, hip.buffer(a), hip.buffer(b), split)
        return [judge.close("D", d.read(), ae @ be.T, 1e-6)]  # products of bf16 are exact in FP32; only sums round

    return run


def shuffled_scales(scales):
    """Padded to multiples of (256, 8) and reordered to the way the matrix instructions take them."""
    m, n = ceil(scales.shape[0], 256) * 256, ceil(scales.shape[1], 8) * 8
    whole = np.full((m, n), 127, np.uint8)
    whole[:scales.shape[0], :scales.shape[1]] = scales
    return np.ascontiguousarray(whole.reshape(m // 32, 2, 16, n // 8, 2, 4).transpose(0, 3, 5, 2, 4, 1)).reshape(m, n)


def launch_f4gemm(hip, path, m, n, k, d, a, b, scales_a, scales_b, log2_split=0):
    """The object `path`: D (m, n) = A (m, k) B (n, k)^T, operands in the kernel's own layouts."""
    tile_m, tile_n = tile_of(path)
    scale_stride, parts = ceil(k // 32, 8) * 8, 1
    values = dict(D=d, C=d, A=a, B=b, alpha=1.0, beta=0.0, strideC0=n, strideA0=k, strideB0=k, Mdim=m, Ndim=n, Kdim=k, ScaleA=scales_a,
                  ScaleB=scales_b, strideScaleA0=scale_stride, strideScaleB0=scale_stride)
    if "noBpreShuffle" not in path.name:
        values["log2_k_split"] = log2_split
        parts = ceil(k, ceil(k >> log2_split, 256) * 256)
    hip.load(path).launch_named((ceil(n, tile_n), ceil(m, tile_m), parts), (256,), values)


def f4gemm(path, m, n, k, log2_split=0):
    def run(hip):
        rng = np.random.default_rng(5)
        shuffle = "noBpreShuffle" not in path.name
        tile_m, _ = tile_of(path)
        a, b = rng.integers(0, 16, (m, k)).astype(np.uint8), rng.integers(0, 16, (n, k)).astype(np.uint8)
        sa, sb = (rng.integers(120, 134, (rows, k // 32)).astype(np.uint8) for rows in (m, n))
        ae, be = (formats.decode(codes, "e2m1") * np.repeat(formats.e8m0(scales), 32, 1) for codes, scales in ((a, sa), (b, sb)))
        padding = padding_of(path)
        rows = ceil(m, padding) * padding
        # The parts of a split K are added to D.
        d = hip.buffer(np.zeros((rows, n), np.uint16) if log2_split else np.full((rows, n), 0xA5A5, np.uint16))
        b_bytes = formats.pack_fp4(b)
        if shuffle:
            b_bytes = np.ascontiguousarray(b_bytes.reshape(n // 16, 16, k // 64, 2, 16).transpose(0, 2, 3, 1, 4)).reshape(n, k // 2)
        # The kernels read whole tiles of A; rows past M must be readable, their content is dropped.
        a_bytes = np.zeros((ceil(m, tile_m) * tile_m, k // 2), np.uint8)
        a_bytes[:m] = formats.pack_fp4(a)
        launch_f4gemm(hip, path, m, n, k, d, hip.buffer(a_bytes), hip.buffer(b_bytes), hip.buffer(shuffled_scales(sa)),
                      hip.buffer(shuffled_scales(sb)), log2_split)
        # D is rounded to bf16, and with a split K so is every partial sum.
        return [judge.close("D", formats.values(d.read()[:m], "bf16"), ae @ be.T, 8e-3 if log2_split else 4e-3)]

    return run


def padding_of(path):
    """D has a multiple of it rows: noBpreShuffle describes D with num_records = -16 and stores whole tiles."""
    return 32 if "noBpreShuffle" not in path.name else next(tile_of(path))


def tile_of(path):
    return map(int, path.stem.split("_")[-1].split("x"))


def recipes(folder):
    for path in sorted(pathlib.Path(folder, HSA, "bf16gemm").glob("*.co")):
        yield Recipe(f"aiter/{path.stem}", "aiter/bf16gemm", "gfx950", bf16gemm(path, 70, 192, 256, 1))
        yield Recipe(f"aiter/{path.stem}/split", "aiter/bf16gemm", "gfx950", bf16gemm(path, 96, 128, 512, 4))
    for path in sorted(pathlib.Path(folder, HSA, "f4gemm").glob("*.co")):
        tile_m, tile_n = tile_of(path)
        yield Recipe(f"aiter/{path.stem}", "aiter/f4gemm", "gfx950", f4gemm(path, tile_m + 9, tile_n, 512))
        if "noBpre" not in path.stem:
            yield Recipe(f"aiter/{path.stem}/split", "aiter/f4gemm", "gfx950", f4gemm(path, 50, tile_n, 1024, 1))
