// Tensors whose offsets pass 2^32. Only the rows in use are ever touched, so that the memory is reserved, not filled.
#pragma once

#include <cstdint>
#include <vector>

#include "flydsl_aot/flydsl_aot.h"

namespace flydsl::test {

// (B, H, S, D) of bf16 with one axis' stride so large that its last index lies past 2^32 elements; the axis' size is 2
// or more.
class FarTensor {
 public:
  FarTensor(const std::vector<int64_t> &sizes, int far_axis);
  ~FarTensor();
  FarTensor(const FarTensor &) = delete;
  FarTensor &operator=(const FarTensor &) = delete;

  void set(const std::vector<uint16_t> &dense);
  std::vector<uint16_t> get() const;
  const flydsl_aot_tensor &tensor() const { return tensor_; }

 private:
  template <typename Function>
  void for_each_row(Function function) const;

  flydsl_aot_tensor tensor_{};
};

// A pool of pages of bf16 (pages, heads, page size, D), of which some are filled.
class FarPool {
 public:
  FarPool(int64_t pages, int64_t heads, int64_t page_size, int64_t channels);
  ~FarPool();
  FarPool(const FarPool &) = delete;
  FarPool &operator=(const FarPool &) = delete;

  // Row j of `values`, all channels and heads alike, to row j % page size of page `first` + j / page size.
  void fill(int64_t first, const std::vector<uint16_t> &values);
  const flydsl_aot_tensor &tensor() const { return tensor_; }

 private:
  flydsl_aot_tensor tensor_{};
};

}  // namespace flydsl::test
