// hipMemcpy* and hipMemset*.
//
// A range that lies in device memory must lie in one live region as a whole: what a real device
// answers with a fault or silent damage is hipErrorInvalidValue here.
#include <cstring>
#include <mutex>
#include <shared_mutex>

#include "emulator/hip/api_call.h"
#include "emulator/hip/stream.h"
#include "emulator/memory/address_space.h"

namespace flydsl::emu::hip {
namespace {

enum class Side : uint8_t { kHost, kDevice, kAny };

hipError_t check_range(const char *which, const void *pointer, size_t bytes, Side side,
                       const RegionSnapshot &memory) {
  if (pointer == nullptr) return fail(hipErrorInvalidValue, "%s is null", which);
  const uint64_t begin = reinterpret_cast<uint64_t>(pointer);
  const Region *region = memory.find(begin);
  if (region == nullptr) {
    if (side != Side::kDevice) return hipSuccess;
    return fail(hipErrorInvalidValue, "%s %p is not in device memory", which, pointer);
  }
  if (bytes > region->end - begin)
    return fail(hipErrorInvalidValue,
                "%s: %zu bytes at %p pass the end of the %s region [0x%llx, 0x%llx)", which, bytes,
                pointer, region->what, static_cast<unsigned long long>(region->begin),
                static_cast<unsigned long long>(region->end));
  return hipSuccess;
}

hipError_t copy(void *to, const void *from, size_t bytes, hipMemcpyKind kind, hipStream_t handle) {
  if (kind > hipMemcpyDefault)
    return fail(hipErrorInvalidMemcpyDirection, "copy kind is %u, 0 to 4 are allowed",
                static_cast<unsigned>(kind));
  hipError_t error = hipSuccess;
  const std::shared_ptr<Stream> stream = stream_or_fail(handle, &error);
  if (!stream || bytes == 0) return error;
  const bool to_device = kind == hipMemcpyHostToDevice || kind == hipMemcpyDeviceToDevice;
  const bool from_device = kind == hipMemcpyDeviceToHost || kind == hipMemcpyDeviceToDevice;
  const Side to_side = kind == hipMemcpyDefault ? Side::kAny
                       : to_device              ? Side::kDevice
                                                : Side::kHost;
  const Side from_side = kind == hipMemcpyDefault ? Side::kAny
                         : from_device            ? Side::kDevice
                                                  : Side::kHost;
  return stream->submit([&] {
    std::shared_lock<LaunchGate> in_place(launch_gate());
    const auto memory = AddressSpace::instance().snapshot();
    hipError_t refused = check_range("destination", to, bytes, to_side, *memory);
    if (refused == hipSuccess) refused = check_range("source", from, bytes, from_side, *memory);
    if (refused == hipSuccess) std::memmove(to, from, bytes);
    return refused;
  });
}

template <typename Element>
hipError_t fill(void *to, Element value, size_t count, hipStream_t handle) {
  hipError_t error = hipSuccess;
  const std::shared_ptr<Stream> stream = stream_or_fail(handle, &error);
  if (!stream || count == 0) return error;
  if (count > SIZE_MAX / sizeof value) return fail(hipErrorInvalidValue, "%zu elements", count);
  if (reinterpret_cast<uintptr_t>(to) % alignof(Element) != 0)
    return fail(hipErrorInvalidValue, "destination %p is not aligned to %zu bytes", to,
                alignof(Element));
  return stream->submit([&] {
    std::shared_lock<LaunchGate> in_place(launch_gate());
    const auto memory = AddressSpace::instance().snapshot();
    const hipError_t refused =
        check_range("destination", to, count * sizeof value, Side::kDevice, *memory);
    if (refused == hipSuccess) std::fill_n(static_cast<Element *>(to), count, value);
    return refused;
  });
}

}  // namespace
}  // namespace flydsl::emu::hip

using namespace flydsl::emu::hip;

FLYDSL_EMU_EXPORT hipError_t hipMemcpy(void *to, const void *from, size_t bytes,
                                       hipMemcpyKind kind) {
  return api_call([&] { return copy(to, from, bytes, kind, nullptr); });
}
FLYDSL_EMU_EXPORT hipError_t hipMemcpyAsync(void *to, const void *from, size_t bytes,
                                            hipMemcpyKind kind, hipStream_t stream) {
  return api_call([&] { return copy(to, from, bytes, kind, stream); });
}
FLYDSL_EMU_EXPORT hipError_t hipMemcpyWithStream(void *to, const void *from, size_t bytes,
                                                 hipMemcpyKind kind, hipStream_t stream) {
  return api_call([&] { return copy(to, from, bytes, kind, stream); });
}
FLYDSL_EMU_EXPORT hipError_t hipMemcpyHtoD(hipDeviceptr_t to, const void *from, size_t bytes) {
  return api_call([&] { return copy(to, from, bytes, hipMemcpyHostToDevice, nullptr); });
}
FLYDSL_EMU_EXPORT hipError_t hipMemcpyDtoH(void *to, hipDeviceptr_t from, size_t bytes) {
  return api_call([&] { return copy(to, from, bytes, hipMemcpyDeviceToHost, nullptr); });
}
FLYDSL_EMU_EXPORT hipError_t hipMemcpyDtoD(hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes) {
  return api_call([&] { return copy(to, from, bytes, hipMemcpyDeviceToDevice, nullptr); });
}
FLYDSL_EMU_EXPORT hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t to, const void *from, size_t bytes,
                                                hipStream_t stream) {
  return api_call([&] { return copy(to, from, bytes, hipMemcpyHostToDevice, stream); });
}
FLYDSL_EMU_EXPORT hipError_t hipMemcpyDtoHAsync(void *to, hipDeviceptr_t from, size_t bytes,
                                                hipStream_t stream) {
  return api_call([&] { return copy(to, from, bytes, hipMemcpyDeviceToHost, stream); });
}
FLYDSL_EMU_EXPORT hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t to, hipDeviceptr_t from,
                                                size_t bytes, hipStream_t stream) {
  return api_call([&] { return copy(to, from, bytes, hipMemcpyDeviceToDevice, stream); });
}
FLYDSL_EMU_EXPORT hipError_t hipMemset(void *to, int value, size_t bytes) {
  return api_call([&] { return fill(to, static_cast<uint8_t>(value), bytes, nullptr); });
}
FLYDSL_EMU_EXPORT hipError_t hipMemsetAsync(void *to, int value, size_t bytes, hipStream_t stream) {
  return api_call([&] { return fill(to, static_cast<uint8_t>(value), bytes, stream); });
}
FLYDSL_EMU_EXPORT hipError_t hipMemsetD8(hipDeviceptr_t to, unsigned char value, size_t count) {
  return api_call([&] { return fill<uint8_t>(to, value, count, nullptr); });
}
FLYDSL_EMU_EXPORT hipError_t hipMemsetD8Async(hipDeviceptr_t to, unsigned char value, size_t count,
                                              hipStream_t stream) {
  return api_call([&] { return fill<uint8_t>(to, value, count, stream); });
}
FLYDSL_EMU_EXPORT hipError_t hipMemsetD16(hipDeviceptr_t to, unsigned short value, size_t count) {
  return api_call([&] { return fill<uint16_t>(to, value, count, nullptr); });
}
FLYDSL_EMU_EXPORT hipError_t hipMemsetD16Async(hipDeviceptr_t to, unsigned short value,
                                               size_t count, hipStream_t stream) {
  return api_call([&] { return fill<uint16_t>(to, value, count, stream); });
}
FLYDSL_EMU_EXPORT hipError_t hipMemsetD32(hipDeviceptr_t to, int value, size_t count) {
  return api_call([&] { return fill(to, static_cast<uint32_t>(value), count, nullptr); });
}
FLYDSL_EMU_EXPORT hipError_t hipMemsetD32Async(hipDeviceptr_t to, int value, size_t count,
                                               hipStream_t stream) {
  return api_call([&] { return fill(to, static_cast<uint32_t>(value), count, stream); });
}
