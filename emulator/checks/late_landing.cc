// The strict and random memory models for results that go to registers (engine/copies.cc has the
// copies to LDS). Not a check: it changes what the kernel sees, within what the hardware may show.
//
// The instruction has run and its result is in the registers; it is taken out again, kept until it
// lands, and the registers hold a pattern (strict) or what they held before (random).
#include <algorithm>

#include "emulator/checks/late_landing.h"
#include "emulator/checks/scoreboard.h"
#include "emulator/engine/options.h"

namespace flydsl::emu::checks {
namespace {

constexpr uint32_t kPattern = 0xabababab;
// Mean numbers of instructions between the landings of a wave's results and of its copies.
constexpr uint64_t kResultPeriod = 4, kCopyPeriod = 16;

class LateLanding : public Check {
 public:
  LateLanding(bool random, uint64_t seed) : random_(random), seed_(seed), numbers_(seed) {}

  void group_begin(const Group &group, const std::vector<Wave *> &waves) override {
    boards_.resize(waves.size());
    for (Scoreboard &b : boards_) b.clear();
    numbers_ =
        Random(seed_ ^ (uint64_t(group.id[2]) << 42 ^ uint64_t(group.id[1]) << 21 ^ group.id[0]));
  }

  void before(Wave &wave, const Op &op, const Instruction &i) override {
    Scoreboard &board = boards_[wave.wave_in_group];
    const auto land_now = [&](const InFlight &e) { land(wave, e); };
    if (i.family == Family::kWait) board.wait(wait_fields(op), land_now);
    if (random_) land_some(wave, board);
    flat_lds_ = flat_vm_ = false;
    if (!random_ || !Scoreboard::asynchronous(i) || !i.write_count) return;
    take(wave, i.writes[0], old_);
  }

  void access(Wave &, const Op &, const Instruction &, const Access &a) override {
    (a.space == Space::kLds ? flat_lds_ : flat_vm_) = true;
  }

  void after(Wave &wave, const Op &op, const Instruction &i) override {
    if (!Scoreboard::asynchronous(i)) return;
    Scoreboard &board = boards_[wave.wave_in_group];
    board.count(i);
    board.wait({kMostVm, kMostLgkm}, [&](const InFlight &e) { land(wave, e); });
    const uint64_t mask =
        i.family == Family::kScalarMemory ? 1 : wave.s[kExec] | uint64_t(wave.s[kExec + 1]) << 32;
    const uint8_t needs = Scoreboard::needs(i, flat_lds_, flat_vm_);
    if (!i.write_count || !mask || !needs) return;
    InFlight e{
        uint32_t(&op - wave.ops), needs, board.vm_issued, board.lds_issued, i.writes[0], mask, {}};
    take(wave, e.to, e.data);
    if (!random_) old_.assign(e.data.size(), kPattern);
    put(wave, e.to, mask, old_);
    board.entries.push_back(std::move(e));
  }

 private:
  static void take(const Wave &wave, Registers r, std::vector<uint32_t> &data) {
    if (r.first >= kFirstScalar) {
      const uint32_t *s = wave.s + (r.first - kFirstScalar);
      data.assign(s, s + r.count);
    } else {
      const uint32_t *v = wave.v + r.first * 64;
      data.assign(v, v + r.count * 64);
    }
  }
  static void put(Wave &wave, Registers r, uint64_t mask, const std::vector<uint32_t> &data) {
    if (r.first >= kFirstScalar) {
      std::copy(data.begin(), data.end(), wave.s + (r.first - kFirstScalar));
      return;
    }
    for (int n = 0; n < r.count * 64; ++n)
      if (mask >> (n & 63) & 1) wave.v[r.first * 64 + n] = data[size_t(n)];
  }
  static void land(Wave &wave, const InFlight &e) { put(wave, e.to, e.mask, e.data); }

  // Random model: results of vector memory and of LDS in their order, scalar ones in any.
  void land_some(Wave &wave, Scoreboard &board) {
    if (wave.copies_pending && numbers_.below(kCopyPeriod) == 0) land_oldest_copy(wave);
    if (board.entries.empty() || numbers_.below(kResultPeriod)) return;
    const size_t n = numbers_.below(board.entries.size());
    const uint8_t needs = board.entries[n].needs;
    for (auto at = board.entries.begin(); at != board.entries.end(); ++at)
      if (needs & kNeedsScalar ? size_t(at - board.entries.begin()) == n : at->needs == needs) {
        land(wave, *at);
        board.entries.erase(at);
        return;
      }
  }

  bool random_;
  uint64_t seed_;
  Random numbers_;
  std::vector<Scoreboard> boards_;  // by wave
  std::vector<uint32_t> old_;
  bool flat_lds_ = false, flat_vm_ = false;
};

}  // namespace

std::unique_ptr<Check> make_late_landing(bool random, uint64_t seed) {
  return std::make_unique<LateLanding>(random, seed);
}

}  // namespace flydsl::emu::checks
