"""fp32, fp64 and fp16 arithmetic of the vector ALU."""

import math

import fp
from fp import F16, F32, F64
from vector import valu

ALL, E64 = "e32 e64 dpp sdwa", ""
LETTER = {"f": F32, "d": F64, "h": F16}


def arithmetic(name, kind, count, function, encodings=ALL, **flags):
    """function(rules, sources...) -> bits."""
    fmt = LETTER[kind]
    valu(name, kind, kind * count, lambda env, *x: function(env.rules(fmt), *x), encodings, **flags)


def subtract(r, a, b):
    """IEEE subtraction: a NaN operand keeps its sign."""
    return fp.add(r, a, b if r.fmt.is_nan(b) else b ^ r.fmt.sign)


def multiply_add(r, a, b, c):
    """V_MAD: two roundings, denormals flushed whatever MODE says."""
    r.flush_in = r.flush_out = True
    return fp.add(r, fp.mul(r, a, b), c)


def multiply_legacy(r, a, b):
    a, b = fp.inputs(r, a, b)
    return 0 if r.fmt.is_zero(a) or r.fmt.is_zero(b) else fp.mul(r, a, b)


def multiply_add_legacy(r, a, b, c):
    """V_MAD_LEGACY_F32: zero times anything is 0."""
    r.flush_in = r.flush_out = True
    return fp.add(r, multiply_legacy(r, a, b), c)


def three(pick):
    return lambda r, a, b, c: pick(r, pick(r, a, b), c)


def median(r, a, b, c):
    """NaN anywhere: the minimum of the three; otherwise the middle one, -0 below +0."""
    fmt = r.fmt
    if any(map(fmt.is_nan, (a, b, c))):
        return three(fp.minimum_number)(r, a, b, c)
    middle = sorted(fp.inputs(r, a, b, c), key=lambda x: (fp.order_key(fmt, x), not x & fmt.sign))[1]
    return fp.output(r, middle)


def minimum_ieee(r, want_less):
    """IEEE 754-2019 minimum and maximum: NaN wins."""

    def pick(a, b):
        a, b = fp.inputs(r, a, b)
        nan = fp.nan_of(r.fmt, a, b)
        if nan is not None:
            return nan
        return fp.extreme(r, a, b, want_less)

    return pick


def fraction(r, x):
    """x - floor(x), at most the largest value below 1."""
    fmt = r.fmt
    (x,) = fp.inputs(r, x)
    if fmt.is_nan(x):
        return x | fmt.quiet
    if fmt.is_inf(x):
        return fmt.nan
    n, e = fmt.number(x)
    rest = n - (n >> -e << -e) if e < 0 else 0
    zero = fmt.sign if r.round == fp.DOWN else 0  # as x + -floor(x) rounds it
    value = fp.output(r, fp.encode(fmt, rest, e, r.round, zero))
    return value if value & fmt.sign else min(value, fmt.one - 1)


def mantissa(r, x):
    fmt = r.fmt
    (x,) = fp.inputs(r, x)
    if fmt.is_nan(x):
        return x | fmt.quiet
    if fmt.is_inf(x) or fmt.is_zero(x):
        return x
    n, _ = fmt.number(x)
    return fp.encode(fmt, n, -abs(n).bit_length())


def frexp_exponent(fmt, bits):
    def lane(env, x):
        (x,) = fp.inputs(env.rules(fmt), x)
        if not fmt.finite(x) or fmt.is_zero(x):
            return 0
        n, e = fmt.number(x)
        return abs(n).bit_length() + e & (1 << bits) - 1

    return lane


for letter, size in (("f", "f32"), ("d", "f64"), ("h", "f16")):
    wide = letter == "d"
    two = E64 if wide else ALL
    keep = {"keep_half": True} if letter == "h" else {}
    arithmetic(f"v_add_{size}", letter, 2, fp.add, two)
    arithmetic(f"v_mul_{size}", letter, 2, fp.mul, two)
    arithmetic(f"v_min_{size}", letter, 2, fp.minimum_number, two)
    arithmetic(f"v_max_{size}", letter, 2, fp.maximum_number, two)
    arithmetic(f"v_fma_{size}", letter, 3, fp.fma, E64, **keep)
    if not wide:
        arithmetic(f"v_sub_{size}", letter, 2, subtract)
        arithmetic(f"v_subrev_{size}", letter, 2, lambda r, a, b: subtract(r, b, a))
        arithmetic(f"v_min3_{size}", letter, 3, three(fp.minimum_number), E64, **keep)
        arithmetic(f"v_max3_{size}", letter, 3, three(fp.maximum_number), E64, **keep)
        arithmetic(f"v_med3_{size}", letter, 3, median, E64, **keep)
    one = "e32 e64 dpp" if wide else ALL
    for operation, mode in (("trunc", fp.ZERO), ("ceil", fp.UP), ("floor", fp.DOWN), ("rndne", fp.NEAREST)):
        arithmetic(f"v_{operation}_{size}", letter, 1, lambda r, x, m=mode: fp.integral(r, x, m), one)
    arithmetic(f"v_fract_{size}", letter, 1, fraction, one)
    arithmetic(f"v_frexp_mant_{size}", letter, 1, mantissa, one)

arithmetic("v_fmac_f32", "f", 3, fp.fma, "e32 e64 dpp", reads_dst=True)
arithmetic("v_fmac_f64", "d", 3, fp.fma, "e32 e64 dpp", reads_dst=True)
arithmetic("v_mul_legacy_f32", "f", 2, multiply_legacy, "")
arithmetic("v_fmamk_f32", "f", 3, fp.fma, "", literal=1, no_mods=True, since="gfx942")
arithmetic("v_fmaak_f32", "f", 3, fp.fma, "", literal=2, no_mods=True, since="gfx942")
arithmetic("v_mad_f16", "h", 3, multiply_add, E64, keep_half=True)
arithmetic("v_mac_f16", "h", 3, multiply_add, "e32 e64 dpp", reads_dst=True)
arithmetic("v_madmk_f16", "h", 3, multiply_add, "", literal=1, no_mods=True)
arithmetic("v_madak_f16", "h", 3, multiply_add, "", literal=2, no_mods=True)
# The legacy forms clear the high half of the register.
arithmetic("v_mad_legacy_f16", "h", 3, multiply_add, E64)
arithmetic("v_fma_legacy_f16", "h", 3, fp.fma, E64)
# gfx90a is the last with these.
arithmetic("v_mad_f32", "f", 3, multiply_add, E64, only="gfx90a")
arithmetic("v_mac_f32", "f", 3, multiply_add, "e32 e64 dpp", reads_dst=True, only="gfx90a")
arithmetic("v_madmk_f32", "f", 3, multiply_add, "", literal=1, no_mods=True, only="gfx90a")
arithmetic("v_madak_f32", "f", 3, multiply_add, "", literal=2, no_mods=True, only="gfx90a")
arithmetic("v_mad_legacy_f32", "f", 3, multiply_add_legacy, E64, only="gfx90a")
for name, less in (("v_minimum3_f32", True), ("v_maximum3_f32", False)):
    arithmetic(name, "f", 3, lambda r, a, b, c, w=less: minimum_ieee(r, w)(minimum_ieee(r, w)(a, b), c), E64,
               since="gfx950")
valu("v_frexp_exp_i32_f32", "u", "f", frexp_exponent(F32, 32), ALL, no_clamp=True)
valu("v_frexp_exp_i32_f64", "u", "d", frexp_exponent(F64, 32), "e32 e64 dpp", no_clamp=True)
valu("v_frexp_exp_i16_f16", "w", "h", frexp_exponent(F16, 16), ALL, no_clamp=True)


def ldexp(fmt, bits):
    def lane(env, x, power):
        power &= (1 << bits) - 1
        return fp.times_power(env.rules(fmt), x, power - (power >> bits - 1 << bits))

    return lane


valu("v_ldexp_f32", "f", "fu", ldexp(F32, 32), E64, integer_source=1)
valu("v_ldexp_f64", "d", "du", ldexp(F64, 32), E64, integer_source=1)
valu("v_ldexp_f16", "h", "hw", ldexp(F16, 16), ALL, integer_source=1)


def packed_fmac(env, a, b, c):
    """V_PK_FMAC_F16: both halves; the destination is added."""
    r, value = env.rules(F16), 0
    for shift in (0, 16):
        half = fp.fma(r, *(x >> shift & 0xFFFF for x in (a, b, c)))
        value |= fp.finish(r, half, env.clamp, 0) << shift
    return value


valu("v_pk_fmac_f16", "u", "ppp", packed_fmac, "e32 e64 dpp sdwa", reads_dst=True, no_mods=True, int_clamp=True,
     plain_sdwa=True)


# fp64 reciprocals and roots: the ISA promises less than the one rounding under MODE that both sides give (two for rsq).
def fp64_function(name, function):
    def lane(env, x):
        r = env.rules(F64)
        (x,) = fp.inputs(r, x)
        if F64.is_nan(x):
            return x | F64.quiet
        return fp.output(r, function(x, r.round))

    valu(name, "d", "d", lane, "e32 e64 dpp")


def reciprocal64(x, mode):
    sign = x & F64.sign
    if F64.is_zero(x):
        return sign | F64.inf
    if F64.is_inf(x):
        return sign
    n, e = F64.number(x & ~F64.sign)
    whole, rest = divmod(1 << 200, n)
    return fp.encode(F64, -whole if sign else whole, -200 - e, mode, sticky=rest)


def root64(x, mode):
    if F64.is_zero(x):
        return x
    if x & F64.sign:
        return F64.nan
    if F64.is_inf(x):
        return x
    n, e = F64.number(x)
    n, e = n << 120 + (e & 1), e - 120 - (e & 1)
    whole = math.isqrt(n)
    return fp.encode(F64, whole, e // 2, mode, sticky=n != whole * whole)


fp64_function("v_rcp_f64", reciprocal64)
fp64_function("v_sqrt_f64", root64)
fp64_function("v_rsq_f64", lambda x, mode: F64.nan if x & F64.sign and not F64.is_zero(x)
              else reciprocal64(root64(x, mode), mode))


# Division steps. The printed CDNA text of DIV_SCALE and DIV_FMAS does not give correct quotients; the rules here are
# those that AMD's public simulator (rocm-systems, rocjitsu) states to have checked on hardware. See README.md.
def invalid(fmt):
    return fmt.sign | fmt.nan


def div_scale(fmt, power, far, tiny):
    def lane(env, s0, denominator, numerator):
        """s0 is the denominator or the numerator; the mask says that v_div_fmas must undo a scale."""
        r = env.rules(fmt)
        s0, d, n = fp.inputs(r, s0, denominator, numerator)
        exponent_d, exponent_n = fmt.exponent(d), fmt.exponent(n)
        apart = exponent_n - exponent_d
        of_denominator = s0 == d
        up = 0
        if apart >= far:  # the quotient may overflow
            env.carry_out, up = 1, power if of_denominator else 0
        elif exponent_d == 0:
            up = power
        elif exponent_d >= 2 * fmt.bias - 1:  # 1 / denominator is denormal (infinities and NaN fall here too)
            env.carry_out = int(apart <= -far)
            up = 0 if env.carry_out and not of_denominator else -power
        elif apart <= -far:  # the quotient may be denormal
            env.carry_out, up = 1, 0 if of_denominator else power
        elif exponent_n <= tiny:
            up = power
        if fmt.is_zero(d) or fmt.is_zero(n):
            return invalid(fmt)
        return fp.times_power(r, s0, up)

    return lane


def div_fmas(fmt, power):
    def lane(env, a, b, c):
        """fma, times 2**power (2**-power when the addend is small) where VCC says so; one rounding for both."""
        r = env.rules(fmt)
        scaled = env.state.s64(106) >> env.lane & 1
        up = 0 if not scaled else power if fmt.exponent(c) > fmt.bias else -power
        return fp.fma(r, a, b, c, up, keep_denormal_inputs=True)

    return lane


def div_fixup(fmt, edges=True):
    def lane(env, quotient, denominator, numerator):
        """The special cases of numerator / denominator, the given quotient otherwise."""
        r = env.rules(fmt)
        d, n = fp.inputs(r, denominator, numerator)
        if not edges:
            quotient = fp.output(r, *fp.inputs(r, quotient))
        sign = (d ^ n) & fmt.sign
        if fmt.is_nan(n):
            return n | fmt.quiet
        if fmt.is_nan(d):
            return d | fmt.quiet
        if fmt.is_zero(n) and fmt.is_zero(d) or fmt.is_inf(n) and fmt.is_inf(d):
            return invalid(fmt)
        if fmt.is_zero(d) or fmt.is_inf(n):
            return sign | fmt.inf
        if fmt.is_inf(d) or fmt.is_zero(n):
            return sign
        unit = -1 if sign else 1
        if edges and fmt.exponent(n) - fmt.exponent(d) < -(fmt.bias + fmt.mbits):
            return fp.output(r, fp.encode(fmt, unit, 4 * fmt.emin, r.round))
        if edges and not fmt.finite(quotient):
            return fp.encode(fmt, unit, 2 * fmt.bias, r.round)
        return sign | (quotient & ~fmt.sign)

    return lane


valu("v_div_scale_f32", "f", "fff", div_scale(F32, 64, 96, 24), E64, carry_out=True, divide=True, no_mods=True)
valu("v_div_scale_f64", "d", "ddd", div_scale(F64, 128, 768, 53), E64, carry_out=True, divide=True, no_mods=True)
valu("v_div_fmas_f32", "f", "fff", div_fmas(F32, 64), E64)
valu("v_div_fmas_f64", "d", "ddd", div_fmas(F64, 128), E64)
valu("v_div_fixup_f32", "f", "fff", div_fixup(F32), E64)
valu("v_div_fixup_f64", "d", "ddd", div_fixup(F64), E64)
valu("v_div_fixup_f16", "h", "hhh", div_fixup(F16, False), E64, keep_half=True)
valu("v_div_fixup_legacy_f16", "h", "hhh", div_fixup(F16, False), E64)


# Approximations: the judge accepts any result within `ulp` of the value, with or without flushed denormals.
def near(fmt, want, ulp, absolute=0.0):
    want_bits = fp.from_real(fmt, want)
    smallest = 2.0 ** (fmt.emin + fmt.mbits)

    def judge(bits):
        bits &= fmt.mask
        if math.isnan(want):
            return fmt.is_nan(bits)
        if fmt.is_nan(bits):
            return False
        if abs(fp.order_key(fmt, bits) - fp.order_key(fmt, want_bits)) <= ulp:
            return True
        if abs(want) < smallest * 1.000001 and fmt.is_zero(bits):
            return True
        got = fp.real(fmt, bits)
        return math.isfinite(want) and math.isfinite(got) and abs(got - want) <= absolute

    return judge


def approximation(name, kind, function, ulp, absolute=0.0):
    fmt = LETTER[kind]

    def lane(env, x):
        choices = []
        for bits in {x, fp.flush(fmt, x, True)}:
            want = function(fp.real(fmt, bits))
            if env.rules(fmt).saturate and fmt.finite(bits):  # of finite sources only: poles count as overflow
                want = max(-65504.0, min(want, 65504.0)) if want == want else want
            choices.append(near(fmt, want, ulp, absolute))
        env.judge = lambda got: any(judge(got) for judge in choices)
        return 0

    valu(name, kind, kind, lane, ALL, approximate=True, no_clamp=True, no_finish=True, plain_sdwa=True)


def exp2(x):
    return 2.0 ** x if -1100 < x < 1024 else (math.inf if x > 0 else 0.0) if x == x else x


def log2(x):
    if x == 0:
        return -math.inf
    return math.nan if x < 0 or x != x else math.log2(x) if x != math.inf else x


def reciprocal(x):
    if x == 0:
        return math.copysign(math.inf, x)
    try:
        return 1 / x
    except OverflowError:
        return math.copysign(math.inf, x)


def root(x):
    return math.nan if x < 0 or x != x else x if x in (0, math.inf) else math.sqrt(x)


def reciprocal_root(x):
    if x == 0:
        return math.copysign(math.inf, x)
    return math.nan if x < 0 or x != x else 1 / math.sqrt(x)


def wave(function, beyond):
    """The source counts turns. Beyond 256 turns SIN gives 0 and COS 1 (GCN3 ISA); infinities give NaN."""
    def value(x):
        if not math.isfinite(x):
            return math.nan
        return function(2 * math.pi * math.fmod(x, 1.0)) if abs(x) <= 256 else beyond

    return value


for letter, size, ulp in (("f", "f32", 1), ("h", "f16", 1)):
    approximation(f"v_exp_{size}", letter, exp2, ulp)
    approximation(f"v_log_{size}", letter, log2, ulp, 2.0 ** -22 if letter == "f" else 0)
    approximation(f"v_rcp_{size}", letter, reciprocal, ulp)
    approximation(f"v_rsq_{size}", letter, reciprocal_root, ulp)
    approximation(f"v_sqrt_{size}", letter, root, ulp)
    approximation(f"v_sin_{size}", letter, wave(math.sin, 0.0), ulp, 2.0 ** -22 if letter == "f" else 2.0 ** -11)
    approximation(f"v_cos_{size}", letter, wave(math.cos, 1.0), ulp, 2.0 ** -22 if letter == "f" else 2.0 ** -11)
approximation("v_rcp_iflag_f32", "f", reciprocal, 1)
approximation("v_exp_legacy_f32", "f", exp2, 1)
approximation("v_log_legacy_f32", "f", log2, 1, 2.0 ** -22)
