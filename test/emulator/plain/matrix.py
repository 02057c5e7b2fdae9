"""MFMA: D = A x B + C by layout formulas.

A register index j of lane l holds one (row, k) of A and one (k, column) of B; blocks are independent products. The
sum of an output is a chain of fused multiply-adds over ascending k that starts from C; a NaN is the default NaN. EXEC
and MODE are ignored.
"""

import fp
from fp import BF16, F16, F32, F64
from machine import LANES, M32, Instruction, Operand, raw, signed
from small_float import small_format

TABLE = {}
BITS = {"f64": 64, "f32": 32, "xf32": 32, "f16": 16, "bf16": 16, "i8": 8, "fp8": 8, "bf8": 8, "fp6": 6, "bf6": 6,
        "fp4": 4}
FORMAT = {"f32": F32, "f16": F16, "bf16": BF16, "f64": F64}

# A decoded element: (n, e, negative) for n * 2**e, or one of these.
NAN, INF, MINUS_INF = "nan", "inf", "-inf"


def decode(kind, x, processor):
    if kind == "xf32":  # TF32: 10 bits of fraction, the rest is dropped
        if F32.is_nan(x):
            return NAN
        kind, x = "f32", x & 0xFFFFE000
    fmt = FORMAT.get(kind) or small_format(kind, processor)
    negative = bool(x & fmt.sign)
    if fmt.is_nan(x):
        return NAN
    if fmt.is_inf(x):
        return MINUS_INF if negative else INF
    return (*fmt.number(x), negative)


def scaled(value, power):
    """An element times 2**power; None is the scale NaN."""
    if power is None:
        return NAN
    return value if isinstance(value, str) else (value[0], value[1] + power, value[2])


def sign_of(value):
    return value == MINUS_INF if isinstance(value, str) else value[2]


def special_step(a, b, c):
    """a * b + c where one of them is not finite."""
    if NAN in (a, b, c) or (a in (INF, MINUS_INF) and not isinstance(b, str) and b[0] == 0) \
            or (b in (INF, MINUS_INF) and not isinstance(a, str) and a[0] == 0):
        return NAN
    if isinstance(a, str) or isinstance(b, str):
        product = MINUS_INF if sign_of(a) != sign_of(b) else INF
        return NAN if isinstance(c, str) and c != product else product
    return c


def fused(fmt, pairs, start):
    """Decoded pairs on the bits `start`: the bits after a chain of fused multiply-adds, each rounded to nearest."""
    precision, least, top = fmt.mbits + 1, fmt.emin, fmt.bias + 1
    total = decode("f64" if fmt is F64 else "f32", start, None)
    for a, b in pairs:
        if isinstance(a, str) or isinstance(b, str) or isinstance(total, str):
            total = special_step(a, b, total)
            continue
        n, e, negative = total
        pn, pe, p_negative = a[0] * b[0], a[1] + b[1], a[2] != b[2]
        if pn == 0:
            if n == 0:
                total = (0, 0, negative and p_negative)
            continue
        if n == 0:
            n, e = pn, pe
        elif pe < e:
            n, e = (n << e - pe) + pn, pe
        else:
            n += pn << pe - e
        if n == 0:
            total = (0, 0, False)
            continue
        negative = n < 0
        drop = max(n.bit_length() - precision, least - e)
        if drop > 0:
            n = fp.shift_right_rounded(abs(n), drop, fp.NEAREST, negative)
            n, e = -n if negative else n, e + drop
        if n.bit_length() + e > top:
            total = MINUS_INF if negative else INF
        else:
            total = (n, e, negative)
    if isinstance(total, str):
        return {NAN: fmt.nan, INF: fmt.inf, MINUS_INF: fmt.sign | fmt.inf}[total]
    return fp.encode(fmt, total[0], total[1], fp.NEAREST, fmt.sign if total[2] else 0)


class Shape:
    def __init__(self, rows, columns, depth, blocks, element, per_lane, kind, element_b=None):
        """element: type of A (and B); per_lane: elements of A a lane holds; kind: f32, i32 or f64."""
        self.m, self.n, self.k, self.blocks = rows, columns, depth, blocks
        self.element, self.per_lane, self.kind = element, per_lane, kind
        self.element_b = element_b or element

    @property
    def results(self):
        """Registers of D."""
        return self.m * self.n * self.blocks // LANES * (2 if self.kind == "f64" else 1)


def element(state, operand, lane, index, kind):
    """Element `index` of the lane's registers; elements of 6 bits cross them."""
    bits = BITS[kind]
    file = state.v if operand.kind == "v" else state.a
    first, shift = divmod(index * bits, 32)
    value = file[operand.index + first][lane]
    if shift + bits > 32:
        value |= file[operand.index + first + 1][lane] << 32
    return value >> shift & (1 << bits) - 1


def position_a(shape, lane, j):
    """(block, row, k) of element j of lane."""
    row = lane % shape.m
    block = lane // shape.m % shape.blocks if shape.blocks > 1 else 0
    group = lane // (shape.m * shape.blocks)
    return block, row, group * shape.per_lane + j


def position_d(shape, lane, i):
    """(block, row, column) of result register i of lane."""
    per_block = shape.m * shape.n // LANES
    if shape.kind == "f64":
        return (lane // 4 % 4, lane // 16, lane % 4) if shape.m == 4 else (0, lane // 16 + 4 * i, lane % 16)
    if shape.m == 4:
        return lane // 4, i, lane % 4
    block, inside = i // per_block, i % per_block
    if shape.m == 16:
        return block, 4 * (lane // 16) + inside, lane % 16
    return block, 8 * (inside // 4) + 4 * (lane // 32) + inside % 4, lane % 32


def lane_of_a(shape, lane, m):
    """CBSZ, ABID: in each group of 2**CBSZ blocks all take A from block ABID."""
    size = 1 << m.get("cbsz", 0)
    block = lane // shape.m % shape.blocks
    other = block // size * size + m.get("abid", 0) % size
    return lane + (other - block) * shape.m


def lane_of_b(lane, pattern):
    """BLGP."""
    if pattern == 0:
        return lane
    if pattern < 3:
        return lane % 32 + 32 * (pattern - 1)
    return (lane + 16) % 64 if pattern == 3 else lane % 16 + 16 * (pattern - 4)


def accumulate(state, shape, inst, terms):
    """terms(block, row, column): decoded pairs in ascending k (integers for i32). Writes D."""
    dst, c = inst.o[0], inst.o[3]
    results, negate = [], inst.m.get("neg", [0, 0, 0])[2]
    for lane in range(LANES):
        for i in range(shape.m * shape.n * shape.blocks // LANES):
            pairs = terms(*position_d(shape, lane, i))
            if c.kind in "va":
                start = element(state, c, lane, i, "f64" if shape.kind == "f64" else "f32")
            else:
                start = raw(state, c, {"f32": "f", "i32": "u", "f64": "d"}[shape.kind], lane)
            if shape.kind == "i32":
                value = signed(start, 32) + sum(x * y for x, y in pairs) & M32
            else:
                fmt = F64 if shape.kind == "f64" else F32
                value = fused(fmt, pairs, start ^ (fmt.sign if negate else 0))
            results.append((lane, i, value))
    file = state.v if dst.kind == "v" else state.a
    for lane, i, value in results:
        if shape.kind == "f64":
            file[dst.index + 2 * i][lane], file[dst.index + 2 * i + 1][lane] = value & M32, value >> 32
        else:
            file[dst.index + i][lane] = value


def read_value(state, operand, lane, j, kind, negate=False):
    x = element(state, operand, lane, j, kind)
    if kind == "i8":
        return signed(x, 8)
    return decode(kind, x ^ (FORMAT[kind].sign if negate else 0), state.processor)


def run(state, inst):
    shape = TABLE[inst.name].shape
    _, a, b, _ = inst.o
    left, right = {}, {}
    negate = inst.m.get("neg", [0, 0, 0])
    for lane in range(LANES):
        from_a, from_b = lane_of_a(shape, lane, inst.m), lane_of_b(lane, inst.m.get("blgp", 0))
        for j in range(shape.per_lane):
            block, row, k = position_a(shape, lane, j)
            left.setdefault((block, row), {})[k] = read_value(state, a, from_a, j, shape.element, negate[0])
            right.setdefault((block, row), {})[k] = read_value(state, b, from_b, j, shape.element_b, negate[1])
    rows = {key: [values[k] for k in range(shape.k)] for key, values in left.items()}
    columns = {key: [values[k] for k in range(shape.k)] for key, values in right.items()}
    accumulate(state, shape, inst, lambda block, row, column: zip(rows[block, row], columns[block, column]))


def result_operands(g, shape):
    """D and C: C is D, a register tuple that does not overlap it in part, or an inline constant."""
    count, file = shape.results, g.r.choice("va")
    dst = Operand(file, 0 if file == "a" else 32, 32) if count == 32 else g.vector_register(count, file)
    if g.r.random() < 0.2:
        return dst, Operand("i", g.r.randrange(-16, 65) if shape.kind == "i32" else 0)
    c = g.vector_register(count, file) if count < 17 and g.r.random() < 0.5 else dst
    if abs(c.index - dst.index) < count:
        c = dst
    return dst, Operand(file, c.index, count)


class Row:
    def __init__(self, name, shape, only, broadcast):
        self.name, self.shape, self.only, self.broadcast = name, shape, only, broadcast
        self.since, self.run = None, run
        TABLE[name] = self

    def make(self, g):
        r, shape = g.r, self.shape
        words = max(1, shape.per_lane * BITS[shape.element] // 32)
        dst, c = result_operands(g, shape)
        modifiers = {}
        if self.broadcast and r.random() < 0.5:
            if shape.blocks > 1:
                modifiers["cbsz"] = r.randrange(shape.blocks.bit_length())
                modifiers["abid"] = r.randrange(1 << modifiers["cbsz"])
            modifiers["blgp"] = r.randrange(8)
        if shape.kind == "f64" and g.processor != "gfx90a" and r.random() < 0.5:
            modifiers["neg"] = [r.getrandbits(1) for _ in range(3)]
        a, b = (g.vector_register(words, r.choice("va")) for _ in range(2))
        return Instruction(self.name, "", [dst, a, b, c], modifiers)


def define(names, *shape, broadcast=True):
    for name, only in names:
        Row(name, Shape(*shape), only, broadcast)


NEW, OLD, LAST = ("gfx942", "gfx950"), ("gfx90a",), ("gfx950",)
for _kind, _suffix, _old in (("f16", "f16", "f16"), ("bf16", "bf16", "bf16_1k")):
    for _size, _depth, _blocks in ((32, 4, 2), (16, 4, 4), (4, 4, 16), (32, 8, 1), (16, 16, 1)):
        _name = f"{_size}x{_size}x{_depth}"
        _count = f"_{_blocks}b" if _blocks > 1 else ""
        define([(f"v_mfma_f32_{_name}{_count}_{_suffix}", NEW), (f"v_mfma_f32_{_name}{_old}", OLD)],
               _size, _size, _depth, _blocks, _kind, 4, "f32")
    define([(f"v_mfma_f32_16x16x32_{_suffix}", LAST)], 16, 16, 32, 1, _kind, 8, "f32")
    define([(f"v_mfma_f32_32x32x16_{_suffix}", LAST)], 32, 32, 16, 1, _kind, 8, "f32")
for _size, _depth, _blocks in ((32, 2, 2), (16, 2, 4), (4, 2, 16), (32, 4, 1), (16, 8, 1)):
    define([(f"v_mfma_f32_{_size}x{_size}x{_depth}bf16", OLD)], _size, _size, _depth, _blocks, "bf16", 2, "f32")
for _size, _depth, _blocks in ((32, 1, 2), (16, 1, 4), (4, 1, 16), (32, 2, 1), (16, 4, 1)):
    _count = f"_{_blocks}b" if _blocks > 1 else ""
    _name = f"v_mfma_f32_{_size}x{_size}x{_depth}"
    define([(f"{_name}{_count}_f32", NEW), (f"{_name}f32", OLD)], _size, _size, _depth, _blocks, "f32", 1, "f32")
for _size, _blocks in ((32, 2), (16, 4), (4, 16)):
    define([(f"v_mfma_i32_{_size}x{_size}x4_{_blocks}b_i8", NEW), (f"v_mfma_i32_{_size}x{_size}x4i8", OLD)],
           _size, _size, 4, _blocks, "i8", 4, "i32")
define([("v_mfma_i32_32x32x8i8", OLD)], 32, 32, 8, 1, "i8", 4, "i32")
define([("v_mfma_i32_16x16x16i8", OLD)], 16, 16, 16, 1, "i8", 4, "i32")
define([("v_mfma_i32_32x32x16_i8", NEW)], 32, 32, 16, 1, "i8", 8, "i32")
define([("v_mfma_i32_16x16x32_i8", NEW)], 16, 16, 32, 1, "i8", 8, "i32")
define([("v_mfma_i32_16x16x64_i8", LAST)], 16, 16, 64, 1, "i8", 16, "i32")
define([("v_mfma_i32_32x32x32_i8", LAST)], 32, 32, 32, 1, "i8", 16, "i32")
define([("v_mfma_f32_16x16x8_xf32", ("gfx942",))], 16, 16, 8, 1, "xf32", 2, "f32")
define([("v_mfma_f32_32x32x4_xf32", ("gfx942",))], 32, 32, 4, 1, "xf32", 2, "f32")
for _a in ("fp8", "bf8"):
    for _b in ("fp8", "bf8"):
        define([(f"v_mfma_f32_16x16x32_{_a}_{_b}", NEW)], 16, 16, 32, 1, _a, 8, "f32", _b)
        define([(f"v_mfma_f32_32x32x16_{_a}_{_b}", NEW)], 32, 32, 16, 1, _a, 8, "f32", _b)
# BLGP of the fp64 forms is neg on gfx942 and later.
define([("v_mfma_f64_16x16x4_f64", NEW), ("v_mfma_f64_16x16x4f64", OLD)], 16, 16, 4, 1, "f64", 1, "f64",
       broadcast=False)
define([("v_mfma_f64_4x4x4_4b_f64", NEW), ("v_mfma_f64_4x4x4f64", OLD)], 4, 4, 4, 4, "f64", 1, "f64", broadcast=False)


# Random bits are so often NaN in small formats that most sums would be. Most of the time what an instruction reads is
# made finite, and near 1 where the format reaches far.
def near_one(random, kind, x):
    """Register bits of elements of this kind without NaN, infinity and (wide formats) extreme exponents."""
    if kind in ("f32", "xf32"):
        return x & 0x807FFFFF | random.randrange(104, 150) << 23
    if kind == "f64":  # the high word
        return x & 0x800FFFFF | random.randrange(1003, 1043) << 20
    if kind == "bf16":
        return x & 0x807F807F | random.randrange(110, 142) << 23 | random.randrange(110, 142) << 7
    if kind == "f16":
        return x & ~(0x4000 * (x >> 10 & 31 == 31)) & ~(0x40000000 * (x >> 26 & 31 == 31))
    if kind in ("fp8", "bf8"):
        special = 0x78 if kind == "fp8" else 0x7C
        for shift in (0, 8, 16, 24):
            if x >> shift & special == special or x >> shift & 255 == 128:
                x ^= 0x40 << shift
    return x


def tame(random, state, operand, kind):
    if operand.kind not in "va":
        return
    file = state.v if operand.kind == "v" else state.a
    for word in range(operand.words):
        if kind == "f64" and word % 2 == 0:
            continue
        line = file[operand.index + word]
        file[operand.index + word] = [near_one(random, kind, x) for x in line]


def prepare(random, state, inst):
    shape = TABLE[inst.name].shape
    if shape.kind != "i32" and random.random() < 0.8:
        for operand, kind in zip(inst.o[1:4], (shape.element, shape.element_b, shape.kind)):
            tame(random, state, operand, kind)
