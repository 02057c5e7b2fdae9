"""Dot products: VOP3P V_DOT* with three sources, and V_DOT*C whose destination is the third.

Floating-point sums are rounded after each product, in the printed order; products are exact in fp32.
"""

import fp
from fp import BF16, F16, F32
from machine import M32, Instruction, raw, signed, write_lane
from vector import valu

TABLE = {}


def saturated(total, is_signed, clamp):
    if clamp:
        low, high = (-1 << 31, (1 << 31) - 1) if is_signed else (0, M32)
        total = max(low, min(total, high))
    return total & M32


def integer_sum(a, b, c, bits, is_signed, clamp):
    mask, total = (1 << bits) - 1, signed(c, 32) if is_signed else c
    for shift in range(0, 32, bits):
        x, y = a >> shift & mask, b >> shift & mask
        total += signed(x, bits) * signed(y, bits) if is_signed else x * y
    return saturated(total, is_signed, clamp)


def to_single(fmt, x):
    """Exactly; a NaN keeps its payload and stays signalling until it is used."""
    exact = fp.exact_rules(F32)
    return x << 16 if fmt is BF16 else fp.convert(F16, F32, x, exact, exact, fp.NEAREST)


def float_sum(fmt, pairs, c, product_first):
    """`pairs`: two (a, b) in fmt. The first product is added to c, or c last. MODE has no say: rounding is to nearest,
    an fp32 denormal counts as zero in c and in the result."""
    r = fp.exact_rules(F32)
    (a0, b0), (a1, b1) = [[to_single(fmt, x) for x in pair] for pair in pairs]
    c = fp.flush(F32, c, True)
    if product_first:
        total = fp.add(r, fp.fma(r, a1, b1, fp.mul(r, a0, b0)), c)
    else:
        total = fp.fma(r, a1, b1, fp.fma(r, a0, b0, c))
    return fp.flush(F32, total, True)


class Packed:
    """VOP3P. kind: f16, bf16, or the bits of an integer element."""

    def __init__(self, name, kind, is_signed=False, since=None):
        self.name, self.kind, self.is_signed, self.since = name, kind, is_signed, since
        self.kinds = {"f16": "ppf", "bf16": "BBf"}.get(kind, "uuu")
        TABLE[name] = self

    def make(self, g):
        r, operands, scalars = g.r, [g.vector_register(1)], 0
        for i in range(3):
            choice = r.random()
            if choice < 0.12 and not scalars:
                operands.append(g.scalar_register(1))
                scalars = 1
            elif choice < 0.25:
                floating = self.kind in ("f16", "bf16")
                operands.append(g.constant(("f" if i == 2 else "h") if floating else "w", False))
            else:
                operands.append(g.vector_register(1))
        modifiers = {}
        halves = self.kind in ("f16", "bf16", 16)
        if halves and g.processor == "gfx90a" and r.random() < 0.6:  # later targets refuse op_sel here
            modifiers["op_sel"] = [r.getrandbits(1), r.getrandbits(1), 0]
            modifiers["op_sel_hi"] = [r.getrandbits(1), r.getrandbits(1), 1]
        if self.kind in ("f16", "bf16") and r.random() < 0.5:
            modifiers["neg_lo"] = [r.getrandbits(1) for _ in range(3)]
            modifiers["neg_hi"] = [r.getrandbits(1), r.getrandbits(1), 0]
        if r.random() < 0.25:
            modifiers["clamp"] = True
        return Instruction(self.name, "", operands, modifiers)

    def run(self, state, inst):
        dst, sources = inst.o[0], inst.o[1:]
        for lane in state.active():
            a, b, c = (raw(state, o, kind, lane) for o, kind in zip(sources, self.kinds))
            write_lane(state, dst, lane, self.value(state.mode, inst.m, a, b, c), 1)
            state.approximate.pop((dst.index, lane), None)

    def value(self, mode, m, a, b, c):
        low, high = m.get("op_sel", [0, 0, 0]), m.get("op_sel_hi", [1, 1, 1])
        if self.kind in (4, 8):
            return integer_sum(a, b, c, self.kind, self.is_signed, m.get("clamp"))
        pairs = []
        for select, negate in ((low, m.get("neg_lo", [0, 0, 0])), (high, m.get("neg_hi", [0, 0, 0]))):
            pairs.append([(x >> 16 * select[i] & 0xFFFF) ^ negate[i] << 15 for i, x in enumerate((a, b))])
        if self.kind == 16:
            packed = [pairs[0][i] | pairs[1][i] << 16 for i in (0, 1)]
            return integer_sum(*packed, c, 16, self.is_signed, m.get("clamp"))
        c ^= m.get("neg_lo", [0, 0, 0])[2] << 31
        value = float_sum(F16 if self.kind == "f16" else BF16, pairs, c, self.kind == "bf16")
        return fp.finish(fp.Rules(F32, mode), value, bool(m.get("clamp")), 0)


for _bits, _size in ((16, "i16"), (8, "i8"), (4, "i4")):
    Packed(f"v_dot{32 // _bits}_i32_{_size}", _bits, True)
    Packed(f"v_dot{32 // _bits}_u32_u{_bits}", _bits)
Packed("v_dot2_f32_f16", "f16")
Packed("v_dot2_f32_bf16", "bf16", since="gfx950")


# V_DOT*C: VOP2, the destination is accumulated into
def accumulate_integer(name, bits):
    valu(name, "u", "uuu", lambda env, a, b, c: integer_sum(a, b, c, bits, True, env.clamp), "e32 e64 dpp",
         reads_dst=True, no_mods=True, int_clamp=True)


accumulate_integer("v_dot2c_i32_i16", 16)
accumulate_integer("v_dot4c_i32_i8", 8)
accumulate_integer("v_dot8c_i32_i4", 4)


def accumulate_float(name, fmt, **flags):
    def lane(env, a, b, c):
        pairs = [(a >> s & 0xFFFF, b >> s & 0xFFFF) for s in (0, 16)]
        value = float_sum(fmt, pairs, c, False)
        return fp.finish(fp.Rules(F32, env.state.mode), value, env.clamp, 0)

    valu(name, "u", ("p" if fmt is F16 else "B") * 2 + "f", lane, "e32 e64 dpp", reads_dst=True, no_mods=True, int_clamp=True, **flags)


accumulate_float("v_dot2c_f32_f16", F16)
accumulate_float("v_dot2c_f32_bf16", BF16, since="gfx950")
