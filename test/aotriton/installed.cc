// A program that knows an installed tree only: keys in which nothing tells one from the other, so that a causal row's output is the
// mean of the values it sees.
#include <aotriton/flash.h>
#include <flydsl_aot/flydsl_aot.h>

#include <cstdint>
#include <cstdio>
#include <vector>

using aotriton::TensorView;
using namespace aotriton::v3::flash;

namespace {

constexpr uint64_t kQueries = 3, kKeys = 5, kDim = 64;
flydsl_aot_handle *handle;

TensorView<4> on_device(const std::vector<uint16_t> &values, uint64_t rows) {
  void *memory = nullptr;
  if (flydsl_aot_device_malloc(handle, values.size() * 2, &memory) != FLYDSL_AOT_OK ||
      flydsl_aot_device_upload(handle, memory, values.data(), values.size() * 2) != FLYDSL_AOT_OK)
    return {};
  return {reinterpret_cast<intptr_t>(memory),
          {1, 1, rows, kDim},
          {rows * kDim, rows * kDim, kDim, 1},
          aotriton::kFloat16};
}

}  // namespace

int main() {
  const hipError_t gpu = aotriton::v2::flash::check_gpu(hipStream_t{});
  if (gpu != hipSuccess || flydsl_aot_open(nullptr, &handle) != FLYDSL_AOT_OK) {
    std::printf("check_gpu: %d, %s\n", static_cast<int>(gpu), flydsl_aot_last_error());
    return 1;
  }
  const uint16_t numbers[] = {0x0000, 0x3C00, 0x4000, 0x4200, 0x4400};  // 0, 1, 2, 3, 4
  std::vector<uint16_t> values;
  for (const uint16_t number : numbers) values.insert(values.end(), kDim, number);
  attn_fwd_params params;
  params.Q = on_device(std::vector<uint16_t>(kQueries * kDim), kQueries);
  params.K = on_device(std::vector<uint16_t>(kKeys * kDim), kKeys);
  params.V = on_device(values, kKeys);
  params.Out = on_device(std::vector<uint16_t>(kQueries * kDim, 0xFFFF), kQueries);
  params.Sm_scale = 0.125F;
  params.dropout_p = 0;
  params.causal_type = CausalType::WindowedAttention;
  params.window_left = params.window_right = WindowValue::TopLeftAligned;
  const hipError_t error = attn_fwd(params, attn_fwd_params::kVersion, hipStream_t{});
  if (error != hipSuccess) {
    std::printf("attn_fwd: %d, %s\n", static_cast<int>(error), flydsl_aot_last_error());
    return 1;
  }
  std::vector<uint16_t> out(kQueries * kDim);
  if (flydsl_aot_device_synchronize(handle) != FLYDSL_AOT_OK ||
      flydsl_aot_device_download(handle, out.data(), params.Out.data_ptr(), out.size() * 2) != FLYDSL_AOT_OK)
    return 1;
  const uint16_t want[] = {0x0000, 0x3800, 0x3C00};  // 0, 0.5, 1
  for (uint64_t i = 0; i < out.size(); ++i) {
    if (out[i] == want[i / kDim]) continue;
    std::printf("row %u: 0x%04x\n", static_cast<unsigned>(i / kDim), static_cast<unsigned>(out[i]));
    return 1;
  }
  std::printf("PASS %d.%d\n", AOTRITON_VERSION_MAJOR, AOTRITON_VERSION_MINOR);
  return 0;
}
