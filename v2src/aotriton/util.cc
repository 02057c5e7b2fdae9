// The functions of aotriton/util.h, and the members of TensorView, which its other users take from here.
#include "aotriton/util.h"

#include <cstdlib>
#include <cstring>

#include "flydsl_aot/device.h"
#include "v2src/aotriton/handle.h"

namespace flydsl::aotriton {
namespace {

flydsl_aot_stream_info info_of(hipStream_t stream) {
  flydsl_aot_stream_info info{};
  info.struct_size = sizeof info;
  flydsl_aot_handle *handle = nullptr;
  if (shared_handle(Backend::kAny, &handle) != FLYDSL_AOT_OK ||
      flydsl_aot_device_stream_info(handle, stream, &info) != FLYDSL_AOT_OK)
    return {};
  return info;
}

}  // namespace
}  // namespace flydsl::aotriton

namespace aotriton {

template class TensorView<1>;
template class TensorView<2>;
template class TensorView<3>;
template class TensorView<4>;

Gpu getGpuFromStream(hipStream_t stream) {
  const flydsl_aot_stream_info info = flydsl::aotriton::info_of(stream);
  if (!info.served || std::strncmp(info.target_id, "gfx", 3) != 0) return GPU_ARCH_UNKNOWN;
  const unsigned long number = std::strtoul(info.target_id + 3, nullptr, 16);
  return static_cast<Gpu>(TRICAT(kAMD, static_cast<uint16_t>(number), 0));
}

bool isArchExperimentallySupported(hipStream_t) {
  return false;
}

bool isArchTechPreview(hipStream_t) {
  return false;
}

int getMultiProcessorCount(hipStream_t stream) {
  return static_cast<int>(flydsl::aotriton::info_of(stream).compute_units);
}

}  // namespace aotriton
