// Run with an environment that describes no device (CMakeLists.txt): an error with a reason, never
// a crash.
#include <gtest/gtest.h>

#include "test/emulator/hip/hip_library.h"

namespace flydsl::emu::test {
namespace {

TEST(NoDevice, EveryFamilySaysSo) {
  int count = -1;
  EXPECT_EQ(hip().hipGetDeviceCount(&count), hipErrorNoDevice);
  EXPECT_EQ(count, 0);
  EXPECT_NE(std::string(hip().flydsl_emu_last_error()).find("FLYDSL_EMU_"), std::string::npos);
  EXPECT_EQ(hip().hipInit(0), hipErrorNoDevice);
  EXPECT_EQ(hip().hipSetDevice(0), hipErrorNoDevice);
  void *pointer = nullptr;
  EXPECT_EQ(hip().hipMalloc(&pointer, 16), hipErrorNoDevice);
  hipStream_t stream = nullptr;
  EXPECT_EQ(hip().hipStreamCreate(&stream), hipErrorNoDevice);
  hipModule_t module = nullptr;
  EXPECT_EQ(hip().hipModuleLoad(&module, object_path("gfx950_v5.co").c_str()), hipErrorNoDevice);
  EXPECT_EQ(hip().hipDeviceSynchronize(), hipErrorNoDevice);
}

}  // namespace
}  // namespace flydsl::emu::test
