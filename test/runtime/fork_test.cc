// Children of a process that has opened a device: however they were made, every function that would need the device says so and calls
// nothing of the runtime, also when a thread of the parent was inside a call; the parent goes on. (The device library does nothing.)
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <thread>

#include "test/support/between_handle.h"
#include "test/support/operator_problems.h"

namespace flydsl::test {
namespace {

constexpr unsigned kMostSeconds = 60;  // of a child, which might wait for a lock that nobody holds

pid_t clone_by_number() {
  return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
}
struct Way {
  const char *name;
  pid_t (*fork)();
};
constexpr Way kWays[] = {{"fork", fork}, {"_Fork", _Fork}, {"clone", clone_by_number}};

class Children : public ::testing::Test {
 protected:
  void SetUp() override {
    between_ = open_hip_between(HIP_BETWEEN, FAKE_HIP7);
    ASSERT_NE(between_, nullptr);
    setenv("FLYDSL_AOT_HIP_LIBRARY", HIP_BETWEEN, 1);
    memory_.open({"hip", "", ""});
    for (const ProblemLine &line : operator_problems()) problems_.emplace_back(memory_, line);
  }

  // What a child says of `what` ends up in its exit status.
  void expect_child(pid_t (*make)(), const std::function<int()> &what) {
    const pid_t child = make();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(kMostSeconds);
      std::_Exit(what());
    }
    int state = 0;
    ASSERT_EQ(waitpid(child, &state, 0), child);
    EXPECT_TRUE(WIFEXITED(state)) << "signal " << WTERMSIG(state);
    EXPECT_EQ(WEXITSTATUS(state), 0) << "failures in the child";
  }

  HipBetween *between_ = nullptr;
  tools::LibraryHandle memory_;
  std::deque<DeviceProblem> problems_;
};

int is_told(flydsl_aot_status status, const char *what) {
  const bool right =
      status == FLYDSL_AOT_PROCESS_FORKED &&
      std::strstr(flydsl_aot_last_error(), "forked after its parent had opened a device");
  if (!right) std::fprintf(stderr, "in the child: %s: %s\n", what, flydsl_aot_last_error());
  return !right;
}

int every_call_is_told(const DeviceProblem &problem, flydsl_aot_handle *handle, const char *name) {
  return is_told(problem.launch(handle), name) + is_told(problem.query(handle), name) +
         is_told(problem.explain(handle), name) + is_told(problem.prefetch(handle), name);
}

int every_helper_is_told(flydsl_aot_handle *handle) {
  char bytes[8];
  void *pointer = nullptr;
  flydsl_aot_stream_info stream{};
  stream.struct_size = sizeof stream;
  flydsl_aot_open_options options{};
  options.struct_size = sizeof options;
  options.device = FLYDSL_AOT_DEVICE_HIP;
  options.device_library = HIP_BETWEEN;
  flydsl_aot_handle *another = nullptr;
  return is_told(flydsl_aot_open(&options, &another), "open") +
         is_told(flydsl_aot_device_malloc(handle, 8, &pointer), "malloc") +
         is_told(flydsl_aot_device_free(handle, bytes), "free") +
         is_told(flydsl_aot_device_malloc_async(handle, 8, nullptr, &pointer), "malloc_async") +
         is_told(flydsl_aot_device_free_async(handle, bytes, nullptr), "free_async") +
         is_told(flydsl_aot_device_upload(handle, bytes, bytes, 8), "upload") +
         is_told(flydsl_aot_device_download(handle, bytes, bytes, 8), "download") +
         is_told(flydsl_aot_device_stream_info(handle, nullptr, &stream), "stream_info") +
         is_told(flydsl_aot_device_synchronize(handle), "synchronize");
}

// What needs no device works.
int the_rest_works(flydsl_aot_handle *handle, const DeviceProblem &problem) {
  flydsl_aot_info info{};
  info.struct_size = sizeof info;
  int failures = flydsl_aot_get_info(handle, &info) != FLYDSL_AOT_OK;
  flydsl_aot_archive *archive = nullptr;
  failures += flydsl_aot_archive_open(info.archive_path, &archive) != FLYDSL_AOT_OK ||
              flydsl_aot_archive_read(archive, 0, nullptr, 0) != FLYDSL_AOT_OK;
  flydsl_aot_archive_close(archive);
  flydsl_aot_open_options options{};
  options.struct_size = sizeof options;
  options.device = FLYDSL_AOT_DEVICE_NONE;
  options.arch = "gfx950";
  flydsl_aot_handle *without = nullptr;
  failures += flydsl_aot_open(&options, &without) != FLYDSL_AOT_OK ||
              problem.query(without) != FLYDSL_AOT_OK || problem.explain(without) != FLYDSL_AOT_OK;
  flydsl_aot_close(without);
  if (failures) std::fprintf(stderr, "in the child: %s\n", flydsl_aot_last_error());
  return failures;
}

class Ways : public Children, public ::testing::WithParamInterface<Way> {};
TEST_P(Ways, EveryFunctionIsToldInTheChild) {
  Handle handle = open_between();
  for (const DeviceProblem &problem : problems_)
    for (int call = 0; call < 3; ++call)  // the third is one that is known
      ASSERT_EQ(problem.launch(handle.get()), FLYDSL_AOT_OK) << flydsl_aot_last_error();
  between_->reset();
  const auto child = [&] {
    int failures = every_helper_is_told(handle.get());
    for (size_t i = 0; i < problems_.size(); ++i)
      failures += every_call_is_told(problems_[i], handle.get(), operator_problems()[i].name);
    failures += the_rest_works(handle.get(), problems_[0]);
    handle.reset();
    for (int call = 0; call < kHipCalls; ++call) {
      if (between_->calls[call] != 0)
        std::fprintf(stderr, "in the child: %s was called\n", between_->name(call));
      failures += between_->calls[call] != 0;
    }
    return failures;
  };
  expect_child(GetParam().fork, child);
  // A child of a child: made by fork, since only the first is what the test is about.
  expect_child(GetParam().fork, [&] {
    const pid_t next = fork();
    if (next == 0) std::_Exit(child());
    int state = 0;
    return waitpid(next, &state, 0) != next || state != 0;
  });
  EXPECT_EQ(problems_[0].launch(handle.get()), FLYDSL_AOT_OK) << flydsl_aot_last_error();
}

// Locks that other threads held are held in the child for ever. (By fork, whose handlers see to those of malloc.)
TEST_F(Children, MadeWhileThreadsAreInsideCalls) {
  const Handle handle = open_between(nullptr, 1);
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (size_t thread = 0; thread < 3; ++thread)
    threads.emplace_back([&, thread] {
      for (size_t turn = thread; !over; ++turn)
        (void)problems_[turn % problems_.size()].launch(handle.get());
    });
  for (int child = 0; child < 50; ++child)
    expect_child(fork, [&] { return every_call_is_told(problems_[0], handle.get(), "call"); });
  over = true;
  for (std::thread &thread : threads) thread.join();
}

INSTANTIATE_TEST_SUITE_P(Fork, Ways, ::testing::ValuesIn(kWays),
                         [](const auto &info) { return std::string(info.param.name); });

// Such a child has its parent's memory, and only starts another program.
TEST(Vfork, LeavesTheParentAsItWas) {
  ASSERT_NE(open_hip_between(HIP_BETWEEN, FAKE_HIP7), nullptr);
  setenv("FLYDSL_AOT_HIP_LIBRARY", HIP_BETWEEN, 1);
  tools::LibraryHandle memory;
  memory.open({"hip", "", ""});
  const DeviceProblem problem(memory, operator_problems()[0]);
  const pid_t child = vfork();
  if (child == 0) {
    execl("/bin/true", "true", nullptr);
    _exit(1);
  }
  int state = 0;
  ASSERT_EQ(waitpid(child, &state, 0), child);
  EXPECT_EQ(state, 0);
  EXPECT_EQ(problem.launch(memory.get()), FLYDSL_AOT_OK) << flydsl_aot_last_error();
}

}  // namespace
}  // namespace flydsl::test
