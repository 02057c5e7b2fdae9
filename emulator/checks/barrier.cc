// Check "barrier": a work-group that can never go on.
//
// The ISA lets waves arrive at different s_barrier instructions, and waves that have ended take no
// part; so a divergent barrier is wrong only when it leaves waves waiting for one that never comes.
// That wave repeats: it returns to a state (program counter, scalar and vector registers, MODE) it
// had before, while no wave of its work-group wrote anything or passed a barrier. When that holds
// for each wave that does not wait at a barrier, only another work-group could help, so the others
// that run have to be stuck as well. (Those that have not started cannot: the ones that run hold
// their host threads.)
//
// A kernel that waits for the host to write its memory is stuck by this rule too: after kPatience.
#include <atomic>
#include <chrono>
#include <cstring>

#include "emulator/checks/all_checks.h"
#include "emulator/checks/check.h"

namespace flydsl::emu::checks {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kPatience = std::chrono::milliseconds(300);

struct Shared {
  std::atomic<uint32_t> running{0}, stuck{0};
  std::atomic<uint64_t> writes{0};  // counted while some work-group is stuck
};

class BarrierCheck : public Check {
 public:
  BarrierCheck(const Context &context, Shared &shared) : context_(context), shared_(shared) {}
  ~BarrierCheck() override { leave(); }

  void group_begin(const Group &, const std::vector<Wave *> &waves) override {
    leave();
    ++shared_.running;
    running_ = true;
    waves_ = &waves;
    states_.assign(waves.size(), {});
    progress();
  }
  void group_end(const std::vector<Wave *> &) override { leave(); }
  void barrier_passed(const std::vector<Wave *> &) override { progress(); }

  void access(Wave &, const Op &, const Instruction &, const Access &a) override {
    if (a.use != Use::kRead) progress();
  }
  void copy_issued(Wave &, const Op &, const Instruction &, const Copy &) override { progress(); }

  void before(Wave &wave, const Op &op, const Instruction &i) override {
    State &s = states_[wave.wave_in_group];
    if (i.family == Family::kEnd || i.mnemonic.substr(0, 5) == "s_mem") return progress();
    if (s.since != progress_) s.restart(progress_);
    if (++s.count < kFirstLook) return;
    if (s.pc != wave.pc) {
      if (s.count >= s.next_look) look(s, wave);
      return;
    }
    if (!same(s, wave)) {
      if (s.count >= s.next_look) look(s, wave);
      return;
    }
    s.repeats = true;
    if (everyone_is_stuck()) report("barrier", wave, op, -1, describe());
  }

 private:
  static constexpr uint64_t kFirstLook = 1 << 14;
  struct State {
    uint64_t since = 0;                          // the work-group's progress_ then
    uint64_t count = 0, next_look = kFirstLook;  // instructions since then
    uint32_t pc = ~0u, scc = 0, mode = 0;
    bool repeats = false;
    uint32_t s[128];
    std::vector<uint32_t> v;

    void restart(uint64_t now) {
      since = now;
      count = 0;
      next_look = kFirstLook;
      pc = ~0u;
      repeats = false;
    }
  };

  // Something was written, so every wave may find something new.
  void progress() {
    if (shared_.stuck.load(std::memory_order_relaxed)) ++shared_.writes;
    if (stuck_) --shared_.stuck;
    stuck_ = false;
    since_ = {};
    ++progress_;
  }

  void leave() {
    if (!running_) return;
    running_ = false;
    ++shared_.writes;
    if (stuck_) --shared_.stuck;
    stuck_ = false;
    --shared_.running;
  }

  // Vector registers that the program names, architectural and accumulation.
  size_t vector_words() const { return size_t(context_.kernel.program->vector_rows) * 64; }
  size_t accumulation_words() const {
    return size_t(context_.kernel.program->accumulation_rows) * 64;
  }

  // Brent: snapshots at counts that double, so that a cycle of any length is met.
  void look(State &s, const Wave &wave) {
    s.next_look = s.count * 2;
    s.pc = wave.pc;
    s.scc = wave.scc;
    s.mode = wave.mode;
    std::memcpy(s.s, wave.s, sizeof s.s);
    const size_t n = vector_words(), a = accumulation_words();
    s.v.resize(n + a);
    std::memcpy(s.v.data(), wave.v, n * 4);
    std::memcpy(s.v.data() + n, wave.v + 256 * 64, a * 4);
  }
  bool same(const State &s, const Wave &wave) const {
    const size_t n = vector_words(), a = accumulation_words();
    return s.scc == wave.scc && s.mode == wave.mode && !std::memcmp(s.s, wave.s, sizeof s.s) &&
           !std::memcmp(s.v.data(), wave.v, n * 4) &&
           !std::memcmp(s.v.data() + n, wave.v + 256 * 64, a * 4);
  }

  bool everyone_is_stuck() {
    for (const Wave *w : *waves_) {
      const bool waits = w->stop == Stop::kEnd || w->stop == Stop::kBarrier;
      const State &s = states_[w->wave_in_group];
      if (!waits && (s.since != progress_ || !s.repeats)) return false;
    }
    const uint64_t writes = shared_.writes;
    if (!stuck_ || writes != writes_seen_) {
      // From here on, look again: this work-group's proof has to be younger than all writes.
      if (!stuck_) ++shared_.stuck;
      stuck_ = true;
      writes_seen_ = writes;
      since_ = Clock::now();
      for (State &s : states_) s.repeats = false;
      return false;
    }
    return shared_.stuck == shared_.running && Clock::now() - since_ >= kPatience;
  }

  std::string describe() const {
    const Program &p = *context_.kernel.program;
    std::string s = "deadlock: no wave of the work-group can go on";
    for (const Wave *w : *waves_) {
      if (w->stop == Stop::kEnd) continue;
      const uint32_t at = w->pc - (w->pc ? 1 : 0);
      s += "; wave " + std::to_string(w->wave_in_group) +
           (w->stop == Stop::kBarrier ? " waits at " : " repeats itself at ") + offset_and_line(p, at) +
           " `" + p.text_of(at) + "`";
    }
    return s;
  }

  const Context context_;
  Shared &shared_;
  const std::vector<Wave *> *waves_ = nullptr;
  std::vector<State> states_;
  Clock::time_point since_;
  uint64_t progress_ = 1, writes_seen_ = 0;
  bool running_ = false, stuck_ = false;
};

}  // namespace

std::shared_ptr<void> make_barrier_state(const Context &) {
  return std::make_shared<Shared>();
}
std::unique_ptr<Check> make_barrier(const Context &context, void *shared) {
  return std::make_unique<BarrierCheck>(context, *static_cast<Shared *>(shared));
}

}  // namespace flydsl::emu::checks
