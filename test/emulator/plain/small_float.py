"""Conversions to and from fp8, bf8, fp6, bf6 and fp4, with and without scales, nearest or stochastic.

Formats: OCP "8-bit floating point" and "Microscaling formats" (gfx950), the FNUZ variants of LLVM's APFloat (gfx942).
A scale operand counts by its exponent field: 2**(field - 127), 255 is NaN. Results follow MODE.FP16_OVFL only.
"""

import fp
from fp import BF16, F16, F32, NEAREST
from machine import M32, Instruction, modified, raw
from vector import valu

NONE, ONE_NAN, IEEE, FNUZ = "no NaN", "one NaN a sign", "infinities and NaN", "NaN is -0"


class Small:
    def __init__(self, exponent_bits, fraction_bits, special):
        self.mbits, self.special = fraction_bits, special
        self.bits = 1 + exponent_bits + fraction_bits
        self.sign = 1 << self.bits - 1
        bias = (1 << exponent_bits - 1) - 1 + (special == FNUZ)
        self.emin = 1 - bias - fraction_bits
        infinity = (1 << exponent_bits) - 1 << fraction_bits
        self.max = {NONE: self.sign - 1, ONE_NAN: self.sign - 2, IEEE: infinity - 1, FNUZ: self.sign - 1}[special]
        quiet = infinity | 1 << fraction_bits - 1
        self.nan = {NONE: self.max, ONE_NAN: self.sign - 1, IEEE: quiet, FNUZ: self.sign}[special]

    def is_nan(self, x):
        if self.special == FNUZ:
            return x == self.sign
        return x & ~self.sign > self.max + (self.special == IEEE)

    def is_inf(self, x):
        return self.special == IEEE and x & ~self.sign == self.max + 1

    def number(self, x):
        """(n, e) of a finite code."""
        magnitude = x & ~self.sign
        field, fraction = magnitude >> self.mbits, magnitude & (1 << self.mbits) - 1
        n, e = (fraction | 1 << self.mbits, field - 1) if field else (fraction, 0)
        return (-n if x & self.sign else n), e + self.emin

    def signed(self, magnitude, negative):
        if self.special == FNUZ and magnitude in (0, self.sign):
            return magnitude
        return magnitude | (self.sign if negative else 0)

    def overflow(self, negative, saturate):
        if saturate or self.special == NONE:
            return self.signed(self.max, negative)
        return self.signed(self.max + 1 if self.special == IEEE else self.nan, negative)


FP6, BF6, FP4 = Small(2, 3, NONE), Small(3, 2, NONE), Small(2, 1, NONE)
EIGHT = {("fp8", "gfx950"): Small(4, 3, ONE_NAN), ("bf8", "gfx950"): Small(5, 2, IEEE),
         ("fp8", "gfx942"): Small(4, 3, FNUZ), ("bf8", "gfx942"): Small(5, 2, FNUZ)}
WIDE = {"f32": F32, "f16": F16, "bf16": BF16}


def small_format(name, processor):
    return {"fp6": FP6, "bf6": BF6, "fp4": FP4}.get(name) or EIGHT[name, processor]


def scale_power(bits):
    """The exponent of a scale operand, None for NaN."""
    field = F32.exponent(bits)
    return None if field == 255 else field - 127


def widen(small, x, target, power=0, saturate=0):
    """To a wider format, times 2**power; one rounding to nearest, denormals kept."""
    sign = target.sign if x & small.sign else 0
    if power is None or small.is_nan(x):
        # FNUZ has one NaN, which has no sign
        return (0 if small.special == FNUZ else sign) | target.nan
    if small.is_inf(x):
        return sign | target.inf
    n, e = small.number(x)
    return fp.encode(target, n, e + power, NEAREST, sign, 0, saturate and target is not F32)


def rounded(target, n, e, dropped, random):
    """The code of n * 2**e without sign, as if exponents went on for ever: to nearest, or up when the `dropped` bits
    below the last one, plus as many top bits of `random`, carry; what lies below them is cut."""
    if n == 0:
        return 0
    last = max(n.bit_length() + e - 1 - target.mbits, target.emin)  # exponent of the result's last bit
    if random is None:
        kept = fp.shift_right_rounded(n, last - e, NEAREST, False)
    else:
        shift = last - dropped - e
        fine = n >> shift if shift > 0 else n << -shift
        kept = fine + (random >> 32 - dropped) >> dropped
    # A carry out of the fraction makes the next exponent's code, as the codes are in order.
    return kept + (last - target.emin << target.mbits)


def narrow(small, source, x, saturate, power=0, random=None):
    """From a wider format, divided by 2**power."""
    negative = bool(x & source.sign)
    if power is None or source.is_nan(x):
        return small.signed(small.nan, negative)
    if source.is_inf(x):
        return small.overflow(negative, saturate)
    n, e = source.number(x)
    code = rounded(small, abs(n), e - power, source.mbits - small.mbits, random)
    return small.overflow(negative, saturate) if code > small.max else small.signed(code, negative)


def prng(x):
    """V_PRNG_B32."""
    return (x << 1 & M32) ^ (197 if x >> 31 else 0)


valu("v_prng_b32", "u", "u", lambda env, x: prng(x), "e32 e64 sdwa dpp", no_mods=True, since="gfx950")


# VOP1: fp8 to fp32; SDWA picks the byte or the pair.
def from_eight(name):
    def one(env, x):
        return widen(small_format(name, env.state.processor), x & 255, F32)

    def two(env, x):
        omod = env.inst.m.get("omod_code", 0)
        low, high = (fp.finish(env.rules(F32), one(env, x >> s), env.clamp, omod) for s in (0, 8))
        return low | high << 32

    valu(f"v_cvt_f32_{name}", "f", "u", one, "e32 e64 sdwa dpp", since="gfx942", plain_sdwa=True)
    valu(f"v_cvt_pk_f32_{name}", "P", "u", two, "e32 e64 sdwa", since="gfx942", plain_sdwa=True)


from_eight("fp8")
from_eight("bf8")


def from_bf16(env, x):
    return fp.convert(BF16, F32, x, env.exact(BF16), env.rules(F32), NEAREST)


valu("v_cvt_f32_bf16", "f", "b", from_bf16, "e32 e64 sdwa dpp", since="gfx950")

# VOP3
TABLE = {}


class Env:
    """Operands of one lane as whole numbers, however many registers they have."""

    def __init__(self, state, inst, lane, row):
        self.processor = state.processor
        self.saturate = state.mode >> fp.FP16_OVFL & 1
        self.op_sel = (inst.m.get("op_sel", []) + [0] * 4)[:4]
        self.old = read_wide(state, inst.o[0], lane, row.words)
        self.s = [modified(read_wide(state, o, lane, w, k), o, "f") if k == "f" else read_wide(state, o, lane, w, k)
                  for o, (k, w) in zip(inst.o[1:], row.sources)]

    def put(self, value, bits, place):
        """The old destination with `bits` bits replaced."""
        mask = (1 << bits) - 1 << bits * place
        return self.old & ~mask | value << bits * place

    @property
    def target_byte(self):
        return self.op_sel[2] + 2 * self.op_sel[3]

    @property
    def source_byte(self):
        return self.op_sel[0] + 2 * self.op_sel[1]


def read_wide(state, operand, lane, words, kind="u"):
    if words == 1:
        return raw(state, operand, kind if operand.kind == "c" else "u", lane)
    file = state.v if operand.kind == "v" else state.a
    return sum(file[operand.index + w][lane] << 32 * w for w in range(words))


class Row:
    """words: registers of the destination; sources: (kind, registers), kind f for fp32 with modifiers, p and B for two
    fp16 and bf16, u otherwise.

    select: the op_sel bits that mean something, in the order of the text.
    """

    def __init__(self, name, words, sources, select, function, since="gfx950"):
        self.name, self.words, self.sources, self.select = name, words, sources, select
        self.function, self.since = function, since
        TABLE[name] = self

    def run(self, state, inst):
        results = [(lane, self.function(Env(state, inst, lane, self))) for lane in state.active()]
        for lane, value in results:
            for w in range(self.words):
                state.v[inst.o[0].index + w][lane] = value >> 32 * w & M32
                state.approximate.pop((inst.o[0].index + w, lane), None)

    def make(self, g):
        sizes = [self.words] + [w for _, w in self.sources]
        if max(sizes) > 2:  # two passes: the destination may not overlap a source
            operands = g.apart(sizes)
        else:
            operands = [g.vector_register(w) for w in sizes]
            scalars = 0
            for i, (kind, words) in enumerate(self.sources):
                choice = g.r.random()
                if words == 1 and choice < 0.1 and not scalars:
                    operands[i + 1], scalars = g.scalar_register(1), 1
                elif words == 1 and choice < 0.2:
                    operands[i + 1] = g.constant("w" if kind == "u" else "f", False)
            for operand, (kind, _) in zip(operands[1:], self.sources):
                if kind == "f" and operand.kind in "vs":
                    operand.neg, operand.abs = g.r.random() < 0.25, g.r.random() < 0.25
        modifiers = {}
        if self.select and g.r.random() < 0.8:
            modifiers["op_sel"] = [g.r.getrandbits(1) if bit == "1" else 0 for bit in self.select]
        return Instruction(self.name, "", operands, modifiers)


def define_plain(name, since):
    small = lambda env: small_format(name, env.processor)  # noqa: E731

    def pair(env):
        low, high = (narrow(small(env), F32, x, env.saturate) for x in env.s)
        return env.put(low | high << 8, 16, env.op_sel[2])

    def stochastic(env):
        return env.put(narrow(small(env), F32, env.s[0], env.saturate, 0, env.s[1]), 8, env.target_byte)

    Row(f"v_cvt_pk_{name}_f32", 1, [("f", 1), ("f", 1)], "001", pair, since)
    Row(f"v_cvt_sr_{name}_f32", 1, [("f", 1), ("u", 1)], "0011", stochastic, since)


define_plain("fp8", "gfx942")
define_plain("bf8", "gfx942")


def define_stochastic_wide(name, target):
    """fp16 and bf16 with their own infinity and NaN; FP16_OVFL keeps a finite source finite."""
    def lane(env):
        x = env.s[0]
        if F32.finite(x):
            n, e = F32.number(x)
            code = rounded(target, abs(n), e, F32.mbits - target.mbits, env.s[1])
            code = min(code, target.max if env.saturate else target.inf) | (target.sign if x & F32.sign else 0)
        else:
            code = fp.convert(F32, target, x, fp.exact_rules(F32), fp.exact_rules(target), NEAREST)
        return env.put(code, 16, env.op_sel[2])

    Row(f"v_cvt_sr_{name}_f32", 1, [("f", 1), ("u", 1)], "001", lane)


define_stochastic_wide("f16", F16)
define_stochastic_wide("bf16", BF16)


# With scales
def define_widening(small_name, wide_name):
    target = WIDE[wide_name]
    small = lambda env: small_format(small_name, env.processor)  # noqa: E731
    words = 2 if target is F32 else 1
    base = f"{wide_name}_{small_name}"

    def values(env, packed, count):
        s, power = small(env), scale_power(env.s[1])
        return [widen(s, packed >> s.bits * i & (1 << s.bits) - 1, target, power, env.saturate) for i in range(count)]

    def join(results):
        return sum(x << target.bits * i for i, x in enumerate(results))

    if small_name in ("fp6", "bf6"):
        Row(f"v_cvt_scalef32_pk32_{base}", 16 * words, [("u", 6), ("u", 1)], "",
            lambda env: join(values(env, env.s[0], 32)))
        return
    if small_name == "fp4":
        Row(f"v_cvt_scalef32_pk_{base}", words, [("u", 1), ("f", 1)], "11",
            lambda env: join(values(env, env.s[0] >> 8 * env.source_byte, 2)))
        return
    Row(f"v_cvt_scalef32_pk_{base}", words, [("u", 1), ("f", 1)], "10",
        lambda env: join(values(env, env.s[0] >> 16 * env.op_sel[0], 2)))
    if wide_name == "f32":
        Row(f"v_cvt_scalef32_{base}", 1, [("u", 1), ("f", 1)], "11",
            lambda env: values(env, env.s[0] >> 8 * env.source_byte, 1)[0])
    elif wide_name == "f16":
        Row(f"v_cvt_scalef32_{base}", 1, [("u", 1), ("f", 1)], "111",
            lambda env: env.put(values(env, env.s[0] >> 8 * env.source_byte, 1)[0], 16, env.op_sel[2]))


def define_narrowing(small_name, wide_name):
    source = WIDE[wide_name]
    small = lambda env: small_format(small_name, env.processor)  # noqa: E731
    base = f"{small_name}_{wide_name}"
    single = wide_name == "f32"
    pair = "p" if wide_name == "f16" else "B"

    def pack(env, sources, scale, random=None):
        """One result after another; each takes the next random number."""
        s, power, total = small(env), scale_power(scale), 0
        for i, x in enumerate(sources):
            total |= narrow(s, source, x, env.saturate, power, random) << s.bits * i
            random = prng(random) if random is not None else None
        return total

    def elements(value, count):
        return [value >> source.bits * i & source.mask for i in range(count)]

    if small_name in ("fp6", "bf6"):
        wide = 32 if single else 16
        if single:  # the two sources alternate
            Row(f"v_cvt_scalef32_2xpk16_{base}", 6, [("u", 16), ("u", 16), ("u", 1)], "",
                lambda env: pack(env, [x for pair in zip(elements(env.s[0], 16), elements(env.s[1], 16)) for x in pair],
                                 env.s[2]))
        else:
            Row(f"v_cvt_scalef32_pk32_{base}", 6, [("u", 16), ("u", 1)], "",
                lambda env: pack(env, elements(env.s[0], 32), env.s[1]))
        Row(f"v_cvt_scalef32_sr_pk32_{base}", 6, [("u", wide), ("u", 1), ("u", 1)], "",
            lambda env: pack(env, elements(env.s[0], 32), env.s[2], env.s[1]))
        return
    bits, place, select = (16, lambda env: env.op_sel[3], "0001") if small_name != "fp4" else (
        8, lambda env: env.target_byte, "0011")
    if single:
        Row(f"v_cvt_scalef32_pk_{base}", 1, [("f", 1), ("f", 1), ("f", 1)], select,
            lambda env: env.put(pack(env, env.s[:2], env.s[2]), bits, place(env)))
    elif small_name == "fp4":
        Row(f"v_cvt_scalef32_pk_{base}", 1, [(pair, 1), ("f", 1)], select,
            lambda env: env.put(pack(env, elements(env.s[0], 2), env.s[1]), bits, place(env)))
    else:
        Row(f"v_cvt_scalef32_pk_{base}", 1, [(pair, 1), ("f", 1)], "001",
            lambda env: env.put(pack(env, elements(env.s[0], 2), env.s[1]), bits, env.op_sel[2]))
    if small_name == "fp4":
        Row(f"v_cvt_scalef32_sr_pk_{base}", 1, [("u", 2) if single else (pair, 1), ("u", 1), ("f", 1)], "0011",
            lambda env: env.put(pack(env, elements(env.s[0], 2), env.s[2], env.s[1]), 8, env.target_byte))
    else:
        def one(env):
            x = env.s[0] if single else elements(env.s[0], 2)[env.op_sel[0]]
            return env.put(pack(env, [x], env.s[2], env.s[1]), 8, env.target_byte)

        Row(f"v_cvt_scalef32_sr_{base}", 1, [("f" if single else pair, 1), ("u", 1), ("f", 1)],
            "0011" if single else "1011", one)


for _wide in WIDE:
    for _small in ("fp8", "bf8", "fp6", "bf6", "fp4"):
        define_widening(_small, _wide)
        define_narrowing(_small, _wide)
