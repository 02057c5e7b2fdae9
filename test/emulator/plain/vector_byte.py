"""Sums of byte differences, bytes of packed colours, cube faces, and V_TRIG_PREOP_F64."""

import fp
from fp import F32, F64
from machine import M32, Instruction, raw
from vector import valu

E64 = ""
TABLE = {}


# V_QSAD, V_MQSAD: four V_SAD_U8 (V_MSAD_U8) over byte windows of a 64-bit source.
def differences(window, reference, masked):
    total = 0
    for shift in (0, 8, 16, 24):
        a, b = window >> shift & 255, reference >> shift & 255
        if not masked or b:
            total += abs(a - b)
    return total


class Sums:
    def __init__(self, name, bits, masked):
        self.name, self.bits, self.masked, self.since = name, bits, masked, None
        self.words = 4 * bits // 32
        TABLE[name] = self

    def make(self, g):
        operands = g.apart([self.words, 2, 1, self.words])
        if g.r.random() < 0.2:
            operands[2] = g.scalar_register(1)
        return Instruction(self.name, "", operands, {"clamp": True} if g.r.random() < 0.3 else {})

    def run(self, state, inst):
        dst, a, b, c = inst.o
        results = []
        for lane in state.active():
            data, reference = raw(state, a, "q", lane), raw(state, b, "u", lane)
            added = sum(state.v[c.index + w][lane] << 32 * w for w in range(self.words))
            value, mask = 0, (1 << self.bits) - 1
            for i in range(4):
                total = differences(data >> 8 * i & M32, reference, self.masked) + (added >> self.bits * i & mask)
                value |= (min(total, mask) if inst.m.get("clamp") else total & mask) << self.bits * i
            results.append((lane, value))
        for lane, value in results:
            for w in range(self.words):
                state.v[dst.index + w][lane] = value >> 32 * w & M32
                state.approximate.pop((dst.index + w, lane), None)


Sums("v_qsad_pk_u16_u8", 16, False)
Sums("v_mqsad_pk_u16_u8", 16, True)
Sums("v_mqsad_u32_u8", 32, True)


def put_byte(env, x, position, word):
    """V_CVT_PK_U8_F32: to nearest, saturated; NaN gives 0."""
    (x,) = fp.inputs(env.rules(F32), x)
    shift = 8 * (position & 3)
    return word & ~(255 << shift) | fp.to_integer(F32, x, 0, 255, fp.NEAREST) << shift


valu("v_cvt_pk_u8_f32", "u", "fuu", put_byte, E64, no_clamp=True, float_first=True)
valu("v_cvt_pkaccum_u8_f32", "u", "fuu", put_byte, E64, reads_dst=True, no_clamp=True, float_first=True)
valu("v_cvt_off_f32_i4", "f", "u", lambda env, x: fp.encode(F32, (x & 15) - (x << 1 & 16), -4), "e32 e64 sdwa dpp",
     integer_source=0)


# V_CUBE*: the face that a direction meets, and the coordinates there.
def face(env, x, y, z):
    x, y, z = fp.inputs(env.rules(F32), x, y, z)

    def at_least(a, b):
        a, b = a & ~F32.sign, b & ~F32.sign
        return not F32.is_nan(a) and not F32.is_nan(b) and a >= b

    def below_zero(a):
        return not F32.is_nan(a) and not F32.is_zero(a) and bool(a & F32.sign)

    axis = 2 if at_least(z, x) and at_least(z, y) else 1 if at_least(y, x) else 0
    return axis, below_zero((x, y, z)[axis]), (x, y, z)


def negated(x):
    return x ^ F32.sign


def cube_id(env, *xyz):
    axis, negative, _ = face(env, *xyz)
    return fp.encode(F32, 2 * axis + negative, 0)


def cube_s(env, *xyz):
    axis, negative, (x, y, z) = face(env, *xyz)
    return fp.output(env.rules(F32), [z if negative else negated(z), x, negated(x) if negative else x][axis])


def cube_t(env, *xyz):
    axis, negative, (x, y, z) = face(env, *xyz)
    return fp.output(env.rules(F32), [negated(y), negated(z) if negative else z, negated(y)][axis])


def cube_major(env, *xyz):
    axis, _, source = face(env, *xyz)
    return fp.mul(env.rules(F32), source[axis], fp.encode(F32, 2, 0))


for _name, _function in (("id", cube_id), ("sc", cube_s), ("tc", cube_t), ("ma", cube_major)):
    valu(f"v_cube{_name}_f32", "f", "fff", _function, E64)


# 2/pi to 1201 bits after the point, from Machin's formula for pi.
def arctangent_of_inverse(n, one):
    total, power, k = 0, one // n, 0
    while power:
        total += (-power if k & 1 else power) // (2 * k + 1)
        power //= n * n
        k += 1
    return total


_ONE = 1 << 1400
_PI = 4 * (4 * arctangent_of_inverse(5, _ONE) - arctangent_of_inverse(239, _ONE))
TWO_OVER_PI = (2 * _ONE << 1201) // _PI


def trig_preop(env, x, segment):
    """53 bits of 2/pi that matter for an argument of x's exponent."""
    exponent = F64.exponent(x)
    shift = (segment & 31) * 53 + max(exponent - 1077, 0)
    whole = (TWO_OVER_PI << shift & (1 << 1201) - 1) >> 1201 - 53 if shift < 1201 else 0
    scale = -53 - shift + (128 if exponent >= 1968 else 0)
    return fp.output(env.rules(F64), env.rules(F64).encode(whole, scale))


valu("v_trig_preop_f64", "d", "du", trig_preop, E64, integer_source=1)
