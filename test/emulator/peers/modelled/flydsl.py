"""PyTorch's FlyDSL kernels on problems of any size. What is fixed when they are compiled decides what is there."""
import json
import pathlib
import struct

import numpy as np

from launch.recipe import ceil
from modelled.tensors import Unsupported
from recipes import flydsl_objects
from recipes.flydsl_objects import ints, tensor

BITS = dict(bf16=16, f16=16, f32=32, mxfp8=8, mxfp4=4)
MULTIPLE_OF_K = dict(bf16=32, f16=32, mxfp8=128, mxfp4=128)  # what a matrix instruction takes
COMPUTE_UNITS, LDS_BYTES, THREADS = 256, 163840, 2048  # of the device, and of a compute unit


def compiled(objects, op, **wanted):
    """(name, entry) of the objects of an operator with these compile-time values."""
    found = []
    for folder in (pathlib.Path(objects, which) for which in ("flydsl", "flydsl_sweep")):
        if (folder / "flydsl.json").is_file():
            found += [(name, entry | dict(path=folder / f"{name}.co")) for name, entry in json.loads((folder / "flydsl.json").read_text()).items()
                      if entry["op"] == op and all(entry.get(k) == v for k, v in wanted.items())]
    if not found:
        raise Unsupported(f"nothing was compiled for {op} with {wanted}")
    return found


def launch(hip, entry, grid, arguments):
    hip.load(entry["path"], entry["symbol"]).launch_params(grid, (entry["block"],), arguments)


def needs_tail(entry, k):
    """PyTorch's infer_has_k_tail."""
    steps, interleaved = ceil(k, entry["tile_k"]), entry["use_half_tile_interleaved"]
    return k % entry["tile_k"] != 0 or steps < entry["stages"] - 1 or (interleaved and steps % 2 != 0)


def takes(entry, k):
    """PyTorch's make_gemm_param_and_validate, of K."""
    return entry.get("tail", False) == needs_tail(entry, k) and not (entry["use_half_tile_interleaved"] and ceil(k, entry["tile_k"]) < 2)


def products(objects, m, n, k, kind, a_t, b_t):
    if k % MULTIPLE_OF_K[kind] or n % 8 or (a_t and m % 8):
        raise Unsupported(f"takes multiples of {MULTIPLE_OF_K[kind]} of K and of 8 of N")

    def launcher(entry):
        def run(hip):
            row = k * BITS[kind] // 8
            a, b, c = (hip.memory(size) for size in (m * row, n * row, m * n * 2))
            scales = [hip.memory(rows * k // 32) for rows in (m, n)] if kind.startswith("mx") else None
            flydsl_objects.launch_gemm(entry["path"], entry, hip, m, n, k, c, a, b, scales=scales)

        return run

    found = {name: launcher(entry) for name, entry in compiled(objects, "gemm", dtype=kind, a_t=a_t, b_t=b_t, bias=False) if takes(entry, k)}
    if not found:
        raise Unsupported(f"nothing was compiled for a K of {k}")
    return found


def gemm(objects, m, n, k, dtype, transpose_a, transpose_b):
    """C (m, n) = A B; `transpose_a`: A lies as (k, m); `transpose_b`: B lies as (n, k)."""
    if dtype not in ("bf16", "fp16"):
        raise Unsupported(f"compiled for 16-bit operands, not {dtype}")
    return products(objects, m, n, k, dict(fp16="f16").get(dtype, dtype), transpose_a, transpose_b)


def scaled_gemm(objects, m, n, k, dtypes, scales):
    kind = {("e4m3", "e4m3"): "mxfp8", ("e2m1", "e2m1"): "mxfp4"}.get(dtypes)
    if not kind or scales != "plain":
        raise Unsupported(f"takes e4m3 or e2m1 with plain scales; not {dtypes[0]} and {dtypes[1]}, {scales}")
    return products(objects, m, n, k, kind, False, True)


def persistent_grid(entry, m, n, groups):
    """PyTorch's get_grouped_gemm_persistent_grid_size."""
    tiles = [entry["tile_m"], entry["tile_n"]]
    lds = max(entry["stages"] * sum(tiles) * entry["tile_k"] * 2, tiles[0] * tiles[1] * 2)
    resident = min(max(LDS_BYTES // lds, 1), max(THREADS // entry["block"], 1))
    light = tiles[0] <= 64 and tiles[1] <= 128
    each = min(1 << (resident.bit_length() - 1), 8) if light else min(resident, 2)
    nonempty = min(groups, m)
    return max(1, min(COMPUTE_UNITS * each, (nonempty + (m - nonempty) // tiles[0]) * ceil(n, tiles[1])))


def grouped_gemm(objects, m, n, k, ends, dtype, transpose_b):
    """Groups along M; B lies as (groups, k, n) where it is bf16 or fp16, as (groups, n, k) where it is MXFP8."""
    groups, scaled = len(ends), dtype == "mxfp8"
    if transpose_b != scaled or dtype not in ("bf16", "fp16", "mxfp8"):
        raise Unsupported(f"takes B of bf16 or fp16 as (groups, k, n) and B of MXFP8 as (groups, n, k); not {dtype}")

    def on_device(hip):
        memory = hip.memory(4 * groups)
        memory.write(np.array(ends, np.int32))
        return memory

    def launcher(entry):
        def run(hip):
            size = 1 if scaled else 2
            a, b, c = (hip.memory(bytes_) for bytes_ in (m * k * size, groups * n * k * size, m * n * 2))
            if scaled:
                scales = [hip.memory(rows * k // 32) for rows in (m, groups * n)]
                programs = min(flydsl_objects.grouped_mxfp8_tiles(entry, m), COMPUTE_UNITS)
                flydsl_objects.launch_grouped_mxfp8(entry["path"], entry, hip, programs, m, c, a, b, *scales, on_device(hip))
            else:
                flydsl_objects.launch_grouped_gemm(entry["path"], entry, hip, persistent_grid(entry, m, n, groups), groups, m, n, k, c, a, b, on_device(hip))

        return run

    if scaled:
        return {name: launcher(entry) for name, entry in compiled(objects, "grouped_mxfp8", k=k, n=n, e=groups)
                if entry["persistent"] == (flydsl_objects.grouped_mxfp8_tiles(entry, m) > COMPUTE_UNITS)}
    found = {name: launcher(entry) for name, entry in compiled(objects, "grouped_gemm", dtype=dict(fp16="f16").get(dtype, dtype))
             if n % entry["tile_n"] == 0 and entry["tile_m"] <= max(128, m) and takes(entry, k)}
    if not found:
        raise Unsupported(f"nothing was compiled for N {n} and K {k}")
    return found


def rms_norm(objects, rows, n, dtype):
    rows, n = int(rows), int(n)
    (name, entry), = compiled(objects, "rmsnorm", dtype=dtype, n=n)

    def run(hip):
        row = n * BITS[dtype] // 8
        x, w, y = hip.memory(rows * row), hip.memory(row), hip.memory(rows * row)
        launch(hip, entry, (rows,),
               [*tensor(x, (rows,)), *tensor(w), *tensor(y, (rows,)), *tensor(hip.memory(rows * 4), (rows,)), struct.pack("<f", 1e-5)])

    return {name: run}


def topk(objects, rows, n, k):
    rows, n, k = int(rows), int(n), int(k)

    def launcher(name, entry):
        def run(hip):
            # How far it has to look depends on the values: random ones, the same in every 16 rows.
            block = np.random.default_rng(4).standard_normal((16, n)).astype(np.float32)
            x = hip.memory(ceil(rows, 16) * block.nbytes)
            for i in range(ceil(rows, 16)):
                x.write(block, i * block.nbytes)
            arguments = [*tensor(x, (rows,)), *tensor(hip.memory(rows * k * 4), (rows,)),
                         *tensor(hip.memory(rows * k * 8), (rows,))]
            register = entry["op"] == "topk_register"
            launch(hip, entry, (ceil(rows, 2) if register else rows,), arguments + (ints(rows) if register else []))

        return run

    found = []
    for op in ("topk_register", "topk_radix"):
        try:
            found += compiled(objects, op, n=n, k=k)
        except Unsupported:
            pass
    if not found:
        raise Unsupported(f"nothing was compiled for k {k} of {n}")
    return {name: launcher(name, entry) for name, entry in found}
