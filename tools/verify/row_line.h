// What lines of cases of the operators over rows share.
#pragma once

#include <string>

#include "tools/verify/case_line.h"
#include "tools/verify/case_tensor.h"

namespace flydsl::verify {

inline constexpr flydsl_aot_dtype kReals[] = {FLYDSL_AOT_BF16, FLYDSL_AOT_FP16, FLYDSL_AOT_FP32};

inline flydsl_aot_dtype real_dtype(CaseLine &line, const std::string &key) {
  return kReals[line.choice(key, 0, {"bf16", "fp16", "fp32"})];
}
// Of an operand that may be absent: none (the default), same (as `dtype`), or a type.
inline flydsl_aot_dtype optional_dtype(CaseLine &line, const std::string &key,
                                       flydsl_aot_dtype dtype) {
  const flydsl_aot_dtype all[] = {FLYDSL_AOT_DTYPE_INVALID, dtype, kReals[0], kReals[1], kReals[2]};
  return all[line.choice(key, 0, {"none", "same", "bf16", "fp16", "fp32"})];
}

// Unless the line says otherwise it ends with its allocation.
inline PlacementRule input_place(CaseLine &line, const std::string &tensor) {
  PlacementRule rule = parse_placement(line, tensor, "");
  if (!line.has(tensor + "_place")) rule.kind = PlacementRule::kTight;
  return rule;
}

}  // namespace flydsl::verify
