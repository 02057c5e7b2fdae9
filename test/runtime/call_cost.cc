// What a call costs the host: run by call_cost_test.py, with a device library that does nothing (fake_hip).
//   call_cost list    "name operator kernels" of every problem
//   call_cost warm [NAME...]
//                     under callgrind, with kernels that are loaded, a dump for each of these calls of every problem, or of those named:
//                     "name again" with other addresses, another stream and seed than calls before, "name anew" of a new form, "name twice"
//                     that one again, which is then kept
//   call_cost first   "name kernels microseconds": the first call on a new handle, processor time, the least of several handles
#include <valgrind/callgrind.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <deque>
#include <set>
#include <string>

#include "test/src/device/fake_hip.h"
#include "test/support/operator_problems.h"
#include "tools/exit_status.h"

namespace flydsl::test {
namespace {

// The same with other addresses and seeds.
ProblemLine with_other_seeds(ProblemLine line) {
  for (std::string &setting : line.settings) {
    const size_t name = setting.find("seed=");
    if (name != std::string::npos) setting += "1";
  }
  return line;
}

struct Prepared {
  Prepared(const tools::LibraryHandle &library, const ProblemLine &from)
      : line(from), problem(library, line), other(library, with_other_seeds(line)) {
    tools::check(problem.prefetch(library.get()), line.name);
    // What a handle has not seen twice it does not keep.
    for (int i = 0; i < 2; ++i) tools::check(problem.launch(library.get()), line.name);
    fresh.open({"hip", "", ""});
    tools::check(problem.prefetch(fresh.get()), line.name);
  }
  const ProblemLine &line;
  DeviceProblem problem, other;
  tools::LibraryHandle fresh;
};

void measure(const DeviceProblem &problem, flydsl_aot_handle *handle, void *stream,
             const std::string &name) {
  CALLGRIND_ZERO_STATS;
  tools::check(problem.launch(handle, stream), name);
  CALLGRIND_DUMP_STATS_AT(name.c_str());
}

void warm(const tools::LibraryHandle &library, const std::set<std::string> &names) {
  std::deque<Prepared> all;
  for (const ProblemLine &line : operator_problems())
    if (names.empty() || names.count(line.name) != 0) all.emplace_back(library, line);
  CALLGRIND_START_INSTRUMENTATION;
  for (const Prepared &one : all) {
    const std::string name = one.line.name;
    measure(one.other, library.get(), fake_stream(0), name + " again");
    measure(one.problem, one.fresh.get(), nullptr, name + " anew");
    measure(one.problem, one.fresh.get(), nullptr, name + " twice");
  }
  CALLGRIND_STOP_INSTRUMENTATION;
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

int run(const std::string &what, const std::set<std::string> &names) {
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
  what == "warm" ? warm(library, names) : first(library, fake);
  return 0;
}

}  // namespace
}  // namespace flydsl::test

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  try {
    return flydsl::test::run(argv[1], {argv + 2, argv + argc});
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
