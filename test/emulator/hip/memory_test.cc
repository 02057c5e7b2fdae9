// Allocation, accounting, copies, fills, pointer attributes.
#include <gtest/gtest.h>

#include "test/emulator/hip/hip_library.h"

namespace flydsl::emu::test {
namespace {

constexpr size_t kGiB = size_t{1} << 30;

TEST(Memory, ZeroBytesAndNull) {
  void *pointer = &pointer;
  EXPECT_HIP(hipSuccess, hipMalloc(&pointer, 0));
  EXPECT_EQ(pointer, nullptr);
  EXPECT_HIP(hipSuccess, hipFree(nullptr));
  EXPECT_HIP(hipErrorInvalidValue, hipMalloc(nullptr, 16));
}

TEST(Memory, FreeRefusesOtherPointers) {
  void *pointer = nullptr;
  ASSERT_HIP(hipSuccess, hipMalloc(&pointer, 4096));
  EXPECT_HIP(hipErrorInvalidValue, hipFree(static_cast<char *>(pointer) + 256));
  EXPECT_HIP(hipErrorInvalidValue, hipFree(&pointer));
  EXPECT_HIP(hipSuccess, hipFree(pointer));
  EXPECT_HIP(hipErrorInvalidValue, hipFree(pointer)) << "twice";
}

TEST(Memory, AccountingAndOutOfMemory) {
  size_t free_before = 0, free_now = 0, total = 0;
  ASSERT_HIP(hipSuccess, hipMemGetInfo(&free_before, &total));
  EXPECT_EQ(total, 288 * kGiB);
  void *pointer = nullptr, *other = nullptr;
  ASSERT_HIP(hipSuccess, hipMalloc(&pointer, 200 * kGiB)) << "only touched pages take host memory";
  EXPECT_HIP(hipSuccess, hipMemGetInfo(&free_now, &total));
  EXPECT_EQ(free_now, free_before - 200 * kGiB);
  EXPECT_HIP(hipErrorOutOfMemory, hipMalloc(&other, 89 * kGiB));
  EXPECT_EQ(other, nullptr);
  EXPECT_HIP(hipErrorOutOfMemory, hipMalloc(&other, SIZE_MAX));
  EXPECT_HIP(hipSuccess, hipFree(pointer));
  EXPECT_HIP(hipSuccess, hipMemGetInfo(&free_now, &total));
  EXPECT_EQ(free_now, free_before);
}

TEST(Memory, CopiesRoundTripInEveryForm) {
  std::vector<int> in(1000), out(1000);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<int>(i * 7);
  const size_t bytes = in.size() * sizeof(int);
  void *a = nullptr, *b = nullptr;
  ASSERT_HIP(hipSuccess, hipMalloc(&a, bytes));
  ASSERT_HIP(hipSuccess, hipMallocAsync(&b, bytes, nullptr));
  hipStream_t stream = nullptr;
  ASSERT_HIP(hipSuccess, hipStreamCreate(&stream));
  EXPECT_HIP(hipSuccess, hipMemcpyHtoD(a, in.data(), bytes));
  EXPECT_HIP(hipSuccess, hipMemcpyDtoD(b, a, bytes));
  EXPECT_HIP(hipSuccess, hipMemcpyDtoH(out.data(), b, bytes));
  EXPECT_EQ(in, out);
  EXPECT_HIP(hipSuccess, hipMemset(a, 0, bytes));
  out.assign(out.size(), -1);
  EXPECT_HIP(hipSuccess, hipMemcpyHtoDAsync(a, in.data(), bytes, stream));
  EXPECT_HIP(hipSuccess, hipMemcpyDtoDAsync(b, a, bytes, stream));
  EXPECT_HIP(hipSuccess, hipMemcpyDtoHAsync(out.data(), b, bytes, stream));
  EXPECT_HIP(hipSuccess, hipStreamSynchronize(stream));
  EXPECT_EQ(in, out);
  out.assign(out.size(), -1);
  EXPECT_HIP(hipSuccess, hipMemcpyAsync(a, in.data(), bytes, hipMemcpyDefault, stream));
  EXPECT_HIP(hipSuccess, hipMemcpyWithStream(out.data(), a, bytes, hipMemcpyDeviceToHost, stream));
  EXPECT_EQ(in, out);
  EXPECT_HIP(hipSuccess, hipMemcpy(out.data(), in.data(), bytes, hipMemcpyHostToHost));
  EXPECT_HIP(hipSuccess, hipStreamDestroy(stream));
  EXPECT_HIP(hipSuccess, hipFreeAsync(b, nullptr));
  EXPECT_HIP(hipErrorInvalidValue, hipFreeAsync(b, nullptr));
  EXPECT_HIP(hipSuccess, hipFree(a));
}

TEST(Memory, CopiesMustStayInOneRegion) {
  std::vector<char> host(4096);
  void *device = nullptr;
  ASSERT_HIP(hipSuccess, hipMalloc(&device, 1000));
  EXPECT_HIP(hipErrorInvalidValue, hipMemcpy(device, host.data(), 1001, hipMemcpyHostToDevice));
  EXPECT_NE(std::string(hip().flydsl_emu_last_error()).find("hipMalloc region"), std::string::npos);
  EXPECT_HIP(hipErrorInvalidValue, hipMemcpy(host.data(), device, 1001, hipMemcpyDeviceToHost));
  EXPECT_HIP(hipErrorInvalidValue, hipMemcpy(host.data(), device, 1001, hipMemcpyDefault));
  EXPECT_HIP(hipErrorInvalidValue,
             hipMemcpy(host.data(), host.data() + 1, 8, hipMemcpyHostToDevice));
  EXPECT_HIP(hipErrorInvalidValue, hipMemcpy(nullptr, device, 8, hipMemcpyDeviceToHost));
  EXPECT_HIP(hipErrorInvalidMemcpyDirection,
             hipMemcpy(device, host.data(), 8, static_cast<hipMemcpyKind>(5)));
  EXPECT_HIP(hipErrorInvalidValue, hipMemset(device, 0, 1001));
  EXPECT_HIP(hipErrorInvalidValue, hipMemset(host.data(), 0, 8));
  EXPECT_HIP(hipErrorInvalidValue, hipMemsetD32(device, 0, SIZE_MAX / 2));
  EXPECT_HIP(hipErrorInvalidValue, hipMemsetD32(static_cast<char *>(device) + 1, 0, 4));
  EXPECT_HIP(hipSuccess, hipMemcpy(device, host.data(), 1000, hipMemcpyHostToDevice));
  EXPECT_HIP(hipSuccess, hipMemcpy(nullptr, nullptr, 0, hipMemcpyDefault));
  EXPECT_HIP(hipSuccess, hipFree(device));
  EXPECT_HIP(hipErrorInvalidValue, hipMemcpy(device, host.data(), 8, hipMemcpyHostToDevice))
      << "after hipFree";
}

TEST(Memory, FillsCountElements) {
  DeviceArray<uint32_t> array(std::vector<uint32_t>(8, 0));
  char *const memory = static_cast<char *>(array.get());
  EXPECT_HIP(hipSuccess, hipMemsetD32(memory, static_cast<int>(0x89abcdef), 2));
  EXPECT_HIP(hipSuccess, hipMemsetD16(memory + 8, 0x1234, 2));
  EXPECT_HIP(hipSuccess, hipMemsetD8(memory + 12, 0x77, 4));
  EXPECT_HIP(hipSuccess, hipMemset(memory + 16, 0x1ff, 4)) << "only the low byte counts";
  EXPECT_HIP(hipSuccess, hipMemsetD32Async(memory + 20, 1, 1, nullptr));
  EXPECT_HIP(hipSuccess, hipMemsetD16Async(memory + 24, 2, 1, nullptr));
  EXPECT_HIP(hipSuccess, hipMemsetD8Async(memory + 26, 3, 2, nullptr));
  EXPECT_HIP(hipSuccess, hipMemsetAsync(memory + 28, 4, 2, nullptr));
  const std::vector<uint32_t> expected = {0x89abcdef, 0x89abcdef, 0x12341234, 0x77777777,
                                          0xffffffff, 1,          0x03030002, 0x00000404};
  EXPECT_EQ(array.values(), expected);
}

TEST(Memory, HostMemoryIsDeviceMemoryToo) {
  void *host = nullptr, *device = nullptr;
  size_t free_before = 0, free_now = 0, total = 0;
  ASSERT_HIP(hipSuccess, hipMemGetInfo(&free_before, &total));
  ASSERT_HIP(hipSuccess, hipHostMalloc(&host, 4096, 0));
  EXPECT_HIP(hipSuccess, hipMemGetInfo(&free_now, &total));
  EXPECT_EQ(free_now, free_before);
  EXPECT_HIP(hipSuccess, hipHostGetDevicePointer(&device, host, 0));
  EXPECT_EQ(device, host);
  hipPointerAttribute_t attributes;
  EXPECT_HIP(hipSuccess, hipPointerGetAttributes(&attributes, static_cast<char *>(host) + 5));
  EXPECT_EQ(attributes.type, hipMemoryTypeHost);
  EXPECT_EQ(attributes.hostPointer, static_cast<char *>(host) + 5);
  EXPECT_HIP(hipSuccess, hipHostFree(host));
  ASSERT_HIP(hipSuccess, hipMalloc(&device, 64));
  EXPECT_HIP(hipSuccess, hipPointerGetAttributes(&attributes, device));
  EXPECT_EQ(attributes.type, hipMemoryTypeDevice);
  EXPECT_EQ(attributes.device, 0);
  EXPECT_EQ(attributes.hostPointer, nullptr);
  EXPECT_HIP(hipSuccess, hipFree(device));
  EXPECT_HIP(hipSuccess, hipPointerGetAttributes(&attributes, &attributes));
  EXPECT_EQ(attributes.type, hipMemoryTypeUnregistered);
}

}  // namespace
}  // namespace flydsl::emu::test
