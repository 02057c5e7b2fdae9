// The order of work within and across streams, callbacks, and what runs at the same time.
#include <gtest/gtest.h>

#include <chrono>

#include "test/emulator/hip/client_api.h"

namespace flydsl::emu::test {
namespace {

FLYDSL_HIP_FUNCTION(hipLaunchHostFunc, hipStream_t, hipHostFn_t, void *)
FLYDSL_HIP_FUNCTION(hipStreamAddCallback, hipStream_t, hipStreamCallback_t, void *, unsigned)

constexpr auto kPerThread = hipStreamPerThreadValue;

hipStream_t make_stream(unsigned flags = hipStreamDefault) {
  hipStream_t stream = nullptr;
  EXPECT_HIP(hipSuccess, hipStreamCreateWithFlags(&stream, flags));
  return stream;
}

void set(void *flag) {
  *static_cast<std::atomic<bool> *>(flag) = true;
}

// Whether `flag` stays false for a while: the work behind it must not have run.
bool stays_unset(const std::atomic<bool> &flag) {
  for (int i = 0; i < 20 && !flag; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return !flag;
}

struct Relation {
  const char *name;
  hipStream_t first, second;
  bool ordered;
};

TEST(StreamOrder, NullStreamAndBlockingStreamsWaitForEachOther) {
  const hipStream_t blocking = make_stream(), other = make_stream(),
                    apart = make_stream(hipStreamNonBlocking),
                    per_thread = reinterpret_cast<hipStream_t>(kPerThread);
  const Relation relations[] = {
      {"same stream", blocking, blocking, true},
      {"null after blocking", blocking, nullptr, true},
      {"blocking after null", nullptr, blocking, true},
      {"per-thread after null", nullptr, per_thread, true},
      {"null after per-thread", per_thread, nullptr, true},
      {"two blocking streams", blocking, other, false},
      {"null after non-blocking", apart, nullptr, false},
      {"non-blocking after null", nullptr, apart, false},
      {"per-thread and blocking", per_thread, blocking, false},
  };
  for (const Relation &r : relations) {
    Gate gate;
    std::atomic<bool> second_ran{false};
    ASSERT_CALL(hipSuccess, hipLaunchHostFunc(r.first, Gate::wait, &gate));
    ASSERT_CALL(hipSuccess, hipLaunchHostFunc(r.second, set, &second_ran));
    EXPECT_HIP(hipErrorNotReady, hipStreamQuery(r.first));
    if (r.ordered) {
      EXPECT_TRUE(stays_unset(second_ran)) << r.name;
      EXPECT_HIP(hipErrorNotReady, hipStreamQuery(r.second));
    } else {
      // The null stream's own synchronisation would include the blocking streams.
      while (!second_ran) std::this_thread::yield();  // a wait for `first` would never end
    }
    gate.open();
    EXPECT_HIP(hipSuccess, hipDeviceSynchronize());
    EXPECT_TRUE(second_ran) << r.name;
  }
  for (const hipStream_t stream : {blocking, other, apart})
    EXPECT_HIP(hipSuccess, hipStreamDestroy(stream));
}

TEST(StreamOrder, EventsOrderTwoStreams) {
  const hipStream_t first = make_stream(hipStreamNonBlocking),
                    second = make_stream(hipStreamNonBlocking);
  hipEvent_t event = nullptr;
  ASSERT_HIP(hipSuccess, hipEventCreate(&event));
  Gate gate;
  std::atomic<bool> ran{false};
  EXPECT_HIP(hipSuccess, hipStreamWaitEvent(second, event, 0)) << "never recorded: no wait";
  ASSERT_CALL(hipSuccess, hipLaunchHostFunc(first, Gate::wait, &gate));
  ASSERT_HIP(hipSuccess, hipEventRecord(event, first));
  EXPECT_HIP(hipErrorNotReady, hipEventQuery(event));
  float milliseconds = 0;
  EXPECT_HIP(hipErrorNotReady, hipEventElapsedTime(&milliseconds, event, event));
  ASSERT_HIP(hipSuccess, hipStreamWaitEvent(second, event, 0));
  ASSERT_CALL(hipSuccess, hipLaunchHostFunc(second, set, &ran));
  EXPECT_TRUE(stays_unset(ran));
  gate.open();
  EXPECT_HIP(hipSuccess, hipEventSynchronize(event));
  EXPECT_HIP(hipSuccess, hipStreamSynchronize(second));
  EXPECT_TRUE(ran);
  EXPECT_HIP(hipSuccess, hipEventElapsedTime(&milliseconds, event, event));
  EXPECT_EQ(milliseconds, 0);
  EXPECT_HIP(hipSuccess, hipEventDestroy(event));
  EXPECT_HIP(hipSuccess, hipStreamDestroy(first));
  EXPECT_HIP(hipSuccess, hipStreamDestroy(second));
}

TEST(StreamOrder, KernelsSeeWhatEarlierWorkOfOtherStreamsWrote) {
  TestModule module;
  const hipFunction_t add = module.function("vector_add");
  constexpr uint32_t kCount = 4096;
  const hipStream_t streams[2] = {make_stream(), make_stream()};
  hipEvent_t event = nullptr;
  ASSERT_HIP(hipSuccess, hipEventCreate(&event));
  DeviceArray<float> ones(std::vector<float>(kCount, 1)), sum(std::vector<float>(kCount, 0));
  void *one = ones.get(), *out = sum.get();
  uint32_t count = kCount;
  void *arguments[] = {&one, &out, &out, &count};
  constexpr int kRounds = 40;
  for (int round = 0; round < kRounds; ++round) {
    ASSERT_HIP(hipSuccess, hipStreamWaitEvent(streams[round % 2], event, 0));
    ASSERT_HIP(hipSuccess, hipModuleLaunchKernel(add, kCount / 64, 1, 1, 64, 1, 1, 0,
                                                 streams[round % 2], arguments, nullptr));
    ASSERT_HIP(hipSuccess, hipEventRecord(event, streams[round % 2]));
  }
  EXPECT_EQ(sum.values(), std::vector<float>(kCount, kRounds)) << "hipMemcpy waits for both";
  EXPECT_HIP(hipSuccess, hipEventDestroy(event));
  for (const hipStream_t stream : streams) EXPECT_HIP(hipSuccess, hipStreamDestroy(stream));
}

TEST(StreamOrder, ArgumentsAreCopiedAtTheCall) {
  TestModule module;
  const hipStream_t stream = make_stream();
  Gate gate;
  ASSERT_CALL(hipSuccess, hipLaunchHostFunc(stream, Gate::wait, &gate));
  hipFunction_t function = module.function("vector_add");
  void *memory = nullptr;
  ASSERT_HIP(hipSuccess, hipMalloc(&memory, 64 * 4));
  uint32_t count = 64;
  void *pointer = memory, *arguments[] = {&pointer, &pointer, &pointer, &count};
  ASSERT_HIP(hipSuccess,
             hipModuleLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, stream, arguments, nullptr));
  pointer = nullptr;
  count = 0xffffffff;
  gate.open();
  EXPECT_HIP(hipSuccess, hipStreamSynchronize(stream));
  EXPECT_HIP(hipSuccess, hipFree(memory));
  EXPECT_HIP(hipSuccess, hipStreamDestroy(stream));
}

TEST(StreamOrder, FreeAndUnloadWaitForQueuedWork) {
  const hipStream_t stream = make_stream(hipStreamNonBlocking);
  Gate gate;
  void *memory = nullptr;
  ASSERT_HIP(hipSuccess, hipMalloc(&memory, 1 << 20));
  hipModule_t module = nullptr;
  hipFunction_t function = nullptr;
  ASSERT_HIP(hipSuccess, hipModuleLoad(&module, object_path("gfx950_v5.co").c_str()));
  ASSERT_HIP(hipSuccess, hipModuleGetFunction(&function, module, "at_most_128"));
  ASSERT_CALL(hipSuccess, hipLaunchHostFunc(stream, Gate::wait, &gate));
  void *arguments[] = {&memory};
  ASSERT_HIP(hipSuccess,
             hipModuleLaunchKernel(function, 64, 1, 1, 64, 1, 1, 0, stream, arguments, nullptr));
  EXPECT_HIP(hipSuccess, hipModuleUnload(module)) << "the launch keeps its code";
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    gate.open();
  });
  EXPECT_HIP(hipSuccess, hipFree(memory));
  EXPECT_HIP(hipSuccess, hipStreamQuery(stream)) << "hipFree came back before the kernel ended";
  opener.join();
  EXPECT_HIP(hipSuccess, hipDeviceSynchronize());
  EXPECT_HIP(hipSuccess, hipStreamDestroy(stream));
}

struct Seen {
  hipStream_t stream = nullptr;
  hipError_t status = hipErrorUnknown, sync = hipErrorUnknown;
  int count = 0;
};
void note(hipStream_t stream, hipError_t status, void *data) {
  auto *const seen = static_cast<Seen *>(data);
  seen->stream = stream;
  seen->status = status;
  seen->sync = hip().hipDeviceSynchronize();
  ++seen->count;
}

TEST(StreamOrder, CallbacksLearnOfFaultsAndMayNotWait) {
  TestModule module;
  const hipStream_t stream = make_stream();
  Seen before, after;
  std::atomic<bool> host_function_ran{false};
  ASSERT_CALL(hipSuccess, hipStreamAddCallback(stream, note, &before, 0));
  ASSERT_HIP(hipSuccess, hipStreamSynchronize(stream));
  EXPECT_EQ(before.stream, stream);
  EXPECT_EQ(before.status, hipSuccess);
  EXPECT_EQ(before.sync, hipErrorNotPermitted);

  Gate gate;
  ASSERT_CALL(hipSuccess, hipLaunchHostFunc(stream, Gate::wait, &gate));
  void *null = nullptr, *arguments[] = {&null};
  ASSERT_HIP(hipSuccess, hipModuleLaunchKernel(module.function("at_most_128"), 1, 1, 1, 64, 1, 1, 0,
                                               stream, arguments, nullptr));
  ASSERT_CALL(hipSuccess, hipStreamAddCallback(stream, note, &after, 0));
  ASSERT_CALL(hipSuccess, hipLaunchHostFunc(stream, set, &host_function_ran));
  gate.open();
  EXPECT_HIP(hipErrorLaunchFailure, hipStreamSynchronize(stream));
  EXPECT_EQ(after.count, 1);
  EXPECT_EQ(after.status, hipErrorLaunchFailure);
  EXPECT_FALSE(host_function_ran) << "dropped";
  EXPECT_CALL(hipErrorLaunchFailure, hipLaunchHostFunc(stream, set, &host_function_ran));
  EXPECT_HIP(hipSuccess, hipDeviceReset());
  EXPECT_CALL(hipSuccess, hipLaunchHostFunc(stream, set, &host_function_ran));
  EXPECT_HIP(hipSuccess, hipStreamSynchronize(stream));
  EXPECT_TRUE(host_function_ran);
  EXPECT_CALL(hipErrorInvalidValue, hipLaunchHostFunc(stream, hipHostFn_t{}, nullptr));
  EXPECT_HIP(hipSuccess, hipStreamDestroy(stream));
}

TEST(StreamOrder, ManyStreamsFromManyThreads) {
  TestModule module;
  const hipFunction_t add = module.function("vector_add");
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      constexpr uint32_t kCount = 256;
      const hipStream_t stream = t % 3 == 0   ? reinterpret_cast<hipStream_t>(kPerThread)
                                 : t % 3 == 1 ? make_stream()
                                              : make_stream(hipStreamNonBlocking);
      DeviceArray<float> ones(std::vector<float>(kCount, 1)), sum(std::vector<float>(kCount, 0));
      void *one = ones.get(), *out = sum.get();
      uint32_t count = kCount;
      void *arguments[] = {&one, &out, &out, &count};
      for (int round = 0; round < 50; ++round)
        ASSERT_HIP(hipSuccess,
                   hipModuleLaunchKernel(add, 4, 1, 1, 64, 1, 1, 0, stream, arguments, nullptr));
      ASSERT_HIP(hipSuccess, hipStreamSynchronize(stream));
      EXPECT_EQ(sum.values(), std::vector<float>(kCount, 50));
      if (t % 3 != 0) {
        EXPECT_HIP(hipSuccess, hipStreamDestroy(stream));
      }
    });
  for (std::thread &thread : threads) thread.join();
}

}  // namespace
}  // namespace flydsl::emu::test
