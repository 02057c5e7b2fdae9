#include "emulator/timing/record.h"

#include <algorithm>
#include <bit>
#include <mutex>

#include "emulator/checks/check.h"
#include "emulator/timing/lds_conflicts.h"
#include "emulator/timing/turns_of_group.h"

namespace flydsl::emu::timing {
namespace {

using checks::Access;
using checks::Family;
using checks::Instruction;

bool is_memory(const Instruction &i) {
  return i.family == Family::kLds || i.family == Family::kScalarMemory ||
         i.family == Family::kCache || i.is_vector_memory();
}

MemoryKind kind_of(const Instruction &i) {
  if (i.family == Family::kScalarMemory) return MemoryKind::kScalarLoad;
  if (i.family == Family::kCache) return MemoryKind::kCache;
  const bool lds = i.family == Family::kLds;
  if (i.has(checks::kAtomic)) return lds ? MemoryKind::kLdsAtomic : MemoryKind::kGlobalAtomic;
  if (i.has(checks::kStores)) return lds ? MemoryKind::kLdsWrite : MemoryKind::kGlobalStore;
  if (i.has(checks::kCopiesToLds)) return MemoryKind::kCopyToLds;
  if (i.has(checks::kLoads)) return lds ? MemoryKind::kLdsRead : MemoryKind::kGlobalLoad;
  return lds ? MemoryKind::kLdsOther : MemoryKind::kCache;
}

void add_passes(MemoryUse &use, const LdsPasses &p) {
  use.phases = uint16_t(use.phases + p.passes);
  use.ideal_phases = uint16_t(use.ideal_phases + p.ideal);
  use.phase_bytes = p.pass_bytes;
}

void add_line(WaveTrace &wave, MemoryUse &use, uint64_t line) {
  // Neighbouring lanes mostly share a line.
  const auto begin = wave.lines.begin() + use.first_line;
  if (std::find(std::make_reverse_iterator(wave.lines.end()), std::make_reverse_iterator(begin),
                line) != std::make_reverse_iterator(begin))
    return;
  wave.lines.push_back(line);
  ++use.line_count;
}

void add_lines(WaveTrace &wave, MemoryUse &use, uint64_t first_byte, uint32_t bytes) {
  const uint64_t last = (first_byte + bytes - 1) / kLineBytes;
  for (uint64_t line = first_byte / kLineBytes; line <= last; ++line) add_line(wave, use, line);
}

}  // namespace

struct Recorder::State {
  std::vector<uint64_t> groups;  // sorted
  uint64_t budget = 0;
  Turns *turns = nullptr;
  std::mutex mutex;
  std::vector<GroupTrace> done;
};

namespace {

// Of one host thread.
class GroupRecorder : public checks::Check {
 public:
  GroupRecorder(const checks::Context &context, const std::vector<uint64_t> &groups,
                uint64_t budget, Turns *turns, std::mutex &mutex, std::vector<GroupTrace> &done)
      : context_(context),
        groups_(groups),
        budget_(budget),
        turns_(context, turns),
        mutex_(mutex),
        done_(done) {}

  void group_begin(const Group &group, const std::vector<Wave *> &waves) override {
    const uint32_t *grid = context_.dispatch.grid;
    const uint64_t linear =
        group.id[0] + uint64_t(grid[0]) * (group.id[1] + uint64_t(grid[1]) * group.id[2]);
    active_ = std::binary_search(groups_.begin(), groups_.end(), linear);
    if (!active_) return;
    trace_ = GroupTrace();
    std::copy(group.id, group.id + 3, trace_.id);
    trace_.linear_id = linear;
    trace_.waves.resize(waves.size());
    barriers_.assign(waves.size(), 0);
    barriers_kept_ = UINT32_MAX;
    turns_.begin(trace_);
  }

  void before(Wave &wave, const Op &op, const Instruction &i) override {
    if (!active_) return;
    // An equal part for each wave: those without barriers run one after the other. What follows a barrier that a
    // stopped wave has not reached would work on what that wave did not do.
    uint32_t &barriers = barriers_[wave.wave_in_group];
    if (budget_ && (trace_.waves[wave.wave_in_group].steps.size() + turns_.polled(wave) >=
                        budget_ / trace_.waves.size() ||
                    turns_.has_shown() || barriers > barriers_kept_)) {
      trace_.truncated = true;
      barriers_kept_ = std::min(barriers_kept_, barriers);
      wave.stop = Stop::kEnd;
      current_ = nullptr;
      return;
    }
    if (i.family == Family::kBarrier) ++barriers;
    ++trace_.wave_instructions;
    current_ = &trace_.waves[wave.wave_in_group];
    const bool no_lanes = !(wave.s[kExec] | wave.s[kExec + 1]);
    current_->steps.push_back(uint32_t(&op - wave.ops) | (no_lanes ? kNoLanes : 0));
    if (!is_memory(i)) return;
    MemoryUse use;
    use.op = uint32_t(&op - wave.ops);
    use.step = uint32_t(current_->steps.size() - 1);
    use.kind = kind_of(i);
    use.first_line = uint32_t(current_->lines.size());
    use.bytes_per_lane = uint16_t(i.bytes);
    use.device_scope = turns_.at_device_scope(use.op);
    if (use.kind == MemoryKind::kLdsOther && !no_lanes) {
      // Permutes pass 64 words through the crossbar once.
      use.phases = use.ideal_phases = 1;
      use.phase_bytes = 256;
    }
    current_->memory.push_back(use);
  }

  void access(Wave &wave, const Op &, const Instruction &, const Access &a) override {
    if (!current_) return;
    if (turns_.access(wave, a, *current_)) return;
    MemoryUse &use = current_->memory.back();
    use.lanes = uint16_t(use.lanes + std::popcount(a.mask));
    if (a.space == checks::Space::kLds) {
      add_passes(use, lds_passes(a.use == checks::Use::kRead, a.bytes, a.mask, a.address));
    } else if (a.space == checks::Space::kScratch) {
      // Lanes lie side by side, word by word.
      for (uint64_t left = a.mask; left; left &= left - 1)
        for (uint32_t word = 0; word < (a.bytes + 3) / 4; ++word)
          add_line(*current_, use,
                   kScratchLines + (trace_.linear_id << 28) + (wave.wave_in_group << 24) +
                       (a.address[std::countr_zero(left)] / 4 + word) * 256 / kLineBytes +
                       uint64_t(std::countr_zero(left) >= 32));
    } else if (a.scalar) {
      add_lines(*current_, use, a.address[0], a.bytes);
    } else {
      for (uint64_t left = a.mask; left; left &= left - 1)
        add_lines(*current_, use, a.address[std::countr_zero(left)], a.bytes);
    }
  }

  void after(Wave &wave, const Op &, const Instruction &i) override {
    if (current_) turns_.after(wave, i, trace_);
  }

  void copy_issued(Wave &, const Op &, const Instruction &, const Copy &copy) override {
    if (current_) add_passes(current_->memory.back(), lds_copy_passes(copy.bytes, copy.mask));
  }

  void group_end(const std::vector<Wave *> &waves) override {
    if (!active_) return;
    active_ = false;
    current_ = nullptr;
    for (const Wave *wave : waves) trace_.mfma_flops += wave->mfma_flops;
    std::lock_guard lock(mutex_);
    done_.push_back(std::move(trace_));
  }

 private:
  const checks::Context &context_;
  const std::vector<uint64_t> &groups_;
  const uint64_t budget_;
  TurnsOfGroup turns_;
  std::mutex &mutex_;
  std::vector<GroupTrace> &done_;
  bool active_ = false;  // the work-group is to be recorded
  GroupTrace trace_;
  std::vector<uint32_t> barriers_;       // that each wave has come to
  uint32_t barriers_kept_ = UINT32_MAX;  // least of the waves that the budget stopped
  WaveTrace *current_ = nullptr;         // of the instruction that runs; null: not recorded
};

}  // namespace

Recorder::Recorder(std::vector<uint64_t> groups, uint64_t budget, Turns *turns)
    : state_(std::make_unique<State>()) {
  std::sort(groups.begin(), groups.end());
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  state_->groups = std::move(groups);
  state_->budget = budget;
  state_->turns = turns;
}

Recorder::~Recorder() = default;

void Recorder::attach(DispatchOptions &options, bool only) {
  State &state = *state_;
  if (only) options.groups = &state.groups;
  options.recorder = [&state](const checks::Context &context) -> std::unique_ptr<checks::Check> {
    return std::make_unique<GroupRecorder>(context, state.groups, state.budget, state.turns,
                                           state.mutex, state.done);
  };
}

std::vector<GroupTrace> Recorder::take() {
  std::vector<GroupTrace> traces = std::move(state_->done);
  state_->done.clear();
  std::sort(traces.begin(), traces.end(),
            [](const GroupTrace &x, const GroupTrace &y) { return x.linear_id < y.linear_id; });
  return traces;
}

}  // namespace flydsl::emu::timing
