"""Random states and random instructions of everything the plain implementation knows."""

import buffer
import control
import flat
import lane
import lds
import memory
import numeric
import packed
import scalar
import scalar_memory
import vector
from fp import F16, F32, F64, FP16_OVFL
from machine import (EXEC, FLOAT, FREE_SCALARS, INLINE_FLOAT, LANES, M0, M32, M64, SCRATCH_BYTES, VCC, VECTORS,
                     Instruction, Operand, State, type_bits)

APPROXIMATE = 29  # no instruction reads v29; v28, v30 and v31 are addresses (memory.py)
EDGE32 = [0, 1, 2, 31, 32, 33, 63, 64, 0x7FFFFFFF, 0x80000000, 0x80000001, M32, 0xFFFFFFFE, 0x3F800000, 0xBF800000,
          0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00001, 0x7F800001, 0x7FA12345, 0xFF812345, 0x00000001, 0x80000001,
          0x007FFFFF, 0x00800000, 0x80800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F000000, 0x3F000000, 0x4B000000, 0x4B7FFFFF,
          0x4F000000, 0x4F7FFFFF, 0x33000000, 0x387FC000, 0x477FF000, 0x477FE000, 0x38800000, 0x3F7FFFFF, 0x40200000,
          0x3FC00000, 0xBF000000]
EDGE16 = [0, 0x8000, 0x3C00, 0xBC00, 0x7C00, 0xFC00, 0x7E00, 0xFE01, 0x7C01, 0xFD55, 1, 0x8001, 0x03FF, 0x0400, 0x7BFF,
          0xFBFF, 0x3800, 0x7FFF, 0xFFFF, 0x6400, 0x4200, 0x3BFF]
EDGE64 = [0, 1 << 63, 0x3FF << 52, 0xBFF << 52, 0x7FF << 52, 0xFFF << 52, 0x7FF8 << 48, 0x7FF0000000000001,
          0xFFF4000000000123, 1, 0x8000000000000001, (1 << 52) - 1, 1 << 52, 0x7FEFFFFFFFFFFFFF, 0x41DFFFFFFFC00000,
          0x41EFFFFFFFE00000, 0x3FE << 52, 0xC1E0000000000000, 0x3690000000000000, 0x47EFFFFFE0000000, M64]


class Generator:
    def __init__(self, random, processor):
        self.r, self.processor = random, processor

    def value(self):
        r = self.r
        kind = r.random()
        if kind < 0.3:
            return r.choice(EDGE32)
        if kind < 0.4:
            return r.choice(EDGE16) | r.choice(EDGE16) << 16
        if kind < 0.5:
            return r.getrandbits(16) | r.choice(EDGE16) << 16
        if kind < 0.65:  # fp32 near 1, so that sums and products do not all saturate
            return r.getrandbits(1) << 31 | r.randrange(100, 150) << 23 | r.getrandbits(23)
        if kind < 0.72:
            return r.randrange(0, 70)
        return r.getrandbits(32)

    def state(self):
        r, state = self.r, State()
        state.processor = self.processor
        for index in [*range(100), VCC, VCC + 1, M0]:
            state.s[index] = self.value()
        for file in (state.v, state.a):
            for row in range(0, 32, 2):
                for lane in range(LANES):
                    file[row][lane], file[row + 1][lane] = self.value(), self.value()
                    if r.random() < 0.25:
                        wide = r.choice(EDGE64)
                        file[row][lane], file[row + 1][lane] = wide & M32, wide >> 32
        for row in range(32, VECTORS):  # only wide operands reach these (small_float)
            state.v[row] = r.sample(state.v[row - 32], LANES)
        state.exec = r.choice([0, M64, M64, r.getrandbits(64), r.getrandbits(64), 1, 1 << 63, 0xFFFF << 32])
        state.set_s64(VCC, r.choice([0, M64, r.getrandbits(64)]))
        state.scc = r.getrandbits(1)
        state.mode = 0x3F0 if r.random() < 0.4 else r.getrandbits(10)
        state.mode |= r.choice([0, 0, 0, 1 << FP16_OVFL])
        state.lds, state.memory = bytearray(r.randbytes(4096)), bytearray(r.randbytes(4096))
        state.scratch = [bytearray(r.randbytes(SCRATCH_BYTES)) for _ in range(LANES)]
        return state

    # operands
    def vector_register(self, words, file="v", limit=28):
        align = 2 if words > 1 else 1  # gfx90a and later need aligned tuples
        return Operand(file, self.r.randrange(0, limit - words + 1, align), words)

    def apart(self, sizes):
        """Registers for each size: the first, the destination, overlaps no other; v28 to v31 are left alone."""
        r, placed = self.r, []
        for words in sizes:
            ranges = (range(0, 28), range(32, 64))[:1 if not placed and words <= 28 else 2]
            starts = [s for part in ranges for s in range(part.start, part.stop - words + 1, 2 if words > 1 else 1)
                      if not placed or s + words <= placed[0].index or s >= placed[0].index + placed[0].words]
            placed.append(Operand("v", r.choice(starts), words))
        return placed

    def scalar_register(self, words):
        r = self.r
        if r.random() < 0.1:
            return Operand("s", VCC, words)
        align = 2 if words > 1 else 1
        return Operand("s", r.randrange(0, FREE_SCALARS, align), words)

    def constant(self, kind, literal):
        r = self.r
        if literal and r.random() < 0.3:
            value = self.value()
            if not -16 <= (value - (1 << 32) if value >> 31 else value) <= 64 and value not in FLOAT_BITS:
                return Operand("l", value)
        if kind not in "wQ" and r.random() < 0.5:
            return Operand("c", r.choice([*INLINE_FLOAT, "0.15915494309189532" if kind in "dq" else "0.15915494"]))
        return Operand("i", r.randrange(-16, 65))

    def source(self, kind, scalar_allowed, literal=False):
        words = 2 if type_bits(kind) == 64 else 1
        if scalar_allowed:
            choice = self.r.random()
            if choice < 0.15:
                return self.scalar_register(words)
            if choice < 0.35:
                return self.constant(kind, literal and words == 1)
        return self.vector_register(words)

    # vector ALU
    def vector_instruction(self, row):
        r = self.r
        encoding = r.choice(row.encodings)
        base = row.name
        vop3 = encoding in ("e64", "")
        modifiers, operands = {}, []
        result_words = 2 if type_bits(row.result) == 64 else 1
        if row.accumulation:
            dst = self.vector_register(1, "a" if row.accumulation in ("result", "both") else "v")
            source = self.vector_register(1, "a" if row.accumulation in ("source", "both") else "v")
            return Instruction(base, encoding, [dst, source])
        if row.result == "m":
            dst = Operand("s", VCC, 2) if encoding in ("e32",) or r.random() < 0.3 else Operand(
                "s", r.randrange(0, FREE_SCALARS, 2), 2)
        elif row.approximate:
            dst = Operand("v", APPROXIMATE, 1)
        else:
            dst = self.vector_register(result_words)
        operands.append(dst)
        if row.carry_out:
            operands.append(Operand("s", r.randrange(0, FREE_SCALARS, 2), 2) if vop3 else Operand("s", VCC, 2))
        written = row.sources[:-1] if row.reads_dst else row.sources
        scalars = set()
        for i, kind in enumerate(written):
            free = encoding in ("e64", "") or encoding in ("e32", "sdwa") and i == 0
            if row.literal:
                free = i == 0 and r.random() < 0.0
            operand = self.source(kind, free, literal=encoding == "e32")
            if encoding == "dpp" or encoding == "sdwa" and operand.kind not in "vs":
                operand = self.vector_register(operand.words)
            if operand.kind == "s":
                scalars.add(operand.index)
                if len(scalars) > 1:  # one SGPR an instruction on these targets
                    operand = self.vector_register(operand.words)
            operands.append(operand)
        if row.literal:
            operands[1 + row.literal] = Operand("l", r.getrandbits(16) | 0x3000 if row.result == "h"
                                                else r.getrandbits(32) | 0x30000000)
        if row.divide:  # s0 must be one of the others
            operands[2] = operands[r.choice([3, 4])]
        if row.carry_in:
            operands.append(Operand("s", VCC, 2) if encoding != "e64" or scalars else Operand(
                "s", r.randrange(0, FREE_SCALARS, 2), 2))
        sources = operands[1 + bool(row.carry_out):1 + bool(row.carry_out) + len(written)]
        float_sources = [o for o, kind in zip(sources, written) if kind in FLOAT]
        may_negate = not row.no_mods and encoding != "e32" or row.sign_mods and encoding == "e64" and False
        if may_negate and not row.literal:
            for operand in {id(o): o for o in float_sources}.values():
                if operand.kind in "vs":
                    operand.neg, operand.abs = r.random() < 0.25, r.random() < 0.25
        if vop3 and not row.no_clamp and not row.compare and not row.divide and (not row.no_mods or row.int_clamp):
            if r.random() < 0.25:
                modifiers["clamp"] = True
        if vop3 and row.result in "fdh" and not row.no_mods and not row.no_clamp and not row.no_finish \
                and not row.compare and r.random() < 0.2:
            modifiers["omod_code"] = r.choice([1, 2, 3])
        if row.bitop:
            modifiers["bitop3"] = r.getrandbits(8)
        if row.keep_half and vop3 and not row.bitop and not row.no_op_sel and r.random() < 0.5:
            modifiers["op_sel"] = [r.getrandbits(1) if o.kind == "v" and type_bits(k) == 16 else 0
                                   for o, k in zip(sources, written)] + [r.getrandbits(1)]
        if encoding == "sdwa":
            selects = ["BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD"]
            if row.result != "m" and not row.plain_sdwa:
                modifiers["dst_sel"] = r.choice(selects)
                modifiers["dst_unused"] = r.choice(["UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE"])
            for i, operand in enumerate(sources):
                modifiers[f"src{i}_sel"] = r.choice(selects)
                may_extend = row.no_mods and not row.sign_mods and not row.plain_sdwa
                if may_extend and operand.kind == "v" and r.random() < 0.3:
                    operand.sext = True
        if encoding == "dpp":
            name, value = r.choice([
                ("quad_perm", [r.randrange(4) for _ in range(4)]), ("row_shl", r.randrange(1, 16)),
                ("row_shr", r.randrange(1, 16)), ("row_ror", r.randrange(1, 16)), ("row_mirror", True),
                ("row_half_mirror", True), ("row_bcast", 15), ("row_bcast", 31), ("wave_shl", 1), ("wave_shr", 1),
                ("wave_rol", 1), ("wave_ror", 1), ("row_newbcast", r.randrange(16))])
            if 64 in map(type_bits, row.result + row.sources):
                name, value = "row_newbcast", r.randrange(16)  # all that 64-bit operations have
            modifiers[name] = value
            modifiers["row_mask"] = r.choice([15, 15, r.randrange(16)])
            modifiers["bank_mask"] = r.choice([15, 15, r.randrange(16)])
            if r.random() < 0.5:
                modifiers["bound_ctrl"] = 1
        return Instruction(base, encoding, operands, modifiers)

    # scalar ALU
    def scalar_instruction(self, row):
        r, operands = self.r, []
        if row.result:
            operands.append(self.scalar_register(2 if row.result == "q" else 1))
            if row.result == "u" and r.random() < 0.05:
                operands[0] = Operand("s", M0, 1)
        literal = True
        for kind in row.sources:
            if kind == "k":
                operands.append(Operand("i", r.choice([r.getrandbits(16), r.randrange(70)])))
                continue
            words = 2 if kind == "q" else 1
            choice = r.random()
            if row.form in ("sopk", "sopk_compare") or choice < 0.6:
                operands.append(self.scalar_register(words))
            elif choice < 0.65:
                operands.append(Operand("s", EXEC, words))
            else:
                operands.append(self.constant(kind, literal and kind == "u"))
                literal = literal and operands[-1].kind != "l"
        return Instruction(row.name, "", operands)

    # packed
    def packed_instruction(self, row):
        r = self.r
        kind = {"single": "P", "half": "u", "word": "u", "mix": "u"}[row.kind]
        words = 2 if kind == "P" else 1
        operands, scalars, modifiers = [self.vector_register(words)], 0, {}
        for _ in range(row.count):
            choice = r.random()
            if choice < 0.12 and not scalars:
                operands.append(Operand("s", r.randrange(0, FREE_SCALARS, words), words))
                scalars = 1
            elif choice < 0.3 and row.kind in ("half", "word", "mix", "single"):
                operands.append(self.constant({"half": "h", "word": "w", "mix": "h", "single": "f"}[row.kind], False))
            else:
                operands.append(self.vector_register(words))
        sources = operands[1:]

        def bits(default=None):
            return [r.getrandbits(1) if o.kind in "vs" else default if default is not None else r.getrandbits(1)
                    for o in sources]

        if row.kind in ("half", "word", "mix") and r.random() < 0.6:
            modifiers["op_sel"], modifiers["op_sel_hi"] = bits(), bits()
        if row.kind == "single":
            modifiers["op_sel"] = bits()
            if not row.no_sel_hi:
                modifiers["op_sel_hi"] = bits()
        if row.kind in ("half", "single") and not row.no_neg and r.random() < 0.5:
            modifiers["neg_lo"], modifiers["neg_hi"] = bits(), bits()
        if row.kind == "mix":
            for o in sources:
                if o.kind in "vs":
                    o.neg, o.abs = r.random() < 0.25, r.random() < 0.25
        if not row.no_clamp and r.random() < 0.25:
            modifiers["clamp"] = True
        return Instruction(row.name, "", operands, modifiers)

    def supported(self, since):
        order = ["gfx90a", "gfx942", "gfx950"]
        return not since or order.index(self.processor) >= order.index(since)

    def makers(self):
        """mnemonic -> function that makes one random instruction of it."""
        found = {}
        for table, maker in ((vector.TABLE, self.vector_instruction), (scalar.TABLE, self.scalar_instruction),
                             (packed.TABLE, self.packed_instruction)):
            for name, row in table.items():
                if self.supported(getattr(row, "since", None) if table is not scalar.TABLE else None) and (
                        table is not vector.TABLE or not row.only or self.processor in row.only):
                    found[name] = lambda m=maker, w=row: m(w)
        for table in (lane.TABLE, memory.TABLE, numeric.TABLE, lds.TABLE, flat.TABLE, buffer.TABLE,
                      scalar_memory.TABLE, control.TABLE):
            for name, row in table.items():
                if self.supported(row.since) and self.processor in getattr(row, "only", (self.processor,)):
                    found[name] = lambda w=row: w.make(self)
        return found


FLOAT_BITS = {0x3F000000, 0xBF000000, 0x3F800000, 0xBF800000, 0x40000000, 0xC0000000, 0x40800000, 0xC0800000,
              0x3E22F983, 0x3800, 0xB800, 0x3C00, 0xBC00, 0x4000, 0xC000, 0x4400, 0xC400, 0x3118}
