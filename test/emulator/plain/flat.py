"""FLAT (memory, LDS and private memory behind one 64-bit address), SCRATCH, and copies from memory and scratch to LDS.
Source: CDNA4 ISA, "Flat Memory Instructions"."""

import atomics
from fp import BF16, F16, F64
from machine import LANES, M0, M32, MEMORY_ADDRESS, MEMORY_BYTES, SCRATCH_BYTES, VECTORS, Instruction, Operand, signed
from memory import (GLOBAL_ADDRESS, SCALAR_BASE, Row, atomic, attach, data_register, integer_functions, load, loader, save,
                    storer, vector_data)
from memory import prepare as prepare_global
from unit import Unit

TABLE = {}
SHARED_BASE, PRIVATE_BASE = 1 << 48, 1 << 49  # the aperture registers, as the emulator's waves see them
FLAT_ADDRESS = VECTORS      # v[64:65]
SCRATCH_ADDRESS = VECTORS + 2
SCRATCH_SCALAR = 93         # s93: part of scratch addresses
NEWER = "gfx942"


# FLAT
def flat_place(state, inst, lane):
    address = state.v[FLAT_ADDRESS][lane] | state.v[FLAT_ADDRESS + 1][lane] << 32
    offset = inst.m.get("offset", 0)
    if address >> 32 == SHARED_BASE >> 32:
        return state.lds, (address & M32) + offset
    if address >> 32 == PRIVATE_BASE >> 32:
        return state.scratch[lane], (address & M32) + offset
    return state.memory, address + offset - MEMORY_ADDRESS


def prepare_flat(random, state, inst):
    step, offset = inst.m_align, inst.m.get("offset", 0)
    spaces = random.choice([("memory",), ("lds",), ("scratch",), ("memory", "lds", "scratch")])
    for lane in range(LANES):
        space = random.choice(spaces)
        base, size = {"memory": (MEMORY_ADDRESS, MEMORY_BYTES), "lds": (SHARED_BASE, MEMORY_BYTES),
                      "scratch": (PRIVATE_BASE, SCRATCH_BYTES)}[space]
        at = random.randrange(0, (size - 16 - offset) // step) * step
        state.v[FLAT_ADDRESS][lane], state.v[FLAT_ADDRESS + 1][lane] = (base + at) & M32, base + at >> 32


def flat_offset(g, align):
    return g.r.choice([0, g.r.randrange(0, 128 // align) * align])


def flat(name, count, run, align, is_store):
    def make(g):
        data, address = data_register(g, count), Operand("v", FLAT_ADDRESS, 2)
        return attach(Instruction(name, "", [address, data] if is_store else [data, address],
                                  {"offset": flat_offset(g, align)}), align, data, where=flat_place)

    TABLE[name] = Row(run, make, None, "flat")


def flat_atomic(name, size, in_memory, in_lds=None, compare=False, since=None):
    def make(g):
        count, returns = size // 4, g.r.random() < 0.5
        data = vector_data(g, count * (2 if compare else 1))
        first, second = data, None
        if compare:  # new value, compared value
            first, second = (Operand("v", data.index + i * count, count) for i in (0, 1))
        address = Operand("v", FLAT_ADDRESS, 2)
        operands = ([vector_data(g, count)] if returns else []) + [address, data]
        flag = {"glc" if g.processor == "gfx90a" else "sc0": True} if returns else {}
        return attach(Instruction(name, "", operands, {"offset": flat_offset(g, size), **flag}), size, first, second, returns,
                      where=flat_place)

    TABLE[name] = Row(atomic(size, in_memory, in_lds), make, since, "flat")


for _name, _size, _signed, _half in (("ubyte", 1, False, None), ("sbyte", 1, True, None), ("ushort", 2, False, None),
                                     ("sshort", 2, True, None), ("ubyte_d16", 1, False, 0), ("ubyte_d16_hi", 1, False, 1),
                                     ("sbyte_d16", 1, True, 0), ("sbyte_d16_hi", 1, True, 1), ("short_d16", 2, False, 0),
                                     ("short_d16_hi", 2, False, 1)):
    flat("flat_load_" + _name, 1, loader(_size, _signed, _half), _size, False)
for _name, _words in (("dword", 1), ("dwordx2", 2), ("dwordx3", 3), ("dwordx4", 4)):
    flat("flat_load_" + _name, _words, loader(4 * _words), 4, False)
    flat("flat_store_" + _name, _words, storer(4 * _words), 4, True)
for _name, _size, _shift in (("byte", 1, 0), ("short", 2, 0), ("byte_d16_hi", 1, 16), ("short_d16_hi", 2, 16)):
    flat("flat_store_" + _name, 1, storer(_size, _shift), _size, True)
for _size, _suffix in ((4, ""), (8, "_x2")):
    _f = integer_functions(8 * _size)
    for _key in ("add", "sub", "inc", "dec", "smin", "smax", "umin", "umax", "and", "or", "xor", "swap"):
        flat_atomic(f"flat_atomic_{_key}{_suffix}", _size, _f[_key])
    flat_atomic(f"flat_atomic_cmpswap{_suffix}", _size, lambda st, o, x, y: x if o == y else o, compare=True)
flat_atomic("flat_atomic_add_f32", 4, atomics.memory_add_f32, atomics.lds_add(atomics.F32), since=NEWER)
flat_atomic("flat_atomic_add_f64", 8, atomics.add_keeping_denormals(F64))
for _key, _less in (("min", True), ("max", False)):
    flat_atomic(f"flat_atomic_{_key}_f64", 8, atomics.memory_pick(F64, _less), atomics.lds_pick(F64, _less))
for _fmt, _suffix in ((F16, "f16"), (BF16, "bf16")):
    flat_atomic(f"flat_atomic_pk_add_{_suffix}", 4, atomics.packed(atomics.add_keeping_denormals(_fmt)),
                atomics.packed(atomics.lds_add(_fmt)), since=NEWER)


# SCRATCH
def scratch_place(state, inst, lane):
    """Bytes of the lane's own memory: VGPR (if named) + SGPR (if named) + signed offset."""
    at = inst.m.get("offset", 0)
    if inst.m_vector:
        at += state.v[SCRATCH_ADDRESS][lane]
    if inst.m_scalar:
        at += state.s[SCRATCH_SCALAR]
    return state.scratch[lane], at


def prepare_scratch(random, state, inst):
    """Parts whose sum stays in a lane's memory; the offset may be negative."""
    step, used = inst.m_align, inst.m.get("offset", 0)

    def part(last):
        low, high = -min(used, 0), SCRATCH_BYTES - 16 - used
        return random.randrange(-(-low // step), (high if last else low + 32) // step) * step

    if inst.m_scalar:
        state.s[SCRATCH_SCALAR] = part(not inst.m_vector)
        used += state.s[SCRATCH_SCALAR]
    for lane in range(LANES):
        state.v[SCRATCH_ADDRESS][lane] = part(True)


def scratch_operands(g, align):
    """(vector operand, scalar operand, offset, uses VGPR, uses SGPR)"""
    forms = [(True, False), (False, True)]
    if g.supported(NEWER):
        forms += [(True, True), (False, False)]
    vector, scalar = g.r.choice(forms)
    offset = g.r.choice([0, g.r.randrange(0, 96 // align) * align, -g.r.randrange(0, 64 // align) * align])
    if not vector and not scalar:
        offset = abs(offset)
    return (Operand("v", SCRATCH_ADDRESS) if vector else Operand("off"),
            Operand("s", SCRATCH_SCALAR) if scalar else Operand("off"), offset, vector, scalar)


def scratch(name, count, run, align, is_store):
    def make(g):
        data = data_register(g, count)
        address, base, offset, vector, scalar = scratch_operands(g, align)
        inst = attach(Instruction(name, "", [address, data, base] if is_store else [data, address, base], {"offset": offset}),
                      align, data, where=scratch_place)
        inst.m_vector, inst.m_scalar = vector, scalar
        return inst

    TABLE[name] = Row(run, make, None, "scratch")


for _flat in [n for n in TABLE if n.startswith(("flat_load_", "flat_store_"))]:
    _words = int(_flat[-1]) if _flat[-2:] in ("x2", "x3", "x4") else 1
    _align = 1 if "byte" in _flat else 2 if "short" in _flat else 4
    scratch(_flat.replace("flat", "scratch"), _words, TABLE[_flat].run, _align, "store" in _flat)


# Copies to LDS
def lds_copy_place(state, inst, lane, size):
    """M0[17:2] * 4 (M0[15:2] before gfx950) + offset + lane * 4, or * 16 for 3 and 4 dwords."""
    base = state.s[M0] & (0x3FFFC if state.processor == "gfx950" else 0xFFFC)
    return base + inst.m.get("offset", 0) + lane * (16 if size > 4 else 4)


def copy_to_lds(size, is_signed, place):
    """Bytes and shorts arrive as dwords."""

    def run(state, inst):
        got = {lane: load(*place(state, inst, lane), size) for lane in state.active()}
        for lane, value in got.items():
            if is_signed:
                value = signed(value, 8 * size) & M32
            save(state.lds, lds_copy_place(state, inst, lane, size), max(size, 4), value)

    return run


def global_place(state, inst, lane):
    base = state.s64(SCALAR_BASE) + state.v[GLOBAL_ADDRESS][lane] if inst.m_scalar_base else \
        state.v[GLOBAL_ADDRESS][lane] | state.v[GLOBAL_ADDRESS + 1][lane] << 32
    return state.memory, base + inst.m.get("offset", 0) - MEMORY_ADDRESS


def m0_for_copy(g, inst, size):
    """M0 with what must not matter around the address, the copy, and the wait that lets it land."""
    address = g.r.randrange(64, 2800 if size <= 4 else 2000) // 4 * 4 | g.r.choice([0, 0, 1, 3])
    above = 18 if g.processor == "gfx950" else 16
    value = address | (g.r.getrandbits(32 - above) << above if g.r.random() < 0.5 else 0)
    return Unit(Instruction("s_mov_b32", "", [Operand("s", M0), Operand("l", value)]), inst,
                Instruction("s_waitcnt", "", [Operand("i", 0)]))


def copy_from_global(name, size, is_signed, since):
    def make(g):
        base = g.r.random() < 0.5
        align = min(size, 4)
        offset = g.r.choice([0, g.r.randrange(0, 40) * 4, -g.r.randrange(0, 16) * 4])
        inst = attach(Instruction(name, "", [Operand("v", GLOBAL_ADDRESS, 1 if base else 2),
                                             Operand("s", SCALAR_BASE, 2) if base else Operand("off")], {"offset": offset}),
                      align, scalar_base=base)
        inst.m_lowest = 64
        return m0_for_copy(g, inst, size)

    TABLE[name] = Row(copy_to_lds(size, is_signed, global_place), make, since, "global")


def copy_from_scratch(name, size, is_signed):
    def make(g):
        address, base, offset, vector, scalar = scratch_operands(g, min(size, 4))
        inst = attach(Instruction(name, "", [address, base], {"offset": offset // 4 * 4}), min(size, 4))
        inst.m_vector, inst.m_scalar = vector, scalar
        return m0_for_copy(g, inst, size)

    TABLE[name] = Row(copy_to_lds(size, is_signed, scratch_place), make, NEWER, "scratch")


for _name, _size, _signed in (("ubyte", 1, False), ("sbyte", 1, True), ("ushort", 2, False), ("sshort", 2, True),
                              ("dword", 4, False), ("dwordx3", 12, False), ("dwordx4", 16, False)):
    copy_from_global("global_load_lds_" + _name, _size, _signed, "gfx950" if _size > 4 else NEWER)
    if _size <= 4:
        copy_from_scratch("scratch_load_lds_" + _name, _size, _signed)


def prepare(random, state, inst, row):
    if row.address == "flat":
        prepare_flat(random, state, inst)
    elif row.address == "scratch":
        prepare_scratch(random, state, inst)
    else:
        prepare_global(random, state, inst, row)
