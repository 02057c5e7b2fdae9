"""Control: branches, calls, forks, hardware registers, relative register numbers, and instructions without effect on a wave
that runs alone. Branches come as units with their targets; structured() puts loops and branches around other instructions."""

import copy

import assemble
import vector
from machine import FREE_SCALARS, M0, M64, VCC, Instruction, Operand
from memory import Row
from unit import Label, Unit

TABLE = {}
LINK, COUNTER, KEPT, RETURN = 94, 96, 84, 86  # s[94:95] addresses, s96 loops, s84 for a unit, s[86:87] of a function
CSP, INDEXING = 29, 27                 # bits of MODE
BRANCH_IF = {"s_branch": lambda st: True, "s_cbranch_scc0": lambda st: not st.scc, "s_cbranch_scc1": lambda st: st.scc,
             "s_cbranch_vccz": lambda st: not st.s64(VCC), "s_cbranch_vccnz": lambda st: st.s64(VCC),
             "s_cbranch_execz": lambda st: not st.exec, "s_cbranch_execnz": lambda st: st.exec,
             # the debugger's conditions are never set
             "s_cbranch_cdbgsys": lambda st: False, "s_cbranch_cdbguser": lambda st: False,
             "s_cbranch_cdbgsys_or_user": lambda st: False, "s_cbranch_cdbgsys_and_user": lambda st: False}


def s(index, words=1):
    return Operand("s", index, words)


def instruction(name, *operands, target=None, distance=None, **modifiers):
    inst = Instruction(name, "", list(operands), modifiers)
    inst.target, inst.distance = target, distance
    return inst


def literal(g):
    return Operand("l", g.r.getrandbits(31) | 0x10000)


def mark(g):
    """Leaves a trace of having been executed."""
    return instruction("s_mov_b32", s(g.r.randrange(4, FREE_SCALARS)), literal(g))


# Branches
def branch(state, inst):
    if BRANCH_IF[inst.name](state):
        state.next_pc = state.target


def make_branch(name):
    def make(g):
        end = Label()
        return Unit(instruction(name, Operand("i", 0), target=end), mark(g), end)

    return make


for _name in BRANCH_IF:
    TABLE[_name] = Row(branch, make_branch(_name))


def load_address(label, *after):
    """The address of a label to s[94:95]: program counter, plus a distance."""
    here = Label()
    return [instruction("s_getpc_b64", s(LINK, 2)), here,
            instruction("s_add_u32", s(LINK), s(LINK), Operand("l", 0x10000), distance=(here, label)),
            instruction("s_addc_u32", s(LINK + 1), s(LINK + 1), Operand("i", 0)), *after]


def get_pc(state, inst):
    state.set_s64(inst.o[0].index, state.next_pc)


def set_pc(state, inst):
    state.next_pc = state.s64(inst.o[0].index)


def swap_pc(state, inst):
    target = state.s64(inst.o[1].index)
    state.set_s64(inst.o[0].index, state.next_pc)
    state.next_pc = target


def call(state, inst):
    state.set_s64(inst.o[0].index, state.next_pc)
    state.next_pc = state.target


def make_jump(g):
    end = Label()
    return Unit(*load_address(end, instruction("s_setpc_b64", s(LINK, 2))), mark(g), end)


def make_call(g):
    function, end = Label(), Label()
    return Unit(instruction("s_call_b64", s(LINK, 2), Operand("i", 0), target=function), mark(g),
                instruction("s_branch", Operand("i", 0), target=end), function, mark(g),
                instruction("s_setpc_b64", s(LINK, 2)), end)


def make_swap(g):
    function, end = Label(), Label()
    return Unit(*load_address(function, instruction("s_swappc_b64", s(LINK, 2), s(LINK, 2))), mark(g),
                instruction("s_branch", Operand("i", 0), target=end), function, mark(g),
                instruction("s_setpc_b64", s(LINK, 2)), end)


TABLE["s_getpc_b64"] = Row(get_pc, lambda g: instruction("s_getpc_b64", s(g.r.randrange(0, FREE_SCALARS, 2), 2)))
TABLE["s_setpc_b64"] = Row(set_pc, make_jump)
TABLE["s_swappc_b64"] = Row(swap_pc, make_swap)
TABLE["s_call_b64"] = Row(call, make_call)


# Forks: the smaller part of the lanes goes first, the other waits in SGPRs until both have joined
def fork(state, mask, target):
    passing, failing = mask & state.exec, ~mask & state.exec & M64
    if passing == state.exec:
        state.next_pc = target
    elif failing != state.exec:
        depth = state.mode >> CSP
        few_fail = bin(failing).count("1") < bin(passing).count("1")
        state.set_s64(4 * depth, passing if few_fail else failing)
        state.set_s64(4 * depth + 2, target if few_fail else state.next_pc)
        state.exec = failing if few_fail else passing
        state.next_pc = state.next_pc if few_fail else target
        state.mode = state.mode & ~(7 << CSP) | depth + 1 << CSP


def join(state, inst):
    depth = state.mode >> CSP
    if depth != state.s[inst.o[0].index]:
        depth -= 1
        state.mode = state.mode & ~(7 << CSP) | depth << CSP
        state.exec, state.next_pc = state.s64(4 * depth), state.s64(4 * depth + 2)


def make_fork(indirect):
    def make(g):
        passed, joined, mask = Label(), Label(), s(g.r.choice([VCC, *range(4, FREE_SCALARS, 2)]), 2)
        start = load_address(passed, instruction("s_cbranch_g_fork", mask, s(LINK, 2))) if indirect else [
            instruction("s_cbranch_i_fork", mask, Operand("i", 0), target=passed)]
        trace = [instruction("v_mov_b32", Operand("v", g.r.randrange(28)), Operand("i", g.r.randrange(64))) for _ in range(2)]
        return Unit(instruction("s_getreg_b32", s(KEPT), hardware_register("MODE", CSP, 3)), *start, trace[0], mark(g),
                    instruction("s_branch", Operand("i", 0), target=joined), passed, trace[1], mark(g), joined,
                    instruction("s_cbranch_join", s(KEPT)))

    return make


TABLE["s_cbranch_i_fork"] = Row(lambda state, inst: fork(state, state.s64(inst.o[0].index), state.target), make_fork(False))
TABLE["s_cbranch_g_fork"] = Row(
    lambda state, inst: fork(state, state.s64(inst.o[0].index), state.s64(inst.o[1].index)), make_fork(True))
TABLE["s_cbranch_join"] = Row(join, make_fork(False))


# Hardware registers
class HardwareRegister(Operand):
    def __init__(self, name, offset, size):
        super().__init__("h", 0)
        self.register, self.offset, self.size = name, offset, size

    def text(self):
        return f"hwreg(HW_REG_{self.register}, {self.offset}, {self.size})"


def hardware_register(name, offset, size):
    return HardwareRegister(name, offset, size)


def get_register(state, inst):
    field = inst.o[1]
    status = state.scc | (not state.exec) << 9 | (not state.s64(VCC)) << 10
    value = state.mode if field.register == "MODE" else status
    state.s[inst.o[0].index] = value >> field.offset & (1 << field.size) - 1


def set_register(state, inst):
    field, mask = inst.o[0], (1 << inst.o[0].size) - 1
    value = state.s[inst.o[1].index] if inst.o[1].kind == "s" else inst.o[1].index
    state.mode = state.mode & ~(mask << field.offset) | (value & mask) << field.offset


def any_field(g):
    """MODE, or the fields of STATUS that a wave's own state decides: SCC, EXECZ, VCCZ."""
    if g.r.random() < 0.5:
        return hardware_register("STATUS", *g.r.choice([(0, 1), (9, 1), (10, 1), (9, 2)]))
    offset = g.r.randrange(32)
    return hardware_register("MODE", offset, g.r.randrange(1, 33 - offset))


def mode_field(g):
    """Rounding, denormals, DX10_CLAMP, IEEE; FP16_OVFL."""
    if g.r.random() < 0.2:
        return hardware_register("MODE", 23, 1)
    offset = g.r.randrange(10)
    return hardware_register("MODE", offset, g.r.randrange(1, 11 - offset))


TABLE["s_getreg_b32"] = Row(get_register, lambda g: instruction("s_getreg_b32", s(g.r.randrange(FREE_SCALARS)), any_field(g)))
TABLE["s_setreg_b32"] = Row(set_register, lambda g: instruction("s_setreg_b32", mode_field(g), s(g.r.randrange(FREE_SCALARS))))
TABLE["s_setreg_imm32_b32"] = Row(set_register, lambda g: instruction("s_setreg_imm32_b32", mode_field(g), literal(g)))


# Relative register numbers
def move_relative(words, source):
    def run(state, inst):
        dst, src = inst.o[0].index, inst.o[1].index
        if source:
            src += state.s[M0]
        else:
            dst += state.s[M0]
        values = [state.s[src + i] for i in range(words)]
        state.s[dst:dst + words] = values

    return run


def make_relative(name, words):
    def make(g):
        by = g.r.randrange(0, 20) * words
        registers = [s(g.r.randrange(0, FREE_SCALARS - 20 * words - words, words), words) for _ in range(2)]
        return Unit(instruction("s_mov_b32", s(M0), Operand("i", by)), instruction(name, *registers))

    return make


for _words in (1, 2):
    for _letter in "sd":
        _name = f"s_movrel{_letter}_b{32 * _words}"
        TABLE[_name] = Row(move_relative(_words, _letter == "s"), make_relative(_name, _words))

INDEXED = ["v_mov_b32", "v_not_b32", "v_add_u32", "v_sub_u32", "v_xor_b32", "v_lshlrev_b32", "v_mul_f32", "v_add_f64", "v_fma_f32",
           "v_add3_u32", "v_lshl_or_b32", "v_cmp_lt_u32", "v_cmp_eq_f32", "v_med3_i32", "v_cvt_f64_f32", "v_mul_lo_u32"]


def indexed(state, inst):
    """The vector ALU instruction that runs while MODE.GPR_IDX_EN: M0[7:0] is added to the register numbers that M0[15:12] picks
    (sources 0, 1, 2, destination)."""
    by, which = state.s[M0] & 0xFF, state.s[M0] >> 12 & 15
    moved = copy.copy(inst)
    moved.o = [copy.copy(o) for o in inst.o]
    for i, operand in enumerate(moved.o):
        if operand.kind == "v" and which >> (3 if i == 0 else i - 1) & 1:
            operand.index += by
    return moved


def index_on(state, inst):
    state.mode |= 1 << INDEXING
    state.s[M0] = state.s[M0] & ~0xF0FF | state.s[inst.o[0].index] & 0xFF | (inst.o[1].index & 15) << 12


def index_off(state, inst):
    state.mode &= ~(1 << INDEXING)


def index_mode(state, inst):
    state.s[M0] = state.s[M0] & ~0xF000 | (inst.o[0].index & 15) << 12


def index_index(state, inst):
    state.s[M0] = state.s[M0] & ~0xFF | state.s[inst.o[0].index] & 0xFF


def make_indexed(g):
    row = vector.TABLE[g.r.choice(INDEXED)]

    def operation():
        while True:
            inst = g.vector_instruction(row)
            if inst.encoding in ("", "e32", "e64") and all(o.kind != "v" or o.index < 24 for o in inst.o):
                return inst

    def choose(by):
        """The index register, with bits that must not count."""
        return instruction("s_mov_b32", s(KEPT), Operand("l", by | g.r.getrandbits(23) << 8 | 1 << 24))

    return Unit(choose(2 * g.r.randrange(2)), instruction("s_set_gpr_idx_on", s(KEPT), Operand("i", g.r.randrange(16))),
                operation(), instruction("s_set_gpr_idx_mode", Operand("i", g.r.randrange(16))), operation(),
                choose(2 * g.r.randrange(2)), instruction("s_set_gpr_idx_idx", s(KEPT)), operation(),
                instruction("s_set_gpr_idx_off"))


for _name, _run in (("s_set_gpr_idx_on", index_on), ("s_set_gpr_idx_off", index_off), ("s_set_gpr_idx_mode", index_mode),
                    ("s_set_gpr_idx_idx", index_index)):
    TABLE[_name] = Row(_run, make_indexed)


# The end, and nothing
def end_program(state, inst):
    state.next_pc = None


def make_end(name):
    def make(g):
        end = Label()
        return Unit(instruction(g.r.choice(["s_cbranch_scc0", "s_cbranch_execnz"]), Operand("i", 0), target=end), mark(g),
                    instruction(name), mark(g), end, mark(g))

    return make


TABLE["s_endpgm"] = Row(end_program, make_end("s_endpgm"))
TABLE["s_endpgm_saved"] = Row(end_program, make_end("s_endpgm_saved"))


def nothing(state, inst):
    """No effect that a wave alone could see."""


def without_effect(name, *operands, since=None, only=None):
    row = TABLE[name] = Row(nothing, lambda g: instruction(name, *[Operand("i", g.r.choice(o)) for o in operands]), since)
    if only:
        row.only = only


for _name in ("s_barrier", "s_wakeup", "s_icache_inv", "s_ttracedata", "v_nop", "v_clrexcp"):
    without_effect(_name)
without_effect("s_nop", range(16))
without_effect("s_waitcnt", [0, 0xC07F, 0x0F70, 0xFFFF])
without_effect("s_setprio", range(4))
without_effect("s_sleep", range(3))
without_effect("s_sethalt", [0])
without_effect("s_incperflevel", range(4))
without_effect("s_decperflevel", range(4))
for _name in ("buffer_inv", "buffer_wbl2"):
    without_effect(_name, since="gfx942" if _name == "buffer_inv" else None)
for _name in ("buffer_wbinvl1", "buffer_wbinvl1_vol", "buffer_invl2"):
    without_effect(_name, only=("gfx90a",))


# Around other instructions
def structured(test, parts):
    """parts: lists of pairs. Puts a loop or a call around some of them and conditional branches over others."""
    g, r = test.generator, test.random

    def assembled(*items):
        return assemble.assemble(test.options.llvm_mc, test.processor, [Unit(*items)])[0]

    parts = list(parts)
    first = r.randrange(len(parts))
    last = r.randrange(first, len(parts)) + 1
    if r.random() < 0.7:
        again = Label()
        before = assembled(instruction("s_movk_i32", s(COUNTER), Operand("i", r.randrange(1, 5))), again)
        after = assembled(instruction("s_addk_i32", s(COUNTER), Operand("i", -1)),
                          instruction("s_cmp_lg_u32", s(COUNTER), Operand("i", 0)),
                          instruction("s_cbranch_scc1", Operand("i", 0), target=again))
    else:  # a function that is called twice
        function, end = Label(), Label()
        before = assembled(instruction("s_call_b64", s(LINK, 2), Operand("i", 0), target=function),
                           instruction("s_call_b64", s(LINK, 2), Operand("i", 0), target=function),
                           instruction("s_branch", Operand("i", 0), target=end), function,
                           instruction("s_mov_b64", s(RETURN, 2), s(LINK, 2)))
        after = assembled(instruction("s_setpc_b64", s(RETURN, 2)), end)
        if any(getattr(item, "name", None) in TABLE for pairs in parts[first:last] for item, _ in pairs):
            before, after = [], []  # units that use the same registers
    parts[first:last] = [[*before, *(pair for pairs in parts[first:last] for pair in pairs), *after]]
    at = r.randrange(len(parts))
    over = Label()
    skip = assembled(instruction(r.choice([n for n in BRANCH_IF if n != "s_branch"]), Operand("i", 0), target=over), over)
    return [*parts[:at], skip[:1], parts[at], skip[1:], *parts[at + 1:]]
