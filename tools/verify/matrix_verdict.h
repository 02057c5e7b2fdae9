// Whether the elements of a matrix are as near to the oracle's as they must be.
#pragma once

#include <cstdint>
#include <string>

#include "flydsl_aot/types.h"

namespace flydsl::verify {

// A stored element of fp32, fp16, bf16, e4m3 or e5m2 at `bits` (an element's bytes, little-endian), and back: rounded once
// from float64 to nearest even; e4m3 and e5m2 saturate, infinities too (include/flydsl_aot/gemm.h).
double decode_element(flydsl_aot_dtype dtype, uint32_t bits);
double rounded_to(flydsl_aot_dtype dtype, double value);
uint32_t encode_element(flydsl_aot_dtype dtype, double value);

// Judges element after element. An element is right if it lies between what the reference less its error and the reference
// plus its error round to: so within u |reference| + error, with what the dtype does at its ends. Where the reference is NaN
// or infinite it must be that, rounded.
class MatrixVerdict {
 public:
  MatrixVerdict(std::string name, flydsl_aot_dtype dtype) : name_(std::move(name)), dtype_(dtype) {}

  // `error`: of the value before it is rounded; 0: the element must be equal.
  void judge(int64_t batch, int64_t row, int64_t column, double actual, double reference,
             double error);

  // Empty: all are right. Else where the worst is, and how many are wrong.
  std::string fault() const;
  // The worst element, as a share of what is allowed, and the relative Frobenius norm of the difference.
  std::string numbers() const;
  double worst_share() const { return worst_share_; }

 private:
  std::string name_;
  flydsl_aot_dtype dtype_;
  int64_t judged_ = 0, wrong_ = 0;
  double worst_share_ = 0;
  std::string worst_;  // of those that are wrong, the first of the greatest share
  double worst_wrong_ = 0;
  double difference_squared_ = 0, reference_squared_ = 0;
};

}  // namespace flydsl::verify
