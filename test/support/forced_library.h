// The library opened on the emulator with kernels that are to run whatever else fits.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>
#include <string>

#include "flydsl_aot/flydsl_aot.h"

namespace flydsl::test {

using OwnedHandle = std::unique_ptr<flydsl_aot_handle, decltype(&flydsl_aot_close)>;

// The kernels called prefix_INSTANCE_suffix.
inline OwnedHandle open_forced(const std::string &prefix,
                               std::initializer_list<const char *> instances,
                               const std::string &suffix) {
  std::string kernels;
  for (const char *instance : instances)
    kernels += std::string(kernels.empty() ? "" : ",") + prefix + "_" + instance + "_" + suffix;
  flydsl_aot_open_options options{};
  options.struct_size = sizeof options;
  options.device = FLYDSL_AOT_DEVICE_EMULATOR;
  options.force_kernel = kernels.c_str();
  flydsl_aot_handle *handle = nullptr;
  EXPECT_EQ(flydsl_aot_open(&options, &handle), FLYDSL_AOT_OK) << flydsl_aot_last_error();
  return {handle, flydsl_aot_close};
}

}  // namespace flydsl::test
