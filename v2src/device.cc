// Helpers over the handle's device runtime.
#include "flydsl_aot/device.h"

#include "v2src/handle.h"

namespace flydsl {
namespace {

Status check_copy(const flydsl_aot_handle *handle, const void *destination, const void *source,
                  size_t bytes) {
  FLYDSL_RETURN_IF_ERROR(require_runtime(handle));
  if (bytes == 0 || (destination && source)) return {};
  return error(FLYDSL_AOT_INVALID_ARGUMENT, "%s is NULL for a copy of %zu bytes",
               destination ? "source" : "destination", bytes);
}

Status allocate(const flydsl_aot_handle *handle, size_t bytes, void **pointer) {
  if (!pointer) return error(FLYDSL_AOT_INVALID_ARGUMENT, "pointer is NULL");
  *pointer = nullptr;
  FLYDSL_RETURN_IF_ERROR(require_runtime(handle));
  return bytes == 0 ? Status() : handle->runtime->malloc(bytes, pointer);
}

}  // namespace
}  // namespace flydsl

extern "C" {

flydsl_aot_status flydsl_aot_device_malloc(flydsl_aot_handle *handle, size_t bytes,
                                           void **pointer) {
  return flydsl::guarded(__func__, [&] { return flydsl::allocate(handle, bytes, pointer); });
}

flydsl_aot_status flydsl_aot_device_free(flydsl_aot_handle *handle, void *pointer) {
  return flydsl::guarded(__func__, [&]() -> flydsl::Status {
    FLYDSL_RETURN_IF_ERROR(flydsl::require_runtime(handle));
    return pointer ? handle->runtime->free(pointer) : flydsl::Status();
  });
}

flydsl_aot_status flydsl_aot_device_upload(flydsl_aot_handle *handle, void *device_dst,
                                           const void *host_src, size_t bytes) {
  return flydsl::guarded(__func__, [&]() -> flydsl::Status {
    FLYDSL_RETURN_IF_ERROR(flydsl::check_copy(handle, device_dst, host_src, bytes));
    return bytes == 0 ? flydsl::Status() : handle->runtime->upload(device_dst, host_src, bytes);
  });
}

flydsl_aot_status flydsl_aot_device_download(flydsl_aot_handle *handle, void *host_dst,
                                             const void *device_src, size_t bytes) {
  return flydsl::guarded(__func__, [&]() -> flydsl::Status {
    FLYDSL_RETURN_IF_ERROR(flydsl::check_copy(handle, host_dst, device_src, bytes));
    return bytes == 0 ? flydsl::Status() : handle->runtime->download(host_dst, device_src, bytes);
  });
}

flydsl_aot_status flydsl_aot_device_synchronize(flydsl_aot_handle *handle) {
  return flydsl::guarded(__func__, [&]() -> flydsl::Status {
    FLYDSL_RETURN_IF_ERROR(flydsl::require_runtime(handle));
    return handle->runtime->synchronize();
  });
}

}  // extern "C"
