"""Flash attention forward with one feature, in Triton: flash_attention of triton_attention.py with what changes scores or weights, or says where keys are.

A kernel has one FEATURE compiled in and nothing of the others, as an autotuned kernel of a framework has it. Where users' kernels differ, the form
that costs least here: distances of ALiBi as FP32 differences, tanh of softcap from one exponential and one reciprocal, one look at the table for a
step that lies in one page, and, where WORDS is 4, all four words of a Philox call (AOTriton's way; tl.rand takes one of them, WORDS 1).
"""
import triton
import triton.language as tl
from triton.language.extra.hip import libdevice

from triton_attention import load

LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def kept(rows, first, seed, threshold, seq_k, BN: tl.constexpr, WORDS: tl.constexpr):
    """Which weights dropout keeps: those whose word, an unsigned number, is not below the threshold."""
    if WORDS == 4:
        quads = first // 4 + tl.arange(0, BN // 4)
        counter = tl.broadcast_to(quads[None, :], [rows.shape[0], BN // 4])
        a, b, c, d = tl.philox(seed, counter, counter * 0, rows[:, None] + counter * 0, counter * 0)
        words = tl.join(tl.join(a, c), tl.join(b, d)).reshape([rows.shape[0], BN])
    else:
        words = tl.randint(seed, rows[:, None] * seq_k + (first + tl.arange(0, BN))[None, :]).to(tl.uint32, bitcast=True)
    return words >= threshold.to(tl.uint32, bitcast=True)


@triton.jit
def steps(acc, total, top, qt, k, v, extra, number, seed, threshold, first, last, rows, keys, draws, stride_kb, stride_ks, stride_vb, stride_vs,
          stride_es, seq_k, offset, scale_log2, FEATURE: tl.constexpr, D: tl.constexpr, V: tl.constexpr, BN: tl.constexpr, MASKED: tl.constexpr,
          CAUSAL: tl.constexpr, PAGE: tl.constexpr, WORDS: tl.constexpr):
    """As steps of triton_attention.py. `extra`: the tensor of the feature at this head's (row 0, key 0), or its page table."""
    cols, cols_v = tl.arange(0, D), tl.arange(0, V)
    seats = rows.to(tl.float32) + offset
    into, cap, unscale = 2.0 * scale_log2 / number, number * LOG2E, LOG2E / scale_log2
    for j in range(first, last, BN):
        inside = (j + keys) < seq_k
        if PAGE == 0:
            at_k = (j + keys) * stride_ks
            at_v = (j + keys) * stride_vs
        elif BN <= PAGE:
            page = tl.load(extra + j // PAGE)
            at_k = page * stride_kb + (j % PAGE + keys) * stride_ks
            at_v = page * stride_vb + (j % PAGE + keys) * stride_vs
        else:
            pages = load(extra + (j + keys) // PAGE, inside, MASKED)
            at_k = pages * stride_kb + (j + keys) % PAGE * stride_ks
            at_v = pages * stride_vb + (j + keys) % PAGE * stride_vs
        kt = load(k + at_k[None, :] + cols[:, None], inside[None, :], MASKED)
        if FEATURE == "bias" or FEATURE == "visible":
            # As what the product is added to, it is loaded as the matrix instructions lay their result out; added later, scores went through LDS.
            terms = load(extra + rows[:, None] * stride_es + (j + keys)[None, :], inside[None, :], MASKED)
            terms = terms.to(tl.float32) * unscale if FEATURE == "bias" else tl.where(terms != 0, 0.0, float("-inf"))
            s = tl.dot(qt, kt, terms)
        else:
            s = tl.dot(qt, kt)
        if FEATURE == "softcap":
            s = cap - libdevice.fast_dividef(2.0 * cap, 1.0 + tl.exp2(s * into))
        if FEATURE == "alibi":
            s = s * scale_log2 - number * tl.abs(seats[:, None] - (j + keys).to(tl.float32)[None, :])
        if MASKED:
            seen = inside[None, :]
            if CAUSAL:
                seen = seen & ((j + keys)[None, :] <= rows[:, None] + offset)
            s = tl.where(seen, s, float("-inf"))
        if FEATURE == "softcap" or FEATURE == "alibi":
            new = tl.maximum(top, tl.max(s, 1))
        else:
            new = tl.maximum(top, tl.max(s, 1) * scale_log2)
        hides: tl.constexpr = MASKED or FEATURE == "bias" or FEATURE == "visible"
        base = tl.where(new == float("-inf"), 0.0, new) if hides else new
        if FEATURE == "softcap" or FEATURE == "alibi":
            p = tl.exp2(s - base[:, None])
        else:
            p = tl.exp2(s * scale_log2 - base[:, None])
        fade = tl.exp2(top - base)
        total = total * fade + tl.sum(p, 1)
        if FEATURE == "dropout":
            p = tl.where(kept(draws, j, seed, threshold, seq_k, BN, WORDS), p, 0.0)
        vt = load(v + at_v[:, None] + cols_v[None, :], inside[:, None], MASKED)
        acc = tl.dot(p.to(vt.dtype), vt, acc * fade[:, None])
        top = new
    return acc, total, top


@triton.jit
def flash_attention_feature(q, k, v, o, lse, extra, lengths, scale_log2, out_scale, number, seed, threshold, stride_qb, stride_qh, stride_qs,
                            stride_kb, stride_kh, stride_ks, stride_vb, stride_vh, stride_vs, stride_ob, stride_oh, stride_os, stride_eb, stride_eh,
                            stride_es, heads_q, heads_kv, seq_q, seq_k, FEATURE: tl.constexpr, D: tl.constexpr, V: tl.constexpr, BM: tl.constexpr,
                            BN: tl.constexpr, CAUSAL: tl.constexpr, PAGE: tl.constexpr, WORDS: tl.constexpr, SHARING: tl.constexpr):
    """O = out_scale * weights V and the log-sum-exp. Causal masks, and ALiBi's distances, are aligned with the bottom right.

    `extra`: bias (B, Hq, Sq, Sk), visible likewise in bytes, slopes of ALiBi (B, Hq), or the page table (B, pages), where K and V are
    (pages, keys, Hkv, D) and `lengths` (B) has the keys in use. `scale_log2`: scale * log2(e). `number`: the cap of softcap. Dropout: `seed`,
    `threshold` (probability * 2^32), 1 / (1 - probability) in `out_scale`. The grid is (Hq, tiles, B), or with SHARING (Hq, B, tiles): sequences that
    look at one part of a bias run side by side.
    """
    head = tl.program_id(0)
    axis: tl.constexpr = 2 if SHARING else 1
    tile = tl.num_programs(axis) - 1 - tl.program_id(axis) if CAUSAL else tl.program_id(axis)
    batch = tl.program_id(3 - axis)
    head_kv = head // (heads_q // heads_kv)
    k += head_kv * stride_kh
    v += head_kv * stride_vh
    extra += batch * stride_eb + head * stride_eh
    if PAGE > 0:
        seq_k = tl.load(lengths + batch)
    else:
        k += batch * stride_kb
        v += batch * stride_vb
    if FEATURE == "alibi":
        number = tl.load(extra) * LOG2E
    rows = tile * BM + tl.arange(0, BM)
    keys = tl.arange(0, BN)
    inside = (rows < seq_q)[:, None]
    # Rows beyond the last one look at the last one's bias, and are not stored.
    within = tl.minimum(rows, seq_q - 1) if FEATURE == "bias" or FEATURE == "visible" else rows
    draws = (batch * heads_q + head) * seq_q + rows
    cols, cols_v = tl.arange(0, D), tl.arange(0, V)
    qt = load(q + batch * stride_qb + head * stride_qh + rows[:, None] * stride_qs + cols[None, :], inside, True)
    offset = seq_k - seq_q
    end = tl.maximum(tl.minimum(tile * BM + BM + offset, seq_k), 0) if CAUSAL else seq_k
    whole = (tl.maximum(tl.minimum(tile * BM + 1 + offset, seq_k), 0) if CAUSAL else seq_k) // BN * BN
    top = tl.full([BM], float("-inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, V], tl.float32)
    acc, total, top = steps(acc, total, top, qt, k, v, extra, number, seed, threshold, 0, whole, within, keys, draws, stride_kb, stride_ks, stride_vb,
                            stride_vs, stride_es, seq_k, offset, scale_log2, FEATURE, D, V, BN, False, CAUSAL, PAGE, WORDS)
    acc, total, top = steps(acc, total, top, qt, k, v, extra, number, seed, threshold, whole, end, within, keys, draws, stride_kb, stride_ks, stride_vb,
                            stride_vs, stride_es, seq_k, offset, scale_log2, FEATURE, D, V, BN, True, CAUSAL, PAGE, WORDS)
    some = total > 0.0
    acc = acc * (out_scale / tl.where(some, total, 1.0))[:, None]
    tl.store(o + batch * stride_ob + head * stride_oh + rows[:, None] * stride_os + cols_v[None, :], acc.to(o.dtype.element_ty), mask=inside)
    tl.store(lse + (batch * heads_q + head) * seq_q + rows, tl.where(some, (top + tl.log2(total)) * 0.6931471805599453, float("-inf")),
             mask=rows < seq_q)
