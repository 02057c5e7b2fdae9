"""Triton kernels used as test subjects. Only the compiler's output matters: each leans on another part of the ISA."""
import triton
import triton.language as tl


@triton.jit
def attention(q, k, v, o, lse, scale_log2, stride_b, stride_h, stride_s, heads, seq, D: tl.constexpr, BM: tl.constexpr,
              BN: tl.constexpr, CAUSAL: tl.constexpr):
    start = tl.program_id(0) * BM
    head = tl.program_id(1)
    base = (head // heads) * stride_b + (head % heads) * stride_h
    rows = start + tl.arange(0, BM)
    cols = tl.arange(0, D)
    keys = tl.arange(0, BN)
    qt = tl.load(q + base + rows[:, None] * stride_s + cols[None, :], mask=rows[:, None] < seq, other=0.0)
    top = tl.full([BM], float("-inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, D], tl.float32)
    end = tl.minimum(start + BM, seq) if CAUSAL else seq
    for j in range(0, end, BN):
        at = j + keys
        kt = tl.load(k + base + at[None, :] * stride_s + cols[:, None], mask=at[None, :] < seq, other=0.0)
        s = tl.dot(qt, kt) * scale_log2
        seen = at[None, :] < seq
        if CAUSAL:
            seen = seen & (at[None, :] <= rows[:, None])
        s = tl.where(seen, s, float("-inf"))
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        fade = tl.exp2(top - new)
        total = total * fade + tl.sum(p, 1)
        vt = tl.load(v + base + at[:, None] * stride_s + cols[None, :], mask=at[:, None] < seq, other=0.0)
        acc = tl.dot(p.to(vt.dtype), vt, acc * fade[:, None])
        top = new
    tl.store(o + base + rows[:, None] * stride_s + cols[None, :], (acc / total[:, None]).to(o.dtype.element_ty),
             mask=rows[:, None] < seq)
    tl.store(lse + head * seq + rows, (top + tl.log2(total)) * 0.6931471805599453, mask=rows < seq)


@triton.jit
def attention_backward(q, k, v, do, lse, delta, dq, dk, dv, scale, stride_h, stride_s, seq, D: tl.constexpr,
                       BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr):
    start = tl.program_id(0) * BN
    head = tl.program_id(1)
    base = head * stride_h
    keys = start + tl.arange(0, BN)
    cols = tl.arange(0, D)
    kt = tl.load(k + base + keys[:, None] * stride_s + cols[None, :])
    vt = tl.load(v + base + keys[:, None] * stride_s + cols[None, :])
    dkt = tl.zeros([BN, D], tl.float32)
    dvt = tl.zeros([BN, D], tl.float32)
    first = (start // BM) * BM if CAUSAL else 0
    for i in range(first, seq, BM):
        rows = i + tl.arange(0, BM)
        qt = tl.load(q + base + rows[:, None] * stride_s + cols[None, :])
        dot = tl.load(do + base + rows[:, None] * stride_s + cols[None, :])
        l = tl.load(lse + head * seq + rows)
        d = tl.load(delta + head * seq + rows)
        s = tl.dot(qt, tl.trans(kt)) * (scale * 1.4426950408889634)
        p = tl.exp2(s - l[:, None] * 1.4426950408889634)
        if CAUSAL:
            p = tl.where(rows[:, None] >= keys[None, :], p, 0.0)
        dvt = tl.dot(tl.trans(p.to(dot.dtype)), dot, dvt)
        dp = tl.dot(dot, tl.trans(vt))
        ds = (p * (dp - d[:, None]) * scale).to(qt.dtype)
        dkt = tl.dot(tl.trans(ds), qt, dkt)
        tl.atomic_add(dq + base + rows[:, None] * stride_s + cols[None, :], tl.dot(ds, kt), sem="relaxed")
    tl.store(dk + base + keys[:, None] * stride_s + cols[None, :], dkt.to(dk.dtype.element_ty))
    tl.store(dv + base + keys[:, None] * stride_s + cols[None, :], dvt.to(dv.dtype.element_ty))


@triton.jit
def matmul(a, b, c, m, n, k, stride_a, stride_b, stride_c, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
           GROUP: tl.constexpr):
    pid = tl.program_id(0)
    tiles_n = tl.cdiv(n, BN)
    tiles_m = tl.cdiv(m, BM)
    group = pid // (GROUP * tiles_n)
    height = min(tiles_m - group * GROUP, GROUP)
    tile_m = group * GROUP + (pid % (GROUP * tiles_n)) % height
    tile_n = (pid % (GROUP * tiles_n)) // height
    rows = tile_m * BM + tl.arange(0, BM)
    cols = tile_n * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    acc = tl.zeros([BM, BN], tl.int32 if a.dtype.element_ty == tl.int8 else tl.float32)
    for j in range(0, k, BK):
        at = tl.load(a + rows[:, None] * stride_a + (j + ks)[None, :], mask=(rows[:, None] < m) & ((j + ks)[None, :] < k), other=0.0)
        bt = tl.load(b + (j + ks)[:, None] * stride_b + cols[None, :], mask=((j + ks)[:, None] < k) & (cols[None, :] < n), other=0.0)
        acc = tl.dot(at, bt, acc)
    tl.store(c + rows[:, None] * stride_c + cols[None, :], acc.to(c.dtype.element_ty), mask=(rows[:, None] < m) & (cols[None, :] < n))


@triton.jit
def matmul_split_k(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros([BM, BN], tl.float32)
    for j in range(tl.program_id(2) * BK, k, BK * tl.num_programs(2)):
        ks = j + tl.arange(0, BK)
        acc = tl.dot(tl.load(a + rows[:, None] * k + ks[None, :]), tl.load(b + cols[None, :] * k + ks[:, None]), acc)
    tl.atomic_add(c + rows[:, None] * n + cols[None, :], acc.to(c.dtype.element_ty))


@triton.jit
def matmul_scaled(a, b, sa, sb, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, FA: tl.constexpr,
                  FB: tl.constexpr):
    """C = (A * scales) @ (B * scales)^T; A (m, k), B (n, k), FP4 packed two along k, scales e8m0 (rows, k/32)."""
    PA: tl.constexpr = 2 if FA == "e2m1" else 1
    PB: tl.constexpr = 2 if FB == "e2m1" else 1
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    ka = tl.arange(0, BK // PA)
    kb = tl.arange(0, BK // PB)
    ks = tl.arange(0, BK // 32)
    acc = tl.zeros([BM, BN], tl.float32)
    for j in range(0, k, BK):
        at = tl.load(a + rows[:, None] * (k // PA) + (j // PA + ka)[None, :])
        bt = tl.load(b + cols[None, :] * (k // PB) + (j // PB + kb)[:, None])
        ta = tl.load(sa + rows[:, None] * (k // 32) + (j // 32 + ks)[None, :])
        tb = tl.load(sb + cols[:, None] * (k // 32) + (j // 32 + ks)[None, :])
        acc = tl.dot_scaled(at, ta, FA, bt, tb, FB, acc)
    tl.store(c + rows[:, None] * n + cols[None, :], acc.to(c.dtype.element_ty))


@triton.jit
def softmax(x, y, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + at, mask=at < n, other=float("-inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + row * stride + at, (e / tl.sum(e, 0)).to(y.dtype.element_ty), mask=at < n)


@triton.jit
def layernorm(x, w, b, y, mean_out, rstd_out, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], tl.float32)
    for j in range(0, n, BLOCK):
        at = j + tl.arange(0, BLOCK)
        total += tl.load(x + row * n + at, mask=at < n, other=0.0).to(tl.float32)
    mean = tl.sum(total, 0) / n
    total = tl.zeros([BLOCK], tl.float32)
    for j in range(0, n, BLOCK):
        at = j + tl.arange(0, BLOCK)
        d = tl.where(at < n, tl.load(x + row * n + at, mask=at < n, other=0.0).to(tl.float32) - mean, 0.0)
        total += d * d
    rstd = 1 / tl.sqrt(tl.sum(total, 0) / n + eps)
    tl.store(mean_out + row, mean)
    tl.store(rstd_out + row, rstd)
    for j in range(0, n, BLOCK):
        at = j + tl.arange(0, BLOCK)
        v = tl.load(x + row * n + at, mask=at < n, other=0.0).to(tl.float32)
        r = (v - mean) * rstd * tl.load(w + at, mask=at < n).to(tl.float32) + tl.load(b + at, mask=at < n).to(tl.float32)
        tl.store(y + row * n + at, r.to(y.dtype.element_ty), mask=at < n)


@triton.jit
def scan_sort(x, sums, products, ordered, N: tl.constexpr):
    """Inclusive sums (int32), running maxima kept as float, and a bitonic sort of one row."""
    row = tl.program_id(0)
    at = tl.arange(0, N)
    v = tl.load(x + row * N + at)
    tl.store(sums + row * N + at, tl.cumsum(v, 0))
    tl.store(products + row * N + at, tl.cumsum(v.to(tl.float32) * 0.5, 0, reverse=True))
    tl.store(ordered + row * N + at, tl.sort(v, descending=True))


@triton.jit
def histogram(x, counts, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n, other=0)
    h = tl.histogram(v, BINS, mask=at < n)
    tl.atomic_add(counts + tl.arange(0, BINS), h)


@triton.jit
def random_uniform(y, ints, seed, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.rand(seed, at), mask=at < n)
    tl.store(ints + at, tl.randint(seed, at), mask=at < n)


@triton.jit
def elementwise(x, y, z, i, j, n, BLOCK: tl.constexpr):
    """Functions with long expansions: division, sqrt, exp, log, sin, erf; 64-bit integer division and remainder."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = at < n
    v = tl.load(x + at, mask=m, other=1.0)
    w = tl.load(y + at, mask=m, other=1.0)
    r = tl.math.div_rn(v, w) + tl.math.sqrt_rn(tl.abs(v)) + tl.exp(v) + tl.log(tl.abs(w)) + tl.sin(v) * tl.cos(w) + tl.erf(v)
    r = tl.math.fma(r, v, tl.floor(w) - tl.ceil(v)) + tl.minimum(v, w) * tl.maximum(v, w) + tl.rsqrt(tl.abs(w))
    tl.store(z + at, r, mask=m)
    p = tl.load(i + at, mask=m, other=1)
    q = tl.load(i + n + at, mask=m, other=1)
    tl.store(j + at, p // q, mask=m)
    tl.store(j + n + at, p % q, mask=m)
    tl.store(j + 2 * n + at, tl.umulhi(p.to(tl.uint64), q.to(tl.uint64)).to(tl.int64), mask=m)


@triton.jit
def convert(x, y, z, n, BLOCK: tl.constexpr):
    """float32 -> y's type -> float32, saturating where the type has no infinity."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n, other=0.0).to(y.dtype.element_ty)
    tl.store(y + at, v, mask=at < n)
    tl.store(z + at, v.to(tl.float32), mask=at < n)


@triton.jit
def double_dot(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros([BM, BN], tl.float64)
    for j in range(0, k, BK):
        ks = j + tl.arange(0, BK)
        acc = tl.dot(tl.load(a + rows[:, None] * k + ks[None, :]), tl.load(b + ks[:, None] * n + cols[None, :]), acc)
    tl.store(c + rows[:, None] * n + cols[None, :], acc)


@triton.jit
def atomics(x, index, fadd, imax, umin, xchg, cas, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = at < n
    v = tl.load(x + at, mask=m, other=0.0)
    to = tl.load(index + at, mask=m, other=0)
    tl.atomic_add(fadd + to, v, mask=m)
    # Triton 3.9 combines lanes of a signed atomic maximum with an unsigned one, so only values >= 0 are judged.
    tl.atomic_max(imax + to, tl.abs(v * 1000).to(tl.int32), mask=m)
    tl.atomic_min(umin + to, tl.abs(v * 1000).to(tl.uint32), mask=m)
    tl.atomic_xchg(xchg + at, v, mask=m)
    old = tl.atomic_cas(cas + tl.program_id(0), 0, 1)
    tl.atomic_add(cas + 64, old + 1)
