// What a call costs the host: run by call_cost_test.py, with a device library that does nothing (fake_hip).
//   call_cost list    "name operator kernels" of every problem
//   call_cost warm    under callgrind: one call each whose kernels are loaded, a dump each
//   call_cost first   "name kernels microseconds": the first call on a new handle, processor time, the least of several handles
#include <valgrind/callgrind.h>

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "test/src/device/fake_hip.h"
#include "test/support/operator_problems.h"
#include "tools/exit_status.h"

namespace flydsl::test {
namespace {

void warm(const tools::LibraryHandle &library) {
  for (const ProblemLine &line : operator_problems()) {
    const DeviceProblem problem(library, line);
    tools::check(problem.prefetch(library.get()), line.name);
    tools::check(problem.launch(library.get()), line.name);
    CALLGRIND_ZERO_STATS;
    tools::check(problem.launch(library.get()), line.name);
    CALLGRIND_DUMP_STATS_AT(line.name);
  }
}

double processor_microseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

void first(const tools::LibraryHandle &library, FakeHip *fake) {
  constexpr int kHandles = 7;
  for (const ProblemLine &line : operator_problems()) {
    const DeviceProblem problem(library, line);
    double least = 1e9;
    int loads = 0;
    for (int i = 0; i < kHandles; ++i) {
      tools::LibraryHandle fresh;
      fresh.open({"hip", "", ""});
      const int before = fake->loads;
      const double begin = processor_microseconds();
      tools::check(problem.launch(fresh.get()), line.name);
      least = std::min(least, processor_microseconds() - begin);
      loads = fake->loads - before;
    }
    std::printf("%s %d %.1f\n", line.name, loads, least);
  }
}

int run(const std::string &what) {
  if (what == "list") {
    for (const ProblemLine &line : operator_problems())
      std::printf("%s %s %d\n", line.name, line.op, line.launches);
    return 0;
  }
  FakeHip *fake = open_fake_hip(FAKE_HIP7);
  fake->reset();
  setenv("FLYDSL_AOT_HIP_LIBRARY", FAKE_HIP7, 1);
  tools::LibraryHandle library;
  library.open({"hip", "", ""});
  what == "warm" ? warm(library) : first(library, fake);
  return 0;
}

}  // namespace
}  // namespace flydsl::test

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  try {
    return flydsl::test::run(argv[1]);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
