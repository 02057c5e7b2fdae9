"""MUBUF and MTBUF: descriptor, addresses, range checks, untyped and typed accesses, atomics, copies to LDS.
Source: CDNA4 ISA, "Vector Memory Buffer Instructions". The element size of swizzled buffers is 4 bytes: the descriptor of
these processors has no field for it."""

import atomics
import formats
from flat import lds_copy_place, m0_for_copy
from fp import BF16, F16, F64
from machine import LANES, M32, MEMORY_ADDRESS, VECTORS, Instruction, Operand, signed
from memory import Row, data_register, integer_functions, load, save, set_words, vector_data, words

TABLE = {}
DESCRIPTOR, SCALAR_OFFSET = 88, 92  # s[88:91], s92
ADDRESS = VECTORS + 4               # v[68:69]
ELEMENT = 4


class Descriptor:
    def __init__(self, state):
        low, high = state.s64(DESCRIPTOR), state.s64(DESCRIPTOR + 2)
        self.base, self.stride, self.swizzle = low & (1 << 48) - 1, low >> 48 & 0x3FFF, low >> 63
        self.records, self.select = high & M32, [high >> 32 + 3 * i & 7 for i in range(4)]
        self.number, self.data = high >> 44 & 7, high >> 47 & 15
        self.index_stride, self.add_lane = 8 << (high >> 53 & 3), high >> 55 & 1


def address(state, inst, lane, typed=False):
    """(index into memory of byte 0, function of a byte offset: is it inside)"""
    d = Descriptor(state)
    stride = d.stride
    if d.add_lane and not typed:
        stride |= d.data << 14
    vgpr = ADDRESS
    index, offset = lane if d.add_lane else 0, inst.m.get("offset", 0)
    vector_index = 0
    if "idxen" in inst.m:
        vector_index, vgpr = state.v[vgpr][lane], vgpr + 1
        index += vector_index
    if "offen" in inst.m:
        offset += state.v[vgpr][lane]

    def inside(byte):
        if d.add_lane and "idxen" not in inst.m:
            return True  # private buffer
        if "idxen" in inst.m and stride:
            return vector_index < d.records
        return scalar_offset(state, inst) + offset + byte < d.records

    def place(byte):
        at = offset + byte
        if d.swizzle:
            major, minor = divmod(index, d.index_stride)
            part = (major * stride + at // ELEMENT * ELEMENT) * d.index_stride + minor * ELEMENT + at % ELEMENT
        else:
            part = index * stride + at
        return d.base + scalar_offset(state, inst) + part - MEMORY_ADDRESS

    return place, inside


def scalar_offset(state, inst):
    return state.s[SCALAR_OFFSET] if inst.m_soffset.kind == "s" else inst.m_soffset.index


# Untyped. Dwords are checked one by one.
def get(state, inst, lane, size):
    place, inside = address(state, inst, lane)
    unit = min(size, 4)
    return sum(load(state.memory, place(i), unit) << 8 * i for i in range(0, size, unit) if inside(i))


def loader(size, is_signed=False, half=None):
    def run(state, inst):
        got = {lane: get(state, inst, lane, size) for lane in state.active()}
        for lane, value in got.items():
            old = words(state, inst.o[0], lane)
            if is_signed:
                value = signed(value, 8 * size) & (M32 if half is None else 0xFFFF)
            if half is not None:
                value = old & 0xFFFF0000 | value if half == 0 else old & 0xFFFF | value << 16
            set_words(state, inst.o[0], lane, value)

    return run


def copier(size, is_signed=False):
    def run(state, inst):
        for lane in state.active():
            value = get(state, inst, lane, size)
            if is_signed:
                value = signed(value, 8 * size) & M32
            save(state.lds, lds_copy_place(state, inst, lane, size), max(4, size), value)

    return run


def storer(size, shift=0):
    def run(state, inst):
        for lane in state.active():
            place, inside = address(state, inst, lane)
            value = words(state, inst.o[0], lane) >> shift
            for i in range(0, size, 4):
                if inside(i):
                    save(state.memory, place(i), min(size, 4), value >> 8 * i)

    return run


def atomic(size, function, compare=False):
    """All or nothing; a lane outside gets 0."""

    def run(state, inst):
        data = inst.o[0]
        returned = {}
        for lane in state.active():
            place, inside = address(state, inst, lane)
            value, old = words(state, data, lane), 0
            first, second = value & (1 << 8 * size) - 1, value >> 8 * size
            if inside(0):
                old = load(state.memory, place(0), size)
                new = (first if old == second else old) if compare else function(state, old, first, 0)
                save(state.memory, place(0), size, new)
            returned[lane] = old
        if "sc0" in inst.m or "glc" in inst.m:
            for lane, old in returned.items():
                set_words(state, Operand("v", data.index, size // 4), lane, old)

    return run


# Typed: formats of the instruction (MTBUF) or of the descriptor (MUBUF, with its selection of components)
def typed_format(state, inst):
    if inst.m_format:
        return *inst.m_format, [4, 5, 6, 7]
    d = Descriptor(state)
    return d.data, d.number, d.select


def typed_loader(count, half):
    def run(state, inst):
        got = {}
        for lane in state.active():
            data, number, select = typed_format(state, inst)
            place, inside = address(state, inst, lane, True)
            one = formats.one(number, half)
            if inside(formats.size(data) - 1):
                raw = sum(load(state.memory, place(i), 1) << 8 * i for i in range(formats.size(data)))
                stored = formats.unpack(data, number, raw, half)
                stored += [0] * (4 - len(stored))
            else:
                stored = [0] * 4
            got[lane] = [0 if s == 0 else one if s == 1 else stored[s - 4] for s in select[:count]]
        for lane, values in got.items():
            put_components(state, inst, lane, values, half)

    return run


def put_components(state, inst, lane, values, half):
    dst = inst.o[0]
    if half is None:
        return set_words(state, dst, lane, sum(v << 32 * i for i, v in enumerate(values)))
    old = words(state, dst, lane)
    if half == 1:
        return set_words(state, dst, lane, old & 0xFFFF | values[0] << 16)
    packed = sum(v << 16 * i for i, v in enumerate(values))
    if len(values) % 2:  # the last half stays
        packed |= (old >> 16 * len(values) & 0xFFFF) << 16 * len(values)
    set_words(state, dst, lane, packed)


def typed_storer(count, half):
    def run(state, inst):
        for lane in state.active():
            data, number, select = typed_format(state, inst)
            place, inside = address(state, inst, lane, True)
            if not inside(formats.size(data) - 1):
                continue
            register, width = words(state, inst.o[0], lane), 32 if half is None else 16
            if half == 1:
                register >>= 16
            given = [register >> width * i & (1 << width) - 1 for i in range(count)] + [0] * (4 - count)
            stored = [given[select.index(4 + i)] if 4 + i in select else 0 for i in range(4)]
            raw = formats.pack(data, number, stored, half)
            for i in range(formats.size(data)):
                save(state.memory, place(i), 1, raw >> 8 * i)

    return run


# Makers
def modifiers(g, align):
    flags = g.r.choice([(), ("offen",), ("idxen",), ("idxen", "offen")])
    found = {flag: True for flag in flags}
    found["offset"] = g.r.choice([0, g.r.randrange(0, 64 // align) * align])
    return found


def operands_of(inst_modifiers, data, soffset):
    count = sum(flag in inst_modifiers for flag in ("idxen", "offen"))
    address_operand = Operand("v", ADDRESS, count) if count else Operand("off")
    return ([data] if data else []) + [address_operand, Operand("s", DESCRIPTOR, 4), soffset]


def build(g, name, data, align, extra=None, element=16):
    m = modifiers(g, align)
    soffset = g.r.choice([Operand("i", 0), Operand("s", SCALAR_OFFSET), Operand("i", 4 * align if align * 4 <= 64 else 64)])
    inst = Instruction(name, "", operands_of(m, data, soffset), {**m, **(extra or {})})
    inst.m_soffset, inst.m_align, inst.m_format, inst.m_element, inst.m_typed = soffset, align, None, element, False
    return inst


def prepare(random, state, inst, row):
    """A descriptor whose accesses stay in memory: linear or swizzled, raw, structured or private, with room outside its range."""
    a, idxen, offen = inst.m_align, "idxen" in inst.m, "offen" in inst.m
    add_lane = random.random() < 0.25 and not idxen
    swizzle = random.random() < 0.4 and inst.m_element <= 4 and (idxen or add_lane)
    # A record of a swizzled structured buffer ends at its stride (README.md), a private one is not checked.
    index_stride = random.randrange(2 if swizzle and idxen else 3 if swizzle else 4)
    stride = 128 if swizzle and idxen else random.choice([16, 32]) if idxen or add_lane else random.choice([0, 0, 16])
    offsets = 16 if stride else 512
    records = random.choice([0, 16, 256, 512, 1024]) if not idxen else random.choice([0, 1, 13, 20])
    state.s[SCALAR_OFFSET] = random.randrange(0, 4) * 16
    base = MEMORY_ADDRESS + random.randrange(0, 4) * 16
    for lane in range(LANES):
        index = random.randrange(20)
        offset = random.randrange(0, offsets // a) * a
        if random.random() < 0.05 and not add_lane:  # far outside
            index, offset = (random.choice([1000, 1 << 31, M32]), offset) if idxen else (index, random.choice([1 << 20, 1 << 31]))
            if idxen and swizzle or not idxen and not offen:
                index = min(index, 20)
        values = ([index] if idxen else []) + ([offset] if offen else [])
        for i, value in enumerate(values):
            state.v[ADDRESS + i][lane] = value
    state.set_s64(DESCRIPTOR, base | stride << 48 | int(swizzle) << 63)
    data, number, select = 0 if add_lane else 4, 4, [4, 5, 6, 7]
    if inst.m_typed:
        data, number = random.choice(formats.choices(inst.m_half is not None, inst.m_typed == "store"))
    if inst.m_typed == "load" and not inst.m_format:  # what a format lacks is not selected
        select = [random.choice([0, 1, *range(4, 4 + len(formats.LAYOUT[data]))]) for _ in range(4)]
    high = records | sum(c << 32 + 3 * i for i, c in enumerate(select)) | number << 44 | data << 47
    state.set_s64(DESCRIPTOR + 2, high | index_stride << 53 | int(add_lane) << 55)


def untyped(name, count, run, align, element, store=False):
    TABLE[name] = Row(run, lambda g: build(g, name, data_register(g, count), align, None, element), None, "descriptor")


def copying(name, size, run, copy_run, align, since=None):
    """Loads that can also go to LDS."""
    normal = TABLE[name].make

    def make(g):
        if g.r.random() < 0.6 or not g.supported(since):
            return normal(g)
        inst = build(g, name, None, align, {"lds": True}, size)
        return m0_for_copy(g, inst, size)

    def run_either(state, inst):
        (copy_run if "lds" in inst.m else run)(state, inst)

    TABLE[name] = Row(run_either, make, None, "descriptor")


for _name, _size, _signed, _half in (("ubyte", 1, False, None), ("sbyte", 1, True, None), ("ushort", 2, False, None),
                                     ("sshort", 2, True, None), ("ubyte_d16", 1, False, 0), ("ubyte_d16_hi", 1, False, 1),
                                     ("sbyte_d16", 1, True, 0), ("sbyte_d16_hi", 1, True, 1), ("short_d16", 2, False, 0),
                                     ("short_d16_hi", 2, False, 1)):
    untyped("buffer_load_" + _name, 1, loader(_size, _signed, _half), _size, _size)
    if _half is None:
        copying("buffer_load_" + _name, _size, loader(_size, _signed), copier(_size, _signed), _size)
for _name, _words in (("dword", 1), ("dwordx2", 2), ("dwordx3", 3), ("dwordx4", 4)):
    untyped("buffer_load_" + _name, _words, loader(4 * _words), 4, 4 * _words)
    untyped("buffer_store_" + _name, _words, storer(4 * _words), 4, 4 * _words)
    if _words != 2:
        copying("buffer_load_" + _name, 4 * _words, loader(4 * _words), copier(4 * _words), 4, "gfx950" if _words > 1 else None)
for _name, _size, _shift in (("byte", 1, 0), ("short", 2, 0), ("byte_d16_hi", 1, 16), ("short_d16_hi", 2, 16)):
    untyped("buffer_store_" + _name, 1, storer(_size, _shift), _size, _size)


def define_atomic(name, size, function, compare=False, since=None):
    def make(g):
        data = vector_data(g, size // 4 * (2 if compare else 1))
        returns = {"glc" if g.processor == "gfx90a" else "sc0": True} if g.r.random() < 0.5 else {}
        return build(g, name, data, size, returns, size)

    TABLE[name] = Row(atomic(size, function, compare), make, since, "descriptor")


for _size, _suffix in ((4, ""), (8, "_x2")):
    _f = integer_functions(8 * _size)
    for _key in ("add", "sub", "inc", "dec", "smin", "smax", "umin", "umax", "and", "or", "xor", "swap"):
        define_atomic(f"buffer_atomic_{_key}{_suffix}", _size, _f[_key])
    define_atomic(f"buffer_atomic_cmpswap{_suffix}", _size, None, True)
define_atomic("buffer_atomic_add_f32", 4, atomics.memory_add_f32)
define_atomic("buffer_atomic_add_f64", 8, atomics.add_keeping_denormals(F64))
for _key, _less in (("min", True), ("max", False)):
    define_atomic(f"buffer_atomic_{_key}_f64", 8, atomics.memory_pick(F64, _less))
define_atomic("buffer_atomic_pk_add_f16", 4, atomics.packed(atomics.add_keeping_denormals(F16)))
define_atomic("buffer_atomic_pk_add_bf16", 4, atomics.packed(atomics.add_keeping_denormals(BF16)), since="gfx950")


def typed(name, count, half, is_store, in_instruction):
    def make(g):
        registers = count if half is None else (count + 1) // 2
        inst = build(g, name, data_register(g, registers), 4)
        inst.m_typed, inst.m_half = "store" if is_store else "load", half
        if in_instruction:
            data, number = g.r.choice(formats.choices(half is not None, is_store))
            inst.m_format = data, number
            inst.m = {"format": f"[{formats.DATA_NAMES[data]},{formats.NUMBER_NAMES[number]}]", **inst.m}
        return inst

    TABLE[name] = Row((typed_storer if is_store else typed_loader)(count, half), make, None, "descriptor")


for _count, _components in enumerate(("x", "xy", "xyz", "xyzw"), 1):
    for _store in (False, True):
        _verb = "store" if _store else "load"
        for _prefix, _inside in (("buffer_", False), ("tbuffer_", True)):
            typed(f"{_prefix}{_verb}_format_{_components}", _count, None, _store, _inside)
            typed(f"{_prefix}{_verb}_format_d16_{_components}", _count, 0, _store, _inside)
typed("buffer_load_format_d16_hi_x", 1, 1, False, False)
typed("buffer_store_format_d16_hi_x", 1, 1, True, False)
