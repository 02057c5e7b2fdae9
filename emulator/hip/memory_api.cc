// hipMalloc, hipFree and what surrounds them. Copies and fills are in copy_api.cc.
#include <mutex>

#include "emulator/hip/allocations.h"
#include "emulator/hip/api_call.h"
#include "emulator/hip/stream.h"

namespace flydsl::emu::hip {
namespace {

hipError_t allocate(void **pointer, size_t bytes, Device *device, bool host, unsigned flags) {
  *pointer = nullptr;
  if (bytes == 0) return hipSuccess;  // HIP: null and success
  *pointer = Allocations::instance().allocate(bytes, device, host, flags);
  if (*pointer != nullptr) return hipSuccess;
  return fail(hipErrorOutOfMemory, "%zu bytes; device %d has %zu of %zu in use", bytes,
              device->ordinal, device->used_bytes.load(), device->memory_bytes);
}

hipError_t allocate_on_current(void **pointer, size_t bytes, bool host, unsigned flags) {
  if (pointer == nullptr) return fail(hipErrorInvalidValue, "pointer is null");
  hipError_t error = hipSuccess;
  Device *device = current_device_or_fail(&error);
  return device == nullptr ? error : allocate(pointer, bytes, device, host, flags);
}

hipError_t release(void *pointer) {
  if (pointer == nullptr) return hipSuccess;
  std::unique_lock<LaunchGate> alone(launch_gate());
  if (Allocations::instance().release(pointer)) return hipSuccess;
  return fail(hipErrorInvalidValue, "%p is not the start of a live allocation", pointer);
}

}  // namespace
}  // namespace flydsl::emu::hip

using namespace flydsl::emu::hip;

FLYDSL_EMU_EXPORT hipError_t hipMalloc(void **pointer, size_t bytes) {
  return api_call([&] { return allocate_on_current(pointer, bytes, false, 0); });
}

FLYDSL_EMU_EXPORT hipError_t hipFree(void *pointer) {
  return api_call([&] { return release(pointer); });
}

FLYDSL_EMU_EXPORT hipError_t hipHostMalloc(void **pointer, size_t bytes, unsigned flags) {
  return api_call([&] { return allocate_on_current(pointer, bytes, true, flags); });
}

FLYDSL_EMU_EXPORT hipError_t hipHostFree(void *pointer) {
  return api_call([&] { return release(pointer); });
}

FLYDSL_EMU_EXPORT hipError_t hipMallocAsync(void **pointer, size_t bytes, hipStream_t handle) {
  return api_call([&] {
    if (pointer == nullptr) return fail(hipErrorInvalidValue, "pointer is null");
    hipError_t error = hipSuccess;
    const std::shared_ptr<Stream> stream = stream_or_fail(handle, &error);
    return stream ? allocate(pointer, bytes, &stream->device(), false, 0) : error;
  });
}

FLYDSL_EMU_EXPORT hipError_t hipFreeAsync(void *pointer, hipStream_t handle) {
  return api_call([&] {
    hipError_t error = hipSuccess;
    const std::shared_ptr<Stream> stream = stream_or_fail(handle, &error);
    if (!stream) return error;
    if (pointer == nullptr) return fail(hipErrorInvalidValue, "pointer is null");
    return stream->submit([&] { return release(pointer); });
  });
}

FLYDSL_EMU_EXPORT hipError_t hipMemGetInfo(size_t *free_bytes, size_t *total_bytes) {
  return api_call([&] {
    if (free_bytes == nullptr || total_bytes == nullptr)
      return fail(hipErrorInvalidValue, "a result is null");
    hipError_t error = hipSuccess;
    const Device *device = current_device_or_fail(&error);
    if (device == nullptr) return error;
    *total_bytes = device->memory_bytes;
    *free_bytes = device->memory_bytes - device->used_bytes;
    return hipSuccess;
  });
}

FLYDSL_EMU_EXPORT hipError_t hipHostGetDevicePointer(void **device_pointer, void *host_pointer,
                                                     unsigned flags) {
  return api_call([&] {
    if (device_pointer == nullptr || flags != 0)
      return fail(hipErrorInvalidValue, "the result is null or flags are not 0");
    if (!Allocations::instance().find(host_pointer))
      return fail(hipErrorInvalidValue, "%p is not memory of hipHostMalloc", host_pointer);
    *device_pointer = host_pointer;  // one address space
    return hipSuccess;
  });
}

// HIP 7: memory that HIP does not know is success with hipMemoryTypeUnregistered.
FLYDSL_EMU_EXPORT hipError_t hipPointerGetAttributes(hipPointerAttribute_t *attributes,
                                                     const void *pointer) {
  return api_call([&] {
    if (attributes == nullptr) return fail(hipErrorInvalidValue, "attributes is null");
    constexpr int kInvalidDevice = -2;  // hipInvalidDeviceId
    *attributes = {};
    attributes->device = kInvalidDevice;
    const std::optional<Allocation> allocation = Allocations::instance().find(pointer);
    if (!allocation) return hipSuccess;
    void *const address = const_cast<void *>(pointer);
    attributes->type = allocation->host ? hipMemoryTypeHost : hipMemoryTypeDevice;
    attributes->device = allocation->device->ordinal;
    attributes->devicePointer = address;
    attributes->hostPointer = allocation->host ? address : nullptr;
    attributes->allocationFlags = allocation->flags;
    return hipSuccess;
  });
}
