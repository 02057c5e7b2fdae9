// A case of rms_norm_backward or layer_norm_backward: what its line says, its numbers, what a call gave, and the oracle's answer.
#pragma once

#include <string>
#include <vector>

#include "tools/verify/attention_result.h"
#include "tools/verify/case_tensor.h"
#include "tools/verify/reals.h"

namespace flydsl::verify {

enum class GradientPlace { kOwn, kNone, kDout, kX, kDsum };

struct NormBackwardSpec {
  bool centred = false;  // layer_norm_backward
  std::string name;
  uint64_t seed = 1;
  int64_t outer = 0;  // M0; 0: rows have one axis
  int64_t rows = 1;   // M, or M1
  int64_t length = 1;
  flydsl_aot_dtype dtype = FLYDSL_AOT_BF16;
  // INVALID: none, or not wanted.
  flydsl_aot_dtype weight_dtype = FLYDSL_AOT_DTYPE_INVALID,
                   dweight_dtype = FLYDSL_AOT_DTYPE_INVALID, dbias_dtype = FLYDSL_AOT_DTYPE_INVALID;
  bool unit_offset = false, dsum = false;
  GradientPlace dx = GradientPlace::kOwn;
  float eps = 0;
  double level = 0;  // added to all of x
  Values x, dout, weight, dsum_values;
  PlacementRule x_place, dout_place, weight_place, dsum_place, rstd_place, mean_place, dx_place,
      dweight_place, dbias_place;
  int64_t nan_x = 0, nan_dout = 0, inf_dout = 0;  // such elements, at random
  int64_t repeat = 1;
  std::string expect;
  std::vector<double> want_dx, want_dweight;

  int64_t all_rows() const { return (outer ? outer : 1) * rows; }
};

// Throws CaseError.
NormBackwardSpec parse_norm_backward_spec(const std::string &line, bool centred);
std::string fuzz_rms_norm_backward_line(uint64_t seed);
std::string fuzz_layer_norm_backward_line(uint64_t seed);

struct NormBackwardNumbers {
  Elements x, dout, weight, dsum, rstd, mean;  // rstd and mean: those of x in float64, rounded
};
NormBackwardNumbers norm_backward_numbers(const NormBackwardSpec &spec);

struct NormBackwardResult : CallResult {
  Elements dx, dweight, dbias;
};

NormBackwardResult call_norm_backward(flydsl_aot_handle *handle, const NormBackwardSpec &spec,
                                      const NormBackwardNumbers &numbers);
bool same_bits(const NormBackwardResult &a, const NormBackwardResult &b);

// In float64, with the rstd and the mean of the call.
struct NormBackwardReference {
  std::vector<double> dx, dweight, dbias;
  std::vector<double> dx_error, dweight_error,
      dbias_error;  // the stated bounds of what is computed
};
NormBackwardReference norm_backward_reference(const NormBackwardSpec &spec,
                                              const NormBackwardNumbers &numbers);

struct NormBackwardVerdict {
  std::string fault;                      // empty: right
  double dx = 0, dweight = 0, dbias = 0;  // worst error over its bound
};
NormBackwardVerdict judge_norm_backward(const NormBackwardSpec &spec,
                                        const NormBackwardReference &reference,
                                        const NormBackwardResult &result);

}  // namespace flydsl::verify
