#include "tools/bench_checks.h"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "tools/exit_status.h"
#include "tools/library_handle.h"

namespace flydsl::tools {
namespace {

constexpr int64_t kHeads = 2, kRows = 1024, kHeadDim = 128;
constexpr int kRounds = 5;

// The emulator reads its environment at each launch.
class Variable {
 public:
  explicit Variable(const char *name) : name_(name) {
    if (const char *text = std::getenv(name)) before_ = text;
  }
  ~Variable() { before_ ? set(before_->c_str()) : void(unsetenv(name_)); }
  Variable(const Variable &) = delete;
  Variable &operator=(const Variable &) = delete;
  void set(const char *value) { setenv(name_, value, 1); }

 private:
  const char *name_;
  std::optional<std::string> before_;
};

// Of all threads: the emulation runs on the stream's.
double processor_seconds() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
}

// bf16 values between -2 and 2, the same at each call.
std::vector<uint16_t> values(size_t count) {
  std::vector<uint16_t> bits(count);
  uint32_t state = 1;
  for (uint16_t &word : bits) {
    state = state * 1664525u + 1013904223u;
    word = uint16_t((state >> 31) << 15 | (0x3f00 + (state >> 16 & 0xff)));
  }
  return bits;
}

}  // namespace

double checks_all_slowdown() {
  Variable checks("FLYDSL_EMU_CHECKS"), threads("FLYDSL_EMU_THREADS");
  checks.set("all");
  threads.set("1");
  OpenArguments arguments;
  arguments.device = "emulator";
  LibraryHandle library;
  library.open(arguments);
  const std::vector<uint16_t> input = values(size_t(kHeads * kRows * kHeadDim));
  const size_t bytes = input.size() * sizeof input[0];
  const DeviceMemory in(library, bytes, "the benchmark's input"),
      out(library, bytes, "the benchmark's output");
  check(flydsl_aot_device_upload(library.get(), in.data(), input.data(), bytes), "upload");
  const auto tensor = [](void *data) {
    return flydsl_aot_tensor{data,
                             FLYDSL_AOT_BF16,
                             4,
                             {1, kHeads, kRows, kHeadDim},
                             {kHeads * kRows * kHeadDim, kRows * kHeadDim, kHeadDim, 1}};
  };
  flydsl_aot_attention_forward_params params{};
  params.struct_size = sizeof params;
  params.scale = 1 / std::sqrt(float(kHeadDim));
  params.q = params.k = params.v = tensor(in.data());
  params.out = tensor(out.data());
  params.mask = {FLYDSL_AOT_UNLIMITED, FLYDSL_AOT_UNLIMITED, FLYDSL_AOT_ANCHOR_NONE, 0};

  double least[] = {INFINITY, INFINITY};
  for (int round = 0; round < 2 * kRounds; ++round) {
    const bool all = round % 2 != 0;
    checks.set(all ? "all" : "0");
    const double start = processor_seconds();
    check(flydsl_aot_attention_forward(library.get(), &params, nullptr), kChecksWorkload);
    check(flydsl_aot_device_synchronize(library.get()), kChecksWorkload);
    least[all] = std::min(least[all], processor_seconds() - start);
  }
  return least[1] / least[0];
}

}  // namespace flydsl::tools
