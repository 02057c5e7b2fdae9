"""Exact binary floating point: numbers are integers times powers of two, rounding happens once, at the end.

A number is the tuple (n, e): the value n * 2**e. NaN, infinity and the sign of zero are handled on the bits.
"""

import math

NEAREST, UP, DOWN, ZERO = 0, 1, 2, 3  # MODE.round
FP16_OVFL = 23  # bit of MODE: a finite fp16 result that overflows becomes the largest number


class Format:
    def __init__(self, name, exponent_bits, fraction_bits):
        self.name = name
        self.ebits, self.mbits = exponent_bits, fraction_bits
        self.bits = 1 + exponent_bits + fraction_bits
        self.bias = (1 << (exponent_bits - 1)) - 1
        self.emin = 1 - self.bias - fraction_bits  # exponent of the last fraction bit of a denormal
        self.sign = 1 << (self.bits - 1)
        self.inf = ((1 << exponent_bits) - 1) << fraction_bits
        self.quiet = 1 << (fraction_bits - 1)
        self.nan = self.inf | self.quiet
        self.max = self.inf - 1
        self.one = self.bias << fraction_bits
        self.mask = (1 << self.bits) - 1

    def is_nan(self, x):
        return (x & ~self.sign & self.mask) > self.inf

    def is_snan(self, x):
        return self.is_nan(x) and not x & self.quiet

    def is_inf(self, x):
        return (x & ~self.sign) == self.inf

    def is_zero(self, x):
        return (x & ~self.sign) == 0

    def is_denormal(self, x):
        return 0 < (x & ~self.sign) < (1 << self.mbits)

    def finite(self, x):
        return not self.is_nan(x) and not self.is_inf(x)

    def exponent(self, x):
        """The stored (biased) exponent field."""
        return (x >> self.mbits) & ((1 << self.ebits) - 1)

    def number(self, x):
        """The exact value of finite bits."""
        field, fraction = self.exponent(x), x & ((1 << self.mbits) - 1)
        n, e = (fraction, self.emin) if field == 0 else (fraction | 1 << self.mbits, field - 1 + self.emin)
        return (-n if x & self.sign else n), e


F16, BF16, F32, F64 = Format("f16", 5, 10), Format("bf16", 8, 7), Format("f32", 8, 23), Format("f64", 11, 52)


def shift_right_rounded(n, shift, mode, negative, sticky=0):
    """n >> shift with rounding of the magnitude n; `sticky`: nonzero when n is slightly more than written."""
    if shift <= 0:
        kept, rest, half = n << -shift, 0, 1
    else:
        kept, rest, half = n >> shift, n & ((1 << shift) - 1), 1 << (shift - 1)
    if not rest and not sticky:
        return kept
    if mode == NEAREST:
        up = rest > half or (rest == half and shift > 0 and (sticky or kept & 1))
    else:
        up = mode == (DOWN if negative else UP)
    return kept + 1 if up else kept


def encode(fmt, n, e, mode=NEAREST, zero_sign=0, sticky=0, saturate=0):
    """The nearest bits to n * 2**e (plus an infinitesimal of n's sign when sticky)."""
    if n == 0:
        return zero_sign
    sign, negative, n = (fmt.sign if n < 0 else 0), n < 0, abs(n)
    exponent = max(n.bit_length() + e - 1 - fmt.mbits, fmt.emin)
    kept = shift_right_rounded(n, exponent - e, mode, negative, sticky)
    if kept >> (fmt.mbits + 1):
        kept, exponent = kept >> 1, exponent + 1
    field = exponent - fmt.emin + 1 if kept >> fmt.mbits else 0
    if field >= (1 << fmt.ebits) - 1:
        toward_zero = saturate or mode == ZERO or (mode == UP and negative) or (mode == DOWN and not negative)
        return sign | (fmt.max if toward_zero else fmt.inf)
    return sign | field << fmt.mbits | (kept & ((1 << fmt.mbits) - 1))


class Rules:
    """What MODE says about one precision."""

    def __init__(self, fmt, mode_register):
        wide = fmt is not F32
        self.fmt = fmt
        self.round = mode_register >> (2 if wide else 0) & 3
        denormals = mode_register >> (6 if wide else 4) & 3
        self.flush_in, self.flush_out = not denormals & 1, not denormals & 2
        self.ieee, self.dx10_clamp = mode_register >> 9 & 1, mode_register >> 8 & 1
        self.saturate = mode_register >> FP16_OVFL & 1 if fmt in (F16, BF16) else 0

    def encode(self, n, e, zero_sign=0):
        return encode(self.fmt, n, e, self.round, zero_sign, 0, self.saturate)


def exact_rules(fmt):
    """Round to nearest even, all denormals."""
    return Rules(fmt, 0xF0)


def exact_saturating_rules(fmt, mode_register):
    """The same, with FP16_OVFL as MODE says."""
    return Rules(fmt, 0xF0 | mode_register & 1 << FP16_OVFL)


def flush(fmt, x, on):
    return x & fmt.sign if on and fmt.is_denormal(x) else x


def inputs(r, *values):
    return [flush(r.fmt, x, r.flush_in) for x in values]


def output(r, x):
    return flush(r.fmt, x, r.flush_out)


def nan_of(fmt, *values):
    """The quieted first NaN among the sources, None if there is none."""
    for x in values:
        if fmt.is_nan(x):
            return x | fmt.quiet
    return None


def fma(r, a, b, c, power=0, keep_denormal_inputs=False):
    """a * b + c, times 2**power, rounded once."""
    fmt = r.fmt
    if not keep_denormal_inputs:
        a, b, c = inputs(r, a, b, c)
    nan = nan_of(fmt, a, b, c)
    if nan is not None:
        return nan
    sign = (a ^ b) & fmt.sign
    if fmt.is_inf(a) or fmt.is_inf(b):
        invalid = fmt.is_zero(a) or fmt.is_zero(b) or (fmt.is_inf(c) and (c & fmt.sign) != sign)
        return fmt.nan if invalid else sign | fmt.inf
    if fmt.is_inf(c):
        return c
    (an, ae), (bn, be), (cn, ce) = fmt.number(a), fmt.number(b), fmt.number(c)
    pn, pe = an * bn, ae + be
    if pn == 0 and cn == 0:
        zero = sign if sign == (c & fmt.sign) else (fmt.sign if r.round == DOWN else 0)
        return zero
    e = min(pe, ce)
    total = (pn << (pe - e)) + (cn << (ce - e))
    return output(r, r.encode(total, e + power, fmt.sign if r.round == DOWN else 0))


def add(r, a, b):
    fmt = r.fmt
    a, b = inputs(r, a, b)
    nan = nan_of(fmt, a, b)
    if nan is not None:
        return nan
    if fmt.is_inf(a) or fmt.is_inf(b):
        if fmt.is_inf(a) and fmt.is_inf(b) and a != b:
            return fmt.nan
        return a if fmt.is_inf(a) else b
    (an, ae), (bn, be) = fmt.number(a), fmt.number(b)
    if an == 0 and bn == 0:
        return a if a == b else (fmt.sign if r.round == DOWN else 0)
    e = min(ae, be)
    total = (an << (ae - e)) + (bn << (be - e))
    return output(r, r.encode(total, e, fmt.sign if r.round == DOWN else 0))


def mul(r, a, b):
    fmt = r.fmt
    a, b = inputs(r, a, b)
    nan = nan_of(fmt, a, b)
    if nan is not None:
        return nan
    sign = (a ^ b) & fmt.sign
    if fmt.is_inf(a) or fmt.is_inf(b):
        return fmt.nan if fmt.is_zero(a) or fmt.is_zero(b) else sign | fmt.inf
    (an, ae), (bn, be) = fmt.number(a), fmt.number(b)
    return output(r, r.encode(an * bn, ae + be, sign))


def less(fmt, a, b):
    """a < b of two values that are not NaN; zeros are equal."""
    return order_key(fmt, a) < order_key(fmt, b)


def order_key(fmt, x):
    return -(x & ~fmt.sign) if x & fmt.sign else x


def minimum_number(r, a, b):
    """V_MIN_F*: the CDNA3 text; a signalling NaN wins when MODE.IEEE."""
    return extreme(r, a, b, want_less=True)


def maximum_number(r, a, b):
    return extreme(r, a, b, want_less=False)


def extreme(r, a, b, want_less):
    fmt = r.fmt
    a, b = inputs(r, a, b)
    if r.ieee and fmt.is_snan(a):
        return a | fmt.quiet
    if r.ieee and fmt.is_snan(b):
        return b | fmt.quiet
    if fmt.is_nan(a):
        return output(r, b)
    if fmt.is_nan(b):
        return output(r, a)
    if fmt.is_zero(a) and fmt.is_zero(b):
        negative = a if a & fmt.sign else b
        positive = b if a & fmt.sign else a
        return negative if want_less else positive
    return output(r, a if less(fmt, a, b) == want_less else b)


def convert(source, target, x, r_in, r_out, mode):
    """Between formats, NaN payload kept from the top (IEEE conversion)."""
    if source.is_nan(x):
        sign = target.sign if x & source.sign else 0
        fraction = x & ((1 << source.mbits) - 1)
        shift = target.mbits - source.mbits
        fraction = fraction << shift if shift >= 0 else fraction >> -shift
        return sign | target.inf | fraction | target.quiet
    if source.is_inf(x):
        return (target.sign if x & source.sign else 0) | target.inf
    x = flush(source, x, r_in.flush_in)
    n, e = source.number(x)
    zero = target.sign if x & source.sign else 0
    return flush(target, encode(target, n, e, mode, zero, 0, r_out.saturate), r_out.flush_out)


def to_integer(fmt, x, low, high, mode=ZERO):
    """Saturating conversion; NaN gives 0."""
    if fmt.is_nan(x):
        return 0
    if fmt.is_inf(x):
        return low if x & fmt.sign else high
    return min(max(round_number(*fmt.number(x), mode), low), high)


def round_number(n, e, mode):
    """n * 2**e to an integer."""
    if e >= 0:
        return n << e
    magnitude = shift_right_rounded(abs(n), -e, mode, n < 0)
    return -magnitude if n < 0 else magnitude


def integral(r, x, mode):
    """TRUNC, CEIL, FLOOR, RNDNE; -0 keeps its sign."""
    fmt = r.fmt
    (x,) = inputs(r, x)
    if fmt.is_nan(x):
        return x | fmt.quiet
    if fmt.is_inf(x):
        return x
    return encode(fmt, round_number(*fmt.number(x), mode), 0, NEAREST, x & fmt.sign)


def times_power(r, x, power):
    """LDEXP."""
    fmt = r.fmt
    (x,) = inputs(r, x)
    if fmt.is_nan(x):
        return x | fmt.quiet
    if fmt.is_inf(x):
        return x
    n, e = fmt.number(x)
    power = max(min(power, 5000), -5000)
    return output(r, r.encode(n, e + power, x & fmt.sign))


def finish(r, x, clamp, omod):
    """Output modifiers."""
    fmt = r.fmt
    if omod and r.flush_out and not r.ieee:
        x = output_multiply(r, x, {1: 1, 2: 2, 3: -1}[omod])
    if clamp:
        if fmt.is_nan(x):
            return 0 if r.dx10_clamp else x
        if x & fmt.sign:
            return 0
        return min(x, fmt.one)
    return x


def output_multiply(r, x, power):
    """omod: it acts only when output denormals are flushed and MODE.IEEE is 0. A zero or denormal becomes +0; what the
    scale makes denormal is flushed and keeps its sign."""
    fmt = r.fmt
    if not fmt.finite(x):
        return x
    if fmt.is_zero(x) or fmt.is_denormal(x):
        return 0
    n, e = fmt.number(x)
    if fmt.exponent(x) + power <= 0:
        return x & fmt.sign
    return r.encode(n, e + power)


def real(fmt, x):
    """The nearest Python float (for approximations)."""
    if fmt.is_nan(x):
        return math.nan
    if fmt.is_inf(x):
        return -math.inf if x & fmt.sign else math.inf
    n, e = fmt.number(x)
    if n == 0:
        return -0.0 if x & fmt.sign else 0.0
    return math.ldexp(n, e)


def from_real(fmt, value):
    """Python float to the nearest bits."""
    if math.isnan(value):
        return fmt.nan
    sign = fmt.sign if math.copysign(1, value) < 0 else 0
    if math.isinf(value):
        return sign | fmt.inf
    n, d = value.as_integer_ratio()
    return encode(fmt, n, -(d.bit_length() - 1), NEAREST, sign)
