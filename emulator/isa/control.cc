// Branches, waits, barriers, hardware registers and the program counter.
#include "emulator/isa/lanes.h"

namespace flydsl::emu::FLYDSL_EMU_LEVEL {
namespace {

void nop(Wave &, const Op &) {}
void end(Wave &w, const Op &) {
  w.stop = Stop::kEnd;
}
void barrier(Wave &w, const Op &) {
  w.stop = Stop::kBarrier;
}
void yield(Wave &w, const Op &) {
  w.stop = Stop::kYield;
}
void trap(Wave &w, const Op &op) {
  fault(w, op, -1, "trap");
}

inline void jump(Wave &w, const Op &op) {
  if (op.target < 0) return fault(w, op, -1, "branches outside the code");
  w.pc = uint32_t(op.target);
}
template <auto Taken>
void branch(Wave &w, const Op &op) {
  if (Taken(w)) jump(w, op);
}
inline bool always(Wave &) {
  return true;
}
inline bool scc0(Wave &w) {
  return !w.scc;
}
inline bool scc1(Wave &w) {
  return w.scc;
}
inline bool vccz(Wave &w) {
  return vcc_of(w) == 0;
}
inline bool vccnz(Wave &w) {
  return vcc_of(w) != 0;
}
inline bool execz(Wave &w) {
  return exec_of(w) == 0;
}
inline bool execnz(Wave &w) {
  return exec_of(w) != 0;
}
inline bool never(Wave &) {
  return false;
}

inline uint64_t next_address(Wave &w, const Op &op) {
  return code_address(w, op.next_address_low);
}
void go_to(Wave &w, const Op &op, uint64_t address) {
  const int32_t index = op_index_of(w, address);
  if (index < 0)
    return fault_value(w, op, -1, "jumps to an address that holds no instruction of this code,",
                       address);
  w.pc = uint32_t(index);
}
void getpc(Wave &w, const Op &op) {
  set64(w, op, 0, next_address(w, op));
}
void setpc(Wave &w, const Op &op) {
  go_to(w, op, scalar64(w, op, 0));
}
void swappc(Wave &w, const Op &op) {
  const uint64_t to = scalar64(w, op, 1);
  set64(w, op, 0, next_address(w, op));
  go_to(w, op, to);
}
void call(Wave &w, const Op &op) {
  set64(w, op, 0, next_address(w, op));
  jump(w, op);
}

// Forks run the smaller half of the lanes first and keep the other half's place in four scalar
// registers; the stack pointer is MODE.CSP, bits 31:29 (CDNA3 ISA, S_CBRANCH_G_FORK,
// S_CBRANCH_JOIN).
constexpr uint32_t kCspShift = 29;
void fork_to(Wave &w, const Op &op, uint64_t condition, uint64_t target) {
  const uint64_t exec = exec_of(w), pass = condition & exec, fail = ~condition & exec;
  if (pass == exec) return go_to(w, op, target);
  if (fail == exec) return;
  const bool fail_first = __builtin_popcountll(fail) < __builtin_popcountll(pass);
  const uint64_t later = fail_first ? pass : fail,
                 place = fail_first ? target : next_address(w, op);
  uint32_t *saved = w.s + (w.mode >> kCspShift) * 4;
  saved[0] = uint32_t(later);
  saved[1] = uint32_t(later >> 32);
  saved[2] = uint32_t(place);
  saved[3] = uint32_t(place >> 32);
  w.mode += 1u << kCspShift;
  exec_of(w) = fail_first ? fail : pass;
  if (!fail_first) go_to(w, op, target);
}
void g_fork(Wave &w, const Op &op) {
  fork_to(w, op, scalar64(w, op, 0), scalar64(w, op, 1));
}
void i_fork(Wave &w, const Op &op) {
  fork_to(w, op, scalar64(w, op, 0), next_address(w, op) + uint64_t(int64_t(op.imm) * 4));
}
void join(Wave &w, const Op &op) {
  if (w.mode >> kCspShift == scalar32(w, op, 0)) return;
  w.mode -= 1u << kCspShift;
  const uint32_t *saved = w.s + (w.mode >> kCspShift) * 4;
  exec_of(w) = saved[0] | uint64_t(saved[1]) << 32;
  go_to(w, op, saved[2] | uint64_t(saved[3]) << 32);
}

// Nothing here resumes a halted wave.
void halt(Wave &w, const Op &op) {
  if (op.imm & 1) fault(w, op, -1, "halts the wave");
}
void send_and_halt(Wave &w, const Op &op) {
  fault(w, op, -1, "halts the wave");
}

// s_waitcnt, gfx9 encoding: vmcnt in bits 3:0 and 15:14 (LLVM AMDGPUBaseInfo, getVmcntBitMask).
void waitcnt(Wave &w, const Op &op) {
  const uint32_t vm = (uint32_t(op.imm) & 15) | (uint32_t(op.imm) >> 14 & 3) << 4;
  if (w.copies_pending) land_lds_copies(w, vm);
}

void memtime(Wave &w, const Op &op) {
  set64(w, op, 0, realtime_counter());
}

// Hardware registers that user code reads or writes: MODE (1); STATUS (2), HW_ID (4),
// SH_MEM_BASES (15), XCC_ID (20) read only.
void getreg(Wave &w, const Op &op) {
  const uint32_t id = uint32_t(op.imm) & 63, offset = uint32_t(op.imm) >> 6 & 31,
                 size = (uint32_t(op.imm) >> 11 & 31) + 1;
  uint32_t value;
  switch (id) {
    case 1:
      value = w.mode;
      break;
    case 2:
      value = w.scc | uint32_t(exec_of(w) == 0) << 9 | uint32_t(vcc_of(w) == 0) << 10;
      break;
    case 4:
      value = w.hw_id;
      break;
    case 15:  // SH_MEM_BASES: bits 63:48 of the private and the shared aperture (address.h)
      value = uint32_t(special_value(w, uint32_t(Special::kPrivateBase)) >> 48) |
              uint32_t(special_value(w, uint32_t(Special::kSharedBase)) >> 48) << 16;
      break;
    case 20:
      value = 0;
      break;
    default:
      return fault_value(w, op, -1, "reads a hardware register that is not emulated, id", id);
  }
  value >>= offset;
  set32(w, op, 0, size < 32 ? value & ((1u << size) - 1) : value);
}
inline void write_register(Wave &w, const Op &op, uint32_t value) {
  const uint32_t id = uint32_t(op.imm) & 63, offset = uint32_t(op.imm) >> 6 & 31,
                 size = (uint32_t(op.imm) >> 11 & 31) + 1;
  if (id != 1)
    return fault_value(w, op, -1, "writes a hardware register that is not emulated, id", id);
  const uint32_t mask = (size < 32 ? (1u << size) - 1 : ~0u) << offset;
  w.mode = (w.mode & ~mask) | (value << offset & mask);
  w.stop = Stop::kMode;
}
void setreg(Wave &w, const Op &op) {
  write_register(w, op, scalar32(w, op, 0));
}
void setreg_imm(Wave &w, const Op &op) {
  write_register(w, op, op.control);
}

// Relative vector register numbers: M0[7:0] is added to those operands that M0[15:12] names while
// the mode is on; the engine's loop applies it (step.h).
void index_on(Wave &w, const Op &op) {
  w.s[kM0] = (w.s[kM0] & ~0xf0ffu) | (scalar32(w, op, 0) & 0xff) | (uint32_t(op.imm) & 15) << 12;
  w.mode |= kModeIndexing;
  w.stop = Stop::kMode;
}
void index_off(Wave &w, const Op &) {
  w.mode &= ~kModeIndexing;
  w.stop = Stop::kMode;
}
void index_value(Wave &w, const Op &op) {
  w.s[kM0] = (w.s[kM0] & ~0xffu) | (scalar32(w, op, 0) & 0xff);
}
void index_operands(Wave &w, const Op &op) {
  w.s[kM0] = (w.s[kM0] & ~0xf000u) | (uint32_t(op.imm) & 15) << 12;
}

}  // namespace

const Row rows_control[] = {
    {"s_nop", "=k", nop},
    {"s_endpgm", "=k", end},
    {"s_endpgm_saved", "=k", end},
    {"s_barrier", "=k", barrier},
    {"s_waitcnt", "=k", waitcnt},
    {"s_sleep", "=k", yield},
    {"s_setprio", "=k", nop},
    {"s_sethalt", "=k", halt},
    {"s_sendmsghalt", "=k", send_and_halt},
    {"s_wakeup", "=k", nop},
    {"s_sendmsg", "=k", nop},
    {"s_incperflevel", "=k", nop},
    {"s_decperflevel", "=k", nop},
    {"s_ttracedata", "=k", nop},
    {"s_icache_inv", "=k", nop},
    {"s_dcache_inv", "=k", nop},
    {"s_dcache_inv_vol", "=k", nop},
    {"s_dcache_wb", "=k", nop},
    {"s_dcache_wb_vol", "=k", nop},
    {"s_dcache_discard", "*", nop, kRowMemory},
    {"s_dcache_discard_x2", "*", nop, kRowMemory},
    {"s_atc_probe", "*", nop, kRowMemory},
    {"s_atc_probe_buffer", "*", nop, kRowMemory},
    {"v_clrexcp", "*", nop, kRowNoVop},
    {"buffer_invl2", "=k", nop},
    {"buffer_inv", "=k", nop},
    {"buffer_wbl2", "=k", nop},
    {"buffer_wbinvl1", "=k", nop},
    {"buffer_wbinvl1_vol", "=k", nop},
    {"s_trap", "=k", trap},
    {"s_branch", "=k", branch<always>, kRowBranch},
    {"s_cbranch_scc0", "=k", branch<scc0>, kRowBranch},
    {"s_cbranch_scc1", "=k", branch<scc1>, kRowBranch},
    {"s_cbranch_vccz", "=k", branch<vccz>, kRowBranch},
    {"s_cbranch_vccnz", "=k", branch<vccnz>, kRowBranch},
    {"s_cbranch_execz", "=k", branch<execz>, kRowBranch},
    {"s_cbranch_execnz", "=k", branch<execnz>, kRowBranch},
    {"s_cbranch_cdbgsys", "=k", branch<never>, kRowBranch},
    {"s_cbranch_cdbguser", "=k", branch<never>, kRowBranch},
    {"s_cbranch_cdbgsys_or_user", "=k", branch<never>, kRowBranch},
    {"s_cbranch_cdbgsys_and_user", "=k", branch<never>, kRowBranch},
    {"s_cbranch_g_fork", "=ll", g_fork},
    {"s_cbranch_i_fork", "=lk", i_fork},
    {"s_cbranch_join", "=i", join},
    {"s_call_b64", "l=k", call, kRowBranch},
    {"s_getpc_b64", "l=", getpc},
    {"s_setpc_b64", "=l", setpc},
    {"s_swappc_b64", "l=l", swappc},
    {"s_memtime", "l=", memtime},
    {"s_memrealtime", "l=", memtime},
    {"s_getreg_b32", "i=k", getreg},
    {"s_setreg_b32", "=xik", setreg},
    {"s_setreg_imm32_b32", "=k", setreg_imm},
    {"s_set_gpr_idx_on", "=ix", index_on},
    {"s_set_gpr_idx_off", "=k", index_off},
    {"s_set_gpr_idx_idx", "=i", index_value},
    {"s_set_gpr_idx_mode", "=k", index_operands},
    {nullptr, nullptr, nullptr},
};

}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
