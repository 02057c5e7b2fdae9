"""Attention of one query a sequence over a long cache, in Triton: split over the keys, in the form of vLLM's and SGLang's decode kernels.

Stage 1: a work-group has up to BH query heads of one KV head and a share of the keys; rows of a product are those heads. Stage 2 adds
the shares of a head up in one step. The keys of a sequence lie one after the other (PAGE 0) or in pages that a table names.
"""
import triton
import triton.language as tl


@triton.jit
def decode_split(q, k, v, part, part_lse, table, lengths, scale_log2, stride_qb, stride_qh, stride_kb, stride_kh, stride_ks, stride_vb, stride_vh,
                 stride_vs, stride_tb, GROUP: tl.constexpr, D: tl.constexpr, D2: tl.constexpr, V: tl.constexpr, BH: tl.constexpr,
                 BN: tl.constexpr, PAGE: tl.constexpr, SHARED: tl.constexpr):
    """part (B, Hq, splits, V) and its log-sum-exp part_lse (B, Hq, splits) of each share. Head dim D + D2; SHARED: V is the first D columns of K."""
    batch = tl.program_id(0).to(tl.int64)
    blocks: tl.constexpr = (GROUP + BH - 1) // BH
    head_kv = tl.program_id(1) // blocks
    split = tl.program_id(2)
    splits = tl.num_programs(2)
    within = tl.program_id(1) % blocks * BH + tl.arange(0, BH)
    heads = head_kv * GROUP + within
    mine = within < GROUP
    cols, cols2, cols_v = tl.arange(0, D), D + tl.arange(0, D2 if D2 > 0 else 1), tl.arange(0, V)
    qp = q + batch * stride_qb + heads[:, None] * stride_qh
    qt = tl.load(qp + cols[None, :], mask=mine[:, None], other=0.0)
    if D2 > 0:
        qt2 = tl.load(qp + cols2[None, :], mask=mine[:, None], other=0.0)
    length = tl.load(lengths + batch)
    share = tl.cdiv(tl.cdiv(length, splits), BN) * BN
    first = split * share
    last = tl.minimum(first + share, length)
    top = tl.full([BH], float("-inf"), tl.float32)
    total = tl.zeros([BH], tl.float32)
    acc = tl.zeros([BH, V], tl.float32)
    kh = k + head_kv * stride_kh
    vh = v + head_kv * stride_vh
    if PAGE == 0:
        kh += batch * stride_kb
        vh += batch * stride_vb
    for j in range(first, last, BN):
        keys = j + tl.arange(0, BN)
        inside = keys < last
        if PAGE > 0:
            page = tl.load(table + batch * stride_tb + keys // PAGE, mask=inside, other=0).to(tl.int64)
            at_k = page * stride_kb + keys % PAGE * stride_ks
            at_v = page * stride_vb + keys % PAGE * stride_vs
        else:
            at_k = keys * stride_ks
            at_v = keys * stride_vs
        kt = tl.load(kh + at_k[None, :] + cols[:, None], mask=inside[None, :], other=0.0).to(qt.dtype)
        s = tl.dot(qt, kt)
        if D2 > 0:
            s = tl.dot(qt2, tl.load(kh + at_k[None, :] + cols2[:, None], mask=inside[None, :], other=0.0).to(qt.dtype), s)
        s = tl.where(inside[None, :], s * scale_log2, float("-inf"))
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        fade = tl.exp2(top - new)
        total = total * fade + tl.sum(p, 1)
        if SHARED:
            vt = tl.trans(kt)
        else:
            vt = tl.load(vh + at_v[:, None] + cols_v[None, :], mask=inside[:, None], other=0.0).to(qt.dtype)
        acc = tl.dot(p.to(vt.dtype), vt, acc * fade[:, None])
        top = new
    some = total > 0.0
    at = (batch * tl.num_programs(1) // blocks * GROUP + heads) * splits + split
    tl.store(part + at[:, None] * V + cols_v[None, :], acc / tl.where(some, total, 1.0)[:, None], mask=mine[:, None])
    tl.store(part_lse + at, tl.where(some, (top + tl.log2(total)) * 0.6931471805599453, float("-inf")), mask=mine)


@triton.jit
def decode_join(part, part_lse, o, stride_pb, stride_ph, stride_ps, stride_ob, stride_oh, SPLITS: tl.constexpr, V: tl.constexpr):
    """Strides of part_lse; those of part are V times as long, its rows lie one after the other."""
    batch, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    cols = tl.arange(0, V)
    at = batch * stride_pb + head * stride_ph + tl.arange(0, SPLITS) * stride_ps
    lse = tl.load(part_lse + at)
    top = tl.max(lse, 0)
    weight = tl.exp2((lse - tl.where(top == float("-inf"), 0.0, top)) * 1.4426950408889634)
    total = tl.sum(weight, 0)
    shares = tl.load(part + at[:, None] * V + cols[None, :])
    result = tl.sum(shares * weight[:, None], 0) / tl.where(total > 0.0, total, 1.0)
    tl.store(o + batch * stride_ob + head * stride_oh + cols, result.to(o.dtype.element_ty))
