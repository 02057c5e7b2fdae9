// Streams, events, and handles that do not exist.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "test/emulator/hip/hip_library.h"

namespace flydsl::emu::test {
namespace {

TEST(Streams, CreateQueryDestroy) {
  hipStream_t stream = nullptr;
  unsigned flags = 9;
  int priority = 9;
  ASSERT_HIP(hipSuccess, hipStreamCreateWithPriority(&stream, hipStreamNonBlocking, -1));
  EXPECT_HIP(hipSuccess, hipStreamGetFlags(stream, &flags));
  EXPECT_EQ(flags, hipStreamNonBlocking);
  EXPECT_HIP(hipSuccess, hipStreamGetPriority(stream, &priority));
  EXPECT_EQ(priority, -1);
  EXPECT_HIP(hipSuccess, hipStreamQuery(stream));
  EXPECT_HIP(hipSuccess, hipStreamSynchronize(stream));
  auto status = static_cast<hipStreamCaptureStatus>(9);
  EXPECT_HIP(hipSuccess, hipStreamIsCapturing(stream, &status));
  EXPECT_EQ(status, hipStreamCaptureStatusNone);
  EXPECT_HIP(hipSuccess, hipStreamDestroy(stream));
  EXPECT_HIP(hipErrorInvalidHandle, hipStreamDestroy(stream));
  EXPECT_HIP(hipErrorInvalidHandle, hipStreamSynchronize(stream));
  EXPECT_HIP(hipErrorInvalidHandle, hipStreamQuery(stream));
  EXPECT_HIP(hipErrorInvalidValue, hipStreamCreateWithFlags(&stream, 2));
  EXPECT_HIP(hipErrorInvalidValue, hipStreamCreate(nullptr));
}

TEST(Streams, SpecialHandles) {
  for (const uintptr_t handle : {uintptr_t{0}, hipStreamLegacyValue, hipStreamPerThreadValue}) {
    const auto stream = reinterpret_cast<hipStream_t>(handle);
    int device = -1;
    EXPECT_HIP(hipSuccess, hipStreamSynchronize(stream));
    EXPECT_HIP(hipSuccess, hipStreamGetDevice(stream, &device));
    EXPECT_EQ(device, 0);
    EXPECT_HIP(hipErrorInvalidHandle, hipStreamDestroy(stream));
  }
}

TEST(Events, ElapsedTimeIsRealTime) {
  hipEvent_t start = nullptr, stop = nullptr;
  ASSERT_HIP(hipSuccess, hipEventCreate(&start));
  ASSERT_HIP(hipSuccess, hipEventCreateWithFlags(&stop, 0));
  float milliseconds = -1;
  EXPECT_HIP(hipErrorInvalidHandle, hipEventElapsedTime(&milliseconds, start, stop))
      << "not recorded";
  EXPECT_HIP(hipSuccess, hipEventRecord(start, nullptr));
  // Its time is when the stream reaches it, on a thread that may wake up late.
  EXPECT_HIP(hipSuccess, hipEventSynchronize(start));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_HIP(hipSuccess, hipEventRecord(stop, nullptr));
  EXPECT_HIP(hipSuccess, hipEventSynchronize(stop));
  EXPECT_HIP(hipSuccess, hipEventQuery(stop));
  EXPECT_HIP(hipSuccess, hipEventElapsedTime(&milliseconds, start, stop));
  EXPECT_GE(milliseconds, 20.0f);
  EXPECT_LT(milliseconds, 2000.0f);
  EXPECT_HIP(hipSuccess, hipStreamWaitEvent(nullptr, stop, 0));
  EXPECT_HIP(hipErrorInvalidValue, hipStreamWaitEvent(nullptr, stop, 3));
  EXPECT_HIP(hipSuccess, hipEventDestroy(start));
  EXPECT_HIP(hipSuccess, hipEventDestroy(stop));
  EXPECT_HIP(hipErrorInvalidHandle, hipEventDestroy(stop));
  EXPECT_HIP(hipErrorInvalidHandle, hipEventRecord(stop, nullptr));
  EXPECT_HIP(hipErrorInvalidHandle, hipStreamWaitEvent(nullptr, stop, 0));
}

TEST(Events, WithoutTimingHaveNone) {
  hipEvent_t event = nullptr;
  float milliseconds = -1;
  ASSERT_HIP(hipSuccess, hipEventCreateWithFlags(&event, hipEventDisableTiming));
  EXPECT_HIP(hipSuccess, hipEventRecord(event, nullptr));
  EXPECT_HIP(hipErrorInvalidHandle, hipEventElapsedTime(&milliseconds, event, event));
  EXPECT_HIP(hipSuccess, hipEventDestroy(event));
  EXPECT_HIP(hipErrorInvalidValue, hipEventCreateWithFlags(&event, 0x10));
}

}  // namespace
}  // namespace flydsl::emu::test
