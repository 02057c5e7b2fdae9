// The float64 oracle of attention_forward, written from the definition in
// include/flydsl_aot/attention_forward.h and from nothing else, and the judge that compares a
// result with it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "flydsl_aot/types.h"
#include "tools/verify/attention_score.h"

namespace flydsl::verify {

struct AttentionReference {
  // Dense: (B, Hq, Sq, Dv) and (B, Hq, Sq).
  std::vector<double> out;
  std::vector<double> lse;
  std::vector<double> magnitude;  // the same attention applied to |V|; scales the tolerance
  // Likewise: exp(max - lse) sum |v|, max the largest score of a key: how far weights count that are too
  // small for the type.
  std::vector<double> underflow;
  // Of each row (B, Hq, Sq): the largest |scale| sum |q k| + |bias| + |slope distance| over the visible
  // keys, which scales the error of fp32 scores.
  std::vector<double> score_scale;
  std::vector<bool> empty;  // rows that see no key, with a sink or not
};

AttentionReference attention_forward_reference(flydsl_aot_dtype dtype, const HostView &q,
                                               const HostView &k, const HostView &v, double scale,
                                               const flydsl_aot_mask &mask,
                                               const ReferenceTerms &terms = {});

struct Judgement {
  bool ok = true;
  double worst_ratio = 0;  // worst |o - ref| / bound
  double frobenius = 0;    // ||o - ref|| / ||ref||, over finite elements
  std::string text;        // worst element and its values; first fault if not ok
};

// out: every element |o - ref| <= 1.25 u (|ref| + A) + 4 2^-24 S A, A the attention applied to |V|, u the unit
// roundoff of the type, 2^-8 (bf16) or 2^-11 (fp16): u |ref| for rounding the result, u A for rounding the
// weights as the header says a kernel may, a quarter more for fp32 arithmetic, S (score_scale) for fp32
// scores. Half of the type's smallest subnormal, 2^-134 or 2^-25, is allowed on top for the result, and
// for fp16 as much for each weight, 2^-25 exp(max - LSE) sum |V|. Over all elements the norm of o - ref
// stays within that of these bounds with 0.75 for 1.25, so that an error near the bound everywhere, which
// rounding cannot give, does not pass. A row that sees no key must be exactly 0. NaN must be NaN; where
// the reference is infinite, NaN will do (infinity times a weight that underflows in fp32).
Judgement judge_out(flydsl_aot_dtype dtype, const std::vector<uint16_t> &out,
                    const AttentionReference &reference, int64_t head_dim);

// lse: within 1e-4, or one fp32 spacing where that is larger, plus 4 2^-24 S as above. -inf and NaN must be
// met exactly.
Judgement judge_lse(const std::vector<float> &lse, const AttentionReference &reference);

}  // namespace flydsl::verify
