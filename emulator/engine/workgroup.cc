#include "emulator/engine/workgroup.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "emulator/engine/step.h"
#include "emulator/engine/trace.h"

namespace flydsl::emu {
namespace {

constexpr size_t kRegisterWords = 512 * 64;
// Long enough to amortise switching, short enough that a wave that spins on another's flag does not
// dominate.
constexpr uint64_t kQuantum = 20000;
// Short, so that few seeds show many interleavings.
constexpr uint64_t kShuffledQuantum = 256;
// Turns that other waves get, in sleep or full quanta, before a wave that waits for its copies goes
// on although they are not blocked: they may spin on what it will write.
constexpr uint32_t kPatience = 64;
constexpr uint8_t kPoison = 0xab;

uint32_t bit(uint32_t x, int n) {
  return x >> n & 1;
}

// Kernels that recurse or call through pointers (USES_DYNAMIC_STACK) get HIP's default stack,
// hipLimitStackSize, when that is more than the compiler could count.
uint32_t scratch_bytes_of(const Kernel &kernel) {
  constexpr uint32_t kDynamicStackBytes = 1024;
  return bit(kernel.kernel_code_properties, 11) ? std::max(kernel.private_bytes, kDynamicStackBytes)
                                                : kernel.private_bytes;
}

}  // namespace

struct WorkgroupRunner::Buffer {
  explicit Buffer(size_t bytes)
      : data(static_cast<uint8_t *>(std::aligned_alloc(64, (bytes + 63) / 64 * 64 + 64))) {
    if (!data) throw std::bad_alloc();
  }
  ~Buffer() { std::free(data); }
  Buffer(const Buffer &) = delete;
  Buffer &operator=(const Buffer &) = delete;
  uint8_t *data;
};

WorkgroupRunner::WorkgroupRunner(const Kernel &kernel, const Dispatch &dispatch,
                                 const RegionSnapshot &memory, const DispatchPacket &packet,
                                 const RunOptions &options, Reports &reports,
                                 const checks::CheckSet *checks)
    : kernel_(kernel), dispatch_(dispatch), packet_(packet), options_(options) {
  work_items_ = dispatch.block[0] * dispatch.block[1] * dispatch.block[2];
  waves_count_ = (work_items_ + 63) / 64;
  private_bytes_ = scratch_bytes_of(kernel);
  lds_bytes_ = kernel.lds_bytes + dispatch.dynamic_lds_bytes;
  group_.kernel = &kernel;
  group_.program = kernel.program.get();
  group_.regions = &memory;
  group_.packet = &packet;
  group_.model = options.memory;
  group_.reports = &reports;
  if (checks) observer_ = checks->observer();
  group_.observer = observer_.get();
  memories_.resize(waves_count_);
  registers_ = std::make_unique<Buffer>(size_t(waves_count_) * kRegisterWords * 4);
  states_ = std::make_unique<Buffer>(size_t(waves_count_) * sizeof(Wave));
  lds_ = std::make_unique<Buffer>(lds_bytes_);
  scratch_ = std::make_unique<Buffer>(size_t(waves_count_) * 64 * private_bytes_);
  for (uint32_t i = 0; i < waves_count_; ++i) {
    auto *wave = new (states_->data + i * sizeof(Wave)) Wave();
    memories_[i].group = &group_;
    waves_.push_back(wave);
  }
}

WorkgroupRunner::~WorkgroupRunner() = default;

// Initial registers: LLVM "User Guide for AMDGPU Backend", Initial Kernel Execution State.
void WorkgroupRunner::start_wave(uint32_t index) {
  Wave &w = *waves_[index];
  const Program &p = *kernel_.program;
  w.v = reinterpret_cast<uint32_t *>(registers_->data) + index * kRegisterWords;
  w.base[0] = w.v;
  w.base[1] = p.pool;
  w.ops = p.ops.data();
  w.scc = 0;
  w.stop = Stop::kNone;
  w.lds = lds_->data;
  w.lds_bytes = lds_bytes_;
  w.scratch = scratch_->data + size_t(index) * 64 * private_bytes_;
  w.scratch_bytes = private_bytes_;
  w.memory = &memories_[index];
  w.memory->copies.clear();
  w.region_begin = w.region_end = w.wregion_begin = w.wregion_end = 0;
  w.vm_issued = w.copies_pending = 0;
  w.mfma_flops = 0;
  w.wave_in_group = index;
  w.hw_id = index;
  const uint32_t rsrc1 = kernel_.compute_pgm_rsrc1;
  w.mode = (rsrc1 >> 12 & 0xff) | bit(rsrc1, 21) << 8 | bit(rsrc1, 23) << 9 | bit(rsrc1, 26) << 23;

  // Undefined registers hold a pattern that is equal from run to run.
  std::memset(w.v, kPoison, size_t(p.vector_rows) * 256);
  std::memset(w.v + 256 * 64, kPoison, size_t(p.accumulation_rows) * 256);
  std::memset(w.s, kPoison, sizeof w.s);

  uint32_t n = 0;
  auto set = [&](uint64_t value, int words) {
    for (int i = 0; i < words && n < 102; ++i) w.s[n++] = uint32_t(value >> (32 * i));
  };
  const uint32_t properties = kernel_.kernel_code_properties;
  const auto kernarg = reinterpret_cast<uint64_t>(dispatch_.kernarg);
  if (bit(properties, 0)) {
    // The private segment: swizzled, by lane, 64 lanes side by side (isa/buffer_address.h).
    set(reinterpret_cast<uint64_t>(w.scratch) | uint64_t(1) << 63, 2);
    set(0x00e00000ffffffffull, 2);
  }
  if (bit(properties, 1)) set(reinterpret_cast<uint64_t>(&packet_), 2);
  if (bit(properties, 2)) set(0, 2);
  if (bit(properties, 3)) set(kernarg, 2);
  if (bit(properties, 4)) set(0, 2);
  if (bit(properties, 5)) set(0, 2);
  if (bit(properties, 6)) set(private_bytes_, 1);
  const uint32_t preload = kernel_.kernarg_preload & 0x7f,
                 preload_offset = kernel_.kernarg_preload >> 7;
  for (uint32_t i = 0; i < preload && dispatch_.kernarg; ++i) {
    const uint64_t at = 4 * uint64_t(preload_offset + i);
    uint32_t word = 0;
    if (at + 4 <= kernel_.kernarg_bytes)
      std::memcpy(&word, static_cast<const uint8_t *>(dispatch_.kernarg) + at, 4);
    set(word, 1);
  }
  const uint32_t rsrc2 = kernel_.compute_pgm_rsrc2;
  n = rsrc2 >> 1 & 31;
  for (int axis = 0; axis < 3; ++axis)
    if (bit(rsrc2, 7 + axis)) set(group_.id[axis], 1);
  if (bit(rsrc2, 10)) set(0, 1);
  // gfx90a receives the wave's place in the private segment, whose descriptor is the wave's own here.
  if (bit(rsrc2, 0) && (bit(properties, 0) || bit(properties, 5))) set(0, 1);
  group_.initial_scalars = n;

  // gfx90a and later pack the three work-item ids into v0.
  const uint32_t bx = dispatch_.block[0], by = dispatch_.block[1];
  for (uint32_t lane = 0; lane < 64; ++lane) {
    const uint32_t id = index * 64 + lane;
    w.v[lane] = id % bx | (id / bx % by) << 10 | (id / (bx * by)) << 20;
  }
  const uint32_t active = work_items_ - index * 64;
  const uint64_t exec = active >= 64 ? ~uint64_t(0) : (uint64_t(1) << active) - 1;
  w.s[kExec] = uint32_t(exec);
  w.s[kExec + 1] = uint32_t(exec >> 32);
  w.pc = uint32_t(p.op_of_word[(kernel_.entry_address - p.base) / 4]);
}

bool WorkgroupRunner::run(uint32_t x, uint32_t y, uint32_t z, const std::atomic<bool> &cancel) {
  group_.id[0] = x;
  group_.id[1] = y;
  group_.id[2] = z;
  group_.copies_issued = 0;
  if (options_.timeout_s > 0) started_ = std::chrono::steady_clock::now();
  group_.fault.clear();
  std::memset(lds_->data, kPoison, lds_bytes_);
  std::memset(scratch_->data, kPoison, size_t(waves_count_) * 64 * private_bytes_);
  for (uint32_t i = 0; i < waves_count_; ++i) start_wave(i);

  if (observer_) {
    checks::CheckHooks hooks{*observer_};
    observer_->group_begin(group_, waves_);
    if (!run_traced(cancel, hooks)) return false;
    observer_->group_end(waves_);
    return group_.fault.empty();
  }
  NoHooks hooks;
  return run_traced(cancel, hooks);
}

template <class Hooks>
bool WorkgroupRunner::run_traced(const std::atomic<bool> &cancel, Hooks &hooks) {
  Trace *const trace = Trace::of(group_);
  if (!trace) return run_waves(cancel, hooks);
  TracedHooks<Hooks> traced{hooks, *trace};
  return run_waves(cancel, traced);
}

std::string WorkgroupRunner::place() const {
  return running_ && running_->pc ? place_of(*running_, running_->ops[running_->pc - 1], -1)
                                  : kernel_.name;
}

template <class Hooks>
bool WorkgroupRunner::run_waves(const std::atomic<bool> &cancel, Hooks &hooks) {
  Random random(options_.seed ^
                (uint64_t(group_.id[2]) << 42 ^ uint64_t(group_.id[1]) << 21 ^ group_.id[0]));
  const bool shuffled = options_.memory == MemoryModel::kRandom;
  std::vector<Wave *> order = waves_;
  uint32_t left = waves_count_;  // waves that have not ended
  uint32_t patience = kPatience;
  uint64_t executed = 0;
  while (left && !cancel.load(std::memory_order_relaxed)) {
    if (shuffled)
      for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    uint32_t at_barrier = 0, waiting = 0;
    for (Wave *wave : order) {
      if (wave->stop == Stop::kEnd) continue;
      if (wave->stop == Stop::kNone) {
        running_ = wave;
        executed +=
            run_wave(*wave, shuffled ? 1 + random.below(kShuffledQuantum) : kQuantum, hooks);
        if (wave->stop == Stop::kFault) {
          counts_.wave_instructions += executed;
          return false;
        }
        if (wave->stop == Stop::kYield) wave->stop = Stop::kNone;
        if (wave->stop == Stop::kEnd) {
          counts_.mfma_flops += wave->mfma_flops;
          --left;
        }
      }
      at_barrier += wave->stop == Stop::kBarrier;
      waiting += wave->stop == Stop::kWait;
    }
    // Waves that have ended no longer take part in barriers.
    if (left && at_barrier == left) {
      if (observer_) observer_->barrier_passed(waves_);
      for (Wave *wave : waves_)
        if (wave->stop == Stop::kBarrier) wave->stop = Stop::kNone;
    }
    if (!waiting) {
      patience = kPatience;
    } else if (at_barrier + waiting == left || --patience == 0) {
      land_awaited_copies(waves_);
      patience = kPatience;
    }
    if (past_limit(executed)) return false;
  }
  counts_.wave_instructions += executed;
  return true;
}

// True, with the place of each wave in the fault, when the work-group has run for too long.
bool WorkgroupRunner::past_limit(uint64_t executed) {
  std::string limit;
  if (options_.instruction_limit && executed > options_.instruction_limit) {
    limit = std::to_string(options_.instruction_limit) + " wave-instructions";
  } else if (options_.timeout_s > 0) {
    const std::chrono::duration<double> ran = std::chrono::steady_clock::now() - started_;
    char seconds[32];
    std::snprintf(seconds, sizeof seconds, "%g seconds", options_.timeout_s);
    if (ran.count() > options_.timeout_s) limit = seconds;
  }
  if (limit.empty()) return false;
  const Program &p = *kernel_.program;
  std::string where;
  for (const Wave *wave : waves_)
    if (wave->stop != Stop::kEnd) {
      const bool waits = wave->stop == Stop::kBarrier || wave->stop == Stop::kWait;
      const uint32_t at = waits ? wave->pc - 1 : wave->pc;
      where += "; wave " + std::to_string(wave->wave_in_group) + (waits ? " waits at " : " at ") +
               offset_and_line(p, at) + " `" + p.text_of(at) + "`";
    }
  group_.fault = kernel_.name + ": work-group (" + std::to_string(group_.id[0]) + "," +
                 std::to_string(group_.id[1]) + "," + std::to_string(group_.id[2]) +
                 ") passed the limit of " + limit + where;
  return true;
}

}  // namespace flydsl::emu
