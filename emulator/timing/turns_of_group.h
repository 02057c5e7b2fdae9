// The part of the recorder that follows how a work-group depends on others: see turns.h.
#pragma once

#include "emulator/checks/check.h"
#include "emulator/timing/trace.h"
#include "emulator/timing/turns.h"

namespace flydsl::emu::timing {

// Of the work-groups of one host thread, one after the other.
class TurnsOfGroup {
 public:
  TurnsOfGroup(const checks::Context &context, Turns *turns);

  void begin(const GroupTrace &group);
  bool at_device_scope(uint32_t op);
  // Of the recorded instruction, the last of `wave_trace`. True: it polled once more, and is off the trace.
  bool access(const Wave &wave, const checks::Access &a, WaveTrace &wave_trace);
  // Changes what the instruction brought, where a ticket or an awaited value is made up.
  void after(Wave &wave, const checks::Instruction &i, GroupTrace &group);
  // The work-group was to show which number it asks for, and has.
  bool has_shown() const { return took_; }
  // Wave-instructions that are off the trace.
  uint64_t polled(const Wave &wave) const { return waves_[wave.wave_in_group].polled; }

 private:
  static constexpr uint64_t kNoAddress = ~uint64_t(0);
  struct Traits {
    bool known = false, device_scope = false, poll = false, signal = false, asks = false,
         ticket = false;
  };
  struct OfWave {
    // The load that may poll: its address, and the trace after its first time.
    uint64_t address = kNoAddress, polled = 0;
    uint32_t op = 0, tries = 0, tried = 0;
    size_t steps = 0, memory = 0, lines = 0, syncs = 0;
    bool satisfied_before = false;  // by `satisfied`: what let it go on the last time
    uint32_t satisfied = 0;
    std::map<uint32_t, uint64_t> last_address;  // that each load could have polled, by operation
  };
  enum class Change : uint8_t { kNone, kPoll, kTicket, kLearn };

  const Traits &traits(uint32_t op);
  bool poll(const Wave &wave, OfWave &w, WaveTrace &wave_trace);
  void end_poll(OfWave &w);

  const checks::Context &context_;
  Turns *const turns_;
  std::vector<Traits> traits_;  // by operation
  std::vector<OfWave> waves_;
  std::map<uint64_t, uint32_t> taken_;  // tickets of each counter
  uint64_t group_ = 0;
  // Of the instruction that runs.
  Change change_ = Change::kNone;
  uint64_t mask_ = 0, address_ = 0;
  uint32_t value_ = 0;
  uint64_t dropped_ = 0;
  bool gave_up_ = false, took_ = false;
};

}  // namespace flydsl::emu::timing
