"""Flash attention backward in Triton, in the form of two kernels that Triton users on AMD run: a peer in the timing model.

As Triton's tutorial, AOTriton and AITER's Triton kernels have it: row sums of O dO first, then one kernel that owns blocks of keys and walks over the
queries (dK, dV), and one that owns blocks of queries and walks over the keys (dQ); each with a configuration of its own. What makes it fast
here is that of triton_attention.py: one multiply and add before the exponential, blocks that the mask does not touch in a loop of their own, a
head dim that is no power of two made of two, longest causal blocks first, work-groups of a head on one XCD. One head of K to each of Q; lengths are
multiples of the blocks.
"""
import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def row_sums(o, do, delta, stride_b, stride_h, stride_s, seq, V: tl.constexpr, BM: tl.constexpr):
    """delta (B, H, S) = sum over the head dim of O dO."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    head, batch = tl.program_id(1), tl.program_id(2)
    at = batch * stride_b + head * stride_h + rows[:, None] * stride_s + tl.arange(0, V)[None, :]
    tl.store(delta + (batch * tl.num_programs(1) + head) * seq + rows, tl.sum(tl.load(o + at).to(tl.float32) * tl.load(do + at).to(tl.float32), 1))


@triton.jit
def walk_queries(dk, dk2, dv, kt, kt2, vt, q, do, lse, delta, first, last, keys, stride_qs, stride_os, offset, scale_log2, D: tl.constexpr,
                 D2: tl.constexpr, V: tl.constexpr, BM: tl.constexpr, MASKED: tl.constexpr):
    """Adds what queries first to last give to dK (its first D columns, and D2 more) and dV; scores are (keys, queries)."""
    cols, cols2, cols_v = tl.arange(0, D), D + tl.arange(0, D2 if D2 > 0 else 1), tl.arange(0, V)
    for i in range(first, last, BM):
        rows = i + tl.arange(0, BM)
        qt = tl.load(q + rows[:, None] * stride_qs + cols[None, :])
        dot = tl.load(do + rows[:, None] * stride_os + cols_v[None, :])
        s = tl.dot(kt, tl.trans(qt))
        if D2 > 0:
            qt2 = tl.load(q + rows[:, None] * stride_qs + cols2[None, :])
            s = tl.dot(kt2, tl.trans(qt2), s)
        p = tl.exp2(s * scale_log2 - (tl.load(lse + rows) * LOG2E)[None, :])
        if MASKED:
            p = tl.where(keys[:, None] <= (rows + offset)[None, :], p, 0.0)
        dv = tl.dot(p.to(dot.dtype), dot, dv)
        ds = (p * (tl.dot(vt, tl.trans(dot)) - tl.load(delta + rows)[None, :])).to(qt.dtype)
        dk = tl.dot(ds, qt, dk)
        if D2 > 0:
            dk2 = tl.dot(ds, qt2, dk2)
    return dk, dk2, dv


@triton.jit
def gradient_of_keys(q, k, v, do, lse, delta, dk, dv, scale, scale_log2, stride_qb, stride_qh, stride_qs, stride_kb, stride_kh, stride_ks, stride_vb,
                     stride_vh, stride_vs, stride_ob, stride_oh, stride_os, heads, seq_q, seq_k, D: tl.constexpr, D2: tl.constexpr,
                     V: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr):
    """dK and dV, laid out as K and V. Causal masks are aligned with the bottom right."""
    head, block, batch = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    keys = block * BN + tl.arange(0, BN)
    q += batch * stride_qb + head * stride_qh
    do += batch * stride_ob + head * stride_oh
    lse += (batch * heads + head) * seq_q
    delta += (batch * heads + head) * seq_q
    at_k = batch * stride_kb + head * stride_kh + keys[:, None] * stride_ks + tl.arange(0, D)[None, :]
    at_v = batch * stride_vb + head * stride_vh + keys[:, None] * stride_vs + tl.arange(0, V)[None, :]
    kt = tl.load(k + at_k)
    kt2 = kt
    if D2 > 0:
        at_k2 = batch * stride_kb + head * stride_kh + keys[:, None] * stride_ks + (D + tl.arange(0, D2))[None, :]
        kt2 = tl.load(k + at_k2)
    vt = tl.load(v + at_v)
    sum_k, sum_v = tl.zeros([BN, D], tl.float32), tl.zeros([BN, V], tl.float32)
    sum_k2 = tl.zeros([BN, D2 if D2 > 0 else 1], tl.float32)
    offset = seq_k - seq_q
    whole = 0
    if CAUSAL:
        first = tl.maximum(block * BN - offset, 0) // BM * BM
        whole = tl.minimum(tl.cdiv(tl.maximum(block * BN + BN - 1 - offset, 0), BM) * BM, seq_q)
        sum_k, sum_k2, sum_v = walk_queries(sum_k, sum_k2, sum_v, kt, kt2, vt, q, do, lse, delta, first, whole, keys, stride_qs, stride_os, offset,
                                            scale_log2, D, D2, V, BM, True)
    sum_k, sum_k2, sum_v = walk_queries(sum_k, sum_k2, sum_v, kt, kt2, vt, q, do, lse, delta, whole, seq_q, keys, stride_qs, stride_os, offset,
                                        scale_log2, D, D2, V, BM, False)
    tl.store(dv + at_v, sum_v.to(dv.dtype.element_ty))
    tl.store(dk + at_k, (sum_k * scale).to(dk.dtype.element_ty))
    if D2 > 0:
        tl.store(dk + at_k2, (sum_k2 * scale).to(dk.dtype.element_ty))


@triton.jit
def walk_keys(dq, dq2, qt, qt2, dot, lse, delta, k, v, first, last, rows, stride_ks, stride_vs, offset, scale_log2, D: tl.constexpr,
              D2: tl.constexpr, V: tl.constexpr, BN: tl.constexpr, MASKED: tl.constexpr):
    """Adds what keys first to last give to dQ; scores are (queries, keys)."""
    cols, cols2, cols_v = tl.arange(0, D), D + tl.arange(0, D2 if D2 > 0 else 1), tl.arange(0, V)
    for j in range(first, last, BN):
        keys = j + tl.arange(0, BN)
        kt = tl.load(k + keys[:, None] * stride_ks + cols[None, :])
        vt = tl.load(v + keys[:, None] * stride_vs + cols_v[None, :])
        s = tl.dot(qt, tl.trans(kt))
        if D2 > 0:
            kt2 = tl.load(k + keys[:, None] * stride_ks + cols2[None, :])
            s = tl.dot(qt2, tl.trans(kt2), s)
        p = tl.exp2(s * scale_log2 - lse[:, None])
        if MASKED:
            p = tl.where(keys[None, :] <= (rows + offset)[:, None], p, 0.0)
        ds = (p * (tl.dot(dot, tl.trans(vt)) - delta[:, None])).to(kt.dtype)
        dq = tl.dot(ds, kt, dq)
        if D2 > 0:
            dq2 = tl.dot(ds, kt2, dq2)
    return dq, dq2


@triton.jit
def gradient_of_queries(q, k, v, do, lse, delta, dq, scale, scale_log2, stride_qb, stride_qh, stride_qs, stride_kb, stride_kh, stride_ks, stride_vb,
                        stride_vh, stride_vs, stride_ob, stride_oh, stride_os, heads, seq_q, seq_k, D: tl.constexpr, D2: tl.constexpr,
                        V: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr):
    """dQ, laid out as Q."""
    head, batch = tl.program_id(0), tl.program_id(2)
    tile = tl.num_programs(1) - 1 - tl.program_id(1) if CAUSAL else tl.program_id(1)
    rows = tile * BM + tl.arange(0, BM)
    k += batch * stride_kb + head * stride_kh
    v += batch * stride_vb + head * stride_vh
    at_q = batch * stride_qb + head * stride_qh + rows[:, None] * stride_qs + tl.arange(0, D)[None, :]
    qt = tl.load(q + at_q)
    qt2 = qt
    if D2 > 0:
        at_q2 = batch * stride_qb + head * stride_qh + rows[:, None] * stride_qs + (D + tl.arange(0, D2))[None, :]
        qt2 = tl.load(q + at_q2)
    dot = tl.load(do + batch * stride_ob + head * stride_oh + rows[:, None] * stride_os + tl.arange(0, V)[None, :])
    tops = tl.load(lse + (batch * heads + head) * seq_q + rows) * LOG2E
    sums = tl.load(delta + (batch * heads + head) * seq_q + rows)
    acc, acc2 = tl.zeros([BM, D], tl.float32), tl.zeros([BM, D2 if D2 > 0 else 1], tl.float32)
    offset = seq_k - seq_q
    whole = tl.maximum(tl.minimum(tile * BM + 1 + offset, seq_k), 0) // BN * BN if CAUSAL else seq_k
    acc, acc2 = walk_keys(acc, acc2, qt, qt2, dot, tops, sums, k, v, 0, whole, rows, stride_ks, stride_vs, offset, scale_log2, D, D2, V, BN, False)
    if CAUSAL:
        end = tl.maximum(tl.minimum(tile * BM + BM + offset, seq_k), 0)
        acc, acc2 = walk_keys(acc, acc2, qt, qt2, dot, tops, sums, k, v, whole, end, rows, stride_ks, stride_vs, offset, scale_log2, D, D2, V, BN, True)
    tl.store(dq + at_q, (acc * scale).to(dq.dtype.element_ty))
    if D2 > 0:
        tl.store(dq + at_q2, (acc2 * scale).to(dq.dtype.element_ty))
