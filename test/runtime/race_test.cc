// The library under ThreadSanitizer, with a device library that does nothing: many threads make the first calls of a handle at once, of
// every operator, while others query, fail, and open and close handles of their own; then the same with a limit on loaded kernels.
// (Public reports: B50.) A race ends the program with TSan's report and status 66.
#include <barrier>
#include <cstdio>
#include <thread>

#include "test/src/device/fake_hip.h"
#include "test/support/operator_problems.h"
#include "tools/exit_status.h"

namespace flydsl::test {
namespace {

constexpr size_t kThreads = 32;

flydsl_aot_handle *open(uint32_t max_loaded_kernels) {
  flydsl_aot_open_options options{};
  options.struct_size = sizeof options;
  options.device = FLYDSL_AOT_DEVICE_HIP;
  options.device_library = FAKE_HIP7;
  options.max_loaded_kernels = max_loaded_kernels;
  flydsl_aot_handle *handle = nullptr;
  tools::check(flydsl_aot_open(&options, &handle), "open");
  return handle;
}

// What a thread does; 0 if all of it went as it should.
int work(const DeviceProblem &problem, flydsl_aot_handle *handle, size_t thread) {
  void *const stream = fake_stream(static_cast<int>(thread % 2));
  int failures = problem.launch(handle, stream) != FLYDSL_AOT_OK;
  failures += problem.query(handle) != FLYDSL_AOT_OK;
  failures += problem.launch(nullptr) != FLYDSL_AOT_INVALID_ARGUMENT || !*flydsl_aot_last_error();
  failures += problem.prefetch(handle) != FLYDSL_AOT_OK;
  if (thread % 4 == 0) {
    flydsl_aot_handle *own = open(0);
    failures += problem.launch(own, stream) != FLYDSL_AOT_OK;
    flydsl_aot_close(own);
  }
  return failures + (problem.launch(handle, stream) != FLYDSL_AOT_OK);
}

int run() {
  FakeHip *fake = open_fake_hip(FAKE_HIP7);
  fake->reset();
  setenv("FLYDSL_AOT_HIP_LIBRARY", FAKE_HIP7, 1);
  tools::LibraryHandle memory;
  memory.open({"hip", "", ""});
  const auto &lines = operator_problems();
  std::deque<DeviceProblem> problems;
  for (size_t i = 0; i < kThreads; ++i) problems.emplace_back(memory, lines[i % lines.size()]);
  std::atomic<int> failures{0};
  for (const uint32_t limit : {0u, 2u}) {
    flydsl_aot_handle *handle = open(limit);
    std::barrier start(kThreads);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        start.arrive_and_wait();
        failures += work(problems[i], handle, i);
      });
    }
    for (std::thread &thread : threads) thread.join();
    flydsl_aot_close(handle);
  }
  const int left = fake->live_modules;
  std::printf("%d calls failed, %d modules loaded, %d left\n", failures.load(), fake->loads.load(),
              left);
  return failures != 0 || left != 0;
}

}  // namespace
}  // namespace flydsl::test

int main() {
  try {
    return flydsl::test::run();
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
