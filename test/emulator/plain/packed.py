"""VOP3P: two values a register, mixed precision, dot products."""

import fp
from fp import F16, F32
from machine import M32, M64, raw, signed, write_lane

TABLE = {}
HALF, WORD, SINGLE = "half", "word", "single"


class Row:
    def __init__(self, name, kind, count, function, **flags):
        self.name, self.kind, self.count, self.function, self.flags = name, kind, count, function, flags

    def __getattr__(self, flag):
        return self.flags.get(flag)


def define(name, kind, count, function, **flags):
    TABLE[name] = Row(name, kind, count, function, **flags)


def pair_source(state, operand, row, lane):
    """Both halves of an operand: 16-bit halves of a register or the two registers of a pair.

    An inline constant has its 16-bit value in the low half and 0 in the high half (integers: sign-extended to 32
    bits); the packed fp32 forms see the constant in the low register and 0 in the high one.
    """
    if row.kind == SINGLE:
        if operand.kind in "va" or operand.kind == "s":
            value = raw(state, operand, "q", lane)
            return [value & M32, value >> 32]
        value = raw(state, operand, "f" if operand.kind == "c" else "q", lane)
        return [value & M32, value >> 32]
    if operand.kind == "c":
        value = raw(state, operand, "h", lane)
        return [value, 0]
    value = raw(state, operand, "u", lane)
    return [value & 0xFFFF, value >> 16]


def run(state, inst):
    row = TABLE[inst.name]
    dst, sources = inst.o[0], inst.o[1:]
    for lane in state.active():
        env = (state, inst, lane)
        value = row.run(env, row, dst, sources)
        write_lane(state, dst, lane, value, 2 if row.kind == SINGLE else 1)


def bit(inst, name, position, default):
    values = inst.m.get(name)
    return values[position] if values else default


def halves(env, row, dst, sources):
    state, inst, lane = env
    width, fmt = {HALF: (16, F16), WORD: (16, None), SINGLE: (32, F32)}[row.kind]
    pairs = [pair_source(state, o, row, lane) for o in sources]
    if row.reads_dst:
        pairs.append([raw(state, dst, "u", lane) & 0xFFFF, raw(state, dst, "u", lane) >> 16])
    result = 0
    for half in (0, 1):
        values = []
        for i, pair in enumerate(pairs):
            select = bit(inst, "op_sel_hi", i, 1) if half else bit(inst, "op_sel", i, 0)
            value = pair[select]
            if bit(inst, "neg_hi" if half else "neg_lo", i, 0):
                value ^= 1 << (width - 1)
            values.append(value)
        rules = fp.Rules(fmt or F16, state.mode)
        clamp = bool(inst.m.get("clamp"))
        if fmt:
            value = fp.finish(rules, row.function(rules, *values), clamp, 0)
        else:
            value = row.function(clamp, *values) & 0xFFFF
        result |= value << width * half
    return result


def packed_integer(function, is_signed, saturates=True):
    def lane(clamp, *x):
        exact = function(*[signed(v, 16) for v in x] if is_signed else x)
        if clamp and saturates:
            low, high = (-32768, 32767) if is_signed else (0, 65535)
            exact = max(low, min(exact, high))
        return exact

    return lane


from vector_float import median, minimum_ieee, three  # noqa: E402

define("v_pk_add_f32", SINGLE, 2, fp.add, run=halves)
define("v_pk_mul_f32", SINGLE, 2, fp.mul, run=halves)
define("v_pk_fma_f32", SINGLE, 3, fp.fma, run=halves)
define("v_pk_add_f16", HALF, 2, fp.add, run=halves)
define("v_pk_mul_f16", HALF, 2, fp.mul, run=halves)
define("v_pk_fma_f16", HALF, 3, fp.fma, run=halves)
define("v_pk_min_f16", HALF, 2, fp.minimum_number, run=halves)
define("v_pk_max_f16", HALF, 2, fp.maximum_number, run=halves)
for _name, _less in (("v_pk_minimum3_f16", True), ("v_pk_maximum3_f16", False)):
    define(_name, HALF, 3, lambda r, a, b, c, w=_less: minimum_ieee(r, w)(minimum_ieee(r, w)(a, b), c), run=halves,
           since="gfx950")
for _sign in "iu":
    _s = _sign == "i"
    define(f"v_pk_add_{_sign}16", WORD, 2, packed_integer(lambda a, b: a + b, _s), run=halves)
    define(f"v_pk_sub_{_sign}16", WORD, 2, packed_integer(lambda a, b: a - b, _s), run=halves)
    define(f"v_pk_mad_{_sign}16", WORD, 3, packed_integer(lambda a, b, c: a * b + c, _s), run=halves)
    define(f"v_pk_min_{_sign}16", WORD, 2, packed_integer(min, _s), run=halves)
    define(f"v_pk_max_{_sign}16", WORD, 2, packed_integer(max, _s), run=halves)
define("v_pk_mul_lo_u16", WORD, 2, packed_integer(lambda a, b: a * b, False, False), run=halves, no_clamp=True)
define("v_pk_lshlrev_b16", WORD, 2, packed_integer(lambda a, b: b << (a & 15), False, False), run=halves, no_clamp=True)
define("v_pk_lshrrev_b16", WORD, 2, packed_integer(lambda a, b: b >> (a & 15), False, False), run=halves, no_clamp=True)
define("v_pk_ashrrev_i16", WORD, 2, packed_integer(lambda a, b: b >> (a & 15), True, False), run=halves, no_clamp=True)


def pk_mov(env, row, dst, sources):
    state, inst, lane = env
    low = pair_source(state, sources[0], row, lane)[bit(inst, "op_sel", 0, 0)]
    high = pair_source(state, sources[1], row, lane)[bit(inst, "op_sel", 1, 0)]
    return low | high << 32


define("v_pk_mov_b32", SINGLE, 2, None, run=pk_mov, no_neg=True, no_clamp=True, no_sel_hi=True)


def mix(env, row, dst, sources):
    """fp32 or fp16 sources, one fused operation in fp32; lo and hi keep the other half of the register."""
    state, inst, lane = env
    values = []
    for i, o in enumerate(sources):
        if bit(inst, "op_sel_hi", i, 0):
            value = pair_source(state, o, TABLE["v_pk_add_f16"], lane)[bit(inst, "op_sel", i, 0)]
            value = fp.convert(F16, F32, value, fp.Rules(F16, state.mode), fp.Rules(F32, state.mode), fp.NEAREST) \
                if not F16.is_snan(value) else value << 13 & 0x7FFFFF | (value & 0x8000) << 16 | F32.inf
        else:
            value = raw(state, o, "f", lane)
        if o.abs:
            value &= ~F32.sign
        if o.neg:
            value ^= F32.sign
        values.append(value)
    rules = fp.Rules(F32, state.mode)
    value = fp.fma(rules, *values)
    clamp = bool(inst.m.get("clamp"))
    if row.part is None:
        return fp.finish(rules, value, clamp, 0)
    half_rules = fp.Rules(F16, state.mode)
    half = fp.finish(half_rules, fp.convert(F32, F16, value, fp.exact_rules(F32), half_rules, half_rules.round), clamp, 0)
    old = raw(state, dst, "u", lane)
    return old & 0xFFFF | half << 16 if row.part else old & 0xFFFF0000 | half


define("v_fma_mix_f32", "mix", 3, None, run=mix)
define("v_fma_mixlo_f16", "mix", 3, None, run=mix, part=0)
define("v_fma_mixhi_f16", "mix", 3, None, run=mix, part=1)


