// The E8M0 scales of OCP MX operands, one for each 32 elements along K (flydsl_aot/scaled_gemm.h says how they may lie).
#pragma once

#include "flydsl_aot/scaled_gemm.h"
#include "src/status/status.h"
#include "v2src/tensor_check.h"

namespace flydsl {

constexpr int64_t kMxBlock = 32;  // elements along K that share a scale

inline int64_t rounded_up(int64_t value, int64_t to) {
  return (value + to - 1) / to * to;
}

Status check_scale_layout(flydsl_aot_scale_layout layout);
Status check_scale_dtype(const Operand &scale);

// Rank, sizes and, of shuffled ones, strides of the scales of `of`: matrices of `rows` x `k`, with a first axis where `of` has one.
Status check_block_scales(const Operand &scale, const Operand &of, int64_t rows, int64_t k,
                          bool shuffled);

}  // namespace flydsl
