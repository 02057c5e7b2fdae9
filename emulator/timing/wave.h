// A wave of compute_unit.cc: where it is in its trace, and what it has in flight.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "emulator/timing/compute_unit.h"
#include "emulator/timing/costs.h"

namespace flydsl::emu::timing {

using Slot = int64_t;
constexpr Slot kNever = std::numeric_limits<Slot>::max();
constexpr double kUnknownClock = std::numeric_limits<double>::infinity();
constexpr uint64_t kNoLine = ~uint64_t(0);

// A result that the next slot cannot use yet.
struct PendingResult {
  checks::Units registers;
  Later later = Later::kNo;
  Slot issued = 0, usable = 0;  // usable: by anything
  const MatrixResult *matrix = nullptr;
  uint32_t mnemonic = 0;  // HazardInfo's
};

struct WaveState {
  WaveState(const WaveTrace &t, uint32_t group, uint32_t wave_in_group, uint32_t a, uint32_t s,
            Slot from)
      : trace(t),
        resident(group),
        index(wave_in_group),
        age(a),
        simd(s),
        begin(from),
        ready(from),
        since(from) {}

  const WaveTrace &trace;
  const uint32_t resident, index, age, simd;
  const Slot begin;
  uint32_t step = 0, memory_index = 0, sync_index = 0;
  uint8_t priority = 0;
  bool ended = false, barrier_open = false, waits_for_landing = false;
  Stall reason = Stall::kArbitration;  // why it has not issued since `since`
  Slot ready, since;
  Slot counters_from = 0;   // s_waitcnt: it can issue from here on but for the counters
  uint64_t line = kNoLine;  // of code, that it holds

  bool at_end() const { return step >= trace.steps.size(); }
  void to_end() { step = uint32_t(trace.steps.size()); }
  uint32_t op() const { return op_at(at_end() ? trace.steps.size() - 1 : step); }
  // Whether `op` comes after the current instruction.
  bool next_is(uint32_t op) const {
    return step + 1 >= trace.steps.size() || op_at(step + 1) == op;
  }

  // Results, a few at a time; where there are more, the oldest is forgotten.
  static constexpr uint32_t kResults = 24;
  PendingResult results[kResults];
  uint32_t result_count = 0;

  void drop_results(Slot now) {
    uint32_t kept = 0;
    for (uint32_t n = 0; n < result_count; ++n)
      if (results[n].usable > now) results[kept++] = results[n];
    result_count = kept;
  }
  void add_result(const PendingResult &r) {
    if (result_count == kResults) {
      std::move(results + 1, results + kResults, results);
      --result_count;
    }
    results[result_count++] = r;
  }

  // Vector memory instructions complete in order; those that are not known to be complete are copies
  // to LDS.
  static constexpr uint32_t kRing = 128;  // more than VM_CNT counts
  double vm_own[kRing], vm_in_order[kRing];
  uint32_t vm_issued = 0, vm_known = 0;  // the first vm_known have a place in vm_in_order

  uint32_t vm_add() {
    vm_own[vm_issued % kRing] = kUnknownClock;
    return vm_issued++;
  }
  void vm_complete(uint32_t sequence, double clock) {
    vm_own[sequence % kRing] = clock;
    for (; vm_known < vm_issued && vm_own[vm_known % kRing] != kUnknownClock; ++vm_known) {
      const double before = vm_known ? vm_in_order[(vm_known - 1) % kRing] : 0;
      vm_in_order[vm_known % kRing] = std::max(before, vm_own[vm_known % kRing]);
    }
  }
  // When at most `left` are in flight; kUnknownClock: not known yet.
  double vm_done(uint32_t left) const {
    if (vm_issued <= left) return 0;
    const uint32_t needed = vm_issued - left;
    return needed > vm_known ? kUnknownClock : vm_in_order[(needed - 1) % kRing];
  }
  double vm_room(double limit) const { return vm_done(uint32_t(limit) - 1); }

  // LDS and scalar memory instructions.
  static constexpr uint32_t kLgkm = 32;
  struct InFlight {
    double done;
    bool scalar;
  };
  InFlight lgkm[kLgkm];
  uint32_t lgkm_count = 0;

  void lgkm_add(double done, bool scalar) {
    if (lgkm_count == kLgkm) {
      // Beyond what LGKM_CNT counts: the earliest has been waited for.
      std::swap(
          *std::min_element(lgkm, lgkm + kLgkm,
                            [](const InFlight &x, const InFlight &y) { return x.done < y.done; }),
          lgkm[--lgkm_count]);
    }
    lgkm[lgkm_count++] = {done, scalar};
  }
  // When at most `left` of them are in flight; `scalar`: of which kind the last one is.
  double lgkm_done(uint32_t left, bool &scalar) {
    if (lgkm_count <= left) return 0;
    InFlight *const last = lgkm + (lgkm_count - left - 1);
    std::nth_element(lgkm, last, lgkm + lgkm_count,
                     [](const InFlight &x, const InFlight &y) { return x.done < y.done; });
    scalar = last->scalar;
    return last->done;
  }
  // When one more may be issued.
  double lgkm_room(double clock, double limit) {
    const auto more =
        std::remove_if(lgkm, lgkm + lgkm_count, [&](const InFlight &x) { return x.done <= clock; });
    lgkm_count = uint32_t(more - lgkm);
    bool scalar = false;
    return lgkm_done(uint32_t(limit) - 1, scalar);
  }

 private:
  uint32_t op_at(size_t n) const { return trace.steps[n] & ~kNoLanes; }
};

}  // namespace flydsl::emu::timing
