#include "emulator/engine/dispatch.h"

#include <chrono>
#include <mutex>
#include <new>
#include <numeric>

#include "emulator/checks/observer.h"
#include "emulator/engine/crash_guard.h"
#include "emulator/engine/options.h"
#include "emulator/engine/pool.h"
#include "emulator/engine/progress.h"
#include "emulator/engine/workgroup.h"

namespace flydsl::emu {
namespace {

std::string refusal(const Kernel &kernel, const Dispatch &dispatch) {
  const std::string name = kernel.name + ": ";
  if (!kernel.program) return name + "the kernel has no code";
  const Program &p = *kernel.program;
  const uint64_t offset = kernel.entry_address - p.base;
  if (kernel.entry_address < p.base || offset % 4 || offset / 4 >= p.op_of_word.size() ||
      p.op_of_word[offset / 4] < 0)
    return name + "the entry address is not an instruction of its code";
  if (kernel.wave_size != 64)
    return name + "wave size " + std::to_string(kernel.wave_size) + ", only 64 is emulated";
  uint64_t items = 1;
  for (const uint32_t n : dispatch.block) items *= n;
  if (items == 0 || items > 1024 || dispatch.block[0] > 1024 || dispatch.block[1] > 1024 ||
      dispatch.block[2] > 1024)
    return name + "work-group size " + std::to_string(dispatch.block[0]) + " x " +
           std::to_string(dispatch.block[1]) + " x " + std::to_string(dispatch.block[2]) +
           ", allowed are 1 to 1024 work-items";
  if (items > kernel.max_workgroup_size)
    return name + std::to_string(items) +
           " work-items per work-group, the kernel was compiled for at most " +
           std::to_string(kernel.max_workgroup_size);
  constexpr uint64_t kLds = 160 * 1024;
  if (uint64_t(kernel.lds_bytes) + dispatch.dynamic_lds_bytes > kLds)
    return name + std::to_string(uint64_t(kernel.lds_bytes) + dispatch.dynamic_lds_bytes) +
           " bytes of LDS, a compute unit has " + std::to_string(kLds);
  return {};
}

// A seeded order of the work-groups; every item comes once.
uint64_t permuted(uint64_t item, uint64_t count, uint64_t step, uint64_t first) {
  return uint64_t((static_cast<unsigned __int128>(item) * step + first) % count);
}
uint64_t coprime_step(uint64_t count, Random &random) {
  uint64_t step = 1;
  do step = random.below(count) | 1;
  while (std::gcd(step, count) != 1);
  return step;
}

}  // namespace

DispatchResult run_dispatch(const Kernel &kernel, const Dispatch &dispatch,
                            const RegionSnapshot &memory, const DispatchOptions &options) {
  DispatchResult result;
  const auto start = std::chrono::steady_clock::now();
  const RunOptions run = run_options(options);
  result.fault = run.error.empty() ? refusal(kernel, dispatch) : run.error;
  if (!result.fault.empty()) {
    result.ok = false;
    return result;
  }
  DispatchPacket packet;
  packet.setup = 3;
  for (int i = 0; i < 3; ++i) {
    packet.workgroup_size[i] = uint16_t(dispatch.block[i]);
    packet.grid_size[i] = dispatch.grid[i] * dispatch.block[i];
  }
  packet.private_segment_size = kernel.private_bytes;
  packet.group_segment_size = kernel.lds_bytes + dispatch.dynamic_lds_bytes;
  packet.kernarg_address = reinterpret_cast<uint64_t>(dispatch.kernarg);

  const uint64_t all_groups = uint64_t(dispatch.grid[0]) * dispatch.grid[1] * dispatch.grid[2];
  const uint64_t groups = options.groups ? options.groups->size() : all_groups;
  if (options.groups)
    for (const uint64_t group : *options.groups)
      if (group >= all_groups) {
        result.ok = false;
        result.fault = kernel.name + ": work-group " + std::to_string(group) + " of " +
                       std::to_string(all_groups);
        return result;
      }
  const unsigned threads = options.all_groups_at_once ? unsigned(groups)
                           : options.one_at_a_time    ? 1
                                                      : thread_count(options.threads);
  uint64_t step = 1, first = 0;
  if (run.memory == MemoryModel::kRandom && groups > 1) {
    Random random(run.seed);
    step = coprime_step(groups, random);
    first = random.below(groups);
  }
  Reports reports;
  reports.warn = run.warn;
  std::unique_ptr<checks::CheckSet> checks;
  if (run.checks || run.memory != MemoryModel::kNominal || options.recorder)
    checks = std::make_unique<checks::CheckSet>(kernel, dispatch, memory, run, options.recorder);
  std::vector<std::unique_ptr<WorkgroupRunner>> runners(threads);
  Progress progress(kernel.name, groups);
  std::atomic<bool> cancel{false};
  std::mutex mutex;
  auto stop = [&](const std::string &why) {
    std::lock_guard lock(mutex);
    if (result.ok) result.fault = why;
    result.ok = false;
    cancel = true;
  };
  const auto run_group = [&](uint64_t item, unsigned worker) {
    if (cancel.load(std::memory_order_relaxed)) return;
    try {
      auto &runner = runners[worker];
      if (!runner)
        runner = std::make_unique<WorkgroupRunner>(kernel, dispatch, memory, packet, run, reports,
                                                   checks.get());
      const uint64_t chosen = permuted(item, groups, step, first);
      const uint64_t group = options.groups ? (*options.groups)[chosen] : chosen;
      const uint64_t row = group / dispatch.grid[0];
      bool ok = false;
      std::string crash;
      const auto body = [&] {
        ok = runner->run(uint32_t(group % dispatch.grid[0]), uint32_t(row % dispatch.grid[1]),
                         uint32_t(row / dispatch.grid[1]), cancel);
      };
      if (!run_guarded(body, &crash))
        stop(runner->place() + ": the emulator was stopped by " + crash +
             ": a mistake of its own, or memory that its owner unmapped");
      else if (!ok)
        stop(runner->fault());
      progress.group_done();
    } catch (const std::bad_alloc &) {
      stop(kernel.name + ": the host has no memory for the registers of a work-group");
    }
  };
  if (options.all_groups_at_once) {
    if (!on_own_threads(threads, run_group))
      stop(kernel.name + ": the host has no threads for " + std::to_string(groups) +
           " work-groups at once");
  } else {
    parallel_for(groups, threads, run_group);
  }
  for (const auto &runner : runners)
    if (runner) {
      result.wave_instructions += runner->counts().wave_instructions;
      result.mfma_flops += runner->counts().mfma_flops;
    }
  result.warnings = std::move(reports.lines);
  result.host_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace flydsl::emu
