"""How a vector ALU instruction runs: one lane at a time, over the table that the families fill."""

from fp import Rules, finish, exact_rules
from machine import EXEC, FLOAT, LANES, VCC, dpp_lane, modified, raw, sdwa_merge, sdwa_select, type_bits, write_lane

TABLE = {}


class Row:
    """One mnemonic.

    result: type letter of the destination: u 32 bits, q 64 bits, w 16 bits (integers), f d h (floats), m lane mask
    sources: type letters.  encodings: which of e32 e64 sdwa dpp '' exist.
    flags: reads_dst  the destination is the last source (not written in the text)
           carry_out  a lane mask is the second destination (vcc in e32)
           carry_in   a lane mask is the last source (vcc in e32)
           no_mods    no neg, abs, clamp, omod;  no_clamp;  int_clamp  clamp saturates the integer
           keep_half  fp16 or 16-bit result that keeps the other half of the register, op_sel may choose halves
           ulp        allowed error of an approximation
    """

    def __init__(self, name, result, sources, function, encodings, **flags):
        self.name, self.result, self.sources, self.function = name, result, sources, function
        self.encodings, self.flags = encodings.split() or [''], flags

    def __getattr__(self, flag):
        return self.flags.get(flag)


def valu(name, result, sources, function, encodings="e32 e64 dpp sdwa", **flags):
    TABLE[name] = Row(name, result, sources, function, encodings, **flags)


class Lane:
    """What a lane function sees besides its sources."""

    def __init__(self, state, lane, inst):
        self.state, self.lane, self.inst = state, lane, inst
        self.carry_in = self.carry_out = 0
        self.clamp = bool(inst.m.get("clamp"))
        self.old = 0
        self.judge = None

    def rules(self, fmt):
        return Rules(fmt, self.state.mode)

    def exact(self, fmt):
        return exact_rules(fmt)


def source_value(state, inst, row, position, operand, lane, read_lane):
    kind = row.sources[position]
    if operand.kind == "v" and read_lane is None:
        value = 0
    else:
        value = raw(state, operand, kind, read_lane if operand.kind == "v" else lane)
    if inst.encoding == "sdwa":
        value = sdwa_select(value, inst.m.get(f"src{position}_sel", "DWORD"), operand.sext)
    op_sel = inst.m.get("op_sel")
    if op_sel and type_bits(kind) == 16 and op_sel[position] and operand.kind in "vas":
        value >>= 16
    return modified(value, operand, kind)


def run(state, inst):
    row = TABLE[inst.name]
    operands = list(inst.o)
    dst = operands.pop(0)
    mask_out = operands.pop(0) if row.carry_out else None
    mask_in = operands.pop() if row.carry_in else None
    before = state.copy() if inst.encoding == "dpp" or row.result == "m" or row.carry_out else None
    read = before or state
    mask_result, writes_mask = 0, row.result == "m" or row.carry_out
    results = []
    for lane in state.active():
        env = Lane(read, lane, inst)
        source0, written = lane, True
        if inst.encoding == "dpp":
            source0, written = dpp_lane(read, inst, lane)
            if not written and not row.carry_out:  # the masks are about the vector register only
                continue
        values = [source_value(read, inst, row, i, o, lane, source0 if i == 0 else lane) for i, o in enumerate(operands)]
        if mask_in:
            env.carry_in = read.s64(mask_in.index) >> lane & 1
        if dst.kind in "va":
            env.old = raw(read, dst, row.result if row.result != "m" else "u", lane)
            if row.result in "hw" and not row.reads_dst:
                env.old = raw(read, dst, "u", lane)
            if row.reads_dst:
                values.append(env.old & ((1 << type_bits(row.result)) - 1))
        value = row.function(env, *values)
        if row.result == "m":
            mask_result |= (value & 1) << lane
            continue
        if row.carry_out:
            mask_result |= env.carry_out << lane
            if not written:
                continue
        if row.result in FLOAT and not row.no_finish:
            rules = Rules(FLOAT[row.result], state.mode)
            value = finish(rules, value, env.clamp, inst.m.get("omod_code", 0))
        old = raw(read, dst, "u", lane)
        if row.keep_half:
            high = inst.m.get("op_sel", [0])[-1]
            value = old & 0xFFFF | value << 16 if high else old & 0xFFFF0000 | value
        if inst.encoding == "sdwa":
            value = sdwa_merge(old, value, inst.m.get("dst_sel", "DWORD"), inst.m.get("dst_unused", "UNUSED_PAD"))
        results.append((lane, value, env.judge))
    words = 2 if type_bits(row.result) == 64 else 1
    if row.result != "m":
        for lane, value, judge in results:
            write_lane(state, dst, lane, value, words)
            for word in range(words):
                state.approximate.pop((dst.index + word, lane), None)
            if judge:
                state.approximate[dst.index, lane] = judge
    if writes_mask:
        target = mask_out if row.carry_out else dst
        state.set_s64(target.index, mask_result)
        if inst.name.startswith("v_cmpx"):
            state.exec = mask_result
