// Managed and registered memory, pools, copies of two and three dimensions, peers, cooperative
// launches, occupancy.
#include <gtest/gtest.h>

#include <numeric>

#include "test/emulator/hip/client_api.h"

namespace flydsl::emu::test {
namespace {

using Pool = const void *;
constexpr size_t kOne = 1;

FLYDSL_HIP_FUNCTION(hipMallocManaged, void **, size_t, unsigned)
FLYDSL_HIP_FUNCTION(hipHostRegister, void *, size_t, unsigned)
FLYDSL_HIP_FUNCTION(hipHostUnregister, void *)
FLYDSL_HIP_FUNCTION(hipMallocPitch, void **, size_t *, size_t, size_t)
FLYDSL_HIP_FUNCTION(hipMemcpyParam2D, const hip_Memcpy2D *)
FLYDSL_HIP_FUNCTION(hipMemcpyParam2DAsync, const hip_Memcpy2D *, hipStream_t)
FLYDSL_HIP_FUNCTION(hipMemcpy2D, void *, size_t, const void *, size_t, size_t, size_t,
                    hipMemcpyKind)
FLYDSL_HIP_FUNCTION(hipMemset2D, void *, size_t, int, size_t, size_t)
FLYDSL_HIP_FUNCTION(hipMalloc3D, hipPitchedPtr *, hipExtent)
FLYDSL_HIP_FUNCTION(hipMemcpy3D, const hipMemcpy3DParms *)
FLYDSL_HIP_FUNCTION(hipMemset3D, hipPitchedPtr, int, hipExtent)
FLYDSL_HIP_FUNCTION(hipMemcpyPeer, void *, int, const void *, int, size_t)
FLYDSL_HIP_FUNCTION(hipDeviceCanAccessPeer, int *, int, int)
FLYDSL_HIP_FUNCTION(hipDeviceEnablePeerAccess, int, unsigned)
FLYDSL_HIP_FUNCTION(hipDeviceDisablePeerAccess, int)
FLYDSL_HIP_FUNCTION(hipDeviceGetDefaultMemPool, Pool *, int)
FLYDSL_HIP_FUNCTION(hipMemPoolGetAttribute, Pool, uint32_t, void *)
FLYDSL_HIP_FUNCTION(hipMemPoolSetAttribute, Pool, uint32_t, void *)
FLYDSL_HIP_FUNCTION(hipMemPoolTrimTo, Pool, size_t)
FLYDSL_HIP_FUNCTION(hipModuleLaunchCooperativeKernel, hipFunction_t, unsigned, unsigned, unsigned,
                    unsigned, unsigned, unsigned, unsigned, hipStream_t, void **)
FLYDSL_HIP_FUNCTION(hipModuleOccupancyMaxPotentialBlockSize, int *, int *, hipFunction_t, size_t,
                    int)

TEST(MemoryKinds, ManagedIsUsedFromBothSides) {
  TestModule module;
  float *memory = nullptr;
  ASSERT_CALL(hipSuccess, hipMallocManaged(reinterpret_cast<void **>(&memory), size_t{256}, 1u));
  std::iota(memory, memory + 64, 0.0f);
  void *pointer = memory;
  uint32_t count = 64;
  void *arguments[] = {&pointer, &pointer, &pointer, &count};
  ASSERT_HIP(hipSuccess, hipModuleLaunchKernel(module.function("vector_add"), 1, 1, 1, 64, 1, 1, 0,
                                               nullptr, arguments, nullptr));
  ASSERT_HIP(hipSuccess, hipDeviceSynchronize());
  EXPECT_EQ(memory[63], 126);
  hipPointerAttribute_t attributes = {};
  EXPECT_HIP(hipSuccess, hipPointerGetAttributes(&attributes, memory + 5));
  EXPECT_EQ(attributes.type, hipMemoryTypeManaged);
  EXPECT_EQ(attributes.isManaged, 1);
  EXPECT_EQ(attributes.hostPointer, memory + 5);
  EXPECT_HIP(hipSuccess, hipFree(memory));
  EXPECT_CALL(hipErrorInvalidValue, hipMallocManaged(reinterpret_cast<void **>(&memory), kOne, 7u));
}

TEST(MemoryKinds, RegisteredHostMemory) {
  std::vector<uint32_t> host(1024);
  void *const memory = host.data();
  void *device = nullptr;
  EXPECT_HIP(hipErrorInvalidValue, hipHostGetDevicePointer(&device, memory, 0));
  ASSERT_CALL(hipSuccess, hipHostRegister(memory, host.size() * 4, 0u));
  EXPECT_CALL(hipErrorHostMemoryAlreadyRegistered,
              hipHostRegister(static_cast<void *>(&host[1000]), size_t{400}, 0u));
  EXPECT_CALL(hipErrorHostMemoryAlreadyRegistered, hipHostRegister(memory, size_t{4}, 0u));
  ASSERT_HIP(hipSuccess, hipHostGetDevicePointer(&device, memory, 0));
  TestModule module;
  void *arguments[] = {&device};
  ASSERT_HIP(hipSuccess, hipModuleLaunchKernel(module.function("at_most_128"), 16, 1, 1, 64, 1, 1,
                                               0, nullptr, arguments, nullptr));
  ASSERT_HIP(hipSuccess, hipDeviceSynchronize());
  EXPECT_EQ(host, std::vector<uint32_t>(1024, 7));
  EXPECT_HIP(hipErrorInvalidValue, hipFree(memory)) << "not HIP's";
  EXPECT_CALL(hipSuccess, hipHostUnregister(memory));
  EXPECT_CALL(hipErrorHostMemoryNotRegistered, hipHostUnregister(memory));
}

TEST(MemoryKinds, TwoDimensions) {
  constexpr size_t kWidth = 37, kHeight = 5;
  char *device = nullptr;
  size_t pitch = 0;
  ASSERT_CALL(hipSuccess,
              hipMallocPitch(reinterpret_cast<void **>(&device), &pitch, kWidth, kHeight));
  EXPECT_GE(pitch, kWidth);
  EXPECT_EQ(pitch % 256, 0u);
  std::vector<char> in(40 * kHeight), out(50 * kHeight, 9);
  std::iota(in.begin(), in.end(), 0);
  void *const d = device;
  ASSERT_CALL(hipSuccess, hipMemset2D(d, pitch, 3, pitch, kHeight - 1));
  ASSERT_CALL(hipSuccess, hipMemcpy2D(d, pitch, static_cast<const void *>(in.data()), size_t{40},
                                      kWidth, kHeight, hipMemcpyHostToDevice));
  ASSERT_CALL(hipSuccess, hipMemcpy2D(static_cast<void *>(out.data()), size_t{50},
                                      static_cast<const void *>(device), pitch, kWidth + 1,
                                      kHeight - 1, hipMemcpyDeviceToHost));
  for (size_t y = 0; y < kHeight; ++y)
    for (size_t x = 0; x < 50; ++x)
      EXPECT_EQ(out[y * 50 + x], y == kHeight - 1 || x > kWidth ? 9
                                 : x == kWidth                  ? 3
                                                                : in[y * 40 + x])
          << x << " " << y;
  EXPECT_CALL(hipErrorInvalidPitchValue,
              hipMemcpy2D(d, kWidth - 1, static_cast<const void *>(in.data()), size_t{40}, kWidth,
                          kHeight, hipMemcpyHostToDevice));
  EXPECT_CALL(hipErrorInvalidValue,
              hipMemcpy2D(d, pitch, static_cast<const void *>(in.data()), size_t{40}, kWidth,
                          kHeight + 1, hipMemcpyHostToDevice))
      << "past the end";
  EXPECT_CALL(hipErrorInvalidValue, hipMemset2D(d, SIZE_MAX / 2, 0, kWidth, size_t{4}));
  EXPECT_HIP(hipSuccess, hipFree(device));
}

// A structure for each end: memory type, address, offset of the box.
TEST(MemoryKinds, TwoDimensionsByStructure) {
  constexpr size_t kRow = 32, kRows = 4, kWidth = 8, kHeight = 2;
  std::vector<char> in(kRow * kRows), out(kRow * kRows, 9);
  std::iota(in.begin(), in.end(), 0);
  const DeviceArray<char> device(std::vector<char>(kRow * kRows, 7));
  hip_Memcpy2D up = {};
  up.srcMemoryType = hipMemoryTypeHost;
  up.srcHost = in.data();
  up.srcPitch = up.dstPitch = kRow;
  up.srcXInBytes = 3;
  up.srcY = 1;
  up.dstMemoryType = hipMemoryTypeDevice;
  up.dstDevice = device.get();
  up.dstXInBytes = 5;
  up.dstY = 2;
  up.WidthInBytes = kWidth;
  up.Height = kHeight;
  ASSERT_CALL(hipSuccess, hipMemcpyParam2D(static_cast<const hip_Memcpy2D *>(&up)));
  const std::vector<char> got = device.values();
  for (size_t y = 0; y < kRows; ++y)
    for (size_t x = 0; x < kRow; ++x) {
      const bool inside = y >= 2 && x >= 5 && x < 5 + kWidth;
      EXPECT_EQ(got[y * kRow + x], inside ? in[(y - 1) * kRow + x - 2] : 7) << x << " " << y;
    }
  hip_Memcpy2D down = {};
  down.srcMemoryType = hipMemoryTypeUnified;
  down.srcDevice = device.get();
  down.dstMemoryType = hipMemoryTypeHost;
  down.dstHost = out.data();
  down.srcPitch = down.dstPitch = down.WidthInBytes = kRow;
  down.Height = kRows;
  ASSERT_CALL(hipSuccess,
              hipMemcpyParam2DAsync(static_cast<const hip_Memcpy2D *>(&down), hipStream_t{}));
  ASSERT_HIP(hipSuccess, hipDeviceSynchronize());
  EXPECT_EQ(out, got);
  down.dstMemoryType = static_cast<hipMemoryType>(10);
  EXPECT_CALL(hipErrorNotSupported, hipMemcpyParam2D(static_cast<const hip_Memcpy2D *>(&down)))
      << "arrays";
  EXPECT_CALL(hipErrorInvalidValue, hipMemcpyParam2D(static_cast<const hip_Memcpy2D *>(nullptr)));
  up.Height = kRows;
  EXPECT_CALL(hipErrorInvalidValue, hipMemcpyParam2D(static_cast<const hip_Memcpy2D *>(&up)))
      << "past the end";
}

TEST(MemoryKinds, ThreeDimensions) {
  const hipExtent extent = {6, 4, 3};
  hipPitchedPtr device = {};
  ASSERT_CALL(hipSuccess, hipMalloc3D(&device, extent));
  ASSERT_CALL(hipSuccess, hipMemset3D(device, 1, extent));
  std::vector<char> host(10 * 5 * 3, 0);
  hipMemcpy3DParms copy = {};
  copy.srcPtr = device;
  copy.dstPtr = {host.data(), 10, 10, 5};
  copy.dstPos = {2, 1, 1};
  copy.extent = {6, 4, 2};
  copy.kind = hipMemcpyDeviceToHost;
  ASSERT_CALL(hipSuccess, hipMemcpy3D(&copy));
  for (int z = 0; z < 3; ++z)
    for (int y = 0; y < 5; ++y)
      for (int x = 0; x < 10; ++x)
        EXPECT_EQ(host[(z * 5 + y) * 10 + x], x >= 2 && x < 8 && y >= 1 && z >= 1) << x << y << z;
  copy.dstArray = &copy;
  EXPECT_CALL(hipErrorNotSupported, hipMemcpy3D(&copy));
  EXPECT_HIP(hipSuccess, hipFree(device.ptr));
}

TEST(MemoryKinds, PoolsCount) {
  Pool pool = nullptr;
  ASSERT_CALL(hipSuccess, hipDeviceGetDefaultMemPool(&pool, 0));
  constexpr uint32_t kThreshold = 4, kUsed = 7, kUsedHigh = 8;
  uint64_t before = 0, used = 0, high = 0, threshold = 1 << 20;
  ASSERT_CALL(hipSuccess, hipMemPoolGetAttribute(pool, kUsed, static_cast<void *>(&before)));
  ASSERT_CALL(hipSuccess,
              hipMemPoolSetAttribute(pool, kThreshold, static_cast<void *>(&threshold)));
  threshold = 0;
  ASSERT_CALL(hipSuccess,
              hipMemPoolGetAttribute(pool, kThreshold, static_cast<void *>(&threshold)));
  EXPECT_EQ(threshold, uint64_t{1} << 20);
  hipStream_t stream = nullptr;
  ASSERT_HIP(hipSuccess, hipStreamCreate(&stream));
  void *memory = nullptr;
  ASSERT_HIP(hipSuccess, hipMallocAsync(&memory, 5000, stream));
  ASSERT_CALL(hipSuccess, hipMemPoolGetAttribute(pool, kUsed, static_cast<void *>(&used)));
  EXPECT_EQ(used, before + 5000);
  ASSERT_HIP(hipSuccess, hipMemsetAsync(memory, 1, 5000, stream)) << "before its end in the stream";
  ASSERT_HIP(hipSuccess, hipFreeAsync(memory, stream));
  EXPECT_HIP(hipErrorInvalidValue, hipFreeAsync(memory, stream)) << "twice";
  ASSERT_HIP(hipSuccess, hipStreamSynchronize(stream));
  EXPECT_HIP(hipErrorInvalidValue, hipMemsetAsync(memory, 1, 5000, stream)) << "freed";
  ASSERT_CALL(hipSuccess, hipMemPoolGetAttribute(pool, kUsed, static_cast<void *>(&used)));
  ASSERT_CALL(hipSuccess, hipMemPoolGetAttribute(pool, kUsedHigh, static_cast<void *>(&high)));
  EXPECT_EQ(used, before);
  EXPECT_GE(high, before + 5000);
  EXPECT_CALL(hipSuccess, hipMemPoolTrimTo(pool, size_t{0}));
  EXPECT_CALL(hipErrorInvalidValue, hipMemPoolTrimTo(static_cast<Pool>(&used), size_t{0}));
  EXPECT_HIP(hipSuccess, hipStreamDestroy(stream));
}

// With FLYDSL_EMU_DEVICES=3.
TEST(MemoryKinds, Peers) {
  int can = -1, count = 0;
  ASSERT_HIP(hipSuccess, hipGetDeviceCount(&count));
  ASSERT_EQ(count, 3);
  EXPECT_CALL(hipSuccess, hipDeviceCanAccessPeer(&can, 0, 2));
  EXPECT_EQ(can, 1);
  EXPECT_CALL(hipSuccess, hipDeviceCanAccessPeer(&can, 1, 1));
  EXPECT_EQ(can, 0);
  EXPECT_CALL(hipErrorInvalidDevice, hipDeviceCanAccessPeer(&can, 0, 3));
  EXPECT_CALL(hipSuccess, hipDeviceEnablePeerAccess(1, 0u));
  EXPECT_CALL(hipErrorPeerAccessAlreadyEnabled, hipDeviceEnablePeerAccess(1, 0u));
  EXPECT_CALL(hipSuccess, hipDeviceDisablePeerAccess(1));
  EXPECT_CALL(hipErrorPeerAccessNotEnabled, hipDeviceDisablePeerAccess(1));
  EXPECT_CALL(hipErrorInvalidDevice, hipDeviceEnablePeerAccess(0, 0u));
  DeviceArray<int> here(std::vector<int>(10, 4));
  ASSERT_HIP(hipSuccess, hipSetDevice(2));
  DeviceArray<int> there(std::vector<int>(10, 0));
  EXPECT_CALL(hipSuccess, hipMemcpyPeer(there.get(), 2, static_cast<const void *>(here.get()), 0,
                                        here.bytes()));
  EXPECT_EQ(there.values(), std::vector<int>(10, 4));
  hipPointerAttribute_t attributes = {};
  EXPECT_HIP(hipSuccess, hipPointerGetAttributes(&attributes, there.get()));
  EXPECT_EQ(attributes.device, 2);
  ASSERT_HIP(hipSuccess, hipSetDevice(0));
}

// A fault stays on its own device.
TEST(MemoryKinds, FaultsArePerDevice) {
  TestModule module;
  void *null = nullptr, *arguments[] = {&null};
  ASSERT_HIP(hipSuccess, hipModuleLaunchKernel(module.function("at_most_128"), 1, 1, 1, 64, 1, 1, 0,
                                               nullptr, arguments, nullptr));
  EXPECT_HIP(hipErrorLaunchFailure, hipDeviceSynchronize());
  ASSERT_HIP(hipSuccess, hipSetDevice(1));
  EXPECT_HIP(hipSuccess, hipDeviceSynchronize());
  ASSERT_HIP(hipSuccess, hipSetDevice(0));
  EXPECT_HIP(hipSuccess, hipDeviceReset());
}

// Every work-group waits at a barrier in memory for all others.
TEST(Cooperative, GroupsWaitForEachOther) {
  TestModule module;
  constexpr uint32_t kGroups = 40;  // more than there are host threads for
  DeviceArray<uint32_t> state(std::vector<uint32_t>(1 + kGroups, 0));
  void *pointer = state.get();
  uint32_t groups = kGroups;
  void *arguments[] = {&pointer, &groups};
  const hipFunction_t function = module.function("grid_barrier");
  ASSERT_CALL(hipSuccess,
              hipModuleLaunchCooperativeKernel(function, kGroups, 1u, 1u, 64u, 1u, 1u, 0u,
                                               hipStream_t{}, static_cast<void **>(arguments)));
  ASSERT_HIP(hipSuccess, hipDeviceSynchronize());
  EXPECT_EQ(state.values(), std::vector<uint32_t>(1 + kGroups, kGroups));

  int blocks = 0;
  ASSERT_HIP(hipSuccess,
             hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 64, 0));
  const unsigned too_many = unsigned(blocks) * 256 + 1;
  EXPECT_CALL(hipErrorCooperativeLaunchTooLarge,
              hipModuleLaunchCooperativeKernel(function, too_many, 1u, 1u, 64u, 1u, 1u, 0u,
                                               hipStream_t{}, static_cast<void **>(arguments)));
  int grid = 0, block = 0;
  ASSERT_CALL(hipSuccess,
              hipModuleOccupancyMaxPotentialBlockSize(&grid, &block, function, size_t{0}, 0));
  EXPECT_EQ(block, 1024);
  EXPECT_EQ(grid, 2 * 256);
}

}  // namespace
}  // namespace flydsl::emu::test
