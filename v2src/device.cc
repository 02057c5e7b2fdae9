// Helpers over the handle's device runtime.
#include "flydsl_aot/device.h"

#include "v2src/handle.h"
#include "v2src/struct_size.h"

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

Status allocate_async(const flydsl_aot_handle *handle, size_t bytes, void *stream, void **pointer) {
  if (!pointer) return error(FLYDSL_AOT_INVALID_ARGUMENT, "pointer is NULL");
  *pointer = nullptr;
  FLYDSL_RETURN_IF_ERROR(require_runtime(handle));
  return bytes == 0 ? Status() : handle->runtime->malloc_async(bytes, stream, pointer);
}

Status stream_info(const flydsl_aot_handle *handle, void *stream, flydsl_aot_stream_info *caller) {
  FLYDSL_RETURN_IF_ERROR(require_runtime(handle));
  FLYDSL_RETURN_IF_ERROR(check_output_struct("info", caller));
  flydsl_aot_stream_info info{};
  FLYDSL_RETURN_IF_ERROR(handle->runtime->stream_device(stream, &info.device));
  bool capturing = false;
  FLYDSL_RETURN_IF_ERROR(handle->runtime->stream_capturing(stream, &capturing));
  const device::DeviceInfo &device = handle->runtime->devices()[info.device];
  info.target_id = device.target_id.c_str();
  info.compute_units = device.compute_units;
  info.served = handle->device_targets[info.device].has_value();
  info.capturing = capturing;
  write_struct(info, caller);
  return {};
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

flydsl_aot_status flydsl_aot_device_malloc_async(flydsl_aot_handle *handle, size_t bytes,
                                                 void *stream, void **pointer) {
  return flydsl::guarded(__func__,
                         [&] { return flydsl::allocate_async(handle, bytes, stream, pointer); });
}

flydsl_aot_status flydsl_aot_device_free_async(flydsl_aot_handle *handle, void *pointer,
                                               void *stream) {
  return flydsl::guarded(__func__, [&]() -> flydsl::Status {
    FLYDSL_RETURN_IF_ERROR(flydsl::require_runtime(handle));
    return pointer ? handle->runtime->free_async(pointer, stream) : flydsl::Status();
  });
}

flydsl_aot_status flydsl_aot_device_stream_info(flydsl_aot_handle *handle, void *stream,
                                                flydsl_aot_stream_info *info) {
  return flydsl::guarded(__func__, [&] { return flydsl::stream_info(handle, stream, info); });
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
