// A case of scaled_gemm: what its line says, its numbers, what a call gave.
#pragma once

#include <string>
#include <vector>

#include "flydsl_aot/scaled_gemm.h"
#include "tools/verify/attention_result.h"
#include "tools/verify/case_tensor.h"
#include "tools/verify/mx_format.h"
#include "tools/verify/reals.h"

namespace flydsl::verify {

// A, or B as (N, K): both have rows of K here.
struct MxOperandSpec {
  flydsl_aot_dtype dtype = FLYDSL_AOT_E4M3;
  bool batched = true;  // where the case is
  bool any_bits = false;
  Values values;
  enum Order { kRows, kAlongRows, kStrided } order = kRows;  // K contiguous, rows, neither
  PlacementRule place, scale_place;
  bool scales_along_rows = false;                             // of plain ones: the rows contiguous
  int64_t scale_low = 117, scale_high = 137;                  // bytes
  int64_t nan = 0, inf = 0, nan_scales = 0, zero_scales = 0;  // so many, at random
};

struct ScaledGemmSpec {
  std::string name;
  uint64_t seed = 1;
  int64_t batches = 0;  // 0: none of the tensors has a batch
  int64_t m = 1, n = 1, k = 32;
  flydsl_aot_scale_layout layout = FLYDSL_AOT_SCALES_PLAIN;
  MxOperandSpec a, b;
  flydsl_aot_dtype d_dtype = FLYDSL_AOT_BF16;
  flydsl_aot_dtype bias_dtype = FLYDSL_AOT_DTYPE_INVALID;  // none
  bool bias_batched = false;
  PlacementRule bias_place, d_place;
  bool d_along_rows = false;  // its columns are contiguous
  bool exact = false;         // no sum is rounded: elements must be equal
  int64_t judged = 0;         // so many rows and columns, at random, and the last ones; 0: all
  int64_t repeat = 1;
  std::string expect, kernel;  // a status; a part of the kernel's name
  std::vector<double> want_d;  // of all elements, or one each

  int64_t all_batches() const { return batches ? batches : 1; }
  int64_t blocks() const { return k / 32; }
};

// Throws CaseError.
ScaledGemmSpec parse_scaled_gemm_spec(const std::string &line);
std::string fuzz_scaled_gemm_line(uint64_t seed);

struct MxMatrix {
  std::vector<uint8_t> codes;   // (batches, rows, K), one a byte in packed formats, too
  std::vector<uint8_t> scales;  // (batches, rows, K / 32)
};
struct ScaledGemmNumbers {
  MxMatrix a, b;
  Elements bias;  // (batches, N) or (N)
};
ScaledGemmNumbers scaled_gemm_numbers(const ScaledGemmSpec &spec);

struct ScaledGemmResult : CallResult {
  Elements d;  // (batches, M, N)
};
ScaledGemmResult call_scaled_gemm(flydsl_aot_handle *handle, const ScaledGemmSpec &spec,
                                  const ScaledGemmNumbers &numbers);

}  // namespace flydsl::verify
