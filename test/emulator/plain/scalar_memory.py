"""SMEM: scalar loads, stores and atomics, plain, through a buffer descriptor, and of scratch; cache operations.
Source: CDNA4 ISA, "Scalar Memory Operations". The two low bits of every part of an address are ignored; the emulator stops
at them, except in s_buffer_load, so that only there they are set."""

from machine import FREE_SCALARS, M0, M32, MEMORY_ADDRESS, MEMORY_BYTES, Instruction, Operand
from memory import Row, integer_functions, load, save
from unit import Unit

TABLE = {}
BASE, OFFSET, DESCRIPTOR = 100, 97, 88  # s[100:101], s97, s[88:91] (which buffer.py shares)


def parts(state, inst):
    """(base address, bytes from it)"""
    low = state.s64(inst.m_base)
    if inst.m_buffer:
        low &= (1 << 48) - 1
    register = state.s[inst.m_register] if inst.m_register is not None else 0
    return low & ~3, (inst.m_immediate & ~3) + (register * (64 if inst.m_scratch else 1) & ~3)


def place(state, inst):
    """Index into memory, and how many bytes from there are inside the buffer."""
    base, offset = parts(state, inst)
    size = MEMORY_BYTES
    if inst.m_buffer:
        stride = state.s[DESCRIPTOR + 1] >> 16 & 0x3FFF
        size = state.s[DESCRIPTOR + 2] * (stride or 1)
    return base + offset - MEMORY_ADDRESS, size - offset


def read(words):
    def run(state, inst):
        at, room = place(state, inst)
        for i in range(words):
            state.s[inst.o[0].index + i] = load(state.memory, at + 4 * i, 4) if 4 * i < room else 0

    return run


def write(words):
    def run(state, inst):
        at, room = place(state, inst)
        for i in range(words):
            if 4 * i < room:
                save(state.memory, at + 4 * i, 4, state.s[inst.o[0].index + i])

    return run


def atomic(size, function, compare):
    def run(state, inst):
        at, room = place(state, inst)
        first = inst.o[0].index
        data = [sum(state.s[first + n * size // 4 + i] << 32 * i for i in range(size // 4)) for n in range(2)]
        if room <= 0:
            return
        old = load(state.memory, at, size)
        save(state.memory, at, size,
             (data[0] if old == data[1] else old) if compare else function(state, old, data[0], 0))
        if "glc" in inst.m:
            for i in range(size // 4):
                state.s[first + i] = old >> 32 * i & M32

    return run


def offsets(g, align, buffer, scratch, writes, low_bits):
    """(text operand, immediate, register that is added or None, value of that register)"""
    r, form = g.r, g.r.randrange(4)
    immediate = r.randrange(0, 60) * align
    register = r.randrange(0, 60) * align if not scratch else r.randrange(0, 40)
    if low_bits and r.random() < 0.5:
        immediate, register = immediate + r.randrange(4), register + r.randrange(4)
    if not buffer and not scratch and r.random() < 0.2:
        immediate = -immediate
    name = Operand("s", M0) if writes or r.random() < 0.3 else Operand("s", OFFSET)
    if form == 0:
        return name, 0, name.index, register
    if form == 1 and not writes:
        return name, immediate, name.index, register + (60 * align if immediate < 0 else 0)
    return Operand("i", max(immediate, 0)), max(immediate, 0), None, register


def make(name, words, kind, align, writes, flags=()):
    """kind: plain, buffer or scratch. words: of the data register."""

    def maker(g):
        buffer, scratch = kind == "buffer", kind == "scratch"
        low_bits = buffer and not writes
        operand, immediate, register, value = offsets(g, align, buffer, scratch, writes, low_bits)
        base = DESCRIPTOR if buffer else BASE
        data = Operand("s", g.r.randrange(0, FREE_SCALARS - words, 1 if words == 1 else 2 if words == 2 else 4), words)
        modifiers = {"offset": immediate} if register is not None and immediate else {}
        if "glc" in flags and g.r.random() < 0.5:
            modifiers["glc"] = True
        inst = Instruction(name, "", [data, Operand("s", base, 4 if buffer else 2), operand], modifiers)
        inst.m_base, inst.m_buffer, inst.m_scratch = base, buffer, scratch
        inst.m_register, inst.m_immediate, inst.m_value, inst.m_align = register, immediate, value, align
        inst.m_low_bits = low_bits
        wait = Instruction("s_waitcnt", "", [Operand("i", 0)])
        if register == M0:
            return Unit(Instruction("s_mov_b32", "", [Operand("s", M0), Operand("i", value)]) if value <= 64 else
                        Instruction("s_mov_b32", "", [Operand("s", M0), Operand("l", value)]), inst, wait)
        return Unit(inst, wait)

    return maker


def prepare(random, state, inst, row):
    if not row.address:
        return
    if inst.m_register == OFFSET:
        state.s[OFFSET] = inst.m_value
    skew = random.randrange(4) if inst.m_low_bits else 0
    start = MEMORY_ADDRESS + random.randrange(0, 512) // inst.m_align * inst.m_align
    if not inst.m_buffer:
        state.set_s64(BASE, start + skew)
        return
    stride = random.choice([0, 0, 4, 16, 64])
    records = random.choice([0, 8, 64, 128, 1024, 2048]) // (stride or 1)
    state.set_s64(DESCRIPTOR, start + skew | stride << 48)
    state.s[DESCRIPTOR + 2], state.s[DESCRIPTOR + 3] = records, 0x27000


for _kind, _prefix in (("plain", "s_"), ("buffer", "s_buffer_"), ("scratch", "s_scratch_")):
    _space = "descriptor" if _kind == "buffer" else "scalar"
    for _words in (1, 2, 4, 8, 16):
        _suffix = "dword" + (f"x{_words}" if _words > 1 else "")
        if _kind != "scratch" or _words <= 4:
            TABLE[f"{_prefix}load_{_suffix}"] = Row(read(_words), make(f"{_prefix}load_{_suffix}", _words, _kind, 4, False),
                                                    None, _space)
        if _words <= 4:
            TABLE[f"{_prefix}store_{_suffix}"] = Row(write(_words), make(f"{_prefix}store_{_suffix}", _words, _kind, 4, True),
                                                     None, _space)
    if _kind == "scratch":
        continue
    for _size, _suffix in ((4, ""), (8, "_x2")):
        _f = integer_functions(8 * _size)
        for _key in ("add", "sub", "inc", "dec", "smin", "smax", "umin", "umax", "and", "or", "xor", "swap", "cmpswap"):
            _name = f"{_prefix}atomic_{_key}{_suffix}"
            _compare = _key == "cmpswap"
            TABLE[_name] = Row(atomic(_size, _f.get(_key), _compare),
                               make(_name, _size // 4 * (2 if _compare else 1), _kind, _size, True, ("glc",)), None, _space)


def nothing(state, inst):
    """Caches are not observable by one wave."""


def cache(name, operands):
    TABLE[name] = Row(nothing, lambda g: Instruction(name, "", operands(g)))


for _name in ("s_dcache_inv", "s_dcache_inv_vol", "s_dcache_wb", "s_dcache_wb_vol"):
    cache(_name, lambda g: [])
for _name in ("s_dcache_discard", "s_dcache_discard_x2"):
    cache(_name, lambda g: [Operand("s", 98, 2), Operand("i", g.r.randrange(0, 4) * 64)])
cache("s_atc_probe", lambda g: [Operand("i", g.r.randrange(8)), Operand("s", 98, 2), Operand("i", 64)])
cache("s_atc_probe_buffer", lambda g: [Operand("i", g.r.randrange(8)), Operand("s", 88, 4), Operand("i", 64)])
