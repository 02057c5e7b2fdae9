// A case of mx_quantise: what its line says, and its verdict.
#pragma once

#include <string>

#include "flydsl_aot/mx_quantise.h"
#include "tools/verify/attention_forward_verify.h"
#include "tools/verify/case_tensor.h"

namespace flydsl::verify {

struct MxQuantiseSpec {
  std::string name;
  uint64_t seed = 1;
  int64_t batches = 0;  // 0: the tensors have none
  int64_t m = 1, k = 32;
  flydsl_aot_dtype dtype = FLYDSL_AOT_BF16, out_dtype = FLYDSL_AOT_E4M3;
  flydsl_aot_scale_layout layout = FLYDSL_AOT_SCALES_PLAIN;
  flydsl_aot_rounding rounding = FLYDSL_AOT_ROUND_NEAREST_EVEN;
  uint64_t random_seed = 0, random_offset = 0;
  Values x;
  bool any_bits = false;
  double spread = 0;  // blocks of x are multiplied by powers of two up to this one, up and down
  int64_t nan_x = 0, inf_x = 0;
  PlacementRule x_place, out_place, scale_place;
  bool scales_along_rows = false;
  std::string expect;
};

// Throws CaseError.
MxQuantiseSpec parse_mx_quantise_spec(const std::string &line);
std::string fuzz_mx_quantise_line(uint64_t seed);
Outcome verify_mx_quantise_case(flydsl_aot_handle *handle, const MxQuantiseSpec &spec);

}  // namespace flydsl::verify
