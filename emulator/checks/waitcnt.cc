// Check "waitcnt": a register that is used, or an LDS byte that is read or written, while a result
// that goes there is in flight. Vector memory results and DS results return in order among
// themselves, so that the count that an s_waitcnt leaves says exactly which are complete; scalar
// loads return in any order, so that only lgkmcnt(0) covers them.
//
// gfx9 and later read the data of stores at issue (LLVM, vmemWriteNeedsExpWaitcnt), so expcnt
// guards nothing that is executed here.
#include <algorithm>
#include <cstring>

#include "emulator/checks/all_checks.h"
#include "emulator/checks/check.h"
#include "emulator/checks/scoreboard.h"

namespace flydsl::emu::checks {
namespace {

struct CopyInFlight {
  uint32_t wave, op, vm_number;
  uint64_t begin, end;  // bounds in LDS
  uint64_t lds_offset, mask;
  uint32_t bytes;
};

class Waitcnt : public Check {
 public:
  void group_begin(const Group &group, const std::vector<Wave *> &waves) override {
    program_ = group.program;
    copies_.clear();
    boards_.resize(waves.size());
    in_flight_.resize(waves.size());
    for (Scoreboard &b : boards_) b.clear();
    for (Bits &b : in_flight_) std::memset(b.words, 0, sizeof b.words);
  }

  void before(Wave &wave, const Op &op, const Instruction &i) override {
    Scoreboard &board = boards_[wave.wave_in_group];
    if (i.family == Family::kWait) {
      const WaitFields w = wait_fields(op);
      board.wait(w, [](const InFlight &) {});
      mark(wave);
      forget_copies(wave, board, w.vm);
    }
    flat_lds_ = flat_vm_ = false;
    if (board.entries.empty()) return;
    for (int n = 0; n < i.read_count; ++n) look(wave, op, i, i.reads[n], false);
    for (int n = 0; n < i.write_count; ++n) look(wave, op, i, i.writes[n], true);
  }

  void access(Wave &wave, const Op &op, const Instruction &i, const Access &a) override {
    (a.space == Space::kLds ? flat_lds_ : flat_vm_) = true;
    if (a.space == Space::kLds && !copies_.empty()) look_at_copies(wave, op, i, a);
  }

  void after(Wave &wave, const Op &op, const Instruction &i) override {
    if (!Scoreboard::asynchronous(i)) return;
    Scoreboard &board = boards_[wave.wave_in_group];
    board.count(i);
    if (board.is_full()) {
      board.wait({kMostVm, kMostLgkm}, [](const InFlight &) {});
      mark(wave);
    }
    const uint64_t mask =
        i.family == Family::kScalarMemory ? 1 : wave.s[kExec] | uint64_t(wave.s[kExec + 1]) << 32;
    const uint8_t needs = Scoreboard::needs(i, flat_lds_, flat_vm_);
    if (!i.write_count || !mask || !needs) return;
    board.entries.push_back({uint32_t(&op - wave.ops),
                             needs,
                             board.vm_issued,
                             board.lds_issued,
                             i.writes[0],
                             mask,
                             {}});
    mark(in_flight_[wave.wave_in_group], i.writes[0]);
  }

  void copy_issued(Wave &wave, const Op &op, const Instruction &, const Copy &c) override {
    forget_copies(wave, boards_[wave.wave_in_group], kMostVm);
    const uint64_t first = uint64_t(__builtin_ctzll(c.mask)),
                   last = 63 - uint64_t(__builtin_clzll(c.mask));
    copies_.push_back({wave.wave_in_group, uint32_t(&op - wave.ops),
                       boards_[wave.wave_in_group].vm_issued + 1,
                       c.lds_offset + first * lane_stride(c.bytes),
                       c.lds_offset + last * lane_stride(c.bytes) + c.bytes, c.lds_offset, c.mask,
                       c.bytes});
  }

 private:
  struct Bits {
    uint64_t words[(kRegisterCount + 63) / 64];
  };

  // Registers that some result in flight of `wave` goes to.
  void mark(const Wave &wave) {
    Bits &bits = in_flight_[wave.wave_in_group];
    std::memset(bits.words, 0, sizeof bits.words);
    for (const InFlight &e : boards_[wave.wave_in_group].entries) mark(bits, e.to);
  }
  static void mark(Bits &bits, const Registers &to) {
    for (uint32_t r = to.first; r < uint32_t(to.first) + to.count; ++r)
      bits.words[r / 64] |= uint64_t(1) << (r % 64);
  }

  void look(Wave &wave, const Op &op, const Instruction &i, const Registers &r, bool write) {
    const Bits &bits = in_flight_[wave.wave_in_group];
    for (uint32_t n = r.first; n < uint32_t(r.first) + r.count; ++n)
      if (bits.words[n / 64] >> (n % 64) & 1) found(wave, op, i, n, write);
  }

  void found(Wave &wave, const Op &op, const Instruction &i, uint32_t r, bool write) {
    const Scoreboard &board = boards_[wave.wave_in_group];
    // The youngest that goes there: the older ones return before it.
    for (auto e = board.entries.rbegin(); e != board.entries.rend(); ++e) {
      if (r < e->to.first || r >= uint32_t(e->to.first) + e->to.count) continue;
      // A younger load of the same kind writes after the older one.
      const bool same_kind = (e->needs == kNeedsVm && i.is_vector_memory()) ||
                             (e->needs == kNeedsLds && i.family == Family::kLds);
      if (write && same_kind) return;
      return report("waitcnt", wave, op, -1,
                    std::string(write ? "overwrites " : "reads ") + register_name(r) +
                        " while the result of " + described(e->op) + " is in flight; " +
                        needed(*e, board));
    }
  }

  std::string described(uint32_t op) const {
    std::string s(1, '`');
    s += program_->text_of(op);
    s += "` at ";
    return s + offset_and_line(*program_, op);
  }
  static std::string needed(const InFlight &e, const Scoreboard &board) {
    std::string s = "needs s_waitcnt";
    if (e.needs & kNeedsVm) s += " vmcnt(" + std::to_string(board.vm_issued - e.vm_number) + ")";
    if (e.needs & kNeedsLds)
      s += " lgkmcnt(" + std::to_string(board.lds_issued - e.lds_number) + ")";
    if (e.needs & kNeedsScalar) s += " lgkmcnt(0)";
    return s;
  }

  void forget_copies(const Wave &wave, const Scoreboard &board, uint32_t vm) {
    copies_.erase(std::remove_if(copies_.begin(), copies_.end(),
                                 [&](const CopyInFlight &c) {
                                   return c.wave == wave.wave_in_group &&
                                          board.vm_covered(c.vm_number, vm);
                                 }),
                  copies_.end());
  }

  void look_at_copies(Wave &wave, const Op &op, const Instruction &i, const Access &a) {
    uint64_t low = ~uint64_t(0), high = 0;
    for (uint64_t rest = a.mask; rest; rest &= rest - 1) {
      const uint64_t at = a.address[__builtin_ctzll(rest)];
      low = std::min(low, at);
      high = std::max(high, at + a.bytes);
    }
    for (const CopyInFlight &c : copies_) {
      if (c.end <= low || high <= c.begin) continue;
      for (uint64_t rest = a.mask; rest; rest &= rest - 1) {
        const int lane = __builtin_ctzll(rest);
        const uint64_t at = a.address[lane];
        if (at + a.bytes <= c.begin || at >= c.end) continue;
        // Lanes of the copy whose bytes this one touches.
        const uint64_t stride = lane_stride(c.bytes),
                       from = at > c.lds_offset ? at - c.lds_offset : 0;
        const uint64_t first = from / stride + (from % stride >= c.bytes);
        const uint64_t last = std::min<uint64_t>(63, (at + a.bytes - 1 - c.lds_offset) / stride);
        if (first > last) continue;
        const uint64_t touched = (last == 63 ? ~uint64_t(0) : (uint64_t(1) << (last + 1)) - 1) &
                                 ~((uint64_t(1) << first) - 1);
        if (!(touched & c.mask)) continue;
        const Scoreboard &board = boards_[c.wave];
        return report("waitcnt", wave, op, lane,
                      std::string(i.has(kLoads) ? "reads" : "changes") + " LDS at " + hex(at) +
                          " while the copy " + described(c.op) + " of wave " +
                          std::to_string(c.wave) + " is in flight; wave " + std::to_string(c.wave) +
                          " needs s_waitcnt vmcnt(" +
                          std::to_string(board.vm_issued - c.vm_number) + ") before");
      }
    }
  }

  const Program *program_ = nullptr;
  std::vector<Scoreboard> boards_;  // by wave, as the next
  std::vector<Bits> in_flight_;
  std::vector<CopyInFlight> copies_;
  bool flat_lds_ = false, flat_vm_ = false;
};

}  // namespace

std::unique_ptr<Check> make_waitcnt(const Context &, void *) {
  return std::make_unique<Waitcnt>();
}

}  // namespace flydsl::emu::checks
