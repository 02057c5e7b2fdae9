"""Conversions between number formats."""

import fp
from fp import BF16, F16, F32, F64
from machine import M32, signed
from vector import valu

E64, ONE_SOURCE = "", "e32 e64 sdwa dpp"


def from_integer(name, result, kind, bits, is_signed, pick=lambda x: x, **flags):
    fmt = {"f": F32, "d": F64, "h": F16}[result]

    def lane(env, x):
        x = pick(x)
        return env.rules(fmt).encode(signed(x, bits) if is_signed else x, 0)

    valu(name, result, kind, lane, ONE_SOURCE, integer_source=0, **flags)


def to_integer(name, result, kind, low, high, mode=fp.ZERO):
    fmt = {"f": F32, "d": F64, "h": F16}[kind]
    mask = 0xFFFF if result == "w" else M32

    def lane(env, x):
        (x,) = fp.inputs(env.rules(fmt), x)
        return fp.to_integer(fmt, x, low, high, mode) & mask

    valu(name, result, kind, lane, ONE_SOURCE, no_clamp=True)


from_integer("v_cvt_f32_i32", "f", "u", 32, True)
from_integer("v_cvt_f32_u32", "f", "u", 32, False)
from_integer("v_cvt_f64_i32", "d", "u", 32, True)
from_integer("v_cvt_f64_u32", "d", "u", 32, False)
from_integer("v_cvt_f16_u16", "h", "w", 16, False)
from_integer("v_cvt_f16_i16", "h", "w", 16, True)
for _byte in range(4):
    from_integer(f"v_cvt_f32_ubyte{_byte}", "f", "u", 32, False, lambda x, b=_byte: x >> 8 * b & 255)
to_integer("v_cvt_i32_f32", "u", "f", -1 << 31, (1 << 31) - 1)
to_integer("v_cvt_u32_f32", "u", "f", 0, M32)
to_integer("v_cvt_i32_f64", "u", "d", -1 << 31, (1 << 31) - 1)
to_integer("v_cvt_u32_f64", "u", "d", 0, M32)
to_integer("v_cvt_i16_f16", "w", "h", -1 << 15, (1 << 15) - 1)
to_integer("v_cvt_u16_f16", "w", "h", 0, 65535)
to_integer("v_cvt_flr_i32_f32", "u", "f", -1 << 31, (1 << 31) - 1, fp.DOWN)


def cvt_rpi(env, x):
    """floor(x + 0.5), exactly."""
    (x,) = fp.inputs(env.rules(F32), x)
    if not F32.finite(x):
        return fp.to_integer(F32, x, -1 << 31, (1 << 31) - 1) & M32
    n, e = F32.number(x)
    shift = max(-e, 1)
    doubled = (n << (e + shift)) + (1 << (shift - 1))
    return max(-1 << 31, min(doubled >> shift, (1 << 31) - 1)) & M32


valu("v_cvt_rpi_i32_f32", "u", "f", cvt_rpi, ONE_SOURCE, no_clamp=True)


def between(name, result, kind, **flags):
    source = {"f": F32, "d": F64, "h": F16}[kind]
    target = {"f": F32, "d": F64, "h": F16}[result]

    def lane(env, x):
        # Rounding is that of the wider half of MODE (double, half) where one of the two is a double or half.
        r, governing = env.rules(target), source if source is F64 else target
        return fp.convert(source, target, x, env.rules(source), r, env.rules(governing).round)

    valu(name, result, kind, lane, ONE_SOURCE, **flags)


between("v_cvt_f16_f32", "h", "f")
between("v_cvt_f32_f16", "f", "h")
between("v_cvt_f32_f64", "f", "d")
between("v_cvt_f64_f32", "d", "f")


def packed(name, target, mode, **flags):
    def one(env, x):
        return fp.convert(F32, target, x, env.rules(F32), env.rules(target), mode)

    valu(name, "u", "ff", lambda env, a, b: one(env, a) | one(env, b) << 16, E64, no_clamp=True, **flags)


packed("v_cvt_pkrtz_f16_f32", F16, fp.ZERO)
packed("v_cvt_pk_f16_f32", F16, fp.NEAREST, since="gfx950")


def to_bf16(env, x):
    return fp.convert(F32, BF16, x, env.exact(F32), fp.exact_saturating_rules(BF16, env.state.mode), fp.NEAREST)


valu("v_cvt_pk_bf16_f32", "u", "ff", lambda env, a, b: to_bf16(env, a) | to_bf16(env, b) << 16, E64, no_clamp=True,
     since="gfx950")


def normalised(fmt, is_signed):
    """f32_to_snorm / f32_to_unorm: round(clamp(x) * (2**15 - 1 or 2**16 - 1)) to nearest even; NaN gives 0."""
    low, high, scale = (-1, 1, 32767) if is_signed else (0, 1, 65535)

    def one(env, x):
        if fmt is F32:
            (x,) = fp.inputs(env.rules(fmt), x)
        if fmt.is_nan(x):
            return 0
        if fmt.is_inf(x):
            return (low if x & fmt.sign else high) * scale & 0xFFFF
        n, e = fmt.number(x)
        return max(low * scale, min(fp.round_number(n * scale, e, fp.NEAREST), high * scale)) & 0xFFFF

    return one


for _size, _fmt, _kind in (("f32", F32, "f"), ("f16", F16, "h")):
    for _sign in "iu":
        _one = normalised(_fmt, _sign == "i")
        valu(f"v_cvt_pknorm_{_sign}16_{_size}", "u", _kind * 2,
             lambda env, a, b, one=_one: one(env, a) | one(env, b) << 16, E64, no_clamp=True, no_op_sel=True)
        if _kind == "h":
            valu(f"v_cvt_norm_{_sign}16_f16", "w", "h", lambda env, a, one=_one: one(env, a), ONE_SOURCE,
                 no_clamp=True)
