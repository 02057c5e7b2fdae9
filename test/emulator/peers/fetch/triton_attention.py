"""Flash attention forward in Triton, in the form that Triton users on AMD run: a peer in the timing model.

Streaming softmax over key blocks, the scale inside the exponent of two, blocks that no mask touches in a loop of their own (Triton's tutorial,
ROCm's perf-kernels/flash-attention.py). A head dim that is no power of two is the sum of two (96 = 64 + 32, two products), as in AOTriton; padding
it to a power of two with masked columns, as elsewhere, was slower by a quarter (96, 192) to two thirds (160). Work-groups of one head have the
same id modulo the XCDs where the number of heads allows it; under a causal mask the longest tiles start first.
"""
import triton
import triton.language as tl


@triton.jit
def load(p, inside, MASKED: tl.constexpr):
    """A block; 0 where it is not `inside`, unless there is nothing to mask."""
    if MASKED:
        x = tl.load(p, mask=inside, other=0.0)
    else:
        x = tl.load(p)
    return x


@triton.jit
def steps(acc, acc2, total, top, qt, qt2, k, v, first, last, rows, keys, stride_ks, stride_vs, seq_k, offset, scale_log2, D: tl.constexpr,
          D2: tl.constexpr, V: tl.constexpr, V2: tl.constexpr, BN: tl.constexpr, MASKED: tl.constexpr, CAUSAL: tl.constexpr, WIDEN: tl.constexpr):
    """`qt` and `acc` hold the first D columns of Q and V of O; `qt2` and `acc2` the D2 and V2 after them, if any."""
    cols, cols_v = tl.arange(0, D), tl.arange(0, V)
    kp = k + (first + keys)[None, :] * stride_ks + cols[:, None]
    vp = v + (first + keys)[:, None] * stride_vs + cols_v[None, :]
    if D2 > 0:
        cols2 = D + tl.arange(0, D2)
        kp2 = k + (first + keys)[None, :] * stride_ks + cols2[:, None]
    if V2 > 0:
        cols_v2 = V + tl.arange(0, V2)
        vp2 = v + (first + keys)[:, None] * stride_vs + cols_v2[None, :]
    for j in range(first, last, BN):
        inside = (j + keys) < seq_k
        s = tl.dot(qt, load(kp, inside[None, :], MASKED))
        if D2 > 0:
            s = tl.dot(qt2, load(kp2, inside[None, :], MASKED), s)
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
        vt = load(vp, inside[:, None], MASKED)
        if WIDEN:
            vt = vt.to(tl.bfloat16)
        p = p.to(vt.dtype)
        acc = tl.dot(p, vt, acc)
        if V2 > 0:
            vt2 = load(vp2, inside[:, None], MASKED)
            acc2 = tl.dot(p, vt2, acc2 * fade[:, None])
            vp2 += BN * stride_vs
        if D2 > 0:
            kp2 += BN * stride_ks
        top = new
        kp += BN * stride_ks
        vp += BN * stride_vs
    return acc, acc2, total, top


@triton.jit
def flash_attention(q, k, v, o, lse, scale_log2, out_scale, stride_qb, stride_qh, stride_qs, stride_kb, stride_kh, stride_ks, stride_vb, stride_vh,
                    stride_vs, stride_ob, stride_oh, stride_os, heads_q, heads_kv, seq_q, seq_k, D: tl.constexpr, D2: tl.constexpr,
                    V: tl.constexpr, V2: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr, WIDEN: tl.constexpr):
    """O = out_scale * softmax(Q K^T scale) V and its log-sum-exp. Causal masks are aligned with the bottom right.

    Head dims are D + D2 and V + V2. With e4m3 the weights are rounded to e4m3, too, or (WIDEN) V becomes bf16 and they do.
    """
    head = tl.program_id(0)
    tile = tl.num_programs(1) - 1 - tl.program_id(1) if CAUSAL else tl.program_id(1)
    batch = tl.program_id(2)
    head_kv = head // (heads_q // heads_kv)
    k += batch * stride_kb + head_kv * stride_kh
    v += batch * stride_vb + head_kv * stride_vh
    rows = tile * BM + tl.arange(0, BM)
    keys = tl.arange(0, BN)
    inside = (rows < seq_q)[:, None]
    cols, cols_v = tl.arange(0, D), tl.arange(0, V)
    qp = q + batch * stride_qb + head * stride_qh + rows[:, None] * stride_qs
    op = o + batch * stride_ob + head * stride_oh + rows[:, None] * stride_os
    qt = load(qp + cols[None, :], inside, True)
    qt2 = qt
    if D2 > 0:
        cols2 = D + tl.arange(0, D2)
        qt2 = load(qp + cols2[None, :], inside, True)
    offset = seq_k - seq_q
    end = tl.maximum(tl.minimum(tile * BM + BM + offset, seq_k), 0) if CAUSAL else seq_k
    whole = (tl.maximum(tl.minimum(tile * BM + 1 + offset, seq_k), 0) if CAUSAL else seq_k) // BN * BN
    top = tl.full([BM], float("-inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, V], tl.float32)
    acc2 = tl.zeros([BM, V2 if V2 > 0 else 1], tl.float32)
    acc, acc2, total, top = steps(acc, acc2, total, top, qt, qt2, k, v, 0, whole, rows, keys, stride_ks, stride_vs, seq_k, offset,
                                  scale_log2, D, D2, V, V2, BN, False, CAUSAL, WIDEN)
    acc, acc2, total, top = steps(acc, acc2, total, top, qt, qt2, k, v, whole, end, rows, keys, stride_ks, stride_vs, seq_k, offset,
                                  scale_log2, D, D2, V, V2, BN, True, CAUSAL, WIDEN)
    some = total > 0.0
    factor = (out_scale / tl.where(some, total, 1.0))[:, None]
    tl.store(op + cols_v[None, :], (acc * factor).to(o.dtype.element_ty), mask=inside)
    if V2 > 0:
        cols_v2 = V + tl.arange(0, V2)
        tl.store(op + cols_v2[None, :], (acc2 * factor).to(o.dtype.element_ty), mask=inside)
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
