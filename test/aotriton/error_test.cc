// Every status of the C ABI as the hipError_t that callers of AOTriton get.
#include "v2src/aotriton/error.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace flydsl::aotriton {
namespace {

TEST(Errors, EveryStatusHasItsOwn) {
  const std::map<std::string, hipError_t> expected = {
      {"OK", hipSuccess},
      {"INVALID_ARGUMENT", hipErrorInvalidValue},
      {"INVALID_STRUCT_SIZE", hipErrorInvalidValue},
      {"INVALID_SHAPE", hipErrorInvalidValue},
      {"INVALID_STRIDE", hipErrorInvalidValue},
      {"INVALID_DTYPE", hipErrorInvalidValue},
      {"INVALID_POINTER", hipErrorInvalidValue},
      {"INVALID_MASK", hipErrorInvalidValue},
      {"INVALID_SCALE", hipErrorInvalidValue},
      {"INVALID_WORKSPACE", hipErrorInvalidValue},
      {"UNSUPPORTED_DTYPE", hipErrorNotSupported},
      {"UNSUPPORTED_HEAD_DIM", hipErrorNotSupported},
      {"UNSUPPORTED_ARCH", hipErrorNoBinaryForGpu},
      {"UNSUPPORTED_FEATURE", hipErrorNotSupported},
      {"UNSUPPORTED_SIZE", hipErrorNotSupported},
      {"NEVER_EXECUTED", hipErrorNotSupported},
      {"NO_KERNEL", hipErrorNoBinaryForGpu},
      {"ARCHIVE_NOT_FOUND", hipErrorFileNotFound},
      {"ARCHIVE_IO", hipErrorOperatingSystem},
      {"ARCHIVE_CORRUPT", hipErrorInvalidImage},
      {"ARCHIVE_VERSION", hipErrorInvalidImage},
      {"ARCHIVE_MISMATCH", hipErrorInvalidImage},
      {"DEVICE_LIBRARY_NOT_FOUND", hipErrorSharedObjectInitFailed},
      {"NO_DEVICE", hipErrorNoDevice},
      {"DEVICE_ERROR", hipErrorUnknown},
      {"OUT_OF_DEVICE_MEMORY", hipErrorOutOfMemory},
      {"DEVICE_LOST", hipErrorLaunchFailure},
      {"KERNEL_LOAD_FAILED", hipErrorInvalidKernelFile},
      {"PROCESS_FORKED", hipErrorNotInitialized},
      {"COMPILER_NOT_FOUND", hipErrorSharedObjectInitFailed},
      {"COMPILE_FAILED", hipErrorNoBinaryForGpu},
      {"CAPTURE_NEEDS_PREFETCH", hipErrorStreamCaptureUnsupported},
      {"OUT_OF_HOST_MEMORY", hipErrorOutOfMemory},
      {"INTERNAL", hipErrorUnknown},
  };
  size_t found = 0;
  for (flydsl_aot_status status = 0; status < 1000; ++status) {
    const std::string name = flydsl_aot_status_name(status);
    if (name == "UNKNOWN_STATUS") continue;
    const auto entry = expected.find(name);
    ASSERT_NE(entry, expected.end()) << name << " is new: say here what callers of AOTriton get";
    EXPECT_EQ(hip_error(status), entry->second) << name;
    ++found;
  }
  EXPECT_EQ(found, expected.size());
}

TEST(Errors, TextIsTheLastError) {
  EXPECT_EQ(hip_error(refuse("attn_fwd", FLYDSL_AOT_INVALID_SHAPE, "L is %d x %d", 4, 80)), hipErrorInvalidValue);
  EXPECT_STREQ(flydsl_aot_last_error(), "attn_fwd: L is 4 x 80");
}

}  // namespace
}  // namespace flydsl::aotriton
