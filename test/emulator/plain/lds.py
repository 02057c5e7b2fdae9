"""LDS instructions beyond loads, stores and integer atomics (memory.py): floating-point atomics, exchanges, transposing reads,
addresses from M0. Sources: CDNA4 ISA, "Float Memory Atomics" and "Data Share Operations"."""

import atomics
import memory
from fp import BF16, F16, F32, F64
from machine import LANES, M0, M32, Instruction, Operand
from memory import LDS_ADDRESS, Row, attach, define_lds_atomic, lds_offset, load, save, set_words, vector_data, words
from unit import Unit

TABLE = {}
prepare = memory.prepare


def define(name, run, make, since=None):
    TABLE[name] = Row(run, make, since, "lds")


def lds_at(state, lane):
    return state.v[LDS_ADDRESS][lane]


for _size, _fmt, _suffix in ((4, F32, "f32"), (8, F64, "f64")):
    for _key, _less in (("min", True), ("max", False)):
        define_lds_atomic(_key, _suffix, _size, atomics.lds_pick(_fmt, _less), table=TABLE)
    define_lds_atomic("cmpst", _suffix, _size, atomics.lds_compare_store(_fmt), compare=True, table=TABLE)
define_lds_atomic("add", "f64", 8, atomics.add_keeping_denormals(F64), table=TABLE)
define_lds_atomic("add", "f32", 4, atomics.lds_add(F32), table=TABLE)
for _fmt, _suffix in ((F16, "f16"), (BF16, "bf16")):
    define_lds_atomic("pk_add", _suffix, 4, atomics.packed(atomics.lds_add(_fmt)), table=TABLE, since="gfx942")
define_lds_atomic("rsub", "u64", 8, lambda st, o, x, _: x - o, table=TABLE)


# Exchanges
for _size in (4, 8):
    define_lds_atomic("wrxchg", f"b{8 * _size}", _size, lambda st, o, x, _: x, table=TABLE, only_returning=True)
define_lds_atomic("wrap", "b32", 4, lambda st, o, x, y: o - x if o >= x else o + y, compare=True, table=TABLE,
                  only_returning=True)


def exchange_pair(size, scale):
    def run(state, inst):
        got = {}
        for lane in state.active():
            places = [lds_at(state, lane) + inst.m[f"offset{i}"] * scale for i in (0, 1)]
            old = [load(state.lds, at, size) for at in places]
            for i in (0, 1):
                save(state.lds, places[i], size, words(state, inst.o[2 + i], lane))
            got[lane] = old[0] | old[1] << 8 * size
        for lane, value in got.items():
            set_words(state, inst.o[0], lane, value)

    return run


def define_pair(size, stride, suffix):
    name = f"ds_wrxchg2{suffix}_rtn_b{8 * size}"

    def make(g):
        count = size // 4
        first = g.r.randrange(2)  # the two places of a lane differ, those of two lanes too (memory.prepare)
        return attach(Instruction(name, "", [vector_data(g, 2 * count), Operand("v", LDS_ADDRESS), vector_data(g, count),
                                             vector_data(g, count)], {"offset0": first, "offset1": 1 - first}), size)

    define(name, exchange_pair(size, size * stride), make)


for _size in (4, 8):
    define_pair(_size, 1, "")
    define_pair(_size, 64, "st64")


def pair_of_b64(name, run, is_store):
    def make(g):
        first = g.r.randrange(2)
        offsets = {"offset0": first, "offset1": 1 - first}
        if is_store:
            operands = [Operand("v", LDS_ADDRESS), vector_data(g, 2), vector_data(g, 2)]
        else:
            operands = [vector_data(g, 4), Operand("v", LDS_ADDRESS)]
        return attach(Instruction(name, "", operands, offsets), 8)

    define(name, run, make)


pair_of_b64("ds_read2st64_b64", memory.load_pair(8, 512), False)
pair_of_b64("ds_write2st64_b64", memory.store_pair(8, 512), True)


def conditional_exchange(state, inst):
    """Each dword whose top bit is set in the data is replaced by its other 31 bits."""
    dst, _, data = inst.o
    got = {}
    for lane in state.active():
        at = lds_at(state, lane) + inst.m["offset"] & 0xFFF8
        value = words(state, data, lane)
        got[lane] = load(state.lds, at, 8)
        for half in (0, 1):
            word = value >> 32 * half & M32
            if word >> 31:
                save(state.lds, at + 4 * half, 4, word & 0x7FFFFFFF)
    for lane, value in got.items():
        set_words(state, dst, lane, value)


define("ds_condxchg32_rtn_b64", conditional_exchange, lambda g: attach(Instruction(
    "ds_condxchg32_rtn_b64", "", [vector_data(g, 2), Operand("v", LDS_ADDRESS), vector_data(g, 2)],
    {"offset": lds_offset(g, 8)}), 8))


# Transposing reads: the 16 lanes of a row hold a matrix of 16 columns; lane l gets column l
def transpose(bits, count):
    """count elements of this size a lane: the rows of the matrix, each 16 elements in consecutive lanes."""
    lanes_a_row = 16 // count

    def run(state, inst):
        read = [load(state.lds, lds_at(state, lane) + inst.m["offset"], bits * count // 8) for lane in range(LANES)]
        for lane in range(LANES):
            column, value = lane & 15, 0
            for row in range(count):
                source = (lane & ~15) + row * lanes_a_row + column // count
                value |= (read[source] >> column % count * bits & (1 << bits) - 1) << row * bits
            set_words(state, inst.o[0], lane, value)

    return run


def define_transpose(name, bits, count):
    size = bits * count // 8

    def make(g):
        dst = Operand("v", g.r.randrange(0, 24, 2), size // 4)
        return Unit(Instruction("s_mov_b64", "", [Operand("s", 126, 2), Operand("i", -1)]),  # EXEC must be full
                    attach(Instruction(name, "", [dst, Operand("v", LDS_ADDRESS)], {"offset": lds_offset(g, 16)}), 16))

    define(name, transpose(bits, count), make, "gfx950")


for _name, _bits, _count in (("ds_read_b64_tr_b16", 16, 4), ("ds_read_b64_tr_b8", 8, 8), ("ds_read_b64_tr_b4", 4, 16),
                             ("ds_read_b96_tr_b6", 6, 16)):
    define_transpose(_name, _bits, _count)


# Addresses from M0
def with_m0(g, inst, low, high_bits=True):
    """Sets M0 to `low`, with anything above bit 15 where that must not matter."""
    value = low | (g.r.getrandbits(16) << 16 if high_bits and g.r.random() < 0.5 else 0)
    return Unit(Instruction("s_mov_b32", "", [Operand("s", M0), Operand("l", value | 0x10000)]), inst)


def count_lanes(direction):
    """ds_append, ds_consume: one counter for the wave, at the instruction's offset ("at (M0.base + instr_offset) if GDS, or at
    instr_offset if LDS"); its old value goes to every enabled lane."""

    def run(state, inst):
        at = inst.m["offset"]
        old = load(state.lds, at, 4)
        save(state.lds, at, 4, old + direction * len(state.active()))
        for lane in state.active():
            set_words(state, inst.o[0], lane, old)

    return run


def read_by_lane(state, inst):
    for lane in state.active():
        set_words(state, inst.o[0], lane, load(state.lds, by_lane(state, inst, lane), 4))


def write_by_lane(state, inst):
    for lane in state.active():
        save(state.lds, by_lane(state, inst, lane), 4, words(state, inst.o[0], lane))


def by_lane(state, inst, lane):
    return inst.m["offset"] + (state.s[M0] & 0xFFFF) + 4 * lane


def from_m0(name, run):
    def make(g):
        inst = attach(Instruction(name, "", [vector_data(g, 1)], {"offset": g.r.randrange(0, 400) * 4}), 4)
        return with_m0(g, inst, g.r.randrange(0, 400) * 4)

    TABLE[name] = Row(run, make)  # no address register


from_m0("ds_append", count_lanes(1))
from_m0("ds_consume", count_lanes(-1))
from_m0("ds_read_addtid_b32", read_by_lane)
from_m0("ds_write_addtid_b32", write_by_lane)
