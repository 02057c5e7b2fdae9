"""SMFMAC: D += A x B, where A keeps two of each four elements along k and an index says which.

Of each pair of kept elements the index has four bits: two for the first, two for the second element's place in its
four. A lane's pairs lie in ascending k. While a lane's index fills only part of its register, ABID picks the part
(CBSZ 0; otherwise the lowest is used). The sum goes over the kept elements in the order of A.
"""

from machine import LANES, Instruction, Operand
from matrix import BITS, Shape, accumulate, read_value, result_operands, tame

TABLE = {}


def index_bits(shape):
    return 2 * shape.per_lane


def k_of_b(shape, lane, j):
    """B is dense. Eight registers hold two halves of k, each laid out as four registers are."""
    group, groups = lane // shape.m, LANES // shape.m
    per_lane = 2 * shape.per_lane
    if per_lane * BITS[shape.element_b] <= 128:
        return group * per_lane + j
    half = per_lane // 2
    return j // half * (groups * half) + group * half + j % half


class Row:
    def __init__(self, name, shape, only):
        self.name, self.shape, self.only, self.since = name, shape, only, None
        TABLE[name] = self

    def make(self, g):
        r, shape = g.r, self.shape
        dst, _ = result_operands(g, shape)
        words = shape.per_lane * BITS[shape.element] // 32
        modifiers = {"cbsz": r.choice([0, 0, 1, 3]), "abid": r.randrange(4)} if r.random() < 0.7 else {}
        a, b = (g.vector_register(n * words, r.choice("va")) for n in (1, 2))
        return Instruction(self.name, "", [dst, a, b, g.vector_register(1)], modifiers)

    def run(self, state, inst):
        shape = self.shape
        dst, a, b, index = inst.o
        bits = index_bits(shape)
        part = inst.m.get("abid", 0) % (32 // bits) if not inst.m.get("cbsz") else 0
        left, right = {}, {}
        for lane in range(LANES):
            row, group = lane % shape.m, lane // shape.m
            places = state.v[index.index][lane] >> bits * part
            for j in range(shape.per_lane):
                four = group * shape.per_lane // 2 + j // 2
                k = 4 * four + (places >> 2 * j & 3)
                left.setdefault(row, []).append((four, j % 2, k, read_value(state, a, lane, j, shape.element)))
            for j in range(2 * shape.per_lane):
                right[row, k_of_b(shape, lane, j)] = read_value(state, b, lane, j, shape.element_b)
        kept = {row: [(k, x) for _, _, k, x in sorted(values, key=lambda v: v[:2])] for row, values in left.items()}
        pairs = Instruction(inst.name, "", [dst, a, b, Operand(dst.kind, dst.index, dst.words)])
        accumulate(state, shape, pairs,
                   lambda _, row, column: [(x, right[column, k]) for k, x in kept[row]])


def define(name, size, depth, kind, element_a, only, element_b=None):
    per_lane = size * depth // 2 // LANES
    shape = Shape(size, size, depth, 1, element_a, per_lane, kind, element_b)
    Row(f"v_smfmac_{kind}_{size}x{size}x{depth}_{name}", shape, only)


NEW, LAST = ("gfx942", "gfx950"), ("gfx950",)
for _kind in ("f16", "bf16"):
    define(_kind, 16, 32, "f32", _kind, NEW)
    define(_kind, 32, 16, "f32", _kind, NEW)
    define(_kind, 16, 64, "f32", _kind, LAST)
    define(_kind, 32, 32, "f32", _kind, LAST)
for _size, _depth, _only in ((16, 64, NEW), (32, 32, NEW), (16, 128, LAST), (32, 64, LAST)):
    define("i8", _size, _depth, "i32", "i8", _only)
    for _a in ("fp8", "bf8"):
        for _b in ("fp8", "bf8"):
            define(f"{_a}_{_b}", _size, _depth, "f32", _a, _only, _b)


def prepare(random, state, inst):
    shape = TABLE[inst.name].shape
    if shape.kind != "i32" and random.random() < 0.8:
        for operand, kind in zip(inst.o, (shape.kind, shape.element, shape.element_b)):
            tame(random, state, operand, kind)
