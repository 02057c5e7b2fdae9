"""MFMA: D = A x B + C by layout formulas.

A register index j of lane l holds one (row, k) of A and one (k, column) of B; blocks are independent products. The
sum of an output is a chain of fused multiply-adds over ascending k that starts from C; a NaN is the default NaN. EXEC
and MODE are ignored.
"""

import fp
from fp import BF16, F16, F32, F64
from machine import LANES, M32, M64, Instruction, Operand, raw, signed

TABLE = {}


class Shape:
    def __init__(self, rows, columns, depth, blocks, element, per_lane, kind):
        """element: type of A and B; per_lane: elements of A a lane holds; kind: f32, i32 or f64."""
        self.m, self.n, self.k, self.blocks = rows, columns, depth, blocks
        self.element, self.per_lane, self.kind = element, per_lane, kind


BITS = {"f32": 32, "f16": 16, "bf16": 16, "i8": 8, "f64": 64}


def element(state, operand, lane, index, kind):
    bits = BITS[kind]
    file = state.v if operand.kind == "v" else state.a
    at = operand.index + index * bits // 32
    if bits == 64:
        return file[at][lane] | file[at + 1][lane] << 32
    return file[at][lane] >> index * bits % 32 & (1 << bits) - 1


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
        return 0, lane // 16 + 4 * i, lane % 16
    if shape.m == 4:
        return lane // 4, i, lane % 4
    block, inside = i // per_block, i % per_block
    if shape.m == 16:
        return block, 4 * (lane // 16) + inside, lane % 16
    return block, 8 * (inside // 4) + 4 * (lane // 32) + inside % 4, lane % 32


def widen(kind, x):
    """To fp32 bits, exactly."""
    if kind == "bf16":
        return x << 16
    if kind == "f16":
        r = fp.exact_rules(F32)
        return fp.convert(F16, F32, x, r, r, fp.NEAREST)
    return x


def run(state, inst):
    shape = TABLE[inst.name].shape
    dst, a, b, c = inst.o
    left, right = {}, {}
    for lane in range(LANES):
        for j in range(shape.per_lane):
            block, row, k = position_a(shape, lane, j)
            left[block, row, k] = element(state, a, lane, j, shape.element)
            right[block, row, k] = element(state, b, lane, j, shape.element)
    results = []
    for lane in range(LANES):
        for i in range(shape.m * shape.n * shape.blocks // LANES):
            block, row, column = position_d(shape, lane, i)
            if c.kind in "va":
                start = element(state, c, lane, i, "f64" if shape.kind == "f64" else "f32")
            else:
                start = raw(state, c, {"f32": "f", "i32": "u", "f64": "d"}[shape.kind], lane)
            pairs = [(left[block, row, k], right[block, column, k]) for k in range(shape.k)]
            results.append((lane, i, chain(shape, start, pairs)))
    file = state.v if dst.kind == "v" else state.a
    for lane, i, value in results:
        if shape.kind == "f64":
            file[dst.index + 2 * i][lane], file[dst.index + 2 * i + 1][lane] = value & M32, value >> 32
        else:
            file[dst.index + i][lane] = value


def chain(shape, start, pairs):
    if shape.kind == "i32":
        return signed(start, 32) + sum(signed(x, 8) * signed(y, 8) for x, y in pairs) & M32
    fmt = F64 if shape.kind == "f64" else F32
    rules = fp.exact_rules(fmt)
    for x, y in pairs:
        if shape.kind != "f64":
            x, y = widen(shape.element, x), widen(shape.element, y)
        start = fp.fma(rules, x, y, start)
    return fmt.nan if fmt.is_nan(start) else start


class Row:
    def __init__(self, name, shape, since, only):
        self.shape, self.since, self.only, self.run = shape, since, only, run
        self.make = lambda g: make(g, name, shape)


def make(g, name, shape):
    def registers(count):
        return g.vector_register(count, g.r.choice("va"), limit=28)

    wide = 2 if shape.kind == "f64" else 1
    per_lane_words = max(1, shape.per_lane * BITS[shape.element] // 32)
    results = shape.m * shape.n * shape.blocks // LANES * wide
    dst = registers(results)
    c = Operand("i", g.r.randrange(-16, 65)) if shape.kind == "i32" else Operand("i", 0)
    if g.r.random() < 0.8:
        c = g.vector_register(results, dst.kind, limit=28) if results < 17 and g.r.random() < 0.5 else dst
        c = Operand(dst.kind, c.index, results)
        if c.index != dst.index and abs(c.index - dst.index) < results:  # partial overlap is not allowed
            c = dst
    return Instruction(name, "", [dst, registers(per_lane_words), registers(per_lane_words), c])


def define(names, *shape, since=None):
    for name, only in names:
        TABLE[name] = Row(name, Shape(*shape), since, only)


NEW, OLD = ("gfx942", "gfx950"), ("gfx90a",)
define([("v_mfma_f32_32x32x8_bf16", NEW), ("v_mfma_f32_32x32x8bf16_1k", OLD)], 32, 32, 8, 1, "bf16", 4, "f32")
define([("v_mfma_f32_16x16x16_bf16", NEW), ("v_mfma_f32_16x16x16bf16_1k", OLD)], 16, 16, 16, 1, "bf16", 4, "f32")
define([("v_mfma_f32_32x32x8_f16", NEW), ("v_mfma_f32_32x32x8f16", OLD)], 32, 32, 8, 1, "f16", 4, "f32")
define([("v_mfma_f32_16x16x16_f16", NEW), ("v_mfma_f32_16x16x16f16", OLD)], 16, 16, 16, 1, "f16", 4, "f32")
define([("v_mfma_f32_32x32x2_f32", NEW), ("v_mfma_f32_32x32x2f32", OLD)], 32, 32, 2, 1, "f32", 1, "f32")
define([("v_mfma_f32_16x16x4_f32", NEW), ("v_mfma_f32_16x16x4f32", OLD)], 16, 16, 4, 1, "f32", 1, "f32")
define([("v_mfma_f32_4x4x4_16b_f16", NEW), ("v_mfma_f32_4x4x4f16", OLD)], 4, 4, 4, 16, "f16", 4, "f32")
define([("v_mfma_f32_4x4x4_16b_bf16", NEW), ("v_mfma_f32_4x4x4bf16_1k", OLD)], 4, 4, 4, 16, "bf16", 4, "f32")
define([("v_mfma_f32_4x4x1_16b_f32", NEW), ("v_mfma_f32_4x4x1f32", OLD)], 4, 4, 1, 16, "f32", 1, "f32")
define([("v_mfma_f32_16x16x4_4b_f16", NEW), ("v_mfma_f32_16x16x4f16", OLD)], 16, 16, 4, 4, "f16", 4, "f32")
define([("v_mfma_f32_16x16x1_4b_f32", NEW), ("v_mfma_f32_16x16x1f32", OLD)], 16, 16, 1, 4, "f32", 1, "f32")
define([("v_mfma_f32_16x16x32_bf16", ("gfx950",))], 16, 16, 32, 1, "bf16", 8, "f32")
define([("v_mfma_f32_32x32x16_bf16", ("gfx950",))], 32, 32, 16, 1, "bf16", 8, "f32")
define([("v_mfma_f32_16x16x32_f16", ("gfx950",))], 16, 16, 32, 1, "f16", 8, "f32")
define([("v_mfma_f32_32x32x16_f16", ("gfx950",))], 32, 32, 16, 1, "f16", 8, "f32")
define([("v_mfma_i32_32x32x8i8", OLD)], 32, 32, 8, 1, "i8", 4, "i32")
define([("v_mfma_i32_16x16x16i8", OLD)], 16, 16, 16, 1, "i8", 4, "i32")
define([("v_mfma_i32_32x32x16_i8", NEW)], 32, 32, 16, 1, "i8", 8, "i32")
define([("v_mfma_i32_16x16x32_i8", NEW)], 16, 16, 32, 1, "i8", 8, "i32")
define([("v_mfma_i32_16x16x64_i8", ("gfx950",))], 16, 16, 64, 1, "i8", 16, "i32")
define([("v_mfma_i32_32x32x32_i8", ("gfx950",))], 32, 32, 32, 1, "i8", 16, "i32")
define([("v_mfma_f64_16x16x4_f64", NEW), ("v_mfma_f64_16x16x4f64", OLD)], 16, 16, 4, 1, "f64", 1, "f64")
