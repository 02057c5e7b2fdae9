// Every device function fails in turn under what is not an operator: opening, closing, the helpers of device.h. The status is that
// failure's own, the message names the function, the runtime's sticky error is as before, and then it works.
#include <functional>

#include "test/support/between_handle.h"
#include "test/support/client_stream.h"
#include "test/support/operator_problems.h"

namespace flydsl::test {
namespace {

flydsl_aot_status expected_status(int code) {
  if (code == 2) return FLYDSL_AOT_OUT_OF_DEVICE_MEMORY;
  if (code == 100) return FLYDSL_AOT_NO_DEVICE;
  return code == 719 ? FLYDSL_AOT_DEVICE_LOST : FLYDSL_AOT_DEVICE_ERROR;
}

class OpenFailures : public BetweenTest {
 protected:
  static flydsl_aot_status open(flydsl_aot_handle **handle) {
    flydsl_aot_open_options options{};
    options.struct_size = sizeof options;
    options.device = FLYDSL_AOT_DEVICE_HIP;
    options.device_library = HIP_BETWEEN;
    return flydsl_aot_open(&options, handle);
  }
  std::vector<int> calls() const { return {between_->calls, between_->calls + kHipCalls}; }

  void expect_told(flydsl_aot_status status, int call, int code) const {
    EXPECT_EQ(status, expected_status(code)) << flydsl_aot_last_error();
    const std::string message = flydsl_aot_last_error();
    EXPECT_NE(message.find(between_->name(call)), std::string::npos) << message;
    EXPECT_NE(message.find("HIP error " + std::to_string(code)), std::string::npos) << message;
    EXPECT_EQ(between_->peek_at_last_error(), 0);
  }
};

TEST_F(OpenFailures, OfOpen) {
  flydsl_aot_handle *handle = nullptr;
  ASSERT_EQ(open(&handle), FLYDSL_AOT_OK) << flydsl_aot_last_error();
  flydsl_aot_close(handle);
  between_->reset();
  ASSERT_EQ(open(&handle), FLYDSL_AOT_OK);
  const std::vector<int> made = calls();
  flydsl_aot_close(handle);
  EXPECT_EQ(made[kGetDeviceProperties], 2) << "of two devices";
  for (const int used : {kRuntimeGetVersion, kGetDeviceCount, kGetDevice}) EXPECT_GT(made[used], 0);
  for (int call = 0; call < kHipCalls; ++call) {
    for (int number = 1; number <= made[call]; ++number) {
      for (const int code : {2, 100, 719, 999}) {
        for (const bool lasting : {false, true}) {
          SCOPED_TRACE(std::string(between_->name(call)) + " number " + std::to_string(number));
          between_->fail(call, number, code, lasting);
          handle = reinterpret_cast<flydsl_aot_handle *>(this);
          expect_told(open(&handle), call, code);
          EXPECT_EQ(handle, nullptr);
          between_->reset();
          ASSERT_EQ(open(&handle), FLYDSL_AOT_OK) << flydsl_aot_last_error();
          flydsl_aot_close(handle);
        }
      }
    }
  }
}

// Kernels that cannot be unloaded, on two devices: the handle goes, and nothing is said to the caller's next call.
TEST_F(OpenFailures, OfClose) {
  tools::LibraryHandle memory;
  memory.open({"emulator", "", ""});
  DeviceProblem problem(memory, operator_problems().front());
  ASSERT_EQ(problem.launch(memory.get()), FLYDSL_AOT_OK);
  const auto right = problem.results();
  const auto open_and_use = [&] {
    Handle handle = open_between();
    for (const int device : {1, 0}) {
      EXPECT_HIP(hipSuccess, hipSetDevice(device));
      EXPECT_EQ(problem.launch(handle.get()), FLYDSL_AOT_OK) << flydsl_aot_last_error();
      EXPECT_EQ(flydsl_aot_device_synchronize(handle.get()), FLYDSL_AOT_OK);
    }
    EXPECT_EQ(problem.results(), right);
    problem.poison();
    between_->reset();
    return handle;
  };
  open_and_use().reset();
  const std::vector<int> made = calls();
  EXPECT_EQ(made[kModuleUnload], 2);
  EXPECT_EQ(made[kSetDevice], 2);
  for (int call = 0; call < kHipCalls; ++call) {
    for (int number = 1; number <= made[call]; ++number) {
      for (const bool lasting : {false, true}) {
        SCOPED_TRACE(std::string(between_->name(call)) + " number " + std::to_string(number));
        Handle handle = open_and_use();
        between_->fail(call, number, 719, lasting);
        handle.reset();
        EXPECT_EQ(between_->peek_at_last_error(), 0);
        between_->reset();
        EXPECT_HIP(hipSuccess, hipSetDevice(0));
      }
    }
  }
}

TEST_F(OpenFailures, OfTheHelpers) {
  const Handle handle = open_between();
  const Stream stream;
  char host[64] = {};
  void *memory = nullptr;
  ASSERT_EQ(flydsl_aot_device_malloc(handle.get(), sizeof host, &memory), FLYDSL_AOT_OK);
  void *made = nullptr;
  flydsl_aot_stream_info info{};
  info.struct_size = sizeof info;
  const struct {
    HipCall call;
    std::function<flydsl_aot_status()> helper;
  } rows[] = {
      {kMalloc, [&] { return flydsl_aot_device_malloc(handle.get(), 4711, &made); }},
      {kMallocAsync,
       [&] { return flydsl_aot_device_malloc_async(handle.get(), 4711, stream, &made); }},
      {kMemcpy, [&] { return flydsl_aot_device_upload(handle.get(), memory, host, sizeof host); }},
      {kMemcpy,
       [&] { return flydsl_aot_device_download(handle.get(), host, memory, sizeof host); }},
      {kDeviceSynchronize, [&] { return flydsl_aot_device_synchronize(handle.get()); }},
      {kStreamGetDevice,
       [&] { return flydsl_aot_device_stream_info(handle.get(), stream, &info); }},
      {kStreamIsCapturing,
       [&] { return flydsl_aot_device_stream_info(handle.get(), stream, &info); }},
      {kGetDevice, [&] { return flydsl_aot_device_stream_info(handle.get(), nullptr, &info); }},
      {kFreeAsync, [&] { return flydsl_aot_device_free_async(handle.get(), memory, stream); }},
      {kFree, [&] { return flydsl_aot_device_free(handle.get(), memory); }},
  };
  for (const auto &[call, helper] : rows) {
    for (const int code : {2, 100, 719, 999}) {
      SCOPED_TRACE(between_->name(call));
      between_->fail(call, 1, code);
      made = this;
      expect_told(helper(), call, code);
      EXPECT_EQ(between_->calls[call], 1);
      if (call == kMalloc || call == kMallocAsync) {
        EXPECT_EQ(made, nullptr);
        EXPECT_NE(std::string(flydsl_aot_last_error()).find("4711 bytes"), std::string::npos)
            << flydsl_aot_last_error();
      }
      between_->reset();
    }
    // Frees are the last, so that what they free is there until then.
    if (call != kFreeAsync) {
      EXPECT_EQ(helper(), FLYDSL_AOT_OK) << flydsl_aot_last_error();
    }
    if (call == kMalloc) {
      EXPECT_EQ(flydsl_aot_device_free(handle.get(), made), FLYDSL_AOT_OK);
    } else if (call == kMallocAsync) {
      EXPECT_EQ(flydsl_aot_device_free_async(handle.get(), made, stream), FLYDSL_AOT_OK);
    }
  }
}

}  // namespace
}  // namespace flydsl::test
