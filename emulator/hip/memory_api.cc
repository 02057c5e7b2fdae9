// hipMalloc, hipFree and what surrounds them. Copies and fills are in copy_api.cc and
// copy_shape_api.cc, stream-ordered allocation in memory_pool.cc.
#include <mutex>

#include "emulator/hip/allocations.h"
#include "emulator/hip/api_call.h"
#include "emulator/hip/capture.h"
#include "emulator/hip/stream.h"
#include "emulator/memory/address_space.h"

namespace flydsl::emu::hip {
namespace {

constexpr unsigned hipMemAttachGlobal = 1, hipMemAttachHost = 2;

hipError_t allocate(void **pointer, size_t bytes, Allocation::Kind kind, unsigned flags,
                    const char *what) {
  if (pointer == nullptr) return fail(hipErrorInvalidValue, "pointer is null");
  *pointer = nullptr;
  hipError_t error = hipSuccess;
  Device *device = current_device_or_fail(&error);
  if (device == nullptr) return error;
  error = refuse_while_capturing(what);
  if (error != hipSuccess || bytes == 0) return error;  // HIP: null and success
  *pointer =
      Allocations::instance().allocate({nullptr, bytes, device, kind, flags, nullptr, false});
  if (*pointer != nullptr) return hipSuccess;
  return fail(hipErrorOutOfMemory, "%zu bytes; device %d has %zu of %zu in use", bytes,
              device->ordinal, device->used_bytes.load(), device->memory_bytes);
}

// Waits for the work of every device: any of it may use the memory.
hipError_t wait_for_devices() {
  for (const auto &device : device_table().devices) {
    const hipError_t error = wait_for_device(*device);
    if (error != hipSuccess) return error;
  }
  return hipSuccess;
}

hipError_t release(void *pointer, const char *what) {
  if (pointer == nullptr) return hipSuccess;
  hipError_t error = refuse_while_capturing(what);
  if (error == hipSuccess) error = wait_for_devices();
  if (error != hipSuccess) return error;
  std::unique_lock<LaunchGate> alone(launch_gate());
  if (Allocations::instance().release(pointer)) return hipSuccess;
  return fail(hipErrorInvalidValue, "%p is not the start of a live allocation", pointer);
}

}  // namespace
}  // namespace flydsl::emu::hip

using namespace flydsl::emu::hip;
using Kind = Allocation::Kind;

FLYDSL_EMU_EXPORT hipError_t hipMalloc(void **pointer, size_t bytes) {
  return api_call([&] { return allocate(pointer, bytes, Kind::kDevice, 0, "hipMalloc"); });
}

// Fine-grained and uncached memory differ in coherence only.
FLYDSL_EMU_EXPORT hipError_t hipExtMallocWithFlags(void **pointer, size_t bytes, unsigned flags) {
  return api_call([&] { return allocate(pointer, bytes, Kind::kDevice, flags, "hipMalloc"); });
}

FLYDSL_EMU_EXPORT hipError_t hipFree(void *pointer) {
  return api_call([&] { return release(pointer, "hipFree"); });
}

FLYDSL_EMU_EXPORT hipError_t hipHostMalloc(void **pointer, size_t bytes, unsigned flags) {
  return api_call([&] { return allocate(pointer, bytes, Kind::kHost, flags, "hipHostMalloc"); });
}
FLYDSL_EMU_EXPORT hipError_t hipHostAlloc(void **pointer, size_t bytes, unsigned flags) {
  return hipHostMalloc(pointer, bytes, flags);
}
FLYDSL_EMU_EXPORT hipError_t hipMallocHost(void **pointer, size_t bytes) {
  return hipHostMalloc(pointer, bytes, 0);
}

FLYDSL_EMU_EXPORT hipError_t hipHostFree(void *pointer) {
  return api_call([&] { return release(pointer, "hipHostFree"); });
}
FLYDSL_EMU_EXPORT hipError_t hipFreeHost(void *pointer) {
  return hipHostFree(pointer);
}

FLYDSL_EMU_EXPORT hipError_t hipMallocManaged(void **pointer, size_t bytes, unsigned flags) {
  return api_call([&] {
    if (flags != hipMemAttachGlobal && flags != hipMemAttachHost)
      return fail(hipErrorInvalidValue, "flags are 0x%x, 1 (global) and 2 (host) are allowed",
                  flags);
    if (bytes == 0) return fail(hipErrorInvalidValue, "0 bytes of managed memory");
    return allocate(pointer, bytes, Kind::kManaged, flags, "hipMallocManaged");
  });
}

// Hints about managed memory: all memory is one here, so only the arguments are checked.
FLYDSL_EMU_EXPORT hipError_t hipMemPrefetchAsync(const void *pointer, size_t bytes, int ordinal,
                                                 hipStream_t handle) {
  return api_call([&] {
    constexpr int kCpu = -1;  // hipCpuDeviceId
    hipError_t error = hipSuccess;
    if (ordinal != kCpu && device_or_fail(ordinal, &error) == nullptr) return error;
    const std::shared_ptr<Stream> stream = stream_or_fail(handle, &error);
    if (!stream) return error;
    const auto allocation = Allocations::instance().find(pointer);
    if (!allocation || allocation->kind != Kind::kManaged || bytes == 0)
      return fail(hipErrorInvalidValue, "%p is not managed memory, or 0 bytes", pointer);
    return stream->submit({});
  });
}
FLYDSL_EMU_EXPORT hipError_t hipMemAdvise(const void *pointer, size_t bytes, unsigned, int) {
  return api_call([&] {
    const auto allocation = Allocations::instance().find(pointer);
    if (!allocation || allocation->kind != Kind::kManaged || bytes == 0)
      return fail(hipErrorInvalidValue, "%p is not managed memory, or 0 bytes", pointer);
    return hipSuccess;
  });
}

FLYDSL_EMU_EXPORT hipError_t hipHostRegister(void *pointer, size_t bytes, unsigned flags) {
  return api_call([&] {
    if (pointer == nullptr || bytes == 0 || bytes > SIZE_MAX - reinterpret_cast<uintptr_t>(pointer))
      return fail(hipErrorInvalidValue, "%zu bytes at %p", bytes, pointer);
    hipError_t error = hipSuccess;
    Device *device = current_device_or_fail(&error);
    if (device == nullptr) return error;
    error = Allocations::instance().register_host(pointer, bytes, device, flags);
    if (error == hipSuccess) return error;
    return fail(error, "a part of the %zu bytes at %p is registered or HIP's own", bytes, pointer);
  });
}

FLYDSL_EMU_EXPORT hipError_t hipHostUnregister(void *pointer) {
  return api_call([&] {
    hipError_t error = refuse_while_capturing("hipHostUnregister");
    if (error == hipSuccess) error = wait_for_devices();
    if (error != hipSuccess) return error;
    std::unique_lock<LaunchGate> alone(launch_gate());
    if (Allocations::instance().unregister_host(pointer)) return hipSuccess;
    return fail(hipErrorHostMemoryNotRegistered, "%p is not the start of a registered range",
                pointer);
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
    const auto allocation = Allocations::instance().find(host_pointer);
    if (!allocation || allocation->on_device())
      return fail(hipErrorInvalidValue, "%p is not memory of hipHostMalloc or hipHostRegister",
                  host_pointer);
    *device_pointer = host_pointer;  // one address space
    return hipSuccess;
  });
}

FLYDSL_EMU_EXPORT hipError_t hipHostGetFlags(unsigned *flags, void *host_pointer) {
  return api_call([&] {
    const auto allocation = Allocations::instance().find(host_pointer);
    if (flags == nullptr || !allocation || allocation->on_device())
      return fail(hipErrorInvalidValue, "flags is null or %p is not known host memory",
                  host_pointer);
    *flags = allocation->flags;
    return hipSuccess;
  });
}

FLYDSL_EMU_EXPORT hipError_t hipMemGetAddressRange(hipDeviceptr_t *begin, size_t *bytes,
                                                   hipDeviceptr_t pointer) {
  return api_call([&] {
    const auto allocation = Allocations::instance().find(pointer);
    if (!allocation) return fail(hipErrorNotFound, "%p is not in a live allocation", pointer);
    if (begin != nullptr) *begin = allocation->begin;
    if (bytes != nullptr) *bytes = allocation->bytes;
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
    attributes->type = allocation->on_device()              ? hipMemoryTypeDevice
                       : allocation->kind == Kind::kManaged ? hipMemoryTypeManaged
                                                            : hipMemoryTypeHost;
    attributes->device = allocation->device->ordinal;
    attributes->devicePointer = address;
    attributes->hostPointer = allocation->on_device() ? nullptr : address;
    attributes->isManaged = allocation->kind == Kind::kManaged;
    attributes->allocationFlags = allocation->flags;
    return hipSuccess;
  });
}
