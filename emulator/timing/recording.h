// Running some work-groups of a launch and keeping what they did.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "emulator/engine/dispatch.h"
#include "emulator/timing/trace.h"
#include "emulator/timing/turns.h"

namespace flydsl::emu::timing {

// Whether a work-group can ask a counter for a number; whether this instruction does; whether that work-group has.
bool asks_counters(const Program &program);
bool is_ticket(const Program &program, const MemoryUse &use);
bool asks_a_counter(const Program &program, const GroupTrace &group);

// Each method that runs something returns false after error() has been set.
class Recording {
 public:
  Recording(const Kernel &kernel, const Dispatch &dispatch, const RegionSnapshot &memory,
            Turns &turns, DispatchResult &result)
      : kernel_(kernel), dispatch_(dispatch), memory_(memory), turns_(turns), result_(result) {}

  const std::string &error() const { return error_; }
  const std::map<uint64_t, GroupTrace> &traces() const { return traces_; }

  // Runs and records those of `groups` that have not run; `budget`: wave-instructions of each.
  bool run(const std::vector<uint64_t> &groups, uint64_t budget, bool may_truncate);
  // Drops those that were cut, so that they are run again.
  void forget(const std::vector<uint64_t> &groups);
  // The first work-groups, up to the numbers that they take from counters.
  bool show_counters(uint64_t groups);
  // All that have not run, in the order of their turns: none finds that it has to wait.
  bool run_in_turn(uint64_t groups, uint64_t budget);
  // Prefixes of `groups` that stop within a budget of wave-instructions; not among traces().
  bool run_prefixes(const std::vector<uint64_t> &groups, uint64_t budget,
                    std::vector<GroupTrace> *prefixes);
  // All that have not run, unrecorded.
  bool run_others(uint64_t groups);
  // Work-groups that take tiles from a counter until none is left: run one by one, the first does the work of
  // all. It finds none when it runs again. Outputs must not matter any more. True after error() has been set.
  bool takes_turns(uint64_t budget);

 private:
  bool record(const std::vector<uint64_t> &groups, uint64_t budget, bool may_truncate,
              bool one_at_a_time);
  bool may_go_on();
  bool add(const DispatchResult &part);

  const Kernel &kernel_;
  const Dispatch &dispatch_;
  const RegionSnapshot &memory_;
  Turns &turns_;
  DispatchResult &result_;
  std::map<uint64_t, GroupTrace> traces_;
  std::string error_;
};

}  // namespace flydsl::emu::timing
