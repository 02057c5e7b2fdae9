// Between the engine and the checks: one per host thread that runs work-groups with checks on.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "emulator/checks/check.h"
#include "emulator/engine/options.h"

namespace flydsl::emu::checks {

class Observer {
 public:
  Observer(const Context &context, std::vector<std::unique_ptr<Check>> checks)
      : context_(context), checks_(std::move(checks)) {}

  void group_begin(const Group &group, const std::vector<Wave *> &waves);
  void group_end(const std::vector<Wave *> &waves);
  void barrier_passed(const std::vector<Wave *> &waves);

  // Hooks policy of run_wave(). False: a check stopped the wave.
  bool before(Wave &wave, const Op &op);
  void after(Wave &wave, const Op &op);

  // From engine/memory.cc and engine/copies.cc while the instruction runs.
  void global_access(Wave &wave, const Op &op, const uint64_t *address, uint64_t mask,
                     uint32_t bytes);
  void scalar_access(Wave &wave, const Op &op, uint64_t address, uint32_t bytes);
  void copy_issued(Wave &wave, const Op &op, const Copy &copy);
  void copy_landed(Wave &wave, const Copy &copy);

 private:
  void find_accesses(Wave &wave, const Op &op);
  void deliver(Wave &wave, const Op &op, Space space, uint8_t part, uint64_t mask,
               const uint64_t *address);

  const Context &context_;
  std::vector<std::unique_ptr<Check>> checks_;
  const Instruction *current_ = nullptr;
  Instruction moved_;  // *current_ with relative register numbers applied
};

// The policy that step.h compiles beside NoHooks.
struct CheckHooks {
  Observer &observer;
  bool before(Wave &wave, const Op &op) { return observer.before(wave, op); }
  void after(Wave &wave, const Op &op) { observer.after(wave, op); }
};

// The checks of one dispatch.
class CheckSet {
 public:
  using MakeCheck = std::function<std::unique_ptr<Check>(const Context &)>;
  // `more`: one check besides those of the options, last of all; may be null.
  CheckSet(const Kernel &kernel, const Dispatch &dispatch, const RegionSnapshot &memory,
           const RunOptions &options, MakeCheck more = {});
  std::unique_ptr<Observer> observer() const;

 private:
  std::shared_ptr<const InstructionTable> instructions_;
  Context context_;
  const RunOptions &options_;
  std::vector<std::shared_ptr<void>> shared_states_;
  const MakeCheck more_;
};

}  // namespace flydsl::emu::checks
