// A case of rms_norm or layer_norm: what its line says, its numbers, what a call gave, and the oracle's answer.
#pragma once

#include <string>
#include <vector>

#include "tools/verify/attention_result.h"
#include "tools/verify/case_tensor.h"
#include "tools/verify/reals.h"

namespace flydsl::verify {

enum class SumPlace { kNone, kOwn, kX, kResidual };

struct NormSpec {
  bool centred = false;  // layer_norm
  std::string name;
  uint64_t seed = 1;
  int64_t outer = 0;  // M0; 0: rows have one axis
  int64_t rows = 1;   // M, or M1
  int64_t length = 1;
  flydsl_aot_dtype dtype = FLYDSL_AOT_BF16;
  flydsl_aot_dtype weight_dtype = FLYDSL_AOT_DTYPE_INVALID;  // none
  flydsl_aot_dtype bias_dtype = FLYDSL_AOT_DTYPE_INVALID;    // none; of layer_norm
  flydsl_aot_dtype out_dtype = FLYDSL_AOT_BF16;
  bool unit_offset = false, residual = false, block_scales = false, mean = false, rstd = false,
       out_in_x = false;
  SumPlace sum = SumPlace::kNone;
  float eps = 0;
  double level = 0;  // added to all of x
  Values x, residual_values, weight, bias;
  PlacementRule x_place, residual_place, weight_place, bias_place, sum_place, out_place,
      scale_place, mean_place, rstd_place;
  int64_t nan_x = 0, inf_x = 0;  // rows, at random, with such an element
  int64_t repeat = 1;
  std::string expect;
  std::vector<double> want_out;

  bool quantised() const { return out_dtype == FLYDSL_AOT_E4M3 || out_dtype == FLYDSL_AOT_E5M2; }
  int64_t all_rows() const { return (outer ? outer : 1) * rows; }
  int64_t scales_of_row() const { return block_scales ? (length + 31) / 32 : 1; }
};

// Throws CaseError.
NormSpec parse_norm_spec(const std::string &line, bool centred);
std::string fuzz_rms_norm_line(uint64_t seed);
std::string fuzz_layer_norm_line(uint64_t seed);

struct NormNumbers {
  Elements x, residual, weight, bias;
};
NormNumbers norm_numbers(const NormSpec &spec);

struct NormResult : CallResult {
  Elements out, sum, scale, mean, rstd;
};
NormResult call_norm(flydsl_aot_handle *handle, const NormSpec &spec, const NormNumbers &numbers);

// In float64, but that h is rounded as the header says.
struct NormReference {
  Elements sum;                            // h
  std::vector<double> mean, spread, rstd;  // of each row; spread is sqrt(var)
  std::vector<double> y, error;            // of each element; the stated bound of what is computed
};
NormReference norm_reference(const NormSpec &spec, const NormNumbers &numbers);

struct NormVerdict {
  std::string fault;                   // empty: right
  double out = 0, mean = 0, rstd = 0;  // worst error over its bound
};
NormVerdict judge_norm(const NormSpec &spec, const NormReference &reference,
                       const NormResult &result);

}  // namespace flydsl::verify
