"""The objects of compile_triton.py. Arguments as Triton's own launcher passes them: the signature's, then two scratch pointers."""
import json
import math
import pathlib

import numpy as np

from launch import formats, judge, oracle
from launch.hip import pack
from launch.recipe import Recipe, ceil

KIND = {"*bf16": "bf16", "*fp16": "f16", "*fp32": "f32", "*fp64": "f64", "*fp8e4nv": "e4m3", "*fp8e5": "e5m2", "*fp8e4b8": "e4m3fnuz",
        "*fp8e5b16": "e5m2fnuz"}


class Subject:
    def __init__(self, folder, key, info):
        self.path = folder / f"{key}.co"
        self.info = info
        self.c = info["constants"]
        self.kinds = dict(zip(info["names"], (KIND.get(t, t) for t in info["types"])))
        self.rng = np.random.default_rng(17)

    def launch(self, hip, grid, *arguments):
        nothing = np.uint64(0)
        packed = [pack(np.float32(value) if t == "fp32" else value) for value, t in zip(arguments, self.info["types"], strict=True)]
        hip.load(self.path).launch_params(grid, (self.info["block"],), [*packed, nothing.tobytes(), nothing.tobytes()], self.info["shared"])

    def random(self, shape, name, spread=1.0):
        return formats.random_floats(self.rng, shape, self.kinds[name], spread)

    def output(self, hip, shape, name):
        return hip.buffer(formats.STORAGE.get(self.kinds[name], np.uint8), shape)


def attention(s, hip):
    aligned = "unaligned" not in s.path.name
    batches, heads, seq, d = 2, 2, 208 if aligned else 77, s.c["D"]
    pitch = heads * d + (0 if aligned else 1)
    tensors = []
    for name in "qkv":
        raw, exact = s.random((batches, seq, pitch), name)
        tensors.append((hip.buffer(raw), exact[..., :heads * d].reshape(batches, seq, heads, d).transpose(0, 2, 1, 3)))
    o, lse = s.output(hip, (batches, seq, pitch), "o"), hip.buffer(np.float32, (batches * heads, seq))
    scale = d**-0.5
    s.launch(hip, (ceil(seq, s.c["BM"]), batches * heads), *(t for t, _ in tensors), o, lse, scale * np.log2(np.e), seq * pitch, d, pitch,
             heads, seq)
    got = formats.values(o.read(), s.kinds["o"])[..., :heads * d].reshape(batches, seq, heads, d).transpose(0, 2, 1, 3)
    found = []
    for b in range(batches):
        q, k, v = (exact[b] for _, exact in tensors)
        want, want_lse, _ = oracle.forward(q, k, v, scale, oracle.seen(seq, seq, "bottom_right" if s.c["CAUSAL"] else "none"))
        found += [judge.close("O", got[b], want, 5e-3), judge.close("LSE", lse.read().reshape(batches, heads, seq)[b], want_lse, 1e-5)]
    return found[:2]


def attention_backward(s, hip):
    heads, seq, d = 2, 128, s.c["D"]
    (q, qe), (k, ke), (v, ve), (do, doe) = (s.random((heads, seq, d), n) for n in ("q", "k", "v", "do"))
    scale = d**-0.5
    out, lse, p = oracle.forward(qe, ke, ve, scale, oracle.seen(seq, seq, "top_left" if s.c["CAUSAL"] else "none"))
    dq = hip.buffer(np.zeros((heads, seq, d), np.float32))
    dk, dv = s.output(hip, (heads, seq, d), "dk"), s.output(hip, (heads, seq, d), "dv")
    delta = np.sum(out * doe, -1)
    inputs = map(hip.buffer, (q, k, v, do, lse.astype(np.float32), delta.astype(np.float32)))
    s.launch(hip, (seq // s.c["BN"], heads), *inputs, dq, dk, dv, scale, seq * d, d, seq)
    wants = oracle.backward(qe, ke, ve, doe, scale, p, out)
    return [judge.close(n, formats.values(b.read(), s.kinds[n]), w, 8e-3) for n, b, w in zip(("dq", "dk", "dv"), (dq, dk, dv), wants)]


def product_bound(kind):
    return {"bf16": 3e-3, "f16": 5e-4}.get(kind, 1e-6)


def matmul(s, hip):
    ragged = "ragged" in s.path.name
    m, n, k = (75, 53, 91) if ragged else (144, 160, 208)
    if s.kinds["a"] == "*i8":
        a, b = (s.rng.integers(-128, 128, x).astype(np.int8) for x in ((m, k), (k, n)))
        ae, be, c = a.astype(np.int64), b.astype(np.int64), hip.buffer(np.int32, (m, n))
    else:
        (a, ae), (b, be), c = s.random((m, k), "a"), s.random((k, n), "b"), s.output(hip, (m, n), "c")
    s.launch(hip, (ceil(m, s.c["BM"]) * ceil(n, s.c["BN"]),), hip.buffer(a), hip.buffer(b), c, m, n, k, k, n, n)
    if s.kinds["a"] == "*i8":
        return [judge.equal("C", c.read(), ae @ be)]
    # FP32 inputs may run as TF32 (10 mantissa bits) where the target has it.
    bound = 1e-3 if s.kinds["a"] == "f32" and "gfx942" in str(s.path) else product_bound(s.kinds["c"])
    return [judge.close("C", formats.values(c.read(), s.kinds["c"]), ae @ be, bound)]


def matmul_split_k(s, hip):
    m, n, k, split = 64, 128, 160, 3
    (a, ae), (b, be) = s.random((m, k), "a"), s.random((n, k), "b")
    c = hip.buffer(np.zeros((m, n), formats.STORAGE[s.kinds["c"]]))
    s.launch(hip, (m // s.c["BM"], n // s.c["BN"], split), hip.buffer(a), hip.buffer(b), c, m, n, k)
    return [judge.close("C", formats.values(c.read(), s.kinds["c"]), ae @ be.T, 1e-2 if s.kinds["c"] == "bf16" else 1e-6)]


def matmul_scaled(s, hip):
    m, n, k = 128, 256, 384
    sides = []
    for rows, kind in ((m, s.c["FA"]), (n, s.c["FB"])):
        raw, exact, scales = formats.random_scaled(s.rng, rows, k, kind)
        sides.append((hip.buffer(raw), hip.buffer(scales), exact))
    (a, sa, ae), (b, sb, be) = sides
    c = hip.buffer(np.float32, (m, n))
    s.launch(hip, (m // s.c["BM"], n // s.c["BN"]), a, b, sa, sb, c, m, n, k)
    return [judge.close("C", c.read(), ae @ be.T, 1e-6)]


def double_dot(s, hip):
    m, n, k = 64, 32, 48
    (a, ae), (b, be), c = s.random((m, k), "a"), s.random((k, n), "b"), hip.buffer(np.float64, (m, n))
    s.launch(hip, (m // s.c["BM"], n // s.c["BN"]), hip.buffer(a), hip.buffer(b), c, m, n, k)
    return [judge.close("C", c.read(), ae @ be, 1e-15)]


def softmax(s, hip):
    rows, n = 3, 784
    (x, xe), y = s.random((rows, 800), "x", 3), s.output(hip, (rows, 800), "y")
    s.launch(hip, (rows,), hip.buffer(x), y, 800, n)
    e = np.exp(xe[:, :n] - xe[:, :n].max(1, keepdims=True))
    got = formats.values(y.read(), s.kinds["y"])[:, :n]
    return [judge.close("y", got, e / e.sum(1, keepdims=True), product_bound(s.kinds["y"]))]


def layernorm(s, hip):
    rows, n, eps = 3, 777 if "ragged" in s.path.name else 1552, 1e-5
    (x, xe), (w, we), (b, be) = s.random((rows, n), "x", 2), s.random((n,), "w"), s.random((n,), "b")
    y, mean, rstd = s.output(hip, (rows, n), "y"), hip.buffer(np.float32, rows), hip.buffer(np.float32, rows)
    s.launch(hip, (rows,), hip.buffer(x), hip.buffer(w), hip.buffer(b), y, mean, rstd, n, eps)
    mu, r = xe.mean(1, keepdims=True), 1 / np.sqrt(xe.var(1, keepdims=True) + eps)
    return [judge.close("y", formats.values(y.read(), s.kinds["y"]), (xe - mu) * r * we + be, product_bound(s.kinds["y"])),
            judge.close("mean", mean.read(), mu[:, 0], 1e-5), judge.close("rstd", rstd.read(), r[:, 0], 1e-5)]


def scan_sort(s, hip):
    rows, n = 2, s.c["N"]
    x = s.rng.integers(-1000, 1000, (rows, n)).astype(np.int32)
    sums, halves, ordered = hip.buffer(np.int32, (rows, n)), hip.buffer(np.float32, (rows, n)), hip.buffer(np.int32, (rows, n))
    s.launch(hip, (rows,), hip.buffer(x), sums, halves, ordered)
    return [judge.equal("sums", sums.read(), np.cumsum(x, 1)),
            judge.equal("reverse", halves.read(), np.cumsum(x[:, ::-1] * 0.5, 1)[:, ::-1]),
            judge.equal("sort", ordered.read(), -np.sort(-x, 1))]


def histogram(s, hip):
    n = 3008
    x = s.rng.integers(0, s.c["BINS"], n).astype(np.int32)
    counts = hip.buffer(np.zeros(s.c["BINS"], np.int32))
    s.launch(hip, (ceil(n, s.c["BLOCK"]),), hip.buffer(x), counts, n)
    return [judge.equal("counts", counts.read(), np.bincount(x, minlength=s.c["BINS"]))]


def random_uniform(s, hip):
    n, seed = 2000, 0x1234ABCD & 0x7FFFFFFF
    y, ints = hip.buffer(np.float32, n), hip.buffer(np.int32, n)
    s.launch(hip, (ceil(n, s.c["BLOCK"]),), y, ints, seed, n)
    c = [np.arange(n, dtype=np.uint64)] + [np.zeros(n, np.uint64)] * 3
    k0, k1, low = seed, 0, np.uint64(0xFFFFFFFF)
    for _ in range(10):  # Philox4x32-10 (Salmon et al., SC 2011)
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [b >> np.uint64(32) ^ c[1] ^ np.uint64(k0), b & low, a >> np.uint64(32) ^ c[3] ^ np.uint64(k1), a & low]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    want = c[0].astype(np.uint32).view(np.int32)
    return [judge.equal("Philox", ints.read(), want),
            judge.close("uniform", y.read(), np.where(want < 0, -want.astype(np.int64) - 1, want) * 4.6566127342e-10, 1e-6)]


def elementwise(s, hip):
    n = 1008
    x, y = (s.rng.uniform(-3, 3, n).astype(np.float32) for _ in range(2))
    y = np.where(np.abs(y) < 0.1, np.float32(0.5), y)
    p = s.rng.integers(-2**62, 2**62, n) >> s.rng.integers(0, 60, n)
    q = s.rng.integers(1, 2**62, n) >> s.rng.integers(0, 55, n)
    q = np.where(q == 0, 7, q) * np.where(s.rng.integers(0, 2, n), 1, -1)
    z, j = hip.buffer(np.float32, n), hip.buffer(np.int64, 3 * n)
    s.launch(hip, (ceil(n, s.c["BLOCK"]),), hip.buffer(x), hip.buffer(y), z, hip.buffer(np.concatenate([p, q])), j, n)
    v, w = x.astype(np.float64), y.astype(np.float64)
    r = v / w + np.sqrt(np.abs(v)) + np.exp(v) + np.log(np.abs(w)) + np.sin(v) * np.cos(w) + np.array([math.erf(t) for t in v])
    r = r * v + (np.floor(w) - np.ceil(v)) + np.minimum(v, w) * np.maximum(v, w) + 1 / np.sqrt(np.abs(w))
    quotient = np.array([int(abs(int(a)) // abs(int(b))) * (1 if (a < 0) == (b < 0) else -1) for a, b in zip(p, q)])
    high = np.array([(int(a) % 2**64) * (int(b) % 2**64) >> 64 for a, b in zip(p, q)], np.uint64).view(np.int64)
    got = j.read().reshape(3, n)
    return [judge.close("functions", z.read(), r, 1e-6), judge.equal("quotient", got[0], quotient),
            judge.equal("remainder", got[1], p - quotient * q), judge.equal("high product", got[2], high)]


def convert(s, hip):
    n, kind = 4000, s.kinds["y"]
    x = (s.rng.standard_normal(n) * 2.0 ** s.rng.integers(-14, 5, n)).clip(-200, 200).astype(np.float32)
    x[:4] = [0, -0.0, 1, -1]
    y, z = s.output(hip, n, "y"), hip.buffer(np.float32, n)
    s.launch(hip, (ceil(n, s.c["BLOCK"]),), hip.buffer(x), y, z, n)
    if kind == "bf16":
        want = formats.from_bf16(formats.to_bf16(x))
    else:
        want = x.astype(np.float16) if kind == "f16" else formats.decode(formats.encode(x, kind), kind)
    return [judge.equal("back", z.read(), want), judge.equal("stored", formats.values(y.read(), kind), want)]


def atomics(s, hip):
    n, slots = 1008, 37
    x, index = s.rng.standard_normal(n).astype(np.float32), s.rng.integers(0, slots, n).astype(np.int32)
    fadd, imax = hip.buffer(np.zeros(slots, np.float32)), hip.buffer(np.full(slots, -(2**31), np.int32))
    umin, xchg, cas = hip.buffer(np.full(slots, 2**32 - 1, np.uint32)), hip.buffer(np.float32, n), hip.buffer(np.zeros(65, np.int32))
    programs = ceil(n, s.c["BLOCK"])
    s.launch(hip, (programs,), hip.buffer(x), hip.buffer(index), fadd, imax, umin, xchg, cas, n)
    total, top, low = np.zeros(slots), np.full(slots, -(2**31), np.int64), np.full(slots, 2**32 - 1, np.int64)
    np.add.at(total, index, x.astype(np.float64))
    scaled = (x * np.float32(1000)).astype(np.int64)
    np.maximum.at(top, index, np.abs(scaled))
    np.minimum.at(low, index, np.abs(scaled))
    flags = np.zeros(65, np.int32)
    flags[:programs], flags[64] = 1, programs
    return [judge.close("fadd", fadd.read(), total, 1e-6), judge.equal("max", imax.read(), top), judge.equal("min", umin.read(), low),
            judge.equal("exchange", xchg.read(), x), judge.equal("compare and swap", cas.read(), flags)]


def recipes(folder):
    folder = pathlib.Path(folder)
    for key, info in json.loads((folder / "triton.json").read_text()).items():
        arch = key.split("/")[0]
        run = globals()[info["kernel"]]
        yield Recipe(f"triton/{key}", f"triton/{arch}", arch, lambda hip, key=key, info=info, run=run: run(Subject(folder, key, info), hip))
