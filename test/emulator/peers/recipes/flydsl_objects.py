"""The objects of compile_flydsl.py.

A tensor argument is its pointer, then, if its layout is dynamic, the extents as i32 and the strides but the unit one as i64.
"""
import json
import struct

import numpy as np

from launch import formats, judge
from launch.recipe import Recipe, ceil


def tensor(buffer, extents=(), strides=()):
    made = [struct.pack("<Q", buffer.address)]
    if extents:
        made.append(struct.pack(f"<{len(extents)}i{len(strides)}q", *extents, *strides))
    return made


def ints(*values):
    return [struct.pack("<i", v) for v in values]


def load(path, info, hip):
    return hip.load(path, info["symbol"])


def rmsnorm(path, info, hip):
    rng = np.random.default_rng(2)
    rows, n, eps = 3, info["n"], 1e-5
    (x, xe), (w, we) = formats.random_floats(rng, (rows, n), info["dtype"], 2), formats.random_floats(rng, (n,), info["dtype"])
    y, rstd = hip.buffer(formats.STORAGE[info["dtype"]], (rows, n)), hip.buffer(np.float32, rows)
    load(path, info, hip).launch_params((rows,), (info["block"],), [
        *tensor(hip.buffer(x), (rows,)), *tensor(hip.buffer(w)), *tensor(y, (rows,)), *tensor(rstd, (rows,)), struct.pack("<f", eps)])
    r = 1 / np.sqrt((xe**2).mean(1, keepdims=True) + eps)
    bound = {"bf16": 3e-3, "f16": 5e-4, "f32": 1e-6}[info["dtype"]]
    return [judge.close("y", formats.values(y.read(), info["dtype"]), xe * r * we, bound), judge.close("rstd", rstd.read(), r[:, 0], 1e-6)]


def topk(path, info, hip):
    rng = np.random.default_rng(4)
    rows, n, k = 3, info["n"], info["k"]
    x = rng.standard_normal((rows, n)).astype(np.float32)
    if info["op"] == "topk_register" or info["deterministic"]:
        x = np.round(x * 8) / np.float32(8)  # many ties
    values, indices = hip.buffer(np.float32, (rows, k)), hip.buffer(np.int64, (rows, k))
    arguments = [*tensor(hip.buffer(x), (rows,)), *tensor(values, (rows,)), *tensor(indices, (rows,))]
    if info["op"] == "topk_register":
        load(path, info, hip).launch_params((ceil(rows, 2),), (info["block"],), [*arguments, *ints(rows)])
    else:
        load(path, info, hip).launch_params((rows,), (info["block"],), arguments)
    order = np.argsort(-x, 1, kind="stable")[:, :k]
    return [judge.equal("values", values.read(), np.take_along_axis(x, order, 1)), judge.equal("indices", indices.read(), order)]


def operand(rng, rows, k, kind):
    """(rows, k) codes, exact values with scales applied, scales or None."""
    if not kind.startswith("mx"):
        return *formats.random_floats(rng, (rows, k), kind), None
    return formats.random_scaled(rng, rows, k, "e2m1" if kind == "mxfp4" else "e4m3")


def launch_gemm(path, info, hip, m, n, k, c, a, b, bias=None, scales=None):
    """C (m, n) = A B, operands as the object wants them."""
    row = k // 2 if info["dtype"] == "mxfp4" else k  # bytes hold two FP4
    a_lead, b_lead = m if info["a_t"] else row, row if info["b_t"] else n
    out, last = tensor(c, (m, n), (n,)), []
    if scales:
        last = [struct.pack("<2I", 0x7F7F7F7F, 0x7F7F7F7F)] if "struct<(i32, i32)>" in info["signature"] else []
        for rows, buffer in zip((m, n), scales):
            last += tensor(buffer, (rows, k // 32), (k // 32,))
    arguments = [*out, *tensor(a, (m, row), (a_lead,)), *tensor(b, (row, n), (b_lead,)), *(tensor(bias, (n,)) if bias else out),
                 *ints(m, n, k, a_lead, b_lead), *last]
    load(path, info, hip).launch_params((ceil(m, info["tile_m"]) * ceil(n, info["tile_n"]),), (info["block"],), arguments)


def gemm(path, info, hip):
    rng = np.random.default_rng(6)
    kind, mx = info["dtype"], info["dtype"].startswith("mx")
    out_kind = "bf16" if mx else kind
    m, n = info["tile_m"] + 24, info["tile_n"] + 64
    k = info["tile_k"] * (info["stages"] + 2) + (32 if info["tail"] else 0)
    a, ae, sa = operand(rng, m, k, kind)
    b, be, sb = operand(rng, n, k, kind)
    c = hip.buffer(formats.STORAGE[out_kind], (m, n))
    want, bias = ae @ be.T, None
    if info["bias"]:
        raw, exact = formats.random_floats(rng, (n,), out_kind, 50)
        want, bias = want + exact, hip.buffer(raw)
    launch_gemm(path, info, hip, m, n, k, c, hip.buffer(a.T if info["a_t"] else a), hip.buffer(b if info["b_t"] else b.T), bias,
                (hip.buffer(sa), hip.buffer(sb)) if mx else None)
    return [judge.close("C", formats.values(c.read(), out_kind), want, {"bf16": 3e-3, "f16": 5e-4}[out_kind])]


def launch_grouped_gemm(path, info, hip, programs, groups, m, n, k, c, a, b, ends):
    """Rows of group g of C (m, n) = its rows of A (m, k) times B[g] (k, n); any number of programs does all of it."""
    load(path, info, hip).launch_params((programs,), (info["block"],), [
        *tensor(c, (m, n), (n,)), *tensor(a, (m, k), (k,)), *tensor(b, (groups, k, n), (k * n, n)), *tensor(ends, (groups,)), *ints(groups, n, k)])


def grouped_gemm(path, info, hip):
    rng = np.random.default_rng(8)
    kind = info["dtype"]
    ends = np.array([70, 70, 200, 215], np.int32)
    m, k, groups = 220, info["tile_k"] * 4, len(ends)
    n = info["tile_n"] * 2  # whole tiles: its loads of B past them are not guarded, which PyTorch knows
    (a, ae), (b, be) = formats.random_floats(rng, (m, k), kind), formats.random_floats(rng, (groups, k, n), kind)
    c = hip.buffer(formats.STORAGE[kind], (m, n))
    poison = formats.values(c.read(), kind)
    launch_grouped_gemm(path, info, hip, 3, groups, m, n, k, c, hip.buffer(a), hip.buffer(b), hip.buffer(ends))
    got = formats.values(c.read(), kind)
    found = [judge.equal("rows past the end", got[ends[-1]:], poison[ends[-1]:])]
    for g, (first, last) in enumerate(zip([0, *ends[:-1]], ends)):
        if last > first:
            found.append(judge.close(f"group {g}", got[first:last], ae[first:last] @ be[g], {"bf16": 3e-3, "f16": 5e-4}[kind]))
    return found


def grouped_mxfp8_tiles(info, m):
    """As many tiles as there can be, however the rows are shared out."""
    nonempty = min(info["e"], m)
    return (nonempty + (m - nonempty) // info["block_r"]) * ceil(info["n"], info["block_c"])


def launch_grouped_mxfp8(path, info, hip, programs, m, c, a, b, scales_a, scales_b, ends):
    n, k, groups = info["n"], info["k"], info["e"]
    load(path, info, hip).launch_params((programs,), (info["block"],), [
        *tensor(a, (m * k,)), *tensor(b, (groups * n * k,)), *tensor(c, (m * n,)), *tensor(scales_a, (m * k // 32,)),
        *tensor(scales_b, (groups * n * k // 32,)), *tensor(ends, (groups,)), *ints(ceil(n, info["block_c"]), m, n)])


def grouped_mxfp8(path, info, hip):
    rng = np.random.default_rng(9)
    k, n, groups = info["k"], info["n"], info["e"]
    ends = np.array([70, 70, 200, 290], np.int32)
    m = 300
    a, ae, sa = operand(rng, m, k, "mxfp8")
    b, be, sb = operand(rng, groups * n, k, "mxfp8")
    c = hip.buffer(np.uint16, (m, n))
    poison = c.read()
    programs = 3 if info["persistent"] else grouped_mxfp8_tiles(info, m)
    launch_grouped_mxfp8(path, info, hip, programs, m, c, *(hip.buffer(x) for x in (a, b, sa, sb, ends)))
    got = c.read()
    found = [judge.equal("rows past the end", got[ends[-1]:], poison[ends[-1]:])]
    be = be.reshape(groups, n, k)
    for g, (first, last) in enumerate(zip([0, *ends[:-1]], ends)):
        if last > first:
            found.append(judge.close(f"group {g}", formats.values(got[first:last], "bf16"), ae[first:last] @ be[g].T, 3e-3))
    return found


RUNS = {"rmsnorm": rmsnorm, "topk_register": topk, "topk_radix": topk, "gemm": gemm, "grouped_gemm": grouped_gemm,
        "grouped_mxfp8": grouped_mxfp8}


def recipes(folder):
    for where in (folder, folder.with_name("flydsl_sweep")):
        if not (where / "flydsl.json").is_file():
            continue
        for name, info in json.loads((where / "flydsl.json").read_text()).items():
            yield Recipe(f"{where.name}/{name}", f"{where.name}/{info['op']}", "gfx950",
                         lambda hip, path=where / f"{name}.co", info=info: RUNS[info["op"]](path, info, hip))
