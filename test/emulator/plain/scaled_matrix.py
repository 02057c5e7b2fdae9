"""V_MFMA_[SCALE_]F32_*_F8F6F4: products of any two of fp8, bf8, fp6, bf6 and fp4, with a scale for each 32 along k.

CBSZ and BLGP name the formats of A and B. A scale register holds four E8M0 scales a lane; op_sel (bit 0) and op_sel_hi
(bit 1) pick one. The scale of lane l belongs to row (column) l % M and the 32 values of k from 32 * (l / M).
"""

from machine import LANES, Instruction
from matrix import BITS, Shape, accumulate, decode, element, result_operands, scaled, tame

TABLE = {}
FORMATS = ["fp8", "bf8", "fp6", "bf6", "fp4"]  # as CBSZ and BLGP number them


def k_of(shape, kind, lane, j):
    """8-bit elements: 16 contiguous ones in each half of k; narrower ones: 32 contiguous."""
    group, half = lane // shape.m, shape.k // 2
    return 32 * group + j if BITS[kind] < 8 else j // 16 * half + 16 * group + j % 16


def scale_powers(state, operand, select, size):
    """{(row, block of 32): power or None}"""
    powers = {}
    for lane in range(LANES):
        field = state.v[operand.index][lane] >> 8 * select & 255
        powers[lane % size, lane // size] = None if field == 255 else field - 127
    return powers


class Row:
    def __init__(self, name, size, depth, has_scales):
        self.name, self.has_scales = name, has_scales
        self.shape = Shape(size, size, depth, 1, None, 32, "f32")
        self.since = "gfx950"
        TABLE[name] = self

    def make(self, g):
        r = g.r
        formats = [r.randrange(5), r.randrange(5)]
        dst, c = result_operands(g, self.shape)
        operands = [dst, *(g.vector_register(BITS[FORMATS[f]], r.choice("va")) for f in formats), c]
        modifiers = {}
        if self.has_scales:
            operands += [g.vector_register(1), g.vector_register(1)]
            modifiers["op_sel"] = [r.getrandbits(1), r.getrandbits(1), 0]
            modifiers["op_sel_hi"] = [r.getrandbits(1), r.getrandbits(1), 0]
        modifiers["cbsz"], modifiers["blgp"] = formats
        return Instruction(self.name, "", operands, modifiers)

    def run(self, state, inst):
        shape, m = self.shape, inst.m
        matrices = []
        for which, name in enumerate(("cbsz", "blgp")):
            kind, operand = FORMATS[m[name]], inst.o[1 + which]
            powers = None
            if self.has_scales:
                powers = scale_powers(state, inst.o[4 + which], m["op_sel"][which] + 2 * m["op_sel_hi"][which], shape.m)
            lines = [[None] * shape.k for _ in range(shape.m)]
            for lane in range(LANES):
                for j in range(32):
                    k = k_of(shape, kind, lane, j)
                    x = decode(kind, element(state, operand, lane, j, kind), "gfx950")
                    lines[lane % shape.m][k] = scaled(x, powers[lane % shape.m, k // 32]) if powers else x
            matrices.append(lines)
        accumulate(state, shape, inst, lambda _, row, column: zip(matrices[0][row], matrices[1][column]))


for _size, _depth in ((16, 128), (32, 64)):
    Row(f"v_mfma_f32_{_size}x{_size}x{_depth}_f8f6f4", _size, _depth, False)
    Row(f"v_mfma_scale_f32_{_size}x{_size}x{_depth}_f8f6f4", _size, _depth, True)


def prepare(random, state, inst):
    """Finite elements under scales of similar size, most of the time."""
    if random.random() < 0.2:
        return
    for operand, kind in zip(inst.o[1:4], (FORMATS[inst.m["cbsz"]], FORMATS[inst.m["blgp"]], "f32")):
        tame(random, state, operand, kind)
    for operand in inst.o[4:]:
        for lane in range(LANES):
            scales = [random.choice([0, 1, 127, 254, 255]) if random.random() < 0.002 else random.randrange(115, 140)
                      for _ in range(4)]
            state.v[operand.index][lane] = sum(x << 8 * i for i, x in enumerate(scales))
