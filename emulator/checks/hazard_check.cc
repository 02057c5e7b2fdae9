// Check "hazard": pairs of instructions too close together (hazard.h).
#include <map>
#include <mutex>

#include "emulator/checks/all_checks.h"
#include "emulator/checks/check.h"
#include "emulator/checks/hazard.h"

namespace flydsl::emu::checks {
namespace {

class HazardCheck : public Check {
 public:
  HazardCheck(const Context &context, const HazardProgram &program)
      : program_(*context.kernel.program), hazards_(program), known_(program_.ops.size(), 0) {}

  void group_begin(const Group &, const std::vector<Wave *> &waves) override {
    trackers_.resize(waves.size());
    for (HazardTracker &t : trackers_) t.start();
  }

  void before(Wave &wave, const Op &op, const Instruction &) override {
    Hazard found;
    if (trackers_[wave.wave_in_group].step(hazards_, wave.pc - 1, known_, known_paths_, found))
      report("hazard", wave, op, -1, describe(program_, found));
  }

 private:
  const Program &program_;
  const HazardProgram &hazards_;
  std::vector<HazardTracker> trackers_;
  std::vector<uint8_t> known_;
  std::unordered_set<uint64_t> known_paths_;
};

// Kept as long as the program is.
std::shared_ptr<HazardProgram> hazards_of(const std::shared_ptr<const Program> &program) {
  struct Known {
    std::weak_ptr<const Program> program;
    std::shared_ptr<HazardProgram> hazards;
  };
  static std::mutex mutex;
  static auto *known = new std::map<const Program *, Known>();
  std::lock_guard<std::mutex> lock(mutex);
  for (auto it = known->begin(); it != known->end();)
    it = it->second.program.expired() ? known->erase(it) : std::next(it);
  Known &entry = (*known)[program.get()];
  if (!entry.hazards) {
    entry.program = program;
    entry.hazards =
        std::make_shared<HazardProgram>(*program, hazard_arch(program->ops.front().architecture));
  }
  return entry.hazards;
}

}  // namespace

std::shared_ptr<void> make_hazard_state(const Context &context) {
  return hazards_of(context.kernel.program);
}
std::unique_ptr<Check> make_hazard(const Context &context, void *state) {
  return std::make_unique<HazardCheck>(context, *static_cast<HazardProgram *>(state));
}

}  // namespace flydsl::emu::checks
