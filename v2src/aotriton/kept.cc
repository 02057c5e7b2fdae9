// Which weights dropout keeps, for tests of callers: attention_forward says so of queries and keys that are all zero, then the host
// writes the signs.
#include <bit>
#include <vector>

#include "flydsl_aot/attention_forward.h"
#include "flydsl_aot/device.h"
#include "v2src/aotriton/error.h"
#include "v2src/aotriton/features.h"
#include "v2src/aotriton/operators.h"

namespace flydsl::aotriton {
namespace {

constexpr int64_t kHeadDim = 8;

class DeviceMemory {
 public:
  explicit DeviceMemory(flydsl_aot_handle *handle) : handle_(handle) {}
  ~DeviceMemory() { flydsl_aot_device_free(handle_, memory_); }
  DeviceMemory(const DeviceMemory &) = delete;
  DeviceMemory &operator=(const DeviceMemory &) = delete;

  flydsl_aot_status allocate(size_t bytes) {
    return flydsl_aot_device_malloc(handle_, bytes, &memory_);
  }
  void *get() const { return memory_; }

 private:
  flydsl_aot_handle *handle_;
  void *memory_ = nullptr;
};

// One row of zeros as all of them.
flydsl_aot_tensor zeros(void *row, int64_t batches, int64_t heads, int64_t rows) {
  return {row, FLYDSL_AOT_BF16, 4, {batches, heads, rows, kHeadDim}, {0, 0, 0, 1}};
}

// 0.5 and -0.5 of a type, as bytes of its numbers.
template <typename Number>
std::vector<unsigned char> signs(const std::vector<unsigned char> &kept, Number half, Number minus) {
  std::vector<unsigned char> bytes(kept.size() * sizeof(Number));
  auto *numbers = reinterpret_cast<Number *>(bytes.data());
  for (size_t i = 0; i < kept.size(); ++i) numbers[i] = kept[i] ? half : minus;
  return bytes;
}

flydsl_aot_status write_rows(flydsl_aot_handle *handle, const TensorView<4> &to,
                             const std::vector<unsigned char> &bytes, size_t element_bytes) {
  const size_t row_bytes = to.size(3) * element_bytes;
  const unsigned char *row = bytes.data();
  for (uint64_t b = 0; b < to.size(0); ++b)
    for (uint64_t h = 0; h < to.size(1); ++h)
      for (uint64_t i = 0; i < to.size(2); ++i, row += row_bytes) {
        const uint64_t at = b * to.stride(0) + h * to.stride(1) + i * to.stride(2);
        const flydsl_aot_status status = flydsl_aot_device_upload(
            handle, static_cast<char *>(to.data_ptr()) + at * element_bytes, row, row_bytes);
        if (status != FLYDSL_AOT_OK) return status;
      }
  return FLYDSL_AOT_OK;
}

// The library's answer, a byte a weight.
flydsl_aot_status ask(flydsl_aot_handle *handle, const TensorView<4> &to, float dropout_p,
                      const TensorView<0> &seed, const TensorView<0> &offset, uint64_t offset_beyond,
                      hipStream_t stream, std::vector<unsigned char> *kept) {
  const auto size = [&](int axis) { return static_cast<int64_t>(to.size(axis)); };
  const size_t rows = to.size(0) * to.size(1) * to.size(2);
  kept->assign(rows * to.size(3), 1);
  if (!(dropout_p > 0) || kept->empty()) return FLYDSL_AOT_OK;
  DeviceMemory zero(handle), out(handle), answer(handle);
  constexpr uint16_t kZeros[kHeadDim] = {};
  flydsl_aot_status status = zero.allocate(sizeof kZeros);
  if (status == FLYDSL_AOT_OK) status = out.allocate(rows * sizeof kZeros);
  if (status == FLYDSL_AOT_OK) status = answer.allocate(kept->size());
  if (status == FLYDSL_AOT_OK)
    status = flydsl_aot_device_upload(handle, zero.get(), kZeros, sizeof kZeros);
  if (status != FLYDSL_AOT_OK) return status;
  flydsl_aot_attention_forward_params params{};
  params.struct_size = sizeof params;
  params.mask = {FLYDSL_AOT_UNLIMITED, FLYDSL_AOT_UNLIMITED, FLYDSL_AOT_ANCHOR_NONE, 0};
  params.q = zeros(zero.get(), size(0), size(1), size(2));
  params.k = params.v = zeros(zero.get(), size(0), size(1), size(3));
  params.out = zeros(out.get(), size(0), size(1), size(2));
  params.out.strides[2] = kHeadDim;
  params.out.strides[1] = size(2) * params.out.strides[2];
  params.out.strides[0] = size(1) * params.out.strides[1];
  params.dropout_p = dropout_p;
  params.dropout_seed_device = number(seed);
  params.dropout_offset_device = number(offset);
  params.dropout_offset = offset_beyond;
  params.kept = {answer.get(),
                 FLYDSL_AOT_BOOL,
                 4,
                 {size(0), size(1), size(2), size(3)},
                 {size(1) * size(2) * size(3), size(2) * size(3), size(3), 1}};
  status = flydsl_aot_attention_forward(handle, &params, stream);
  if (status == FLYDSL_AOT_OK) status = flydsl_aot_device_synchronize(handle);
  if (status == FLYDSL_AOT_OK)
    status = flydsl_aot_device_download(handle, kept->data(), answer.get(), kept->size());
  return status;
}

}  // namespace

flydsl_aot_status write_kept(const char *function, const TensorView<4> &to, float dropout_p,
                             const TensorView<0> &seed, const TensorView<0> &offset,
                             uint64_t offset_beyond, hipStream_t stream) {
  flydsl_aot_handle *handle = nullptr;
  flydsl_aot_status status = shared_handle(Backend::kAny, &handle);
  if (status != FLYDSL_AOT_OK) return status;
  flydsl_aot_stream_info info{};
  info.struct_size = sizeof info;
  status = flydsl_aot_device_stream_info(handle, stream, &info);
  if (status != FLYDSL_AOT_OK) return status;
  if (info.capturing) {
    return refuse(function, FLYDSL_AOT_CAPTURE_NEEDS_PREFETCH,
                  "encoded_softmax waits for the device, which a captured stream cannot");
  }
  if (to && to.size(3) > 1 && to.stride(3) != 1) {
    return refuse(function, FLYDSL_AOT_INVALID_STRIDE,
                  "encoded_softmax has stride %llu on its last axis; it must be 1",
                  static_cast<unsigned long long>(to.stride(3)));
  }
  const flydsl_aot_dtype dtype = dtype_of(to.dtype());
  if (dtype != FLYDSL_AOT_FP32 && dtype != FLYDSL_AOT_FP16 && dtype != FLYDSL_AOT_BF16) {
    return refuse(function, FLYDSL_AOT_INVALID_DTYPE,
                  "encoded_softmax is %s; allowed: fp32, fp16, bf16", flydsl_aot_dtype_name(dtype));
  }
  std::vector<unsigned char> kept;
  status = ask(handle, to, dropout_p, seed, offset, offset_beyond, stream, &kept);
  if (status != FLYDSL_AOT_OK) return status;
  if (dtype == FLYDSL_AOT_FP32) {
    return write_rows(handle, to,
                      signs(kept, std::bit_cast<uint32_t>(0.5F), std::bit_cast<uint32_t>(-0.5F)), 4);
  }
  const bool fp16 = dtype == FLYDSL_AOT_FP16;
  constexpr uint16_t kHalfFp16 = 0x3800, kHalfBf16 = 0x3F00, kSign = 0x8000;
  const uint16_t half = fp16 ? kHalfFp16 : kHalfBf16;
  return write_rows(handle, to, signs<uint16_t>(kept, half, half | kSign), 2);
}

}  // namespace flydsl::aotriton
