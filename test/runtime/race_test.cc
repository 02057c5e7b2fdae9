// The library under ThreadSanitizer, with a device library that does nothing: many threads make the first calls of a handle at once, of
// every operator, while others query, explain, fail, read the archive, and open and close handles of their own; the same with a limit on
// loaded kernels, and with calls that are recorded.
// (Public reports: B50, for which a hundred fresh processes do the first.) A race ends the program with TSan's report and status 66.
#include <sys/wait.h>
#include <unistd.h>

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
int work(const DeviceProblem &problem, flydsl_aot_handle *handle, size_t thread,
         const flydsl_aot_archive *archive) {
  void *const stream = fake_stream(static_cast<int>(thread % 2));
  int failures = problem.launch(handle, stream) != FLYDSL_AOT_OK;
  failures += problem.query(handle) != FLYDSL_AOT_OK;
  failures += problem.explain(handle) != FLYDSL_AOT_OK;
  const auto entry = static_cast<uint32_t>(thread) % flydsl_aot_archive_count(archive);
  failures += flydsl_aot_archive_read(archive, entry, nullptr, 0) != FLYDSL_AOT_OK;
  failures += problem.launch(nullptr) != FLYDSL_AOT_INVALID_ARGUMENT || !*flydsl_aot_last_error();
  failures += problem.prefetch(handle) != FLYDSL_AOT_OK;
  if (thread % 4 == 0) {
    flydsl_aot_handle *own = open(0);
    failures += problem.launch(own, stream) != FLYDSL_AOT_OK;
    flydsl_aot_close(own);
  }
  return failures + (problem.launch(handle, stream) != FLYDSL_AOT_OK);
}

// From a barrier on, what each of the threads is to do; how often it went wrong.
template <class Work>
int at_once(Work work) {
  std::atomic<int> failures{0};
  std::barrier start(kThreads);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      failures += work(i);
    });
  }
  for (std::thread &thread : threads) thread.join();
  return failures;
}

// The first calls of a process, of eight problems, each kernel loaded once on each device; then kernels go while threads need them.
int first_calls() {
  constexpr size_t kProblems = 8;
  FakeHip *fake = open_fake_hip(FAKE_HIP7);
  fake->reset();
  setenv("FLYDSL_AOT_HIP_LIBRARY", FAKE_HIP7, 1);
  tools::LibraryHandle memory;
  memory.open({"hip", "", ""});
  std::deque<DeviceProblem> problems;
  for (size_t i = 0; i < kProblems; ++i) problems.emplace_back(memory, operator_problems()[i]);
  int failures = 0, loads[2] = {};
  for (const uint32_t limit : {0u, 2u}) {
    flydsl_aot_handle *handle = open(limit);
    const int before = fake->loads;
    failures += at_once([&](size_t thread) {
      void *const stream = fake_stream(static_cast<int>(thread / kProblems % 2));
      return problems[thread % kProblems].launch(handle, stream) != FLYDSL_AOT_OK;
    });
    flydsl_aot_close(handle);
    loads[limit != 0] = fake->loads - before;
  }
  for (const DeviceProblem &problem : problems)
    failures += problem.prefetch(memory.get()) != FLYDSL_AOT_OK;
  const int kernels = fake->loads - loads[0] - loads[1];
  return failures != 0 || loads[0] != 2 * kernels;  // of two devices
}

// `count` processes that do it, each forked before anything was done.
int fresh_processes(int count) {
  int failures = 0;
  for (int i = 0; i < count; ++i) {
    const pid_t child = fork();
    if (child == 0) std::exit(first_calls());
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) ++failures;
  }
  std::printf("%d processes, %d failed\n", count, failures);
  return failures != 0;
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
  flydsl_aot_archive *archive = nullptr;
  tools::check(flydsl_aot_archive_open(memory.info().archive_path, &archive), "archive");
  int failures = 0;
  const struct {
    uint32_t max_loaded_kernels;
    const char *calls;
  } handles[] = {{0, ""}, {2, ""}, {0, "/dev/null"}};
  for (const auto &[limit, calls] : handles) {
    setenv("FLYDSL_AOT_VERBOSE", calls, 1);
    flydsl_aot_handle *handle = open(limit);
    failures +=
        at_once([&](size_t thread) { return work(problems[thread], handle, thread, archive); });
    flydsl_aot_close(handle);
  }
  flydsl_aot_archive_close(archive);
  const int left = fake->live_modules;
  std::printf("%d calls failed, %d modules loaded, %d left\n", failures, fake->loads.load(), left);
  return failures != 0 || left != 0;
}

}  // namespace
}  // namespace flydsl::test

int main() {
  try {
    return flydsl::test::fresh_processes(100) | flydsl::test::run();
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
