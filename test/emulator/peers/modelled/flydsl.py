"""PyTorch's FlyDSL kernels on problems of any size. What is fixed when they are compiled decides what is there."""
import json
import pathlib
import struct

import numpy as np

from launch.recipe import ceil
from modelled.tensors import Unsupported
from recipes.flydsl_objects import ints, launch_gemm, tensor

BITS = dict(bf16=16, f16=16, f32=32, mxfp8=8, mxfp4=4)


def compiled(objects, op, **wanted):
    """(name, entry) of the objects of an operator with these compile-time values."""
    index = json.loads(pathlib.Path(objects, "flydsl", "flydsl.json").read_text())
    found = [(name, entry) for name, entry in index.items() if entry["op"] == op and all(entry.get(k) == v for k, v in wanted.items())]
    if not found:
        raise Unsupported(f"nothing was compiled for {op} with {wanted}")
    return found


def launch(hip, objects, name, entry, grid, arguments):
    hip.load(pathlib.Path(objects, "flydsl", f"{name}.co"), entry["symbol"]).launch_params(grid, (entry["block"],), arguments)


def gemm(objects, m, n, k, dtype, transpose_a="0", transpose_b="0"):
    """C (m, n) = A B; `transpose_a`: A lies as (k, m); `transpose_b`: B lies as (n, k)."""
    m, n, k, a_t, b_t = int(m), int(n), int(k), transpose_a == "1", transpose_b == "1"

    def launcher(name, entry):
        def run(hip):
            row = k * BITS[dtype] // 8
            a, b, c = (hip.memory(size) for size in (m * row, n * row, m * n * 2))
            scales = [hip.memory(rows * k // 32) for rows in (m, n)] if dtype.startswith("mx") else None
            launch_gemm(pathlib.Path(objects, "flydsl", f"{name}.co"), entry, hip, m, n, k, c, a, b, scales=scales)

        return run

    found = [(name, entry) for name, entry in compiled(objects, "gemm", dtype=dtype, a_t=a_t, b_t=b_t)
             if not entry["bias"] and (entry["tail"] or k % entry["tile_k"] == 0)]
    if not found:
        raise Unsupported(f"nothing was compiled for a K of {k}")
    return {name: launcher(name, entry) for name, entry in found}


def rms_norm(objects, rows, n, dtype):
    rows, n = int(rows), int(n)
    (name, entry), = compiled(objects, "rmsnorm", dtype=dtype, n=n)

    def run(hip):
        row = n * BITS[dtype] // 8
        x, w, y = hip.memory(rows * row), hip.memory(row), hip.memory(rows * row)
        launch(hip, objects, name, entry, (rows,),
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
            launch(hip, objects, name, entry, (ceil(rows, 2) if register else rows,), arguments + (ints(rows) if register else []))

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
