#include "emulator/checks/observer.h"

#include "emulator/checks/late_landing.h"
#include "emulator/engine/step.h"

namespace flydsl::emu::checks {
namespace {

uint64_t exec_of(const Wave &wave) {
  return wave.s[kExec] | uint64_t(wave.s[kExec + 1]) << 32;
}
Use use_of(const Instruction &i) {
  return i.has(kAtomic) ? Use::kAtomic : i.has(kStores) ? Use::kWrite : Use::kRead;
}

// Apertures of FLAT addresses, isa/address.h.
constexpr uint64_t kSharedAperture = uint64_t(1) << 48, kPrivateAperture = uint64_t(1) << 49;

}  // namespace

void Observer::group_begin(const Group &group, const std::vector<Wave *> &waves) {
  for (auto &check : checks_) check->group_begin(group, waves);
}
void Observer::group_end(const std::vector<Wave *> &waves) {
  for (auto &check : checks_) check->group_end(waves);
}
void Observer::barrier_passed(const std::vector<Wave *> &waves) {
  for (auto &check : checks_) check->barrier_passed(waves);
}

bool Observer::before(Wave &wave, const Op &op) {
  current_ = &context_.instructions[uint32_t(&op - wave.ops)];
  if ((wave.mode & kModeIndexing) && (op.flags & kVector)) {
    Op moved = op;
    if (apply_index(wave, moved)) {
      moved_ = with_operands_of(*current_, op, moved);
      current_ = &moved_;
    }
  }
  for (auto &check : checks_) {
    check->before(wave, op, *current_);
    if (wave.stop == Stop::kFault) return false;
  }
  if (current_->flags & (kLoads | kStores | kAtomic)) {
    find_accesses(wave, op);
    if (wave.stop == Stop::kFault) return false;
  }
  return true;
}

void Observer::after(Wave &wave, const Op &op) {
  for (auto &check : checks_) {
    if (wave.stop == Stop::kFault) return;
    check->after(wave, op, *current_);
  }
}

void Observer::deliver(Wave &wave, const Op &op, Space space, uint8_t part, uint64_t mask,
                       const uint64_t *address) {
  if (!mask) return;
  const Access access = {space, use_of(*current_), false, part, current_->bytes, mask, address};
  for (auto &check : checks_) {
    if (wave.stop == Stop::kFault) return;
    check->access(wave, op, *current_, access);
  }
}

// LDS and scratch: the semantics touch them without asking the engine. Addresses outside their
// bounds stop the wave there, so they are left out here.
void Observer::find_accesses(Wave &wave, const Op &op) {
  const Instruction &i = *current_;
  const uint64_t exec = exec_of(wave);
  alignas(64) uint64_t address[64];
  const auto row = [&](int n) { return wave.v + op.o[n].index * 64; };
  const auto inside = [&](uint64_t mask, uint64_t limit) {
    uint64_t good = 0;
    for (int lane = 0; lane < 64; ++lane)
      good |= uint64_t(address[lane] + i.bytes <= limit) << lane;
    return mask & good;
  };
  if (i.family == Family::kLds) {
    const int n = op.first_source;
    if (op.o[n].kind != Kind::kVector) return;
    const uint32_t *base = row(n), imm = uint32_t(op.imm);
    const uint32_t unit = i.bytes * (i.has(kStride64) ? 64 : 1);
    for (uint8_t part = 0; part < (i.has(kTwoAddresses) ? 2 : 1); ++part) {
      const uint32_t offset = i.has(kTwoAddresses) ? (imm >> (8 * part) & 255) * unit : imm;
      for (int lane = 0; lane < 64; ++lane) address[lane] = uint32_t(base[lane] + offset);
      deliver(wave, op, Space::kLds, part, inside(exec, wave.lds_bytes), address);
    }
  } else if (i.family == Family::kScratch) {
    const int n = i.has(kStores) ? 0 : 1;
    uint32_t base = uint32_t(op.imm);
    if (op.o[2].kind == Kind::kScalar) base += wave.s[op.o[2].index];
    for (int lane = 0; lane < 64; ++lane)
      address[lane] = uint32_t(base + (op.o[n].kind == Kind::kVector ? row(n)[lane] : 0));
    deliver(wave, op, Space::kScratch, 0, inside(exec, wave.scratch_bytes), address);
  } else if (i.family == Family::kFlat) {
    const uint32_t *a = row(i.has(kLoads | kReturns) ? 1 : 0);
    uint64_t shared = 0, own = 0;
    for (int lane = 0; lane < 64; ++lane) {
      const uint64_t at = (a[lane] | uint64_t(a[64 + lane]) << 32) + uint64_t(int64_t(op.imm));
      shared |= uint64_t(at >> 32 << 32 == kSharedAperture) << lane;
      own |= uint64_t(at >> 32 << 32 == kPrivateAperture) << lane;
      address[lane] = at & 0xffffffff;
    }
    deliver(wave, op, Space::kLds, 0, inside(shared & exec, wave.lds_bytes), address);
    deliver(wave, op, Space::kScratch, 0, inside(own & exec, wave.scratch_bytes), address);
  }
}

void Observer::global_access(Wave &wave, const Op &op, const uint64_t *address, uint64_t mask,
                             uint32_t bytes) {
  const Access access = {Space::kGlobal, use_of(*current_), false, 0, bytes, mask, address};
  for (auto &check : checks_) {
    if (wave.stop == Stop::kFault) return;
    check->access(wave, op, *current_, access);
  }
}

void Observer::scalar_access(Wave &wave, const Op &op, uint64_t address, uint32_t bytes) {
  const Access access = {Space::kGlobal, Use::kRead, true, 0, bytes, 1, &address};
  for (auto &check : checks_) {
    if (wave.stop == Stop::kFault) return;
    check->access(wave, op, *current_, access);
  }
}

void Observer::copy_issued(Wave &wave, const Op &op, const Copy &copy) {
  for (auto &check : checks_) check->copy_issued(wave, op, *current_, copy);
}
void Observer::copy_landed(Wave &wave, const Copy &copy) {
  for (auto &check : checks_) check->copy_landed(wave, copy);
}

CheckSet::CheckSet(const Kernel &kernel, const Dispatch &dispatch, const RegionSnapshot &memory,
                   const RunOptions &options, MakeCheck more)
    : instructions_(instructions_of(*kernel.program)),
      context_{kernel, dispatch, memory, *instructions_},
      options_(options),
      shared_states_(kAllChecksCount),
      more_(std::move(more)) {
  for (uint32_t n = 0; n < kAllChecksCount; ++n)
    if (options_.checks >> n & 1 && kAllChecks[n].make_shared_state)
      shared_states_[n] = kAllChecks[n].make_shared_state(context_);
}

std::unique_ptr<Observer> CheckSet::observer() const {
  std::vector<std::unique_ptr<Check>> checks;
  // First, so that what lands at an instruction has landed before the checks look at it.
  if (options_.memory != MemoryModel::kNominal)
    checks.push_back(make_late_landing(options_.memory == MemoryModel::kRandom, options_.seed));
  for (uint32_t n = 0; n < kAllChecksCount; ++n)
    if (options_.checks >> n & 1)
      checks.push_back(kAllChecks[n].make(context_, shared_states_[n].get()));
  if (more_) checks.push_back(more_(context_));
  return std::make_unique<Observer>(context_, std::move(checks));
}

}  // namespace flydsl::emu::checks
