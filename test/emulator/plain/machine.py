"""The state of one wave, operands, and the rules every vector instruction shares: EXEC, SDWA, DPP, modifiers."""

import copy

import fp

LANES = 64
VECTORS, ADDRESSES, ACCUMULATORS = 64, 8, 32  # v64 and later only hold addresses
FREE_SCALARS = 84  # s84 and later hold addresses, descriptors and loop counters
MEMORY_BYTES = 4096
SCRATCH_BYTES = 256  # private memory of a lane
MEMORY_ADDRESS = 0x200000000000
VCC, M0, EXEC = 106, 124, 126
M32, M64 = (1 << 32) - 1, (1 << 64) - 1
FLOAT = {"f": fp.F32, "d": fp.F64, "h": fp.F16, "b": fp.BF16}
PACKED = {"p": fp.F16, "B": fp.BF16}  # two in 32 bits; a floating constant is the low one, the high one is 0


def signed(x, bits):
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> (bits - 1) else x


class State:
    def __init__(self):
        self.scc, self.mode = 0, 0x3F0
        self.processor = None
        self.s = [0] * 128
        self.v = [[0] * LANES for _ in range(VECTORS + ADDRESSES)]
        self.a = [[0] * LANES for _ in range(ACCUMULATORS)]
        self.lds, self.memory = bytearray(MEMORY_BYTES), bytearray(MEMORY_BYTES)
        self.scratch = [bytearray(SCRATCH_BYTES) for _ in range(LANES)]
        self.approximate = {}  # (register, lane) -> judge(bits): results that are not defined to the last bit
        self.pc = self.next_pc = 0

    def copy(self):
        other = copy.copy(self)
        other.s, other.approximate = list(self.s), dict(self.approximate)
        other.v, other.a = [list(row) for row in self.v], [list(row) for row in self.a]
        other.lds, other.memory = bytearray(self.lds), bytearray(self.memory)
        other.scratch = [bytearray(lane) for lane in self.scratch]
        return other

    def s64(self, index):
        return self.s[index] | self.s[index + 1] << 32

    def set_s64(self, index, value):
        self.s[index], self.s[index + 1] = value & M32, value >> 32 & M32

    @property
    def exec(self):
        return self.s64(EXEC)

    @exec.setter
    def exec(self, value):
        self.set_s64(EXEC, value)

    def active(self):
        mask = self.exec
        return [lane for lane in range(LANES) if mask >> lane & 1]


class Operand:
    """kind: v, a, s (index, also vcc, m0, exec), i (inline integer), c (inline float, as written), l (literal), off."""

    def __init__(self, kind, index=0, words=1, neg=False, absolute=False, sext=False):
        self.kind, self.index, self.words = kind, index, words
        self.neg, self.abs, self.sext = neg, absolute, sext

    def name(self):
        if self.kind in "va" or self.kind == "s" and self.index < 102:
            if self.words == 1:
                return f"{self.kind}{self.index}"
            return f"{self.kind}[{self.index}:{self.index + self.words - 1}]"
        if self.kind == "s":
            half = {VCC: "vcc", EXEC: "exec", M0: "m0", VCC + 1: "vcc", EXEC + 1: "exec"}[self.index]
            if self.words == 2 or self.index == M0:
                return half
            return half + ("_hi" if self.index & 1 else "_lo")
        if self.kind == "l":
            return hex(self.index)
        return str(self.index) if self.kind != "off" else "off"

    def text(self):
        text = self.name()
        if self.sext:
            text = f"sext({text})"
        if self.abs:
            text = f"|{text}|"
        return "-" + text if self.neg else text


INLINE_FLOAT = {"0.5": 0.5, "-0.5": -0.5, "1.0": 1.0, "-1.0": -1.0, "2.0": 2.0, "-2.0": -2.0, "4.0": 4.0, "-4.0": -4.0}
INVERSE_TWO_PI = {16: 0x3118, 32: 0x3E22F983, 64: 0x3FC45F306DC9C882}


def inline_constant(written, kind):
    """Bits of an inline floating constant for an operand of this type."""
    fmt = FLOAT.get(kind) or PACKED.get(kind) or (fp.F64 if kind in "qQ" else fp.F32)
    if written.startswith("0.15915494"):
        return INVERSE_TWO_PI[fmt.bits]
    return fp.from_real(fmt, INLINE_FLOAT[written])


def type_bits(kind):
    return {"d": 64, "q": 64, "Q": 64, "P": 64, "h": 16, "w": 16, "b": 16}.get(kind, 32)


class Instruction:
    """name without suffix; encoding: '', e32, e64, sdwa, dpp; operands in the order of the text."""

    def __init__(self, name, encoding, operands, modifiers=None):
        self.name, self.encoding, self.o = name, encoding, operands
        self.m = modifiers or {}

    def text(self):
        name = self.name + ("_" + self.encoding if self.encoding else "")
        parts = []
        for key, value in self.m.items():
            if key == "omod_code":
                parts.append({1: "mul:2", 2: "mul:4", 3: "div:2"}[value])
                continue
            if value is True:
                parts.append(key)
            elif isinstance(value, list):
                parts.append(f"{key}:[{','.join(map(str, value))}]")
            elif value is not None and value is not False:
                parts.append(f"{key}:{value}")
        return f"{name} {', '.join(o.text() for o in self.o)} {' '.join(parts)}".strip()


def raw(state, operand, kind, lane):
    """The bits an operand holds for one lane, before modifiers."""
    words = 2 if type_bits(kind) == 64 else 1
    if operand.kind in "va" and operand.kind != "off":
        file = state.v if operand.kind == "v" else state.a
        value = file[operand.index][lane]
        return value | file[operand.index + 1][lane] << 32 if words == 2 else value
    if operand.kind == "s":
        return state.s64(operand.index) if words == 2 else state.s[operand.index]
    if operand.kind == "i":
        return operand.index & (M64 if words == 2 else M32)
    if operand.kind == "c":
        return inline_constant(operand.index, kind)
    if kind == "d":
        return operand.index << 32
    if kind == "Q":
        return signed(operand.index, 32) & M64
    return operand.index


def modified(value, operand, kind):
    """abs and neg act on the sign bit."""
    bits = type_bits(kind)
    value &= (1 << bits) - 1
    sign = 1 << (bits - 1)
    if operand.abs:
        value &= ~sign
    if operand.neg:
        value ^= sign
    return value


def sdwa_select(value, select, sext):
    if select.startswith("BYTE"):
        value, bits = value >> 8 * int(select[-1]) & 0xFF, 8
    elif select.startswith("WORD"):
        value, bits = value >> 16 * int(select[-1]) & 0xFFFF, 16
    else:
        return value
    return signed(value, bits) & M32 if sext else value


def sdwa_merge(old, value, select, unused):
    if select == "DWORD":
        return value
    bits, shift = (8, 8 * int(select[-1])) if select.startswith("BYTE") else (16, 16 * int(select[-1]))
    field = (1 << bits) - 1
    value &= field
    if unused == "UNUSED_PRESERVE":
        return (old & ~(field << shift)) | value << shift
    if unused == "UNUSED_SEXT" and value >> (bits - 1):
        return M32 & ~((1 << shift + bits) - 1) | value << shift
    return value << shift


def dpp_source(control, lane):
    """The lane DPP reads for `lane`, None when there is none."""
    name, value = control
    row, column = lane & ~15, lane & 15
    if name == "quad_perm":
        return lane & ~3 | value[lane & 3]
    if name == "row_shl":
        return row + column + value if column + value < 16 else None
    if name == "row_shr":
        return row + column - value if column >= value else None
    if name == "row_ror":
        return row + (column - value) % 16
    if name == "wave_shl":
        return lane + 1 if lane < 63 else None
    if name == "wave_rol":
        return (lane + 1) % 64
    if name == "wave_shr":
        return lane - 1 if lane else None
    if name == "wave_ror":
        return (lane - 1) % 64
    if name == "row_mirror":
        return row + 15 - column
    if name == "row_half_mirror":
        return row + (column & 8) + 7 - (column & 7)
    if name == "row_bcast" and value == 15:
        return (lane & ~15) - 1 if lane >= 16 else None
    if name == "row_bcast":
        return 31 if lane >= 32 else None
    if name == "row_newbcast":
        return row + value
    raise KeyError(name)


def dpp_control(modifiers):
    for name in ("quad_perm", "row_shl", "row_shr", "row_ror", "wave_shl", "wave_rol", "wave_shr", "wave_ror",
                 "row_mirror", "row_half_mirror", "row_bcast", "row_newbcast"):
        if name in modifiers:
            return name, modifiers[name]
    return None


def dpp_lane(state, inst, lane):
    """(lane to read or None for 0, False when the lane is not written)."""
    m = inst.m
    written = bool(m["row_mask"] >> (lane // 16) & 1 and m["bank_mask"] >> (lane % 16 // 4) & 1)
    source = dpp_source(dpp_control(m), lane)
    if source is None or not state.exec >> source & 1:
        return None, written and "bound_ctrl" in m
    return source, written


def write_lane(state, operand, lane, value, words):
    file = state.v if operand.kind == "v" else state.a
    for word in range(words):
        file[operand.index + word][lane] = value >> 32 * word & M32
