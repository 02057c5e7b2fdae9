// hipFunc*: what kernels need and allow.
#include "emulator/hip/api_call.h"
#include "emulator/hip/device.h"
#include "emulator/hip/module.h"

using namespace flydsl::emu::hip;
using flydsl::emu::LoadedKernel;

FLYDSL_EMU_EXPORT hipError_t hipFuncGetAttribute(int *value, hipFunction_attribute attribute,
                                                 hipFunction_t handle) {
  return api_call([&] {
    if (value == nullptr) return fail(hipErrorInvalidValue, "value is null");
    hipError_t error = hipSuccess;
    const Device *device = current_device_or_fail(&error);
    if (device == nullptr) return error;
    const std::shared_ptr<Function> function = function_or_fail(handle, *device, &error);
    if (!function) return error;
    const LoadedKernel &loaded = *function->kernel;
    switch (attribute) {
      case HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = loaded.metadata.max_workgroup_size;
        break;
      case HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *value = loaded.kernel.lds_bytes;
        break;
      case HIP_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
        *value = 0;
        break;
      case HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        *value = loaded.kernel.private_bytes;
        break;
      case HIP_FUNC_ATTRIBUTE_NUM_REGS:
        *value = loaded.metadata.vgpr_count;
        break;
      case HIP_FUNC_ATTRIBUTE_PTX_VERSION:
      case HIP_FUNC_ATTRIBUTE_BINARY_VERSION:
        *value = device->model->major * 10 + device->model->minor;
        break;
      case HIP_FUNC_ATTRIBUTE_CACHE_MODE_CA:
      case HIP_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        *value = 0;
        break;
      case HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = device->model->lds_bytes - static_cast<int>(loaded.kernel.lds_bytes);
        break;
      default:
        return fail(hipErrorInvalidValue, "function attribute %u is not known",
                    static_cast<unsigned>(attribute));
    }
    return hipSuccess;
  });
}

// AMD hardware needs no permission for large LDS, so a valid setting changes nothing. `handle` is a
// hipFunction_t or the host-side stub of a kernel.
FLYDSL_EMU_EXPORT hipError_t hipFuncSetAttribute(const void *handle,
                                                 hipFunction_attribute attribute, int value) {
  return api_call([&] {
    hipError_t error = hipSuccess;
    const Device *device = current_device_or_fail(&error);
    if (device == nullptr) return error;
    const std::shared_ptr<Function> function = function_or_fail(handle, *device, &error);
    if (!function) return error;
    const int most_lds =
        device->model->lds_bytes - static_cast<int>(function->kernel->kernel.lds_bytes);
    if (attribute == HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
      if (value >= 0 && value <= most_lds) return hipSuccess;
      return fail(hipErrorInvalidValue, "%d bytes of dynamic LDS, 0 to %d are allowed", value,
                  most_lds);
    }
    if (attribute == HIP_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) return hipSuccess;
    return fail(hipErrorInvalidValue, "function attribute %u cannot be set",
                static_cast<unsigned>(attribute));
  });
}

FLYDSL_EMU_EXPORT hipError_t hipFuncGetAttributes(hipFuncAttributes *attributes,
                                                  const void *handle) {
  return api_call([&] {
    if (attributes == nullptr) return fail(hipErrorInvalidValue, "attributes is null");
    hipError_t error = hipSuccess;
    const Device *device = current_device_or_fail(&error);
    if (device == nullptr) return error;
    const std::shared_ptr<Function> function = function_or_fail(handle, *device, &error);
    if (!function) return error;
    const LoadedKernel &loaded = *function->kernel;
    *attributes = {};
    attributes->binaryVersion = attributes->ptxVersion =
        device->model->major * 10 + device->model->minor;
    attributes->localSizeBytes = loaded.kernel.private_bytes;
    attributes->maxDynamicSharedSizeBytes =
        device->model->lds_bytes - static_cast<int>(loaded.kernel.lds_bytes);
    attributes->maxThreadsPerBlock = static_cast<int>(loaded.metadata.max_workgroup_size);
    attributes->numRegs = static_cast<int>(loaded.metadata.vgpr_count);
    attributes->sharedSizeBytes = loaded.kernel.lds_bytes;
    return hipSuccess;
  });
}

// Preferences of caches that AMD hardware does not split.
FLYDSL_EMU_EXPORT hipError_t hipFuncSetCacheConfig(const void *handle, unsigned) {
  return api_call([&] {
    hipError_t error = hipSuccess;
    const Device *device = current_device_or_fail(&error);
    if (device != nullptr) function_or_fail(handle, *device, &error);
    return error;
  });
}
