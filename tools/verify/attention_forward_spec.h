// A case of attention_forward as a line of text describes it: shapes, features, where tensors lie and what
// they hold. README.md of this folder lists the keys.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/verify/case_tensor.h"

namespace flydsl::verify {

struct AttentionSpec {
  std::string name;
  uint64_t seed = 1;
  AttentionCase base;  // all but numbers and placements
  Values q, k, v;
  PlacementRule place_q, place_k, place_v, place_out, place_lse, place_bias, place_visible,
      place_kept;
  // Keys chosen at random whose rows of k or v, or one channel of v, are made NaN; of k, infinite.
  int64_t nan_k = 0, nan_v = 0, nan_v_channel = 0, inf_k = 0;
  bool nan_hidden =
      false;  // rows of k and v that the mask hides from all queries of their sequence are NaN
  bool bias = false, visible = false;
  double bias_factor = 1, bias_hides = 0;  // standard deviation; share that is -inf
  double visible_share = 0.7;
  enum class Slopes { kNone, kByHead, kByBatchAndHead } alibi = Slopes::kNone;
  enum class Sinks { kNone, kNormal, kZero, kHigh, kMinusInfinity } sinks = Sinks::kNone;
  std::string q_descale, k_descale, v_descale;  // "one", "h", "bh"; of q also "hq", "bhq"; "": none
  int64_t repeat = 1;                           // calls that must give equal bits
  bool same_when_tight =
      false;           // and so must one with every tensor dense, unpaged, in its own place
  std::string expect;  // name of the status of a call that must be refused; "": none
  // What the oracle must give, of each row i, or one number for all; empty: not said.
  std::vector<double> want_out, want_lse;
};

// Throws CaseError, also if the line has one of the keys `absent` ("key", or "key=beginning of a value").
AttentionSpec parse_attention_spec(const std::string &line,
                                   const std::vector<std::string> &absent = {});

// Its two parts, between which an operator with keys of its own reads those.
AttentionSpec parse_attention_settings(CaseLine &line);
void check_attention_settings(CaseLine &line, const AttentionSpec &spec,
                              const std::vector<std::string> &absent);

// The case with its numbers, the same for the same spec everywhere.
AttentionCase build_attention_case(const AttentionSpec &spec);

}  // namespace flydsl::verify
