// A client of libaotriton_v2.so that fills parameters as PyTorch's ROCm SDPA does: the flash kernels' way and the memory-efficient
// kernels'. What it leaves alone holds poison. Compiled once for each layout of the parameters (AOTRITON_VERSION_MINOR).
#pragma once

#include <aotriton/flash.h>

#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

#include "flydsl_aot/flydsl_aot.h"

namespace flydsl::test {

namespace flash = aotriton::v3::flash;
using aotriton::TensorView;

constexpr bool kHasVarlenBits = AOTRITON_VERSION_MINOR >= 14;
constexpr unsigned char kPoison = 0xCD;

// Parameters in memory that held something else before: their constructor leaves most of it.
template <typename Params>
class Poisoned {
 public:
  Poisoned() {
    std::memset(memory_, kPoison, sizeof memory_);
    params_ = new (memory_) Params;
  }
  Params &operator*() { return *params_; }
  Params *operator->() { return params_; }

 private:
  alignas(Params) unsigned char memory_[sizeof(Params)];
  Params *params_;
};

aotriton::DType dtype_of(flydsl_aot_dtype dtype);

// Of the same rank, or of packed rows (H, total, D) as (1, H, total, D).
template <int Rank>
TensorView<Rank> view_of(const flydsl_aot_tensor &tensor) {
  std::array<uint64_t, Rank> sizes{}, strides{};
  const int extra = Rank - tensor.rank;
  for (int axis = 0; axis < Rank; ++axis) {
    sizes[axis] = axis < extra ? 1 : static_cast<uint64_t>(tensor.sizes[axis - extra]);
    strides[axis] = axis < extra ? 0 : static_cast<uint64_t>(tensor.strides[axis - extra]);
  }
  return {reinterpret_cast<intptr_t>(tensor.data), sizes, strides, dtype_of(tensor.dtype)};
}

// (B, H, S) as (B * H, S); (H, total) as it is.
TensorView<2> lse_view(const flydsl_aot_tensor &tensor);
inline TensorView<0> number_view(const void *pointer) {
  return {reinterpret_cast<intptr_t>(pointer), aotriton::kUInt64};
}

enum class Way { kFlash, kEfficient };

// What both passes have; `from` is of attention_forward or attention_backward.
template <typename From, typename Params>
void set_inputs(const From &from, Way way, Params *to) {
  to->Q = view_of<4>(from.q);
  to->K = view_of<4>(from.k);
  to->V = view_of<4>(from.v);
  to->Out = view_of<4>(from.out);
  to->Sm_scale = from.scale;
  const bool packed = from.cu_seqlens_q.rank != 0;
  to->Max_seqlen_q = static_cast<int32_t>(packed ? from.max_seqlen_q : from.q.sizes[2]);
  to->Max_seqlen_k = static_cast<int32_t>(packed ? from.max_seqlen_k : from.k.sizes[2]);
  to->dropout_p = from.dropout_p;
  to->philox_seed_ptr = number_view(from.dropout_seed_device);
  to->philox_offset1 = number_view(from.dropout_offset_device);
  to->philox_offset2 = from.dropout_offset;
  if (from.bias.rank != 0) to->B = view_of<4>(from.bias);

  const flydsl_aot_mask &mask = from.mask;
  const bool left = mask.left != FLYDSL_AOT_UNLIMITED, right = mask.right != FLYDSL_AOT_UNLIMITED;
  using flash::WindowValue;
  const int32_t aligned = mask.anchor == FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT
                              ? WindowValue::BottomRightAligned
                              : WindowValue::TopLeftAligned;
  to->causal_type = left || right ? flash::CausalType::WindowedAttention : flash::CausalType::None;
  if (right && mask.right == 0) {
    to->window_left = left ? static_cast<int32_t>(mask.left) : aligned;
    to->window_right = aligned;
  } else if (left || right) {
    to->window_left = left ? static_cast<int32_t>(mask.left) : to->Max_seqlen_q;
    to->window_right = right ? static_cast<int32_t>(mask.right) : to->Max_seqlen_k;
  } else if (way == Way::kFlash) {
    to->window_left = to->Max_seqlen_q;
    to->window_right = to->Max_seqlen_k;
  }
#if AOTRITON_VERSION_MINOR < 14
  to->varlen_type = packed ? flash::VarlenType::CompactVarlen : flash::VarlenType::None;
  if (packed) {
    to->cu_seqlens_q = view_of<1>(from.cu_seqlens_q);
    to->cu_seqlens_k = view_of<1>(from.cu_seqlens_k);
  }
#else
  if (packed) {
    using flash::VarlenLength;
    using flash::VarlenPosition;
    to->varlen_bits.qmode.stacked = to->varlen_bits.kmode.stacked = flash::VarlenStacked::THD;
    to->varlen_bits.qmode.length = to->varlen_bits.kmode.length = VarlenLength::CUMULATIVE;
    to->varlen_bits.qmode.position = to->varlen_bits.kmode.position = VarlenPosition::REUSE;
    to->seqinfo_q0 = view_of<1>(from.cu_seqlens_q);
    to->seqinfo_k0 = view_of<1>(from.cu_seqlens_k);
    if (from.seqused_k.rank != 0) {
      to->varlen_bits.kmode.length = VarlenLength::INDIVIDUAL;
      to->varlen_bits.kmode.position = VarlenPosition::ARRAY;
      to->seqinfo_k0 = view_of<1>(from.seqused_k);
      to->seqinfo_k1 = view_of<1>(from.cu_seqlens_k);
    }
  }
#endif
}

void set_forward(const flydsl_aot_attention_forward_params &from, Way way,
                 flash::attn_fwd_params *to);

// An fp32 tensor that is handed out when it is asked for, and how often that was. Its memory comes from the caller's pool, so that it
// is there within a capture too, and holds NaN: the library must not count on zeros.
struct LazyContext {
  flydsl_aot_handle *handle;
  std::vector<uint64_t> sizes;
  void *memory = nullptr;
  int acquired = 0, disposed = 0;
  bool throws = false;  // as a caller's allocator may

  explicit LazyContext(flydsl_aot_handle *of) : handle(of) {}
  ~LazyContext() { flydsl_aot_device_free(handle, memory); }
  LazyContext(const LazyContext &) = delete;
  LazyContext &operator=(const LazyContext &) = delete;

  void reserve(std::vector<uint64_t> of);
};

void set_backward(const flydsl_aot_attention_backward_params &from, Way way, LazyContext *row_sums,
                  LazyContext *dq_accumulator, flash::attn_bwd_params *to);

}  // namespace flydsl::test
