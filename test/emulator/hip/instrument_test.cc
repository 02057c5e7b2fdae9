// What the environment turns on: the instruction trace, the progress line; and a host signal in
// emulated code. The variables come from CMakeLists.txt.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <fstream>
#include <iterator>

#include "test/emulator/hip/client_api.h"

namespace flydsl::emu::test {
namespace {

FLYDSL_HIP_FUNCTION(hipHostRegister, void *, size_t, unsigned)
FLYDSL_HIP_FUNCTION(hipHostUnregister, void *)

hipError_t run(const TestModule &module, const char *kernel, void *pointer, unsigned groups) {
  void *arguments[] = {&pointer};
  const hipError_t error = hip().hipModuleLaunchKernel(module.function(kernel), groups, 1, 1, 128,
                                                       1, 1, 0, nullptr, arguments, nullptr);
  return error == hipSuccess ? hip().hipDeviceSynchronize() : error;
}

TEST(Instrument, TraceNamesInstructionsAndResults) {
  const char *request = std::getenv("FLYDSL_EMU_TRACE");
  ASSERT_NE(request, nullptr);
  const std::string path = std::string(request).substr(0, std::string(request).find(','));
  TestModule module;
  DeviceArray<uint32_t> out(std::vector<uint32_t>(64 * 4, 0));
  ASSERT_EQ(run(module, "at_most_128", out.get(), 3), hipSuccess);
  EXPECT_EQ(out.values()[64 * 2], 7u);
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(text.find("at_most_128 (1,0,0).1 0x"), std::string::npos) << text;
  EXPECT_EQ(text.find("(0,0,0)"), std::string::npos) << "another work-group";
  EXPECT_EQ(text.find("(1,0,0).0"), std::string::npos) << "another wave";
  EXPECT_NE(text.find("exec=ffffffffffffffff"), std::string::npos) << text;
  EXPECT_NE(text.find("=00000007"), std::string::npos) << "the constant on its way: " << text;
  EXPECT_NE(text.find("global_store_dword"), std::string::npos) << text;
  EXPECT_NE(text.find("s_endpgm"), std::string::npos) << text;
}

TEST(Instrument, ProgressLine) {
  TestModule module;
  DeviceArray<uint32_t> out(std::vector<uint32_t>(64 * 4, 0));
  testing::internal::CaptureStderr();
  const hipError_t error = run(module, "at_most_128", out.get(), 3);
  const std::string text = testing::internal::GetCapturedStderr();
  ASSERT_EQ(error, hipSuccess);
  EXPECT_NE(text.find("at_most_128: 1 of 3 work-groups"), std::string::npos) << text;
  EXPECT_EQ(text.substr(text.size() - 4), "\r\033[K") << "the line is removed";
}

TEST(Instrument, HostSignalIsAnError) {
  TestModule module;
  constexpr size_t kBytes = 1 << 16;
  void *memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_CALL(hipSuccess, hipHostRegister(memory, kBytes, 0u));
  ASSERT_EQ(run(module, "at_most_128", memory, 3), hipSuccess) << hip().flydsl_emu_last_error();
  EXPECT_EQ(static_cast<uint32_t *>(memory)[64], 7u);
  ASSERT_EQ(mprotect(memory, kBytes, PROT_NONE), 0) << "behind HIP's back";
  EXPECT_EQ(run(module, "at_most_128", memory, 3), hipErrorLaunchFailure);
  const std::string fault = hip().flydsl_emu_last_fault();
  EXPECT_NE(fault.find("SIGSEGV"), std::string::npos) << fault;
  EXPECT_NE(fault.find("global_store_dword"), std::string::npos) << fault;
  EXPECT_HIP(hipSuccess, hipDeviceReset());
  ASSERT_EQ(mprotect(memory, kBytes, PROT_READ | PROT_WRITE), 0);
  EXPECT_EQ(run(module, "at_most_128", memory, 3), hipSuccess) << "the emulator goes on";
  EXPECT_CALL(hipSuccess, hipHostUnregister(memory));
  EXPECT_CALL(hipErrorHostMemoryNotRegistered, hipHostUnregister(memory));
  munmap(memory, kBytes);
}

}  // namespace
}  // namespace flydsl::emu::test
