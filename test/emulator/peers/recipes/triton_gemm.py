"""The objects of compile_triton_gemm.py, launched as timing.py launches them."""
import numpy as np

from launch import formats, judge
from launch.recipe import Recipe, ceil
from modelled import triton_gemm
from recipes.aiter_gemm import shuffled_scales

# One rounding of the result; sums in FP32.
BOUND = {"bf16": 3e-3, "fp16": 5e-4}
KIND = {"bf16": "bf16", "fp16": "f16"}


def gemm(objects, name):
    entry = objects.index["gemm"][name]
    constants, dtype = entry["constants"], entry["problem"]["dtype"]

    def run(hip):
        rng = np.random.default_rng(21)
        splits, bk = constants["SPLITS"], constants["BK"]
        # More than one tile in each direction, the last ones incomplete; shares of K that differ.
        m, n = constants["BM"] * 2 + 7 + 9 * constants["A_T"], constants["BN"] + 48
        k = bk * (5 if splits == 1 else splits + 3) + (16 if constants["TAIL"] else 0)
        (a, ae), (b, be) = (formats.random_floats(rng, shape, KIND[dtype]) for shape in ((m, k), (n, k)))
        c, parts = hip.buffer(formats.STORAGE[KIND[dtype]], (m, n)), hip.buffer(np.float32, (splits, m, n))
        a, b = a.T if constants["A_T"] else a, b if constants["B_T"] else b.T
        triton_gemm.launch_gemm(hip, objects, name, m, n, k, hip.buffer(a), hip.buffer(b), c, parts)
        return [judge.close("C", formats.values(c.read(), KIND[dtype]), ae @ be.T, BOUND[dtype])]

    return run


def scaled_gemm(objects, name):
    constants = objects.index["scaled_gemm"][name]["constants"]

    def run(hip):
        rng = np.random.default_rng(22)
        m, n, k = constants["BM"] * 2 + 7, constants["BN"] + 48, constants["BK"] * 3
        (a, ae, sa), (b, be, sb) = (formats.random_scaled(rng, rows, k, constants[kind]) for rows, kind in ((m, "FA"), (n, "FB")))
        c, lead = hip.buffer(np.uint16, (m, n)), ceil(k // 32, 8) * 8 if constants["SHUFFLED"] else k // 32
        if constants["SHUFFLED"]:
            sa, sb = shuffled_scales(sa), shuffled_scales(sb)
        triton_gemm.launch_scaled_gemm(hip, objects, name, m, n, k, *(hip.buffer(x) for x in (a, b, sa, sb)), c, lead)
        return [judge.close("C", formats.values(c.read(), "bf16"), ae @ be.T, BOUND["bf16"])]

    return run


def grouped_gemm(objects, name, persistent):
    entry = objects.index["grouped_gemm"][name]
    constants, dtype = entry["constants"], entry["problem"]["dtype"]

    def run(hip):
        rng = np.random.default_rng(23)
        # Empty groups, one of a row, one of several tiles; rows past the end belong to nobody.
        ends = np.array([0, 70, 70, 71, 300, 315], np.int32)
        m, n, k, groups = 320, constants["BN"] + 48, constants["BK"] * 3, len(ends)
        if dtype == "mxfp8":
            (a, ae, sa), (b, be, sb) = (formats.random_scaled(rng, rows, k, "e4m3") for rows in (m, groups * n))
        else:
            (a, ae), (b, be) = (formats.random_floats(rng, (rows, k), KIND[dtype]) for rows in (m, groups * n))
            sa = sb = np.zeros(1, np.uint8)
        be = be.reshape(groups, n, k)
        c = hip.buffer(np.uint16, (m, n))
        poison = c.read()
        if not constants["B_T"]:
            b = np.ascontiguousarray(b.reshape(groups, n, k).transpose(0, 2, 1))
        programs = triton_gemm.XCDS if persistent else triton_gemm.grid_of_groups(constants, m, n, groups)
        triton_gemm.launch_grouped_gemm(hip, objects, name, programs, groups, m, n, k, hip.buffer(a), hip.buffer(b), c, hip.buffer(sa), hip.buffer(sb),
                                        hip.buffer(ends))
        got = c.read()
        found = [judge.equal("rows past the end", got[ends[-1]:], poison[ends[-1]:])]
        for g, (first, last) in enumerate(zip([0, *ends[:-1]], ends)):
            if last > first:
                found.append(judge.close(f"group {g}", formats.values(got[first:last], "bf16"), ae[first:last] @ be[g].T, BOUND["bf16"]))
        return found

    return run


def recipes(folder):
    objects = triton_gemm.objects_of(folder.parent)
    for kind, make in (("gemm", gemm), ("scaled_gemm", scaled_gemm)):
        for name in objects.index[kind]:
            yield Recipe(f"triton_gemm/{kind}_{name}", f"triton_gemm/{kind}", "gfx950", make(objects, name))
    for name in objects.index["grouped_gemm"]:
        for persistent in (False, True):
            yield Recipe(f"triton_gemm/grouped_gemm_{name}" + ("_persistent" if persistent else ""), "triton_gemm/grouped_gemm", "gfx950",
                         grouped_gemm(objects, name, persistent))
