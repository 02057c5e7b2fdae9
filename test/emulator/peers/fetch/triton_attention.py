"""Flash attention forward in Triton, in the form of its tutorial for AMD: what Triton users would run, as a peer in the timing model.

Streaming softmax over key blocks; blocks that no mask touches run in a loop of their own. Work-groups of one head have the same id modulo the
XCDs where the number of heads allows it; under a causal mask the longest tiles start first.
"""
import triton
import triton.language as tl


@triton.jit
def steps(acc, total, top, qt, k, v, first, last, rows, keys, cols, stride_ks, stride_vs, seq_k, offset, scale_log2, BN: tl.constexpr,
          MASKED: tl.constexpr, CAUSAL: tl.constexpr):
    kp = k + (first + keys)[None, :] * stride_ks + cols[:, None]
    vp = v + (first + keys)[:, None] * stride_vs + cols[None, :]
    for j in range(first, last, BN):
        if MASKED:
            inside = (j + keys) < seq_k
            kt = tl.load(kp, mask=inside[None, :], other=0.0)
        else:
            kt = tl.load(kp)
        s = tl.dot(qt, kt)
        if MASKED:
            seen = inside[None, :]
            if CAUSAL:
                seen = seen & ((j + keys)[None, :] <= rows[:, None] + offset)
            s = tl.where(seen, s, float("-inf"))
        new = tl.maximum(top, tl.max(s, 1) * scale_log2)
        base = tl.where(new == float("-inf"), 0.0, new) if MASKED else new
        p = tl.exp2(s * scale_log2 - base[:, None])
        fade = tl.exp2(top - base)
        total = total * fade + tl.sum(p, 1)
        acc = acc * fade[:, None]
        if MASKED:
            vt = tl.load(vp, mask=inside[:, None], other=0.0)
        else:
            vt = tl.load(vp)
        acc = tl.dot(p.to(vt.dtype), vt, acc)
        top = new
        kp += BN * stride_ks
        vp += BN * stride_vs
    return acc, total, top


@triton.jit
def flash_attention(q, k, v, o, lse, scale_log2, stride_qb, stride_qh, stride_qs, stride_kb, stride_kh, stride_ks, heads_q, heads_kv, seq_q,
                    seq_k, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr):
    """q, o (B, S, H, D) with the strides of q; k, v with those of k. Causal masks are aligned with the bottom right."""
    head = tl.program_id(0)
    tile = tl.num_programs(1) - 1 - tl.program_id(1) if CAUSAL else tl.program_id(1)
    batch = tl.program_id(2)
    q_base = batch * stride_qb + head * stride_qh
    k_base = batch * stride_kb + (head // (heads_q // heads_kv)) * stride_kh
    rows = tile * BM + tl.arange(0, BM)
    cols = tl.arange(0, D)
    keys = tl.arange(0, BN)
    inside = rows[:, None] < seq_q
    q_at = q_base + rows[:, None] * stride_qs + cols[None, :]
    qt = tl.load(q + q_at, mask=inside, other=0.0)
    offset = seq_k - seq_q
    end = tl.maximum(tl.minimum(tile * BM + BM + offset, seq_k), 0) if CAUSAL else seq_k
    whole = (tl.maximum(tl.minimum(tile * BM + 1 + offset, seq_k), 0) if CAUSAL else seq_k) // BN * BN
    top = tl.full([BM], float("-inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, D], tl.float32)
    acc, total, top = steps(acc, total, top, qt, k + k_base, v + k_base, 0, whole, rows, keys, cols, stride_ks, stride_ks, seq_k, offset,
                            scale_log2, BN, False, CAUSAL)
    acc, total, top = steps(acc, total, top, qt, k + k_base, v + k_base, whole, end, rows, keys, cols, stride_ks, stride_ks, seq_k, offset,
                            scale_log2, BN, True, CAUSAL)
    some = total > 0.0
    tl.store(o + q_at, (acc / tl.where(some, total, 1.0)[:, None]).to(o.dtype.element_ty), mask=inside)
    tl.store(lse + (batch * heads_q + head) * seq_q + rows, tl.where(some, (top + tl.log2(total)) * 0.6931471805599453, float("-inf")),
             mask=rows < seq_q)


@triton.jit
def fill_zero(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.zeros([BLOCK], tl.float32), mask=at < n)


@triton.jit
def row_dot(x, y, out, heads, seq, D: tl.constexpr, BM: tl.constexpr):
    """out (B, H, S) = sum over d of x y, both (B, S, H, D): what attention backward needs of O and dO."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    head = tl.program_id(1)
    batch = tl.program_id(2)
    at = ((batch * seq + rows)[:, None] * heads + head) * D + tl.arange(0, D)[None, :]
    inside = rows < seq
    a = tl.load(x + at, mask=inside[:, None], other=0.0).to(tl.float32)
    b = tl.load(y + at, mask=inside[:, None], other=0.0).to(tl.float32)
    tl.store(out + (batch * heads + head) * seq + rows, tl.sum(a * b, 1), mask=inside)


@triton.jit
def heads_to_rows(x, y, heads, seq, D: tl.constexpr, BM: tl.constexpr):
    """y (B, S, H, D) = x (B, H, S, D), rounded to y's type: the end of attention backward with sums in FP32."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    head = tl.program_id(1)
    batch = tl.program_id(2)
    cols = tl.arange(0, D)[None, :]
    inside = (rows < seq)[:, None]
    v = tl.load(x + ((batch * heads + head) * seq + rows)[:, None].to(tl.int64) * D + cols, mask=inside, other=0.0)
    tl.store(y + ((batch * seq + rows)[:, None] * heads + head).to(tl.int64) * D + cols, v.to(y.dtype.element_ty), mask=inside)
