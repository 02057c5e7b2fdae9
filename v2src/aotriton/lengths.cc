#include "v2src/aotriton/lengths.h"

#include <vector>

#include "v2src/aotriton/error.h"

namespace flydsl::aotriton {

flydsl_aot_status Lengths::separate(const char *function, Rows *rows) {
  if (!rows->used_is_cumulative) return FLYDSL_AOT_OK;
  flydsl_aot_tensor &used = rows->used;
  if (used.dtype != FLYDSL_AOT_INT32 || used.strides[0] != 1) {
    return refuse(function, FLYDSL_AOT_INVALID_DTYPE,
                  "cumulative lengths are %s with stride %lld; they must be int32, contiguous",
                  flydsl_aot_dtype_name(used.dtype), static_cast<long long>(used.strides[0]));
  }
  flydsl_aot_handle *handle = memory_.handle();
  flydsl_aot_stream_info info{};
  info.struct_size = sizeof info;
  flydsl_aot_status status = flydsl_aot_device_stream_info(handle, memory_.stream(), &info);
  if (status != FLYDSL_AOT_OK) return status;
  if (info.capturing) {
    return refuse(function, FLYDSL_AOT_CAPTURE_NEEDS_PREFETCH,
                  "padded and strided sequences of cumulative lengths wait for the device, which a "
                  "captured stream cannot; individual lengths do not");
  }
  const auto count = static_cast<size_t>(rows->batches);
  std::vector<int32_t> numbers(count + 1);
  const size_t bytes = count * sizeof(int32_t);
  status = memory_.allocate(bytes);
  if (status == FLYDSL_AOT_OK) status = flydsl_aot_device_synchronize(handle);
  if (status == FLYDSL_AOT_OK)
    status = flydsl_aot_device_download(handle, numbers.data(), used.data,
                                        numbers.size() * sizeof(int32_t));
  if (status != FLYDSL_AOT_OK) return status;
  for (size_t i = 0; i < count; ++i) numbers[i] = numbers[i + 1] - numbers[i];
  used.data = memory_.get();
  used.sizes[0] = rows->batches;
  rows->used_is_cumulative = false;
  return flydsl_aot_device_upload(handle, used.data, numbers.data(), bytes);
}

}  // namespace flydsl::aotriton
