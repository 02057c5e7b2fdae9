// The library opened on hip_between: on the emulator, with calls counted.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "flydsl_aot/flydsl_aot.h"
#include "test/support/client_stream.h"
#include "test/support/hip_between.h"

namespace flydsl::test {

using Handle = std::unique_ptr<flydsl_aot_handle, decltype(&flydsl_aot_close)>;

inline Handle open_between(const char *archive_path = nullptr, uint32_t max_loaded_kernels = 0) {
  flydsl_aot_open_options options{};
  options.struct_size = sizeof options;
  options.device = FLYDSL_AOT_DEVICE_HIP;
  options.device_library = HIP_BETWEEN;
  options.archive_path = archive_path;
  options.max_loaded_kernels = max_loaded_kernels;
  flydsl_aot_handle *handle = nullptr;
  EXPECT_EQ(flydsl_aot_open(&options, &handle), FLYDSL_AOT_OK) << flydsl_aot_last_error();
  return Handle(handle, flydsl_aot_close);
}

// Counts from 0 and makes nothing fail, with the first device as the current one.
class BetweenTest : public ::testing::Test {
 protected:
  void SetUp() override {
    between_ = open_hip_between(HIP_BETWEEN, FLYDSL_EMULATOR_LIBRARY);
    ASSERT_NE(between_, nullptr);
    EXPECT_HIP(hipSuccess, hipSetDevice(0));
    between_->reset();
  }
  void TearDown() override {
    if (between_) between_->reset();
  }

  HipBetween *between_ = nullptr;
};

}  // namespace flydsl::test
