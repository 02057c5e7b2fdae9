"""LDS and global memory: loads, stores, atomics. Addresses come from registers that hold nothing else (the address
registers below), which prepare() fills with legal values."""

import atomics
from fp import BF16, F16, F32, F64
from machine import LANES, M32, M64, MEMORY_ADDRESS, MEMORY_BYTES, Instruction, Operand, signed

TABLE = {}
LDS_ADDRESS = 28        # v28: LDS byte addresses
GLOBAL_ADDRESS = 30     # v[30:31]: 64-bit addresses, or v30 an offset to the scalar base
SCALAR_BASE = 98        # s[98:99]
REACH = 512             # largest offset plus access


class Row:
    def __init__(self, run, make, since=None, address=""):
        self.run, self.make, self.since, self.address = run, make, since, address


def prepare(random, state, inst, row):
    if not row.address:
        return
    step = inst.m_align
    for lane in range(LANES):
        at = random.randrange(inst.m_lowest // step, (MEMORY_BYTES - REACH) // step) * step
        if inst.name.startswith(("ds_write2", "ds_wrxchg2")):
            at = lane * step * (1 if "st64" in inst.name else 2)  # which of two lanes wins is not defined when the pairs overlap
        elif random.random() < 0.2:
            at = 64 if random.random() < 0.5 else inst.m_lowest  # collisions
        if row.address == "lds":
            state.v[LDS_ADDRESS][lane] = at
        elif inst.m_scalar_base:
            state.v[GLOBAL_ADDRESS][lane] = at
        else:
            state.v[GLOBAL_ADDRESS][lane] = (MEMORY_ADDRESS + at) & M32
            state.v[GLOBAL_ADDRESS + 1][lane] = (MEMORY_ADDRESS + at) >> 32
    state.set_s64(SCALAR_BASE, MEMORY_ADDRESS)


def load(store, at, size):
    return int.from_bytes(store[at:at + size], "little")


def save(store, at, size, value):
    store[at:at + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")


def place(state, inst, lane, offset=None):
    """(byte array, index) of the lane's access."""
    if inst.where:
        return inst.where(state, inst, lane)
    offset = inst.m.get("offset", 0) if offset is None else offset
    if inst.name.startswith("ds_"):
        return state.lds, state.v[LDS_ADDRESS][lane] + offset
    if inst.m_scalar_base:
        base = state.s64(SCALAR_BASE) + state.v[GLOBAL_ADDRESS][lane]
    else:
        base = state.v[GLOBAL_ADDRESS][lane] | state.v[GLOBAL_ADDRESS + 1][lane] << 32
    return state.memory, base + offset - MEMORY_ADDRESS


def words(state, operand, lane):
    file = state.v if operand.kind == "v" else state.a
    return sum(file[operand.index + i][lane] << 32 * i for i in range(operand.words))


def set_words(state, operand, lane, value):
    file = state.v if operand.kind == "v" else state.a
    for i in range(operand.words):
        file[operand.index + i][lane] = value >> 32 * i & M32


# Loads: (bytes, sign, half) where half None replaces the register, 0 or 1 replaces that half
def loader(size, is_signed=False, half=None):
    def run(state, inst):
        dst = inst.o[0]
        got = {lane: load(*place(state, inst, lane), size) for lane in state.active()}
        for lane, value in got.items():
            if is_signed:
                value = signed(value, 8 * size) & (M32 if half is None else 0xFFFF)
            if half is not None:
                old = words(state, dst, lane)
                value = old & 0xFFFF0000 | value if half == 0 else old & 0xFFFF | value << 16
            set_words(state, dst, lane, value)

    return run


def storer(size, shift=0):
    def run(state, inst):
        data = inst.m_data
        for lane in state.active():
            save(*place(state, inst, lane), size, words(state, data, lane) >> shift)

    return run


def load_pair(size, scale):
    def run(state, inst):
        dst, got = inst.o[0], {}
        for lane in state.active():
            parts = [load(*place(state, inst, lane, inst.m.get(f"offset{i}", 0) * scale), size) for i in (0, 1)]
            got[lane] = parts[0] | parts[1] << 8 * size
        for lane, value in got.items():
            set_words(state, dst, lane, value)

    return run


def store_pair(size, scale):
    def run(state, inst):
        for lane in state.active():
            for i in (0, 1):
                save(*place(state, inst, lane, inst.m.get(f"offset{i}", 0) * scale), size, words(state, inst.o[1 + i], lane))

    return run


# Atomics: new = function(state, old, data, data2); in_lds instead where the element is in LDS
def atomic(size, function, in_lds=None):
    mask = (1 << 8 * size) - 1

    def run(state, inst):
        returned = {}
        for lane in state.active():
            store, at = place(state, inst, lane)
            old = load(store, at, size)
            data = words(state, inst.m_data, lane)
            second = words(state, inst.m_data2, lane) if inst.m_data2 else 0
            change = in_lds if in_lds and store is state.lds else function
            save(store, at, size, change(state, old, data, second) & mask)
            returned[lane] = old
        if inst.m_returns:
            for lane, value in returned.items():
                set_words(state, inst.o[0], lane, value)

    return run


def integer_functions(bits):
    mask = (1 << bits) - 1
    s = lambda x: signed(x, bits)  # noqa: E731
    return {
        "add": lambda st, o, x, _: o + x, "sub": lambda st, o, x, _: o - x,
        "inc": lambda st, o, x, _: 0 if o >= x else o + 1,
        "dec": lambda st, o, x, _: x if o == 0 or o > x else o - 1,
        "smin": lambda st, o, x, _: min(s(o), s(x)), "smax": lambda st, o, x, _: max(s(o), s(x)),
        "umin": lambda st, o, x, _: min(o, x), "umax": lambda st, o, x, _: max(o, x),
        "and": lambda st, o, x, _: o & x, "or": lambda st, o, x, _: o | x, "xor": lambda st, o, x, _: o ^ x,
        "swap": lambda st, o, x, _: x, "rsub": lambda st, o, x, _: x - o & mask}


# Makers
def lds_offset(g, align):
    return g.r.choice([0, g.r.randrange(0, 256 // align) * align])


def attach(inst, align, data=None, data2=None, returns=False, scalar_base=False, where=None):
    inst.m_align, inst.m_data, inst.m_data2, inst.m_returns, inst.m_scalar_base = align, data, data2, returns, scalar_base
    inst.where = where  # place() of an address form of its own
    inst.m_lowest = 0   # lowest address, for negative offsets
    return inst


def data_register(g, count):
    file = "v" if g.r.random() < 0.8 else "a"
    return Operand(file, g.r.randrange(0, 28 - count, 2 if count > 1 else 1), count)


def vector_data(g, count):
    return Operand("v", g.r.randrange(0, 28 - count, 2 if count > 1 else 1), count)


def define_lds_load(name, count, run, align):
    def make(g):
        return attach(Instruction(name, "", [data_register(g, count), Operand("v", LDS_ADDRESS)],
                                  {"offset": lds_offset(g, align)}), align)

    TABLE[name] = Row(run, make, address="lds")


def define_lds_store(name, count, run, align):
    def make(g):
        data = data_register(g, count)
        return attach(Instruction(name, "", [Operand("v", LDS_ADDRESS), data], {"offset": lds_offset(g, align)}), align, data)

    TABLE[name] = Row(run, make, address="lds")


def define_global(name, count, run, align, is_store, since=None):
    def make(g):
        base, data = g.r.random() < 0.5, data_register(g, count)
        address = Operand("v", GLOBAL_ADDRESS, 1 if base else 2)
        last = Operand("s", SCALAR_BASE, 2) if base else Operand("off")
        operands = [address, data, last] if is_store else [data, address, last]
        return attach(Instruction(name, "", operands, {"offset": g.r.choice([0, g.r.randrange(0, 256 // align) * align])}),
                      align, data, scalar_base=base)

    TABLE[name] = Row(run, make, since, "global")


for _name, _size, _signed, _half in (("u8", 1, False, None), ("i8", 1, True, None), ("u16", 2, False, None),
                                     ("i16", 2, True, None), ("u8_d16", 1, False, 0), ("u8_d16_hi", 1, False, 1),
                                     ("i8_d16", 1, True, 0), ("i8_d16_hi", 1, True, 1), ("u16_d16", 2, False, 0),
                                     ("u16_d16_hi", 2, False, 1)):
    define_lds_load("ds_read_" + _name, 1, loader(_size, _signed, _half), _size)
for _name, _words in (("b32", 1), ("b64", 2), ("b96", 3), ("b128", 4)):
    _align = {1: 4, 2: 8, 3: 16, 4: 16}[_words]
    define_lds_load("ds_read_" + _name, _words, loader(4 * _words), _align)
    define_lds_store("ds_write_" + _name, _words, storer(4 * _words), _align)
for _name, _size, _shift in (("b8", 1, 0), ("b16", 2, 0), ("b8_d16_hi", 1, 16), ("b16_d16_hi", 2, 16)):
    define_lds_store("ds_write_" + _name, 1, storer(_size, _shift), _size)


def define_pair(bits, stride, suffix):
    size, count = bits // 8, bits // 32
    scale = size * stride

    def offsets(g):
        reach = max(1, 256 // scale) if stride == 1 else 2
        return {"offset0": g.r.randrange(reach), "offset1": g.r.randrange(reach)}

    def store_offsets(g):
        first, high = g.r.randrange(2), g.r.randrange(4)
        if stride != 1:
            return {"offset0": first, "offset1": 1 - first}
        return {"offset0": 2 * high + first, "offset1": 2 * high + 1 - first}

    def make_load(g):
        return attach(Instruction(f"ds_read2{suffix}_b{bits}", "", [data_register(g, 2 * count), Operand("v", LDS_ADDRESS)],
                                  offsets(g)), size)

    def make_store(g):
        return attach(Instruction(f"ds_write2{suffix}_b{bits}", "", [Operand("v", LDS_ADDRESS), vector_data(g, count),
                                                                    vector_data(g, count)], store_offsets(g)), size)

    TABLE[f"ds_read2{suffix}_b{bits}"] = Row(load_pair(size, scale), make_load, address="lds")
    TABLE[f"ds_write2{suffix}_b{bits}"] = Row(store_pair(size, scale), make_store, address="lds")


for _bits in (32, 64):
    define_pair(_bits, 1, "")
    if _bits == 32:
        define_pair(_bits, 64, "st64")


def define_lds_atomic(operation, suffix, size, function, compare=False, table=TABLE, since=None, only_returning=False):
    for returns in (True,) if only_returning else (False, True):
        name = f"ds_{operation}{'_rtn' if returns else ''}_{suffix}"

        def make(g, name=name, returns=returns):
            count = size // 4
            first, second = vector_data(g, count), vector_data(g, count) if compare else None
            operands = ([vector_data(g, count)] if returns else []) + [Operand("v", LDS_ADDRESS), first]
            operands += [second] if compare else []
            return attach(Instruction(name, "", operands, {"offset": lds_offset(g, size)}), size, first, second, returns)

        table[name] = Row(atomic(size, function), make, since, "lds")


for _size in (4, 8):
    _f, _bits = integer_functions(8 * _size), 8 * _size
    for _op, _kind, _key in (("add", "u", "add"), ("sub", "u", "sub"), ("rsub", "u", "rsub"), ("inc", "u", "inc"),
                             ("dec", "u", "dec"), ("min", "i", "smin"), ("max", "i", "smax"), ("min", "u", "umin"),
                             ("max", "u", "umax"), ("and", "b", "and"), ("or", "b", "or"), ("xor", "b", "xor")):
        define_lds_atomic(_op, f"{_kind}{_bits}", _size, _f[_key])
    define_lds_atomic("cmpst", f"b{_bits}", _size, lambda st, o, x, y: y if o == x else o, compare=True)
    define_lds_atomic("mskor", f"b{_bits}", _size, lambda st, o, x, y: o & ~x | y, compare=True)


for _name, _size, _signed, _half in (("ubyte", 1, False, None), ("sbyte", 1, True, None), ("ushort", 2, False, None),
                                     ("sshort", 2, True, None), ("ubyte_d16", 1, False, 0), ("ubyte_d16_hi", 1, False, 1),
                                     ("sbyte_d16", 1, True, 0), ("sbyte_d16_hi", 1, True, 1), ("short_d16", 2, False, 0),
                                     ("short_d16_hi", 2, False, 1)):
    define_global("global_load_" + _name, 1, loader(_size, _signed, _half), _size, False)
for _name, _words in (("dword", 1), ("dwordx2", 2), ("dwordx3", 3), ("dwordx4", 4)):
    define_global("global_load_" + _name, _words, loader(4 * _words), 4, False)
    define_global("global_store_" + _name, _words, storer(4 * _words), 4, True)
for _name, _size, _shift in (("byte", 1, 0), ("short", 2, 0), ("byte_d16_hi", 1, 16), ("short_d16_hi", 2, 16)):
    define_global("global_store_" + _name, 1, storer(_size, _shift), _size, True)


def define_global_atomic(name, size, function, compare=False, since=None):
    def make(g):
        count, returns, base = size // 4, g.r.random() < 0.5, g.r.random() < 0.5
        data = vector_data(g, count * (2 if compare else 1))
        first, second = data, None
        if compare:  # data holds {new value, compared value}
            first, second = (Operand("v", data.index + i * count, count) for i in (0, 1))
        operands = ([vector_data(g, count)] if returns else []) + [
            Operand("v", GLOBAL_ADDRESS, 1 if base else 2), data, Operand("s", SCALAR_BASE, 2) if base else Operand("off")]
        flag = {"glc" if g.processor == "gfx90a" else "sc0": True} if returns else {}
        return attach(Instruction(name, "", operands, {"offset": g.r.randrange(0, 30) * size, **flag}), size, first, second,
                      returns, base)

    TABLE[name] = Row(atomic(size, function), make, since, "global")


for _size, _suffix in ((4, ""), (8, "_x2")):
    _f = integer_functions(8 * _size)
    for _key in ("add", "sub", "inc", "dec", "smin", "smax", "umin", "umax", "and", "or", "xor", "swap"):
        define_global_atomic(f"global_atomic_{_key}{_suffix}", _size, _f[_key])
    define_global_atomic(f"global_atomic_cmpswap{_suffix}", _size, lambda st, o, x, y: x if o == y else o, compare=True)
define_global_atomic("global_atomic_add_f32", 4, atomics.memory_add_f32)
define_global_atomic("global_atomic_add_f64", 8, atomics.add_keeping_denormals(F64))
define_global_atomic("global_atomic_min_f64", 8, atomics.memory_pick(F64, True))
define_global_atomic("global_atomic_max_f64", 8, atomics.memory_pick(F64, False))
define_global_atomic("global_atomic_pk_add_f16", 4, atomics.packed(atomics.add_keeping_denormals(F16)))
define_global_atomic("global_atomic_pk_add_bf16", 4, atomics.packed(atomics.add_keeping_denormals(BF16)), since="gfx942")
