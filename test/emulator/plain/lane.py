"""Instructions that move values between lanes or between scalar and vector registers."""

from machine import EXEC, LANES, M32, VCC, Instruction, Operand, raw

TABLE = {}


class Row:
    def __init__(self, run, make, since=None):
        self.run, self.make, self.since = run, make, since


def readfirstlane(state, inst):
    dst, source = inst.o
    active = state.active()
    state.s[dst.index] = raw(state, source, "u", active[0] if active else 0)


def readlane(state, inst):
    dst, source, select = inst.o
    state.s[dst.index] = raw(state, source, "u", raw(state, select, "u", 0) & 63)


def writelane(state, inst):
    """Whatever EXEC says."""
    dst, value, select = inst.o
    state.v[dst.index][raw(state, select, "u", 0) & 63] = raw(state, value, "u", 0)


def swap(state, inst):
    a, b = (state.v[o.index] for o in inst.o)
    for lane in state.active():
        a[lane], b[lane] = b[lane], a[lane]


def permlane_swap(width):
    """Odd rows of the destination change places with even rows of the source. A lane is exchanged where its own
    register is written, that is where EXEC enables it."""

    def run(state, inst):
        dst, source = (state.v[o.index] for o in inst.o)
        old_dst, old_source = list(dst), list(source)
        for lane in state.active():
            if lane & width:
                dst[lane] = old_source[lane - width]
            else:
                source[lane] = old_dst[lane + width]

    return run


def permute(state, inst):
    dst, address, data = inst.o
    moved = [0] * LANES
    for lane in state.active():
        target = (state.v[address.index][lane] + inst.m.get("offset", 0)) // 4 % LANES
        moved[target] = state.v[data.index][lane]
    for lane in state.active():
        state.v[dst.index][lane] = moved[lane]


def bpermute(state, inst):
    dst, address, data = inst.o
    enabled, moved = state.exec, {}
    for lane in state.active():
        source = (state.v[address.index][lane] + inst.m.get("offset", 0)) // 4 % LANES
        moved[lane] = state.v[data.index][source] if enabled >> source & 1 else 0
    for lane, value in moved.items():
        state.v[dst.index][lane] = value


def swizzle(state, inst):
    """Bit-mask mode inside 32 lanes (offset bit 15 clear) or quad permutation; disabled sources give 0."""
    dst, data = inst.o
    offset, enabled, moved = inst.m["offset"], state.exec, {}
    for lane in state.active():
        if offset & 0x8000:
            source = lane & ~3 | offset >> 2 * (lane & 3) & 3
        else:
            inside = (lane & 31 & offset | offset >> 5) & 31 ^ offset >> 10 & 31
            source = lane & 32 | inside
        moved[lane] = state.v[data.index][source] if enabled >> source & 1 else 0
    for lane, value in moved.items():
        state.v[dst.index][lane] = value


def make(name, operands, modifiers=lambda g: {}):
    """A maker of random instructions of one form."""
    return lambda g: Instruction(name[0], name[1], operands(g), modifiers(g))


def v(g):
    return g.vector_register(1)


def two_different(g):
    a, b = g.r.sample(range(28), 2)
    return [Operand("v", a), Operand("v", b)]


def select(g):
    return g.r.choice([Operand("i", g.r.randrange(0, 64)), Operand("s", M0_OR_SGPR[g.r.randrange(2)])])


M0_OR_SGPR = (124, 7)

TABLE["v_readfirstlane_b32"] = Row(readfirstlane, make(("v_readfirstlane_b32", ""), lambda g: [g.scalar_register(1), v(g)]))
TABLE["v_readlane_b32"] = Row(readlane, make(("v_readlane_b32", ""), lambda g: [g.scalar_register(1), v(g), select(g)]))
TABLE["v_writelane_b32"] = Row(writelane, make(
    ("v_writelane_b32", ""), lambda g: [v(g), g.r.choice([Operand("i", 7), Operand("s", 124)]), select(g)]))
TABLE["v_swap_b32"] = Row(swap, make(("v_swap_b32", ""), two_different))
TABLE["v_permlane16_swap_b32"] = Row(permlane_swap(16), make(("v_permlane16_swap_b32", "e32"), two_different), "gfx950")
TABLE["v_permlane32_swap_b32"] = Row(permlane_swap(32), make(("v_permlane32_swap_b32", "e32"), two_different), "gfx950")
TABLE["ds_permute_b32"] = Row(permute, make(("ds_permute_b32", ""), lambda g: [v(g), v(g), v(g)],
                                            lambda g: {"offset": g.r.randrange(0, 260)}))
TABLE["ds_bpermute_b32"] = Row(bpermute, make(("ds_bpermute_b32", ""), lambda g: [v(g), v(g), v(g)],
                                              lambda g: {"offset": g.r.randrange(0, 260)}))
TABLE["ds_swizzle_b32"] = Row(swizzle, make(
    ("ds_swizzle_b32", ""), lambda g: [v(g), v(g)],
    lambda g: {"offset": g.r.choice([g.r.getrandbits(15), 0x8000 | g.r.getrandbits(8)])}))
