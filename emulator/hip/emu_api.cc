// flydsl_emu_*: see flydsl_emu.h.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>

#include "emulator/bench/benchmark.h"
#include "emulator/hip/api_call.h"
#include "emulator/hip/flydsl_emu.h"
#include "emulator/hip/launch_report.h"

namespace flydsl::emu::hip {
namespace {

// Plain data, as in error_api.cc.
thread_local uint64_t t_launch_count = 0;
thread_local uint64_t t_launch_numbers[kRememberedLaunches];  // number n is at n % size
thread_local char t_fault_text[4096];

// The most recent launches of all threads, by number: a thread-local pointer would need a
// destructor.
struct Launches {
  struct Entry {
    std::shared_ptr<const LaunchRecord> record;
    std::shared_ptr<const Completion> completion;
  };
  static constexpr size_t kMost = 1024;

  std::mutex mutex;
  std::map<uint64_t, Entry> entries;
  uint64_t last = 0;
};

Launches &launches() {
  static auto *const all = new Launches;  // never destroyed, as with device_table()
  return *all;
}

struct LastFault {
  std::mutex mutex;
  std::string text;
};

LastFault &last_fault() {
  static auto *const fault = new LastFault;  // never destroyed, as with device_table()
  return *fault;
}

}  // namespace

void remember_launch(std::shared_ptr<const LaunchRecord> record,
                     std::shared_ptr<const Completion> completion) {
  Launches &all = launches();
  std::lock_guard<std::mutex> lock(all.mutex);
  uint64_t &number = t_launch_numbers[t_launch_count++ % kRememberedLaunches];
  all.entries.erase(number);
  number = ++all.last;
  all.entries[number] = {std::move(record), std::move(completion)};
  if (all.entries.size() > Launches::kMost) all.entries.erase(all.entries.begin());
}

uint64_t launch_count() {
  return t_launch_count;
}

std::shared_ptr<const LaunchRecord> recent_launch(uint64_t back) {
  if (back >= std::min(t_launch_count, kRememberedLaunches)) return nullptr;
  const uint64_t number = t_launch_numbers[(t_launch_count - 1 - back) % kRememberedLaunches];
  Launches::Entry launch;
  {
    std::lock_guard<std::mutex> lock(launches().mutex);
    const auto found = launches().entries.find(number);
    if (found == launches().entries.end()) return nullptr;
    launch = found->second;
  }
  launch.completion->wait();
  return launch.record;
}

void report_fault(const std::string &text) {
  std::string block = "flydsl_emu: kernel fault\nflydsl_emu:   ";
  for (const char c : text) {
    block += c;
    if (c == '\n') block += "flydsl_emu:   ";
  }
  block += '\n';
  std::fwrite(block.data(), 1, block.size(), stderr);
  std::fflush(stderr);
  LastFault &fault = last_fault();
  std::lock_guard<std::mutex> lock(fault.mutex);
  fault.text = text;
}

}  // namespace flydsl::emu::hip

using namespace flydsl::emu::hip;

FLYDSL_EMU_EXPORT const char *flydsl_emu_version(void) {
  return FLYDSL_EMU_VERSION_TEXT;
}

FLYDSL_EMU_EXPORT const char *flydsl_emu_last_error(void) {
  return last_explanation();
}

FLYDSL_EMU_EXPORT const char *flydsl_emu_last_fault(void) {
  LastFault &fault = last_fault();
  std::lock_guard<std::mutex> lock(fault.mutex);
  std::snprintf(t_fault_text, sizeof t_fault_text, "%s", fault.text.c_str());
  return t_fault_text;
}

FLYDSL_EMU_EXPORT int flydsl_emu_benchmark(flydsl_emu_benchmark_result *result) {
  if (result == nullptr || result->struct_size < sizeof *result) return 1;
  flydsl::emu::BenchmarkResult speed;
  std::string reason;
  if (!flydsl::emu::run_benchmark(speed, reason)) {
    (void)fail(hipErrorLaunchFailure, "%s", reason.c_str());
    return 1;
  }
  result->valu_wave_instructions_per_s = speed.valu_wave_instructions_per_s;
  result->mfma_bf16_flop_per_s = speed.mfma_bf16_flop_per_s;
  result->mfma_mxfp8_flop_per_s = speed.mfma_mxfp8_flop_per_s;
  return 0;
}

FLYDSL_EMU_EXPORT int flydsl_emu_last_dispatch(flydsl_emu_dispatch *result) {
  if (result == nullptr || result->struct_size < sizeof result->struct_size) return 1;
  const std::shared_ptr<const LaunchRecord> launch = recent_launch(0);
  if (!launch) return 1;
  const flydsl::emu::DispatchResult &counts = launch->result;
  const flydsl_emu_dispatch all = {sizeof all, counts.wave_instructions, counts.mfma_flops,
                                   counts.host_seconds};
  const uint32_t struct_size = result->struct_size;
  std::memcpy(result, &all, std::min<size_t>(struct_size, sizeof all));
  result->struct_size = struct_size;
  return 0;
}
