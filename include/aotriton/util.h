/* Tensors as AOTriton's interface describes them, tensors that are made only when needed, and what a stream's device is. */
#ifndef AOTRITON_V2_API_UTIL_H
#define AOTRITON_V2_API_UTIL_H

#include <stdint.h>

#include <array>
#include <functional>
#include <string_view>

#include "aotriton/config.h"
#include "aotriton/dtypes.h"
#include "aotriton/runtime.h"

namespace AOTRITON_NS {

constexpr uint64_t CAT64(uint32_t high, uint32_t low) { return uint64_t{high} << 32 | low; }
constexpr uint32_t CAT32(uint16_t high, uint16_t low) { return uint32_t{high} << 16 | low; }
constexpr uint64_t TRICAT(uint16_t high, uint16_t mid, uint16_t low) {
  return uint64_t{high} << 32 | uint64_t{mid} << 16 | low;
}

template <typename T>
T cdiv(T numerator, T denominator) {
  return (numerator + (denominator - 1)) / denominator;
}

/* PCI vendor numbers. */
enum GpuVendor : uint16_t {
  kAMD = 0x1002,
  kNVIDIA = 0x10de,
  kINTEL = 0x8086,
};

/* Vendor, architecture, variant. */
enum Gpu : uint64_t {
  GPU_ARCH_UNKNOWN = 0,
  GPU_AMD_ARCH_GFX908_MOD0 = TRICAT(kAMD, 0x908, 0),
  GPU_AMD_ARCH_GFX90A_MOD0 = TRICAT(kAMD, 0x90a, 0),
  GPU_AMD_ARCH_GFX942_MOD0 = TRICAT(kAMD, 0x942, 0),
  GPU_AMD_ARCH_GFX942_MOD1 = TRICAT(kAMD, 0x942, 1),
  GPU_AMD_ARCH_GFX942_MOD2 = TRICAT(kAMD, 0x942, 2),
  GPU_AMD_ARCH_GFX950_MOD0 = TRICAT(kAMD, 0x950, 0),
  GPU_AMD_ARCH_GFX1100_MOD0 = TRICAT(kAMD, 0x1100, 0),
  GPU_AMD_ARCH_GFX1101_MOD0 = TRICAT(kAMD, 0x1101, 0),
  GPU_AMD_ARCH_GFX1102_MOD0 = TRICAT(kAMD, 0x1102, 0),
  GPU_AMD_ARCH_GFX1150_MOD0 = TRICAT(kAMD, 0x1150, 0),
  GPU_AMD_ARCH_GFX1151_MOD0 = TRICAT(kAMD, 0x1151, 0),
  GPU_AMD_ARCH_GFX1200_MOD0 = TRICAT(kAMD, 0x1200, 0),
  GPU_AMD_ARCH_GFX1201_MOD0 = TRICAT(kAMD, 0x1201, 0),
  GPU_AMD_ARCH_GFX1250_MOD0 = TRICAT(kAMD, 0x1250, 0),
};

inline uint32_t Gpu2VendorArch(uint64_t gpu) { return static_cast<uint32_t>(gpu >> 16); }

/* Memory that the caller owns, with sizes and strides in elements. Absent where the base is null: sizes and strides of a
 * default-constructed view are not initialised. */
template <int Rank>
class AOTRITON_API TensorView {
 public:
  TensorView() {}
  TensorView(intptr_t base, std::array<uint64_t, Rank> sizes, std::array<uint64_t, Rank> strides,
             DType dtype)
      : base_(reinterpret_cast<void *>(base)), sizes_(sizes), strides_(strides), dtype_(dtype) {}
  /* Of any class with data_ptr(), size(i) and stride(i). */
  template <typename Tensor>
  TensorView(const Tensor &tensor, std::function<DType(const Tensor &)> dtype_of)
      : base_(tensor.data_ptr()) {
    for (int i = 0; i < Rank; ++i) {
      sizes_[i] = tensor.size(i);
      strides_[i] = tensor.stride(i);
    }
    dtype_ = dtype_of(tensor);
  }

  operator bool() const { return base_ != nullptr; }
  uint64_t size(int i) const { return sizes_[i]; }
  uint64_t stride(int i) const { return strides_[i]; }
  std::array<uint64_t, Rank> sizes() const { return sizes_; }
  std::array<uint64_t, Rank> strides() const { return strides_; }
  const uint64_t *size_ptr() const { return sizes_.data(); }
  const uint64_t *stride_ptr() const { return strides_.data(); }
  void *data_ptr() const { return base_; }
  DType dtype() const { return dtype_; }
  /* Where the values lie, as hipModuleLaunchKernel's kernelParams wants it. */
  void *kparam_data_ptr() const { return const_cast<void *>(static_cast<const void *>(&base_)); }
  void *kparam_stride(int i) const {
    return const_cast<void *>(static_cast<const void *>(&strides_[i]));
  }

  static TensorView<Rank> get_null_tensor(DType dtype) {
    return TensorView<Rank>(0, std::array<uint64_t, Rank>{}, std::array<uint64_t, Rank>{}, dtype);
  }

 private:
  void *base_ = nullptr;
  std::array<uint64_t, Rank> sizes_;
  std::array<uint64_t, Rank> strides_;
  DType dtype_ = kUnknown;
};

/* One number in memory. */
template <>
class AOTRITON_API TensorView<0> {
 public:
  TensorView() {}
  TensorView(intptr_t base, DType dtype) : base_(reinterpret_cast<void *>(base)), dtype_(dtype) {}

  operator bool() const { return base_ != nullptr; }
  uint64_t size(int i) const { return i == 0 ? 1 : 0; }
  uint64_t stride(int i) const { return i == 0 ? 1 : 0; }
  std::array<uint64_t, 0> sizes() const { return {}; }
  std::array<uint64_t, 0> strides() const { return {}; }
  void *data_ptr() const { return base_; }
  DType dtype() const { return dtype_; }
  void *kparam_data_ptr() const { return const_cast<void *>(static_cast<const void *>(&base_)); }

  static TensorView<0> get_null_tensor(DType dtype) { return TensorView<0>(0, dtype); }

 private:
  void *base_ = nullptr;
  DType dtype_ = kUnknown;
};

#ifndef aotriton_v2_EXPORTS /* the library itself */
extern template class TensorView<1>;
extern template class TensorView<2>;
extern template class TensorView<3>;
extern template class TensorView<4>;
#endif

/* A tensor that a call may need: `eager` if that has memory, else what `acquire` returns, which is asked once at most. `dispose` is
 * called once before the call returns, whether the tensor was acquired or not, if cookie is not null; it may be null. */
template <int Rank>
struct LazyTensor {
  void *cookie = nullptr;
  TensorView<Rank> (*acquire)(LazyTensor<Rank> *self) = nullptr;
  void (*dispose)(LazyTensor<Rank> *self) = nullptr;
  TensorView<Rank> eager;

  operator bool() const {
    return cookie != nullptr || acquire != nullptr || dispose != nullptr || eager;
  }
  void free() {
    if (dispose && cookie) {
      (*dispose)(this);
      cookie = nullptr;
    }
  }
};

/* GPU_ARCH_UNKNOWN, 0 and false where there is no device, or none that this library has kernels for. */
AOTRITON_API Gpu getGpuFromStream(hipStream_t stream);
/* Architectures for which PyTorch asks for TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL: none of this library's. */
AOTRITON_API bool isArchExperimentallySupported(hipStream_t stream);
AOTRITON_API bool isArchTechPreview(hipStream_t stream);
AOTRITON_API int getMultiProcessorCount(hipStream_t stream);

}  // namespace AOTRITON_NS

#endif
