"""Triton's matrix products (fetch/triton_gemm.py) on problems of any size, in each of their configurations."""
import numpy as np

from launch.recipe import ceil
from modelled.tensors import Unsupported
from modelled.triton import LARGEST_TENSOR, Objects

XCDS = 8
COMPUTE_UNITS = 256
BITS = dict(bf16=16, fp16=16, fp32=32, e4m3=8, e2m1=4, mxfp8=8)


def objects_of(folder):
    return Objects(folder, "triton_gemm")


def tiles(constants, m, n):
    return ceil(m, constants["BM"]) * ceil(n, constants["BN"])


def launch_gemm(hip, objects, name, m, n, k, a, b, c, parts):
    """`parts`: FP32 scratch for the products of a split K, (splits, m, n)."""
    entry = objects.index["gemm"][name]
    constants, splits = entry["constants"], entry["constants"]["SPLITS"]
    leads = (m if constants["A_T"] else k), (k if constants["B_T"] else n), n
    objects.launch(hip, "gemm", name, (tiles(constants, m, n) * splits,), a, b, parts if splits > 1 else c, m, n, k, *leads)
    if splits > 1:
        joined = f"{entry['problem']['dtype']}_splits{splits}"
        objects.launch(hip, "join", joined, (ceil(m * n, objects.index["join"][joined]["constants"]["BLOCK"]),), parts, c, m * n)


def launch_scaled_gemm(hip, objects, name, m, n, k, a, b, scales_a, scales_b, c, lead):
    """`lead`: scales of a row."""
    entry = objects.index["scaled_gemm"][name]
    rows = [k * BITS[entry["problem"][side]] // 8 for side in ("dtype_a", "dtype_b")]
    objects.launch(hip, "scaled_gemm", name, (tiles(entry["constants"], m, n),), a, b, scales_a, scales_b, c, m, n, k, *rows, lead, n)


def grid_of_groups(constants, m, n, groups):
    """Programs enough for a tile each, however the rows are shared out."""
    nonempty = min(groups, m)
    return ceil((nonempty + (m - nonempty) // constants["BM"]) * ceil(n, constants["BN"]), XCDS) * XCDS


def launch_grouped_gemm(hip, objects, name, programs, groups, m, n, k, a, b, c, scales_a, scales_b, ends):
    constants = objects.index["grouped_gemm"][name]["constants"]
    objects.launch(hip, "grouped_gemm", name, (programs,), a, b, c, scales_a, scales_b, ends, groups, m, n, k, k, k if constants["B_T"] else n, n)


def refuse_unless(condition, what):
    if not condition:
        raise Unsupported(what)


def gemm(folder, m, n, k, dtype, layout):
    refuse_unless(2 * max(m * k, k * n, m * n) <= LARGEST_TENSOR, "compiled for tensors of up to 2 GiB")
    refuse_unless(n % 16 == 0 and k % 16 == 0 and (m % 16 == 0 or layout[0] == "n"), "compiled for rows that are multiples of 16 elements")
    objects = objects_of(folder)

    def suits(constants):
        if constants["TAIL"] == (k % constants["BK"] == 0):
            return False
        splits = constants["SPLITS"]
        return splits == 1 or (k >= splits * constants["BK"] and tiles(constants, m, n) * splits <= 4 * COMPUTE_UNITS and 4 * splits * m * n <= LARGEST_TENSOR)

    def launcher(name):
        def run(hip):
            a, b, c = (hip.memory(2 * size) for size in (m * k, k * n, m * n))
            launch_gemm(hip, objects, name, m, n, k, a, b, c, hip.memory(4 * m * n * objects.index["gemm"][name]["constants"]["SPLITS"]))

        return run

    found = {name: launcher(name) for name in objects.of("gemm", dtype=dtype, layout=layout) if suits(objects.index["gemm"][name]["constants"])}
    refuse_unless(found, f"not compiled for {dtype}, {layout}, K {k}")
    return found


def scaled_gemm(folder, m, n, k, dtype_a, dtype_b, scales):
    refuse_unless(max(m * k, k * n, 2 * m * n) <= LARGEST_TENSOR, "compiled for tensors of up to 2 GiB")
    refuse_unless(n % 16 == 0, "compiled for rows of C that are multiples of 16 elements")
    objects = objects_of(folder)

    def launcher(name):
        constants = objects.index["scaled_gemm"][name]["constants"]

        def run(hip):
            lead = ceil(k // 32, 8) * 8 if constants["SHUFFLED"] else k // 32
            a, b = (hip.memory(rows * k * BITS[dtype] // 8) for rows, dtype in ((m, dtype_a), (n, dtype_b)))
            scales_a, scales_b = (hip.memory(ceil(rows, 256) * 256 * lead) for rows in (m, n))
            launch_scaled_gemm(hip, objects, name, m, n, k, a, b, scales_a, scales_b, hip.memory(2 * m * n), lead)

        return run

    # Who has plain scales cannot use the kernels for shuffled ones without another launch; the other way round nobody would.
    found = {name: launcher(name) for name in objects.of("scaled_gemm", dtype_a=dtype_a, dtype_b=dtype_b, scales=scales)
             if k % objects.index["scaled_gemm"][name]["constants"]["BK"] == 0}
    refuse_unless(found, f"not compiled for {dtype_a} times {dtype_b}, {scales} scales, K {k}")
    return found


def grouped_gemm(folder, m, n, k, ends, dtype, transpose_b):
    groups = len(ends)
    refuse_unless(n % 16 == 0, "compiled for rows of C that are multiples of 16 elements")
    refuse_unless(max(m * k, k * n, m * n) * 2 <= LARGEST_TENSOR, "compiled for tensors, and matrices of a group, of up to 2 GiB")
    objects = objects_of(folder)
    names = objects.of("grouped_gemm", dtype=dtype, transpose_b=transpose_b)
    fitting = [objects.index["grouped_gemm"][name]["constants"]["GROUPS"] for name in names]
    smallest = min((count for count in fitting if count >= groups), default=0)

    def launcher(name, programs):
        def run(hip):
            size = BITS[dtype] // 8
            a, b, c = (hip.memory(bytes_) for bytes_ in (m * k * size, groups * n * k * size, 2 * m * n))
            scales_a, scales_b = (hip.memory(rows * k // 32) for rows in (m, groups * n))
            on_device = hip.memory(4 * groups)
            on_device.write(np.array(ends, np.int32))
            launch_grouped_gemm(hip, objects, name, programs, groups, m, n, k, a, b, c, scales_a, scales_b, on_device)

        return run

    found = {}
    for name in names:
        constants = objects.index["grouped_gemm"][name]["constants"]
        if constants["GROUPS"] == smallest and k % constants["BK"] == 0:
            most = grid_of_groups(constants, m, n, groups)
            for each in (1, 2):  # persistent, so many programs a compute unit
                if each * COMPUTE_UNITS < most:
                    found[f"{name}_persistent{each}"] = launcher(name, each * COMPUTE_UNITS)
            found[name] = launcher(name, most)
    refuse_unless(found, f"not compiled for {groups} groups of {dtype}, K {k}")
    return found
