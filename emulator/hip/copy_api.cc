// hipMemcpy* and hipMemset* of one dimension, and between devices.
#include "emulator/hip/api_call.h"
#include "emulator/hip/copy.h"

namespace flydsl::emu::hip {
namespace {

hipError_t fill_row(void *to, uint32_t value, size_t element_bytes, size_t count,
                    hipStream_t stream, Wait wait) {
  return fill({to, 0, 0}, value, element_bytes, {count, 1, 1}, stream, wait);
}

// One address space: device ordinals are only checked.
hipError_t copy_between(void *to, int to_device, const void *from, int from_device, size_t bytes,
                        hipStream_t stream, Wait wait) {
  hipError_t error = hipSuccess;
  if (device_or_fail(to_device, &error) == nullptr ||
      device_or_fail(from_device, &error) == nullptr)
    return error;
  return copy(to, from, bytes, hipMemcpyDeviceToDevice, stream, wait);
}

}  // namespace
}  // namespace flydsl::emu::hip

using namespace flydsl::emu::hip;

FLYDSL_EMU_EXPORT hipError_t hipMemcpy(void *to, const void *from, size_t bytes,
                                       hipMemcpyKind kind) {
  return api_call([&] { return copy(to, from, bytes, kind, nullptr, Wait::kYes); });
}

FLYDSL_EMU_EXPORT hipError_t hipMemcpyAsync(void *to, const void *from, size_t bytes,
                                            hipMemcpyKind kind, hipStream_t stream) {
  return api_call([&] { return copy(to, from, bytes, kind, stream, Wait::kNo); });
}

FLYDSL_EMU_EXPORT hipError_t hipMemcpyWithStream(void *to, const void *from, size_t bytes,
                                                 hipMemcpyKind kind, hipStream_t stream) {
  return api_call([&] { return copy(to, from, bytes, kind, stream, Wait::kYes); });
}

FLYDSL_EMU_EXPORT hipError_t hipMemcpyHtoD(hipDeviceptr_t to, const void *from, size_t bytes) {
  return api_call(
      [&] { return copy(to, from, bytes, hipMemcpyHostToDevice, nullptr, Wait::kYes); });
}

FLYDSL_EMU_EXPORT hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t to, const void *from, size_t bytes,
                                                hipStream_t stream) {
  return api_call([&] { return copy(to, from, bytes, hipMemcpyHostToDevice, stream, Wait::kNo); });
}

FLYDSL_EMU_EXPORT hipError_t hipMemcpyDtoH(void *to, hipDeviceptr_t from, size_t bytes) {
  return api_call(
      [&] { return copy(to, from, bytes, hipMemcpyDeviceToHost, nullptr, Wait::kYes); });
}

FLYDSL_EMU_EXPORT hipError_t hipMemcpyDtoHAsync(void *to, hipDeviceptr_t from, size_t bytes,
                                                hipStream_t stream) {
  return api_call([&] { return copy(to, from, bytes, hipMemcpyDeviceToHost, stream, Wait::kNo); });
}

FLYDSL_EMU_EXPORT hipError_t hipMemcpyDtoD(hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes) {
  return api_call(
      [&] { return copy(to, from, bytes, hipMemcpyDeviceToDevice, nullptr, Wait::kYes); });
}

FLYDSL_EMU_EXPORT hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t to, hipDeviceptr_t from,
                                                size_t bytes, hipStream_t stream) {
  return api_call(
      [&] { return copy(to, from, bytes, hipMemcpyDeviceToDevice, stream, Wait::kNo); });
}

FLYDSL_EMU_EXPORT hipError_t hipMemcpyPeer(void *to, int to_device, const void *from,
                                           int from_device, size_t bytes) {
  return api_call(
      [&] { return copy_between(to, to_device, from, from_device, bytes, nullptr, Wait::kYes); });
}

FLYDSL_EMU_EXPORT hipError_t hipMemcpyPeerAsync(void *to, int to_device, const void *from,
                                                int from_device, size_t bytes, hipStream_t stream) {
  return api_call(
      [&] { return copy_between(to, to_device, from, from_device, bytes, stream, Wait::kNo); });
}

FLYDSL_EMU_EXPORT hipError_t hipMemset(void *to, int value, size_t bytes) {
  return api_call(
      [&] { return fill_row(to, static_cast<uint32_t>(value), 1, bytes, nullptr, Wait::kYes); });
}

FLYDSL_EMU_EXPORT hipError_t hipMemsetAsync(void *to, int value, size_t bytes, hipStream_t stream) {
  return api_call(
      [&] { return fill_row(to, static_cast<uint32_t>(value), 1, bytes, stream, Wait::kNo); });
}

FLYDSL_EMU_EXPORT hipError_t hipMemsetD8(hipDeviceptr_t to, unsigned char value, size_t count) {
  return api_call([&] { return fill_row(to, value, 1, count, nullptr, Wait::kYes); });
}

FLYDSL_EMU_EXPORT hipError_t hipMemsetD8Async(hipDeviceptr_t to, unsigned char value, size_t count,
                                              hipStream_t stream) {
  return api_call([&] { return fill_row(to, value, 1, count, stream, Wait::kNo); });
}

FLYDSL_EMU_EXPORT hipError_t hipMemsetD16(hipDeviceptr_t to, unsigned short value, size_t count) {
  return api_call([&] { return fill_row(to, value, 2, count, nullptr, Wait::kYes); });
}

FLYDSL_EMU_EXPORT hipError_t hipMemsetD16Async(hipDeviceptr_t to, unsigned short value,
                                               size_t count, hipStream_t stream) {
  return api_call([&] { return fill_row(to, value, 2, count, stream, Wait::kNo); });
}

FLYDSL_EMU_EXPORT hipError_t hipMemsetD32(hipDeviceptr_t to, int value, size_t count) {
  return api_call(
      [&] { return fill_row(to, static_cast<uint32_t>(value), 4, count, nullptr, Wait::kYes); });
}

FLYDSL_EMU_EXPORT hipError_t hipMemsetD32Async(hipDeviceptr_t to, int value, size_t count,
                                               hipStream_t stream) {
  return api_call(
      [&] { return fill_row(to, static_cast<uint32_t>(value), 4, count, stream, Wait::kNo); });
}
