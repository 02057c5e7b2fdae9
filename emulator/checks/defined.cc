// Check "defined": data that nobody wrote reaching an address, a branch, EXEC, or, as a whole
// element, global memory. Undefined bits are followed through registers (defined_propagate.cc), LDS,
// scratch and global memory (memory/definedness.h); compilers copy undefined halves about, so that
// computing with them is no fault.
#include <algorithm>
#include <cstring>
#include <map>

#include "emulator/checks/all_checks.h"
#include "emulator/checks/check.h"
#include "emulator/checks/defined_state.h"
#include "emulator/memory/definedness.h"

namespace flydsl::emu::checks {
namespace {

uint64_t exec_of(const Wave &wave) {
  return wave.s[kExec] | uint64_t(wave.s[kExec + 1]) << 32;
}

class Defined : public Check {
 public:
  void group_begin(const Group &group, const std::vector<Wave *> &waves) override {
    program_ = group.program;
    lds_.assign(waves.empty() ? 0 : waves[0]->lds_bytes, 0xff);
    waves_.resize(waves.size());
    scratch_.resize(waves.size());
    copies_.clear();
    for (size_t n = 0; n < waves.size(); ++n) {
      begin_registers(waves_[n], group.initial_scalars);
      scratch_[n].assign(size_t(waves[n]->scratch_bytes) * 64, 0xff);
    }
  }

  void before(Wave &wave, const Op &op, const Instruction &i) override {
    RegisterShadow &shadow = waves_[wave.wave_in_group];
    bool reads = false, writes = false;
    for (int n = 0; n < i.read_count && !reads; ++n) reads = shadow.any_dirty(i.reads[n]);
    for (int n = 0; n < i.write_count && !writes; ++n) writes = shadow.any_dirty(i.writes[n]);
    copied_.clear();
    if (!reads && !writes) return;
    if (i.flags & (kLoads | kStores | kAtomic)) {
      if (reads) look_at_addresses(wave, op, i, shadow);
      // What memory holds is added by access(); lanes that the hardware fills with 0 stay defined.
      for (int n = 0; n < i.write_count; ++n) define(wave, i, i.writes[n], shadow);
      return;
    }
    if (i.family == Family::kBranch && reads) return look_at_branch(wave, op, i, shadow);
    if (!reads) {
      for (int n = 0; n < i.write_count; ++n) define(wave, i, i.writes[n], shadow);
      return;
    }
    propagate(shadow, wave, op, i);
    look_at_exec(wave, op, shadow);
  }

  void access(Wave &wave, const Op &op, const Instruction &i, const Access &a) override {
    if (a.scalar) return scalar_access(wave, i, a);
    RegisterShadow &shadow = waves_[wave.wave_in_group];
    Definedness::View memory(Definedness::instance());
    memory_ = &memory;
    uint8_t undefined[64];
    if (i.has(kCopiesToLds) && a.space == Space::kGlobal) {
      const uint32_t bytes = std::max<uint32_t>(a.bytes, 4);
      for (uint64_t rest = a.mask; rest; rest &= rest - 1) {
        const int lane = __builtin_ctzll(rest);
        if (!read(wave, a, lane, undefined)) continue;
        if (copied_.empty()) copied_.assign(64 * 16, 0);
        std::memcpy(copied_.data() + size_t(lane) * std::max(bytes, i.bytes), undefined, a.bytes);
      }
      return;
    }
    const int data = data_operand(i, op, a.part);
    const bool dirty_data = data >= 0 && any_dirty(shadow, op.o[data]);
    const bool returns = i.has(kLoads | kReturns);
    for (uint64_t rest = a.mask; rest; rest &= rest - 1) {
      const int lane = __builtin_ctzll(rest);
      if (returns && read(wave, a, lane, undefined)) load(shadow, op, i, a, lane, undefined);
      if (a.use == Use::kRead) continue;
      if (!dirty_data) {
        if (a.use == Use::kWrite) write(wave, a, lane, nullptr);
        continue;
      }
      store(wave, op, i, a, lane, shadow, data);
      if (wave.stop == Stop::kFault) return;
    }
  }

  void copy_issued(Wave &, const Op &, const Instruction &, const Copy &c) override {
    if (!copied_.empty()) copies_[c.issue] = copied_;
  }
  void copy_landed(Wave &, const Copy &c) override {
    const auto masks = copies_.find(c.issue);
    for (uint64_t rest = c.mask; rest; rest &= rest - 1) {
      const size_t lane = size_t(__builtin_ctzll(rest));
      uint8_t *to = lds_.data() + c.lds_offset + lane * lane_stride(c.bytes);
      if (masks == copies_.end())
        std::memset(to, 0, c.bytes);
      else
        std::memcpy(to, masks->second.data() + lane * c.bytes, c.bytes);
    }
    if (masks != copies_.end()) copies_.erase(masks);
  }

 private:
  // Everything is undefined but what the launch sets (LLVM "User Guide for AMDGPU Backend", Initial
  // Kernel Execution State): the scalars of the user and system data, v0 and EXEC.
  void begin_registers(RegisterShadow &shadow, uint32_t initial_scalars) {
    shadow.vectors.resize(512 * 64);
    std::memset(shadow.dirty, 0, sizeof shadow.dirty);
    const auto undefined_rows = [&](uint32_t first, uint32_t count) {
      std::fill_n(shadow.row(first), size_t(count) * 64, ~0u);
      for (uint32_t r = first; r < first + count; ++r) shadow.set_dirty(r, true);
    };
    undefined_rows(0, program_->vector_rows);
    undefined_rows(256, program_->accumulation_rows);
    std::fill_n(shadow.row(0), 64, 0);
    shadow.set_dirty(0, false);
    for (uint32_t s = 0; s < 128; ++s)
      shadow.set_scalar(kFirstScalar + s, s < initial_scalars || s >= kExec ? 0 : ~0u);
    shadow.set_scalar(kSccRegister, 1);
  }

  static bool any_dirty(const RegisterShadow &shadow, const Operand &o) {
    if (o.kind != Kind::kVector) return false;
    for (uint32_t w = 0; w < o.words; ++w)
      if (shadow.is_dirty(o.index + w)) return true;
    return false;
  }
  // The written register becomes defined where the instruction writes it.
  static void define(Wave &wave, const Instruction &i, const Registers &r, RegisterShadow &shadow) {
    static const uint32_t kZeros[64] = {};
    const uint64_t mask = i.has(kUnderExec) && i.mnemonic != "v_writelane_b32" ? exec_of(wave)
                          : i.mnemonic == "v_writelane_b32"                    ? 0
                                                                               : ~uint64_t(0);
    for (uint32_t n = r.first; n < uint32_t(r.first) + r.count; ++n) {
      if (!shadow.is_dirty(n)) continue;
      if (n >= kFirstScalar) {
        shadow.set_scalar(n, 0);
      } else if (i.has(kHighHalf | kLowHalf) && i.has(kLoads)) {
        uint32_t kept[64];
        for (int lane = 0; lane < 64; ++lane)
          kept[lane] = shadow.row(n)[lane] & (i.has(kHighHalf) ? 0xffff : 0xffff0000u);
        shadow.set_row(n, kept, mask);
      } else {
        shadow.set_row(n, kZeros, mask);
      }
    }
  }

  // Operand that holds the data a store or atomic writes; -1: none.
  static int data_operand(const Instruction &i, const Op &op, int part) {
    if (!i.has(kStores | kAtomic)) return -1;
    switch (i.family) {
      case Family::kLds:
        return op.first_source + 1 + part < op.operands ? op.first_source + 1 + part : -1;
      case Family::kBuffer:
        return 0;
      default:
        return i.has(kReturns) ? 2 : 1;
    }
  }
  static bool is_data(const Instruction &i, const Op &op, int operand) {
    const int first = data_operand(i, op, 0);
    if (first < 0) return false;
    if (i.family == Family::kLds) return operand >= first;
    return operand == first;
  }

  void look_at_addresses(Wave &wave, const Op &op, const Instruction &i,
                         const RegisterShadow &shadow) {
    for (int n = 0; n < i.read_count; ++n) {
      const Registers &r = i.reads[n];
      if (!shadow.any_dirty(r) || (r.operand >= 0 && is_data(i, op, r.operand))) continue;
      if (r.operand == 0 && i.has(kLoads) && i.write_count) continue;  // d16: the other half
      for (uint32_t k = r.first; k < uint32_t(r.first) + r.count; ++k) {
        if (!shadow.is_dirty(k)) continue;
        if (k >= kFirstScalar)
          return say(wave, op, -1, "takes its address from " + register_name(k));
        for (uint64_t rest = exec_of(wave); rest; rest &= rest - 1)
          if (shadow.row(k)[__builtin_ctzll(rest)])
            return say(wave, op, __builtin_ctzll(rest),
                       "takes its address from " + register_name(k));
      }
    }
  }

  void look_at_branch(Wave &wave, const Op &op, const Instruction &i,
                      const RegisterShadow &shadow) {
    for (int n = 0; n < i.read_count; ++n) {
      const Registers &r = i.reads[n];
      if (!shadow.any_dirty(r)) continue;
      if (r.first == kFirstScalar + kVcc && r.operand < 0) {
        // A defined bit that is set decides.
        const uint32_t *u = shadow.scalars + kVcc, *v = wave.s + kVcc;
        if ((v[0] & ~u[0]) | (v[1] & ~u[1])) continue;
      }
      return say(wave, op, -1, "branches on " + register_name(r.first));
    }
  }

  void look_at_exec(Wave &wave, const Op &op, RegisterShadow &shadow) {
    for (uint32_t w = 0; w < 2; ++w) {
      const uint32_t r = kFirstScalar + kExec + w;
      if (!shadow.is_dirty(r)) continue;
      const int lane = int(32 * w) + __builtin_ctz(shadow.scalars[kExec + w]);
      shadow.set_scalar(r, 0);
      say(wave, op, lane, "sets EXEC from data");
    }
  }

  void say(Wave &wave, const Op &op, int lane, const std::string &what) {
    report("defined", wave, op, lane, what + " that was never written");
  }

  // Undefined bits of what lane `lane` of the access finds in memory; false when there are none.
  bool read(const Wave &wave, const Access &a, int lane, uint8_t *undefined) {
    const uint64_t at = a.address[lane];
    if (a.space == Space::kGlobal) return memory_->read(at, a.bytes, undefined);
    std::memcpy(undefined, place(wave, a, lane), a.bytes);
    uint64_t any = 0;
    for (uint32_t n = 0; n < a.bytes; n += 8) {
      uint64_t part = 0;
      std::memcpy(&part, undefined + n, std::min<uint32_t>(8, a.bytes - n));
      any |= part;
    }
    return any;
  }
  void write(const Wave &wave, const Access &a, int lane, const uint8_t *undefined) {
    if (a.space == Space::kGlobal) return memory_->write(a.address[lane], a.bytes, undefined);
    uint8_t *to = place(wave, a, lane);
    if (undefined)
      std::memcpy(to, undefined, a.bytes);
    else
      std::memset(to, 0, a.bytes);
  }
  uint8_t *place(const Wave &wave, const Access &a, int lane) {
    if (a.space == Space::kLds) return lds_.data() + a.address[lane];
    return scratch_[wave.wave_in_group].data() + size_t(lane) * wave.scratch_bytes +
           a.address[lane];
  }

  // Adds what memory held to the destination of a load.
  static void load(RegisterShadow &shadow, const Op &op, const Instruction &i, const Access &a,
                   int lane, const uint8_t *undefined) {
    const uint32_t first = op.o[0].index + (a.part ? a.bytes / 4 : 0);
    if (i.mnemonic.find("_tr_") != std::string_view::npos) {
      // Transposed: the element goes to other lanes; all of them count as undefined.
      uint32_t all[64];
      std::fill_n(all, 64, ~0u);
      for (uint32_t w = 0; w < op.o[0].words; ++w) shadow.set_row(op.o[0].index + w, all, ~0ull);
      return;
    }
    if (a.bytes < 4) {
      uint32_t u = 0;
      std::memcpy(&u, undefined, a.bytes);
      if (!i.has(kHighHalf | kLowHalf) && u >> (8 * a.bytes - 1)) u |= ~0u << (8 * a.bytes - 1);
      if (i.has(kHighHalf)) u <<= 16;
      shadow.row(first)[lane] |= u;
      return shadow.set_dirty(first, true);
    }
    for (uint32_t w = 0; w < a.bytes / 4 && w < op.o[0].words; ++w) {
      uint32_t u;
      std::memcpy(&u, undefined + 4 * w, 4);
      if (!u) continue;
      shadow.row(first + w)[lane] |= u;
      shadow.set_dirty(first + w, true);
    }
  }

  void store(Wave &wave, const Op &op, const Instruction &i, const Access &a, int lane,
             const RegisterShadow &shadow, int data) {
    uint8_t undefined[64] = {};
    const uint32_t first = op.o[data].index;
    const uint32_t unit = std::min<uint32_t>(a.bytes, 4);
    bool any = false;
    for (uint32_t w = 0; w < (a.bytes + 3) / 4; ++w) {
      uint32_t u = shadow.row(first + w)[lane];
      if (i.has(kHighHalf)) u >>= 16;
      std::memcpy(undefined + 4 * w, &u, 4);
      if (unit < 4) u &= (1u << (8 * unit)) - 1;
      any |= u != 0;
      const bool whole = u == (unit < 4 ? (1u << (8 * unit)) - 1 : ~0u);
      if (whole && a.space == Space::kGlobal) {
        say(wave, op, lane,
            std::string(a.use == Use::kAtomic ? "combines " : "stores ") +
                register_name(first + w) + " to " + hex(a.address[lane] + 4 * w));
        if (wave.stop == Stop::kFault) return;
      }
    }
    if (a.use == Use::kWrite) return write(wave, a, lane, any ? undefined : nullptr);
    if (!any) return;
    // An atomic leaves a mixture of both.
    uint8_t old[64];
    read(wave, a, lane, old);
    for (uint32_t b = 0; b < a.bytes; ++b) undefined[b] |= old[b];
    write(wave, a, lane, undefined);
  }

  void scalar_access(Wave &wave, const Instruction &i, const Access &a) {
    uint8_t undefined[64];
    Definedness::View memory(Definedness::instance());
    if (!i.write_count || !memory.read(a.address[0], a.bytes, undefined)) return;
    RegisterShadow &shadow = waves_[wave.wave_in_group];
    // s_buffer_load asks word by word, s_load for all at once.
    const uint32_t first = i.writes[0].first, words = a.bytes / 4;
    for (uint32_t w = 0; w < i.writes[0].count; ++w) {
      uint32_t u = 0;
      std::memcpy(&u, undefined + 4 * std::min(w, words - 1), 4);
      if (u) shadow.set_scalar(first + w, shadow.scalars[first + w - kFirstScalar] | u);
    }
  }

  const Program *program_ = nullptr;
  Definedness::View *memory_ = nullptr;  // during access()
  std::vector<RegisterShadow> waves_;
  std::vector<uint8_t> lds_;  // undefined bits of each byte
  std::vector<std::vector<uint8_t>> scratch_;
  std::vector<uint8_t> copied_;  // of the copy being issued, [64][bytes]; empty: all defined
  std::map<uint64_t, std::vector<uint8_t>> copies_;  // by Copy::issue
};

}  // namespace

std::unique_ptr<Check> make_defined(const Context &, void *) {
  return std::make_unique<Defined>();
}

}  // namespace flydsl::emu::checks
