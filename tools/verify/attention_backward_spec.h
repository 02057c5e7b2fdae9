// A case of attention_backward as a line of text describes it: the keys of attention_forward's, and its own. README.md of
// this folder lists them.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "tools/verify/attention_backward_case.h"
#include "tools/verify/attention_forward_spec.h"

namespace flydsl::verify {

struct BackwardSpec {
  AttentionSpec forward;
  BackwardCase base;  // all but numbers and placements
  Values dout;
  PlacementRule place_dout;
  std::array<PlacementRule, kGradients> place;
  int64_t nan_dout = 0, nan_q = 0;  // rows chosen at random of each head that are made NaN
  // What the oracle must give: one number for all rows, or one a row; of dsinks one a head.
  std::array<std::vector<double>, kGradients> wanted;
};

// Throws CaseError.
BackwardSpec parse_backward_spec(const std::string &line);

// The case with its numbers, the same for the same spec everywhere.
BackwardCase build_backward_case(const BackwardSpec &spec);

}  // namespace flydsl::verify
