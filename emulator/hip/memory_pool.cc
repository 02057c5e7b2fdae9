// hipMallocAsync, hipFreeAsync, hipMemPool*.
#include "emulator/hip/memory_pool.h"

#include <map>
#include <mutex>

#include "emulator/hip/allocations.h"
#include "emulator/hip/api_call.h"
#include "emulator/hip/capture.h"
#include "emulator/hip/stream.h"

namespace flydsl::emu::hip {
namespace {

enum PoolAttribute : uint32_t {  // hipMemPoolAttr
  kReuseFirst = 1,               // three switches
  kReuseLast = 3,
  kReleaseThreshold = 4,
  kReservedCurrent = 5,
  kReservedHigh = 6,
  kUsedCurrent = 7,
  kUsedHigh = 8,
};

struct DevicePools {
  std::mutex mutex;
  std::map<const Device *, std::shared_ptr<MemoryPool>> standard, current;
};
DevicePools &device_pools() {
  static auto *const pools = new DevicePools;  // never destroyed, as with device_table()
  return *pools;
}

std::shared_ptr<MemoryPool> new_pool(Device *device) {
  auto pool = std::make_shared<MemoryPool>();
  pool->device = device;
  memory_pools().add(pool);
  return pool;
}

std::shared_ptr<MemoryPool> default_pool(Device *device) {
  std::lock_guard<std::mutex> lock(device_pools().mutex);
  std::shared_ptr<MemoryPool> &pool = device_pools().standard[device];
  if (!pool) pool = new_pool(device);
  return pool;
}

std::shared_ptr<MemoryPool> pool_or_fail(const void *handle, hipError_t *error) {
  std::shared_ptr<MemoryPool> pool = memory_pools().find(handle);
  if (!pool) *error = fail(hipErrorInvalidValue, "memory pool %p does not exist", handle);
  return pool;
}

// The memory is there at once; the stream only matters for who may use it when.
hipError_t allocate(void **pointer, size_t bytes, const std::shared_ptr<Stream> &stream,
                    std::shared_ptr<MemoryPool> pool) {
  if (pointer == nullptr) return fail(hipErrorInvalidValue, "pointer is null");
  *pointer = nullptr;
  {
    std::lock_guard<std::mutex> order(submission_mutex());
    if (stream->capture) return fail(hipErrorNotSupported, "graphs have no allocation nodes here");
  }
  if (bytes == 0) return hipSuccess;
  Device *const device = pool->device;
  *pointer = Allocations::instance().allocate(
      {nullptr, bytes, device, Allocation::Kind::kDevice, 0, std::move(pool), false});
  if (*pointer != nullptr) return hipSuccess;
  return fail(hipErrorOutOfMemory, "%zu bytes; device %d has %zu of %zu in use", bytes,
              device->ordinal, device->used_bytes.load(), device->memory_bytes);
}

hipError_t release_in_order(void *pointer, hipStream_t handle) {
  hipError_t error = hipSuccess;
  const std::shared_ptr<Stream> stream = stream_or_fail(handle, &error);
  if (!stream) return error;
  {
    std::lock_guard<std::mutex> order(submission_mutex());
    if (stream->capture) return fail(hipErrorNotSupported, "graphs have no free nodes here");
  }
  if (!Allocations::instance().begin_free(pointer))
    return fail(hipErrorInvalidValue, "%p is not the start of a live allocation", pointer);
  Work work;
  const auto release = [pointer] {
    std::unique_lock<LaunchGate> alone(launch_gate());
    Allocations::instance().release(pointer);
    return hipSuccess;
  };
  work.run = release;
  work.dropped = [release](hipError_t) { release(); };
  error = stream->submit(std::move(work));
  if (error != hipSuccess) Allocations::instance().cancel_free(pointer);
  return error;
}

hipError_t get_attribute(MemoryPool &pool, uint32_t attribute, void *value) {
  if (value == nullptr) return fail(hipErrorInvalidValue, "value is null");
  std::lock_guard<std::mutex> lock(pool.mutex);
  if (attribute >= kReuseFirst && attribute <= kReuseLast) {
    *static_cast<int *>(value) = pool.reuse[attribute - kReuseFirst];
    return hipSuccess;
  }
  uint64_t *const number = static_cast<uint64_t *>(value);
  switch (attribute) {
    case kReleaseThreshold:
      *number = pool.release_threshold;
      return hipSuccess;
    case kReservedCurrent:
    case kUsedCurrent:
      *number = pool.used;
      return hipSuccess;
    case kReservedHigh:
    case kUsedHigh:
      *number = pool.used_high;
      return hipSuccess;
  }
  return fail(hipErrorInvalidValue, "pool attribute %u is not known", attribute);
}

hipError_t set_attribute(MemoryPool &pool, uint32_t attribute, const void *value) {
  if (value == nullptr) return fail(hipErrorInvalidValue, "value is null");
  std::lock_guard<std::mutex> lock(pool.mutex);
  if (attribute >= kReuseFirst && attribute <= kReuseLast) {
    pool.reuse[attribute - kReuseFirst] = *static_cast<const int *>(value);
    return hipSuccess;
  }
  const uint64_t number = *static_cast<const uint64_t *>(value);
  if (attribute == kReleaseThreshold) {
    pool.release_threshold = number;
    return hipSuccess;
  }
  if ((attribute == kReservedHigh || attribute == kUsedHigh) && number == 0) {
    pool.used_high = pool.used;
    return hipSuccess;
  }
  return fail(hipErrorInvalidValue, "pool attribute %u cannot be set to %llu", attribute,
              static_cast<unsigned long long>(number));
}

}  // namespace

HandleTable<MemoryPool> &memory_pools() {
  static auto *const table = new HandleTable<MemoryPool>;
  return *table;
}

std::shared_ptr<MemoryPool> current_pool(Device *device) {
  {
    std::lock_guard<std::mutex> lock(device_pools().mutex);
    const auto found = device_pools().current.find(device);
    if (found != device_pools().current.end()) return found->second;
  }
  return default_pool(device);
}

}  // namespace flydsl::emu::hip

using namespace flydsl::emu::hip;
using hipMemPool_t = const void *;

FLYDSL_EMU_EXPORT hipError_t hipMallocAsync(void **pointer, size_t bytes, hipStream_t handle) {
  return api_call([&] {
    hipError_t error = hipSuccess;
    const std::shared_ptr<Stream> stream = stream_or_fail(handle, &error);
    return stream ? allocate(pointer, bytes, stream, current_pool(&stream->device())) : error;
  });
}

FLYDSL_EMU_EXPORT hipError_t hipMallocFromPoolAsync(void **pointer, size_t bytes,
                                                    hipMemPool_t pool_handle, hipStream_t handle) {
  return api_call([&] {
    hipError_t error = hipSuccess;
    const std::shared_ptr<Stream> stream = stream_or_fail(handle, &error);
    if (!stream) return error;
    std::shared_ptr<MemoryPool> pool = pool_or_fail(pool_handle, &error);
    return pool ? allocate(pointer, bytes, stream, std::move(pool)) : error;
  });
}

FLYDSL_EMU_EXPORT hipError_t hipFreeAsync(void *pointer, hipStream_t stream) {
  return api_call([&] { return release_in_order(pointer, stream); });
}

FLYDSL_EMU_EXPORT hipError_t hipDeviceGetDefaultMemPool(hipMemPool_t *pool, int ordinal) {
  return api_call([&] {
    if (pool == nullptr) return fail(hipErrorInvalidValue, "pool is null");
    hipError_t error = hipSuccess;
    Device *device = device_or_fail(ordinal, &error);
    if (device != nullptr) *pool = default_pool(device).get();
    return error;
  });
}

FLYDSL_EMU_EXPORT hipError_t hipDeviceGetMemPool(hipMemPool_t *pool, int ordinal) {
  return api_call([&] {
    if (pool == nullptr) return fail(hipErrorInvalidValue, "pool is null");
    hipError_t error = hipSuccess;
    Device *device = device_or_fail(ordinal, &error);
    if (device != nullptr) *pool = current_pool(device).get();
    return error;
  });
}

FLYDSL_EMU_EXPORT hipError_t hipDeviceSetMemPool(int ordinal, hipMemPool_t handle) {
  return api_call([&] {
    hipError_t error = hipSuccess;
    const Device *device = device_or_fail(ordinal, &error);
    if (device == nullptr) return error;
    std::shared_ptr<MemoryPool> pool = pool_or_fail(handle, &error);
    if (!pool) return error;
    if (pool->device != device)
      return fail(hipErrorInvalidDevice, "the pool belongs to device %d", pool->device->ordinal);
    std::lock_guard<std::mutex> lock(device_pools().mutex);
    device_pools().current[device] = std::move(pool);
    return hipSuccess;
  });
}

FLYDSL_EMU_EXPORT hipError_t hipMemPoolCreate(hipMemPool_t *pool, const hipMemPoolProps *props) {
  return api_call([&] {
    if (pool == nullptr || props == nullptr)
      return fail(hipErrorInvalidValue, "pool or properties are null");
    constexpr uint32_t kPinned = 1, kNoHandles = 0, kOnDevice = 1;
    if (props->allocType != kPinned || props->handleTypes != kNoHandles ||
        props->location_type != kOnDevice)
      return fail(hipErrorInvalidValue, "only pinned memory of a device, without exported handles");
    hipError_t error = hipSuccess;
    Device *device = device_or_fail(props->location_id, &error);
    if (device != nullptr) *pool = new_pool(device).get();
    return error;
  });
}

FLYDSL_EMU_EXPORT hipError_t hipMemPoolDestroy(hipMemPool_t handle) {
  return api_call([&] {
    hipError_t error = hipSuccess;
    const std::shared_ptr<MemoryPool> pool = pool_or_fail(handle, &error);
    if (!pool) return error;
    if (default_pool(pool->device) == pool)
      return fail(hipErrorInvalidValue, "a default pool cannot be destroyed");
    std::lock_guard<std::mutex> lock(device_pools().mutex);
    const auto found = device_pools().current.find(pool->device);
    if (found != device_pools().current.end() && found->second == pool)
      device_pools().current.erase(found);
    memory_pools().remove(handle);
    return hipSuccess;
  });
}

FLYDSL_EMU_EXPORT hipError_t hipMemPoolTrimTo(hipMemPool_t handle, size_t) {
  return api_call([&] {
    hipError_t error = hipSuccess;
    pool_or_fail(handle, &error);
    return error;  // a pool keeps nothing that could be given back
  });
}

FLYDSL_EMU_EXPORT hipError_t hipMemPoolGetAttribute(hipMemPool_t handle, uint32_t attribute,
                                                    void *value) {
  return api_call([&] {
    hipError_t error = hipSuccess;
    const std::shared_ptr<MemoryPool> pool = pool_or_fail(handle, &error);
    return pool ? get_attribute(*pool, attribute, value) : error;
  });
}

FLYDSL_EMU_EXPORT hipError_t hipMemPoolSetAttribute(hipMemPool_t handle, uint32_t attribute,
                                                    void *value) {
  return api_call([&] {
    hipError_t error = hipSuccess;
    const std::shared_ptr<MemoryPool> pool = pool_or_fail(handle, &error);
    return pool ? set_attribute(*pool, attribute, value) : error;
  });
}
