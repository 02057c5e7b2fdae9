// Devices, properties in both layouts, attributes, last error. Also run with FLYDSL_EMU_ARCH and
// FLYDSL_EMU_DEVICES set: see CMakeLists.txt.
#include <gtest/gtest.h>

#include <thread>

#include "test/emulator/hip/hip_library.h"

namespace flydsl::emu::test {
namespace {

struct Expected {
  std::string arch = "gfx950";
  int devices = 1;
  int compute_units = 256;
  int lds_bytes = 160 * 1024;
};

Expected expected() {
  Expected e;
  if (const char *arch = std::getenv("FLYDSL_EMU_ARCH")) e.arch = arch;
  if (const char *devices = std::getenv("FLYDSL_EMU_DEVICES")) e.devices = std::atoi(devices);
  if (e.arch != "gfx950") e.lds_bytes = 64 * 1024;
  if (e.arch == "gfx942") e.compute_units = 304;
  if (e.arch == "gfx90a") e.compute_units = 104;
  if (const char *units = std::getenv("FLYDSL_EMU_COMPUTE_UNITS"))
    e.compute_units = std::atoi(units);
  return e;
}

TEST(Device, VersionsAreOfHip7) {
  int runtime = 0, driver = 0;
  EXPECT_HIP(hipSuccess, hipInit(0));
  EXPECT_HIP(hipErrorInvalidValue, hipInit(1));
  EXPECT_HIP(hipSuccess, hipRuntimeGetVersion(&runtime));
  EXPECT_HIP(hipSuccess, hipDriverGetVersion(&driver));
  EXPECT_EQ(runtime / 10000000, 7);
  EXPECT_EQ(driver, runtime);
  EXPECT_HIP(hipErrorInvalidValue, hipRuntimeGetVersion(nullptr));
  EXPECT_STREQ(hip().flydsl_emu_version(), FLYDSL_AOT_TEST_VERSION);
}

TEST(Device, CountAndCurrentDevicePerThread) {
  int count = 0, current = -1;
  ASSERT_HIP(hipSuccess, hipGetDeviceCount(&count));
  EXPECT_EQ(count, expected().devices);
  EXPECT_HIP(hipSuccess, hipGetDevice(&current));
  EXPECT_EQ(current, 0);
  EXPECT_HIP(hipErrorInvalidDevice, hipSetDevice(count));
  EXPECT_HIP(hipErrorInvalidDevice, hipSetDevice(-1));
  EXPECT_HIP(hipSuccess, hipSetDevice(count - 1));
  EXPECT_HIP(hipSuccess, hipGetDevice(&current));
  EXPECT_EQ(current, count - 1);
  std::thread([] {
    int other = -1;
    EXPECT_HIP(hipSuccess, hipGetDevice(&other));
    EXPECT_EQ(other, 0);
  }).join();
  hipStream_t stream = nullptr;
  EXPECT_HIP(hipSuccess, hipStreamCreate(&stream));
  EXPECT_HIP(hipSuccess, hipSetDevice(0));
  int owner = -1;
  EXPECT_HIP(hipSuccess, hipStreamGetDevice(stream, &owner));
  EXPECT_EQ(owner, count - 1) << "a stream keeps its device";
  EXPECT_HIP(hipSuccess, hipStreamGetDevice(nullptr, &owner));
  EXPECT_EQ(owner, 0) << "the null stream is the current device's";
  EXPECT_HIP(hipSuccess, hipStreamDestroy(stream));
  int device = -1;
  EXPECT_HIP(hipSuccess, hipDeviceGet(&device, 0));
  EXPECT_EQ(device, 0);
  EXPECT_HIP(hipErrorInvalidDevice, hipDeviceGet(&device, 99));
}

int int_at(const unsigned char *buffer, size_t offset) {
  int value = 0;
  std::memcpy(&value, buffer + offset, sizeof value);
  return value;
}

size_t size_at(const unsigned char *buffer, size_t offset) {
  size_t value = 0;
  std::memcpy(&value, buffer + offset, sizeof value);
  return value;
}

// Offsets and sizes as literals, computed with offsetof from hip_runtime_api.h of HIP 5.2 and of
// HIP 6: a client compiled against those headers reads there.
TEST(Device, PropertiesOfHip5) {
  unsigned char buffer[792 + 64];
  std::memset(buffer, 0x5a, sizeof buffer);
  ASSERT_HIP(hipSuccess, hipGetDeviceProperties(buffer, 0));
  for (size_t i = 792; i < sizeof buffer; ++i)
    ASSERT_EQ(buffer[i], 0x5a) << "written past the structure at " << i;
  EXPECT_NE(std::string(reinterpret_cast<char *>(buffer)).find("emulated by flydsl_emu"),
            std::string::npos);
  size_t total = 0;
  EXPECT_HIP(hipSuccess, hipDeviceTotalMem(&total, 0));
  EXPECT_EQ(size_at(buffer, 256), total);
  EXPECT_EQ(size_at(buffer, 264), static_cast<size_t>(expected().lds_bytes));
  EXPECT_EQ(int_at(buffer, 276), 64) << "warpSize";
  EXPECT_EQ(int_at(buffer, 336), expected().compute_units);
  EXPECT_EQ(std::string(reinterpret_cast<char *>(buffer + 396)),
            expected().arch + ":sramecc+:xnack-");
  EXPECT_HIP(hipErrorInvalidDevice, hipGetDeviceProperties(buffer, 99));
  EXPECT_HIP(hipErrorInvalidValue, hipGetDeviceProperties(nullptr, 0));
}

TEST(Device, PropertiesOfHip6) {
  unsigned char buffer[1472 + 64];
  std::memset(buffer, 0x5a, sizeof buffer);
  ASSERT_HIP(hipSuccess, hipGetDevicePropertiesR0600(buffer, 0));
  for (size_t i = 1472; i < sizeof buffer; ++i)
    ASSERT_EQ(buffer[i], 0x5a) << "written past the structure at " << i;
  EXPECT_NE(std::string(reinterpret_cast<char *>(buffer)).find("emulated by flydsl_emu"),
            std::string::npos);
  size_t total = 0;
  EXPECT_HIP(hipSuccess, hipDeviceTotalMem(&total, 0));
  EXPECT_EQ(size_at(buffer, 288), total);
  EXPECT_EQ(size_at(buffer, 296), static_cast<size_t>(expected().lds_bytes));
  EXPECT_EQ(int_at(buffer, 308), 64) << "warpSize";
  EXPECT_EQ(int_at(buffer, 388), expected().compute_units);
  EXPECT_EQ(int_at(buffer, 624), 2048) << "maxThreadsPerMultiProcessor";
  EXPECT_EQ(std::string(reinterpret_cast<char *>(buffer + 1160)),
            expected().arch + ":sramecc+:xnack-");
  EXPECT_EQ(size_at(buffer, 1416), static_cast<size_t>(expected().lds_bytes));
}

TEST(Device, AttributesAgreeWithProperties) {
  const struct {
    hipDeviceAttribute_t attribute;
    int value;
  } cases[] = {
      {hipDeviceAttributeMultiprocessorCount, expected().compute_units},
      {hipDeviceAttributeWarpSize, 64},
      {hipDeviceAttributeMaxThreadsPerBlock, 1024},
      {hipDeviceAttributeMaxSharedMemoryPerBlock, expected().lds_bytes},
      {hipDeviceAttributeMaxGridDimY, 65535},
      {hipDeviceAttributeComputeCapabilityMajor, 9},
      {hipDeviceAttributeMaxThreadsPerMultiProcessor, 2048},
  };
  for (const auto &c : cases) {
    int value = -1;
    EXPECT_HIP(hipSuccess, hipDeviceGetAttribute(&value, c.attribute, 0));
    EXPECT_EQ(value, c.value) << c.attribute;
  }
  int value = 0;
  EXPECT_HIP(hipErrorInvalidValue,
             hipDeviceGetAttribute(&value, static_cast<hipDeviceAttribute_t>(5555), 0));
}

TEST(Device, NameIsCutToTheBuffer) {
  char name[12];
  EXPECT_HIP(hipSuccess, hipDeviceGetName(name, sizeof name, 0));
  EXPECT_STREQ(name, "AMD Instinc");
  EXPECT_HIP(hipErrorInvalidValue, hipDeviceGetName(name, 0, 0));
}

TEST(Errors, LastErrorStaysUntilTakenAndIsPerThread) {
  hip().hipGetLastError();
  int local = 0;
  EXPECT_EQ(hip().hipFree(&local), hipErrorInvalidValue);
  EXPECT_HIP(hipSuccess, hipFree(nullptr));
  EXPECT_EQ(hip().hipPeekAtLastError(), hipErrorInvalidValue) << "success does not reset it";
  std::thread([] { EXPECT_EQ(hip().hipPeekAtLastError(), hipSuccess); }).join();
  EXPECT_EQ(hip().hipGetLastError(), hipErrorInvalidValue);
  EXPECT_EQ(hip().hipGetLastError(), hipSuccess);
}

TEST(Errors, NamesAndTexts) {
  EXPECT_STREQ(hip().hipGetErrorName(hipSuccess), "hipSuccess");
  EXPECT_STREQ(hip().hipGetErrorName(hipErrorNoBinaryForGpu), "hipErrorNoBinaryForGpu");
  EXPECT_STREQ(hip().hipGetErrorString(hipErrorOutOfMemory), "out of memory");
  EXPECT_STREQ(hip().hipGetErrorName(static_cast<hipError_t>(12345)), "hipErrorUnknown");
}

}  // namespace
}  // namespace flydsl::emu::test
