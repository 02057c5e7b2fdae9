// The first calls of a handle from many threads at once, of different operators, each on a stream of its own: right results, one load
// a kernel. (Public reports: B50.) With a limit on loaded kernels, threads load and unload meanwhile.
#include <barrier>
#include <thread>

#include "test/support/between_handle.h"
#include "test/support/client_stream.h"
#include "test/support/operator_problems.h"

namespace flydsl::test {
namespace {

constexpr size_t kThreads = 32;

class Threads : public ::testing::Test {
 protected:
  void SetUp() override {
    between_ = open_hip_between(HIP_BETWEEN, FLYDSL_EMULATOR_LIBRARY);
    ASSERT_NE(between_, nullptr);
    memory_.open({"emulator", "", ""});
    const auto &lines = operator_problems();
    for (size_t i = 0; i < kThreads; ++i) {
      DeviceProblem &problem = problems_.emplace_back(memory_, lines[i % lines.size()]);
      if (i < lines.size()) {
        ASSERT_EQ(problem.launch(memory_.get()), FLYDSL_AOT_OK) << flydsl_aot_last_error();
        right_.push_back(problem.results());
      }
    }
    // The kernels of all problems, each once.
    const Handle handle = open_between();
    between_->reset();
    for (size_t i = 0; i < lines.size(); ++i) {
      ASSERT_EQ(problems_[i].prefetch(handle.get()), FLYDSL_AOT_OK) << flydsl_aot_last_error();
    }
    kernels_ = between_->calls[kModuleLoadData];
  }

  // Every thread makes `calls` calls, of a problem of its own, from a barrier on.
  void run(flydsl_aot_handle *handle, int calls) {
    for (DeviceProblem &problem : problems_) problem.poison();
    between_->reset();
    std::barrier start(kThreads);
    std::atomic<int> failures{0};
    std::vector<std::thread> threads;
    for (size_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        const Stream stream;
        start.arrive_and_wait();
        for (int call = 0; call < calls; ++call)
          failures += problems_[i].launch(handle, stream) != FLYDSL_AOT_OK;
      });
    }
    for (std::thread &thread : threads) thread.join();
    EXPECT_EQ(failures, 0);
    for (size_t i = 0; i < kThreads; ++i)
      EXPECT_EQ(problems_[i].results(), right_[i % right_.size()]) << i;
  }

  HipBetween *between_ = nullptr;
  tools::LibraryHandle memory_;
  std::deque<DeviceProblem> problems_;
  std::vector<std::vector<std::vector<uint8_t>>> right_;
  int kernels_ = 0;
};

TEST_F(Threads, B50_FirstCallsAtOnce) {
  for (int turn = 0; turn < 3; ++turn) {
    const Handle handle = open_between();
    run(handle.get(), 1);
    EXPECT_EQ(between_->calls[kModuleLoadData], kernels_);
    EXPECT_EQ(between_->calls[kModuleUnload], 0);
  }
}

TEST_F(Threads, B50_WithALimitOnLoadedKernels) {
  const Handle handle = open_between(nullptr, 2);
  run(handle.get(), 2);
  EXPECT_GT(between_->calls[kModuleUnload], 0);
}

TEST_F(Threads, OneAfterAnotherWithALimitOfOne) {
  const Handle handle = open_between(nullptr, 1);
  between_->reset();
  for (size_t i = 0; i < right_.size(); ++i) {
    problems_[i].poison();
    ASSERT_EQ(problems_[i].launch(handle.get()), FLYDSL_AOT_OK) << flydsl_aot_last_error();
    EXPECT_EQ(problems_[i].results(), right_[i]);
  }
  EXPECT_LE(between_->calls[kModuleLoadData] - between_->calls[kModuleUnload], 5);
}

}  // namespace
}  // namespace flydsl::test
