#include "emulator/timing/turns_of_group.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "emulator/engine/source_lines.h"

namespace flydsl::emu::timing {
namespace {

using checks::Access;
using checks::Instruction;

constexpr uint32_t kDword = 4;

bool one_address(const Access &a) {
  const int first = std::countr_zero(a.mask), last = 63 - std::countl_zero(a.mask);
  if (a.address[first] != a.address[last]) return false;
  for (uint64_t left = a.mask; left; left &= left - 1)
    if (a.address[std::countr_zero(left)] != a.address[first]) return false;
  return true;
}

uint32_t in_memory(uint64_t address) {
  uint32_t value;
  std::memcpy(&value, reinterpret_cast<const void *>(address), sizeof value);
  return value;
}

// The dword that the instruction returned.
uint32_t *result(Wave &wave, const Instruction &i) {
  return wave.v + size_t(i.writes[0].first) * 64;
}

}  // namespace

TurnsOfGroup::TurnsOfGroup(const checks::Context &context, Turns *turns)
    : context_(context), turns_(turns), traits_(context.kernel.program->ops.size()) {}

void TurnsOfGroup::begin(const GroupTrace &group) {
  group_ = group.linear_id;
  waves_.assign(group.waves.size(), {});
  taken_.clear();
  gave_up_ = took_ = false;
  change_ = Change::kNone;
}

const TurnsOfGroup::Traits &TurnsOfGroup::traits(uint32_t op) {
  Traits &t = traits_[op];
  if (t.known) return t;
  t.known = true;
  const Instruction &i = context_.instructions[op];
  if (!i.is_vector_memory() || i.has(checks::kCopiesToLds)) return t;
  const bool atomic = i.has(checks::kAtomic), dword = i.bytes == kDword;
  t.device_scope =
      !atomic && context_.kernel.program->text_of(op).find(" sc1") != std::string::npos;
  t.poll = dword && t.device_scope && i.has(checks::kLoads);
  t.signal = dword && (atomic || i.has(checks::kStores));
  constexpr std::string_view kAdd = "_atomic_add";
  t.asks = atomic && i.has(checks::kReturns);
  t.ticket = t.asks && dword && i.write_count > 0 && i.mnemonic.size() > kAdd.size() &&
             i.mnemonic.substr(i.mnemonic.size() - kAdd.size()) == kAdd;
  return t;
}

bool TurnsOfGroup::at_device_scope(uint32_t op) {
  return traits(op).device_scope;
}

void TurnsOfGroup::end_poll(OfWave &w) {
  if (w.tries) w.satisfied_before = true, w.satisfied = w.tried;
  w.address = kNoAddress;
  w.tries = 0;
}

bool TurnsOfGroup::access(const Wave &wave, const Access &a, WaveTrace &wave_trace) {
  change_ = Change::kNone;
  OfWave &w = waves_[wave.wave_in_group];
  const MemoryUse &use = wave_trace.memory.back();
  const Traits &t = traits(use.op);
  // Whatever it is that the work-group asks: it must not do the others' work.
  if (turns_ && turns_->learning() && t.asks) took_ = true;
  const bool synchronises =
      a.space == checks::Space::kGlobal && !a.scalar && a.mask && (t.poll || t.signal);
  if (!synchronises || !one_address(a)) {
    end_poll(w);
    return false;
  }
  address_ = a.address[std::countr_zero(a.mask)];
  mask_ = a.mask;
  if (t.poll && w.address == address_ && w.op == use.op) return poll(wave, w, wave_trace);
  end_poll(w);
  wave_trace.syncs.push_back({address_, uint32_t(wave_trace.memory.size() - 1), t.poll});
  if (t.poll) {
    w.address = address_;
    w.op = use.op;
    w.steps = wave_trace.steps.size();
    w.memory = wave_trace.memory.size();
    w.syncs = wave_trace.syncs.size();
    w.lines = SIZE_MAX;  // this instruction has yet to add its own
    w.last_address[use.op] = address_;
    if (turns_ && !turns_->natural() && w.satisfied_before && turns_->is_look(use.op)) {
      change_ = Change::kPoll;
      value_ = w.satisfied;
    }
  } else if (turns_ && t.ticket && std::has_single_bit(a.mask)) {
    if (turns_->learning())
      change_ = Change::kLearn;
    else if (!turns_->natural() && turns_->ticket(address_, group_, taken_[address_]++, &value_))
      change_ = Change::kTicket;
  }
  return false;
}

// The same load again: what came in between goes, and it counts as the first one.
bool TurnsOfGroup::poll(const Wave &wave, OfWave &w, WaveTrace &wave_trace) {
  const uint32_t op = w.op;
  dropped_ = wave_trace.steps.size() - w.steps;
  if (!turns_ || turns_->natural()) w.polled += dropped_;
  wave_trace.steps.resize(w.steps);
  wave_trace.memory.resize(w.memory);
  wave_trace.lines.resize(w.lines);
  wave_trace.syncs.resize(w.syncs);
  if (!turns_) return true;
  turns_->waits(op);
  for (const auto &[look, address] : w.last_address)
    if (look != op && address == w.address) turns_->looks(look);
  if (turns_->natural()) return true;
  if (w.tries > Turns::kMostTries) {
    const Program &program = *context_.kernel.program;
    gave_up_ = true;
    turns_->give_up("work-group " + std::to_string(group_) + " wave " +
                    std::to_string(wave.wave_in_group) + " at " + offset_and_line(program, op) +
                    " `" + program.text_of(op) +
                    "` waits for another work-group to write a value that is none of 0 to " +
                    std::to_string(Turns::kMostTries - 1));
    return true;
  }
  change_ = Change::kPoll;
  // What let it go on the last time, then 0, 1, 2, ...
  if (w.tries == 0)
    w.tried = w.satisfied_before ? w.satisfied : 0;
  else
    w.tried = w.tries - 1;
  ++w.tries;
  value_ = w.tried;
  return true;
}

void TurnsOfGroup::after(Wave &wave, const Instruction &i, GroupTrace &group) {
  OfWave &w = waves_[wave.wave_in_group];
  WaveTrace &wave_trace = group.waves[wave.wave_in_group];
  if (w.address != kNoAddress && w.lines == SIZE_MAX) w.lines = wave_trace.lines.size();
  group.wave_instructions -= std::exchange(dropped_, 0);
  const Change change = std::exchange(change_, Change::kNone);
  if (change == Change::kPoll || change == Change::kTicket) {
    for (uint64_t left = mask_; left; left &= left - 1)
      result(wave, i)[std::countr_zero(left)] = value_;
  } else if (change == Change::kLearn) {
    const uint32_t got = result(wave, i)[std::countr_zero(mask_)];
    turns_->took(group_, address_, got, in_memory(address_) - got);
  }
  if (gave_up_) wave.stop = Stop::kEnd;
}

}  // namespace flydsl::emu::timing
