// Where the rows of TopK are, and where its results go.
#pragma once

#include "common/arguments.hip.h"
#include "common/order.hip.h"
#include "flydsl_aot_generated/topk_kernarg.h"

namespace flydsl::kernels {

using TopkArguments = ArgumentsOf<flydsl_aot_topk_kernarg>;

// An element and its index: larger is better, and none equals another. Elements have 32 bits of order, those of 16 bits in
// the low half.
using Candidate = u64;
FLYDSL_DEVICE Candidate candidate_of(u32 order, u32 index) {
  return u64{order} << 32 | static_cast<u32>(~index);
}
FLYDSL_DEVICE u32 index_of(Candidate candidate) {
  return ~static_cast<u32>(candidate);
}
FLYDSL_DEVICE u32 order_of(Candidate candidate) {
  return static_cast<u32>(candidate >> 32);
}

template <class Element>
class TopkRow {
 public:
  static constexpr u32 kBytes = kRealBytes<Element>;

  FLYDSL_DEVICE TopkRow(TopkArguments args, u64 row) : args_(args) {
    // The host counts rows of more than one axis in 32 bits.
    i64 x = static_cast<i64>(row) * args->x_stride_2,
        values = static_cast<i64>(row) * args->values_stride_2,
        indices = static_cast<i64>(row) * args->indices_stride_2;
    if (args->axes > 1) {
      const u32 rest = static_cast<u32>(row) / args->size_2;
      const i64 place_2 = static_cast<u32>(row) - rest * args->size_2,
                place_0 = rest / args->size_1;
      const i64 place_1 = rest - static_cast<u32>(place_0) * args->size_1;
      const auto offset = [&](i64 stride_0, i64 stride_1, i64 stride_2) FLYDSL_INLINED {
        return place_0 * stride_0 + place_1 * stride_1 + place_2 * stride_2;
      };
      x = offset(args->x_stride_0, args->x_stride_1, args->x_stride_2);
      values = offset(args->values_stride_0, args->values_stride_1, args->values_stride_2);
      indices = offset(args->indices_stride_0, args->indices_stride_1, args->indices_stride_2);
    }
    x_ = (global_ptr<const char>)args->x + x;
    values_ = (global_ptr<char>)args->values + values;
    indices_ = (global_ptr<char>)args->indices + indices;
  }

  FLYDSL_DEVICE global_ptr<const char> x() const { return x_; }

  FLYDSL_DEVICE u32 bits(u32 index) const {
    const auto from = x_ + static_cast<i64>(u64{index}) * args_->x_stride_k;
    if constexpr (kBytes == 2) return *(global_ptr<const u16>)from;
    return *(global_ptr<const u32>)from;
  }
  FLYDSL_DEVICE u32 order(u32 index) const { return order_of<Element>(bits(index), args_->flip); }

  // The result number `rank`. (A candidate from a workspace that another call wrote to is wrong, but stays in the row.)
  FLYDSL_DEVICE void store(u32 rank, Candidate candidate) const {
    const u32 last = args_->length - 1, index = index_of(candidate);
    const u32 within = index < last ? index : last;
    store(rank, within, bits(within));
  }
  // The same of the element `index`, whose bits these are.
  FLYDSL_DEVICE void store(u32 rank, u32 index, u32 element) const {
    const auto to = values_ + static_cast<i64>(u64{rank}) * args_->values_stride_k;
    if constexpr (kBytes == 2)
      *(global_ptr<u16>)to = static_cast<u16>(element);
    else
      *(global_ptr<u32>)to = element;
    const auto at = indices_ + static_cast<i64>(u64{rank}) * args_->indices_stride_k;
    if (args_->wide_indices)
      *(global_ptr<u64>)at = index;
    else
      *(global_ptr<u32>)at = index;
  }

 private:
  TopkArguments args_;
  global_ptr<const char> x_;
  global_ptr<char> values_, indices_;
};

}  // namespace flydsl::kernels
