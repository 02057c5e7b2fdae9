// hipInit, versions, hipDevice*, hipGetDevice*.
#include <cstdio>

#include "emulator/hip/api_call.h"
#include "emulator/hip/capture.h"
#include "emulator/hip/current_device.h"
#include "emulator/hip/device_properties.h"
#include "emulator/hip/stream.h"

namespace flydsl::emu::hip {
namespace {

// The API version this library follows, in HIP's encoding: major * 10,000,000 + minor * 100,000 +
// patch.
constexpr int kHipVersion = 7 * 10000000 + 0 * 100000 + 51831;

hipError_t version(int *value) {
  if (value == nullptr) return fail(hipErrorInvalidValue, "version is null");
  *value = kHipVersion;
  return hipSuccess;
}

template <typename Properties>
hipError_t properties(Properties *result, int ordinal) {
  if (result == nullptr) return fail(hipErrorInvalidValue, "properties is null");
  hipError_t error = hipSuccess;
  const Device *device = device_or_fail(ordinal, &error);
  if (device == nullptr) return error;
  fill_properties(*device, result);
  return hipSuccess;
}

}  // namespace
}  // namespace flydsl::emu::hip

using namespace flydsl::emu::hip;

FLYDSL_EMU_EXPORT hipError_t hipInit(unsigned flags) {
  return api_call([&] {
    if (flags != 0) return fail(hipErrorInvalidValue, "flags are 0x%x, must be 0", flags);
    hipError_t error = hipSuccess;
    device_or_fail(0, &error);
    return error;
  });
}

FLYDSL_EMU_EXPORT hipError_t hipRuntimeGetVersion(int *value) {
  return api_call([&] { return version(value); });
}

FLYDSL_EMU_EXPORT hipError_t hipDriverGetVersion(int *value) {
  return api_call([&] { return version(value); });
}

FLYDSL_EMU_EXPORT hipError_t hipGetDeviceCount(int *count) {
  return api_call([&] {
    if (count == nullptr) return fail(hipErrorInvalidValue, "count is null");
    *count = static_cast<int>(device_table().devices.size());
    hipError_t error = hipSuccess;
    device_or_fail(0, &error);
    return error;
  });
}

FLYDSL_EMU_EXPORT hipError_t hipGetDevice(int *ordinal) {
  return api_call([&] {
    if (ordinal == nullptr) return fail(hipErrorInvalidValue, "device is null");
    hipError_t error = hipSuccess;
    const Device *device = current_device_or_fail(&error);
    if (device != nullptr) *ordinal = device->ordinal;
    return error;
  });
}

FLYDSL_EMU_EXPORT hipError_t hipSetDevice(int ordinal) {
  return api_call([&] {
    hipError_t error = hipSuccess;
    if (device_or_fail(ordinal, &error) != nullptr) set_current_device(ordinal);
    return error;
  });
}

FLYDSL_EMU_EXPORT hipError_t hipDeviceGet(hipDevice_t *device, int ordinal) {
  return api_call([&] {
    if (device == nullptr) return fail(hipErrorInvalidValue, "device is null");
    hipError_t error = hipSuccess;
    if (device_or_fail(ordinal, &error) != nullptr) *device = ordinal;
    return error;
  });
}

FLYDSL_EMU_EXPORT hipError_t hipDeviceGetName(char *name, int bytes, hipDevice_t ordinal) {
  return api_call([&] {
    if (name == nullptr || bytes <= 0) return fail(hipErrorInvalidValue, "no room for the name");
    hipError_t error = hipSuccess;
    const Device *device = device_or_fail(ordinal, &error);
    if (device != nullptr) std::snprintf(name, bytes, "%s", device->model->name);
    return error;
  });
}

FLYDSL_EMU_EXPORT hipError_t hipGetDeviceProperties(hipDeviceProp_tR0000 *result, int ordinal) {
  return api_call([&] { return properties(result, ordinal); });
}

FLYDSL_EMU_EXPORT hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_tR0600 *result,
                                                         int ordinal) {
  return api_call([&] { return properties(result, ordinal); });
}

FLYDSL_EMU_EXPORT hipError_t hipDeviceGetAttribute(int *value, hipDeviceAttribute_t attribute,
                                                   int ordinal) {
  return api_call([&] {
    if (value == nullptr) return fail(hipErrorInvalidValue, "value is null");
    hipError_t error = hipSuccess;
    const Device *device = device_or_fail(ordinal, &error);
    if (device == nullptr) return error;
    if (!device_attribute(*device, attribute, value))
      return fail(hipErrorInvalidValue, "device attribute %u is not known",
                  static_cast<unsigned>(attribute));
    return hipSuccess;
  });
}

FLYDSL_EMU_EXPORT hipError_t hipDeviceTotalMem(size_t *bytes, hipDevice_t ordinal) {
  return api_call([&] {
    if (bytes == nullptr) return fail(hipErrorInvalidValue, "bytes is null");
    hipError_t error = hipSuccess;
    const Device *device = device_or_fail(ordinal, &error);
    if (device != nullptr) *bytes = device->memory_bytes;
    return error;
  });
}

FLYDSL_EMU_EXPORT hipError_t hipDeviceSynchronize() {
  return api_call([&] {
    hipError_t error = hipSuccess;
    const Device *device = current_device_or_fail(&error);
    if (device == nullptr) return error;
    error = refuse_amid_captures("hipDeviceSynchronize");
    if (error == hipSuccess) error = wait_for_device(*device);
    return error == hipSuccess ? device_status(*device) : error;
  });
}

// Ends the faulted state. Memory, streams and modules stay: they belong to the process here.
FLYDSL_EMU_EXPORT hipError_t hipDeviceReset() {
  return api_call([&] {
    hipError_t error = hipSuccess;
    Device *device = current_device_or_fail(&error);
    if (device == nullptr) return error;
    error = refuse_while_capturing("hipDeviceReset");
    if (error == hipSuccess) error = wait_for_device(*device);
    if (error == hipSuccess) device->clear_fault();
    return error;
  });
}
