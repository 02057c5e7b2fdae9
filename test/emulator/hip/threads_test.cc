// Eight threads at once, each with its own stream and module, while memory comes and goes.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "test/emulator/hip/hip_library.h"

namespace flydsl::emu::test {
namespace {

constexpr int kThreads = 8;
constexpr uint32_t kCount = 3000;

void add_in_a_loop(int thread) {
  hipStream_t stream = nullptr;
  ASSERT_HIP(hipSuccess, hipStreamCreate(&stream));
  for (int round = 0; round < 20; ++round) {
    TestModule module;
    std::vector<float> ones(kCount, 1), offsets(kCount, static_cast<float>(thread * 100 + round));
    DeviceArray<float> a(ones), b(offsets), out(std::vector<float>(kCount, -1));
    void *pointers[] = {a.get(), b.get(), out.get()};
    uint32_t count = kCount;
    void *arguments[] = {&pointers[0], &pointers[1], &pointers[2], &count};
    ASSERT_HIP(hipSuccess, hipModuleLaunchKernel(module.function("vector_add"), (kCount + 63) / 64,
                                                 1, 1, 64, 1, 1, 0, stream, arguments, nullptr));
    ASSERT_HIP(hipSuccess, hipStreamSynchronize(stream));
    ASSERT_EQ(out.values(),
              std::vector<float>(kCount, static_cast<float>(thread * 100 + round + 1)));
  }
  EXPECT_HIP(hipSuccess, hipStreamDestroy(stream));
}

TEST(Threads, OwnStreams) {
  std::atomic<bool> done = false;
  std::thread churn([&] {
    while (!done) {
      void *pointer = nullptr;
      EXPECT_HIP(hipSuccess, hipMalloc(&pointer, 50000));
      EXPECT_HIP(hipSuccess, hipFree(pointer));
      EXPECT_HIP(hipSuccess, hipDeviceSynchronize());
    }
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back(add_in_a_loop, t);
  for (std::thread &thread : threads) thread.join();
  done = true;
  churn.join();
}

TEST(Threads, OneSharedStreamStaysInOrder) {
  TestModule module;
  const hipFunction_t function = module.function("read_variables");
  DeviceArray<int> out(std::vector<int>(3, 0));
  void *pointer = out.get();
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 25; ++i) {
        void *arguments[] = {&pointer};
        EXPECT_HIP(hipSuccess, hipModuleLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr,
                                                     arguments, nullptr));
      }
    });
  }
  for (std::thread &thread : threads) thread.join();
  void *counter = nullptr;
  size_t bytes = 0;
  int value = 0;
  ASSERT_HIP(hipSuccess, hipModuleGetGlobal(&counter, &bytes, module.get(), "counter"));
  EXPECT_HIP(hipSuccess, hipMemcpyDtoH(&value, counter, sizeof value));
  EXPECT_EQ(value, 41 + kThreads * 25) << "each launch added one, none at the same time";
}

}  // namespace
}  // namespace flydsl::emu::test
