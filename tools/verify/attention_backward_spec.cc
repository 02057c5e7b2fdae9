#include "tools/verify/attention_backward_spec.h"

#include "tools/verify/case_line.h"

namespace flydsl::verify {
namespace {

// Keys of attention_forward that have no meaning here.
const std::vector<std::string> kAbsent = {"q_dtype",   "kv_dtype",  "q_descale",
                                          "k_descale", "v_descale", "kept",
                                          "lse",       "block",     "k_lengths=paged"};

void parse_outputs(CaseLine &line, BackwardSpec &spec) {
  BackwardCase &c = spec.base;
  const std::string inputs = line.letters("gradients", "qkv", "qkv");
  for (size_t n = 0; n < 3; ++n) c.wanted[n] = inputs.find("qkv"[n]) != std::string::npos;
  const size_t dbias = line.choice("dbias", 0, {"none", "fp32", "same"});
  c.wanted[kDbias] = dbias > 0;
  c.dbias_dtype = dbias == 2 ? spec.forward.base.dtype : FLYDSL_AOT_FP32;
  // Those along which the bias is broadcast, unless it says none.
  std::string sum = spec.forward.place_bias.zero;
  if (line.choice("dbias_sum", 1, {"none", "broadcast"}) == 0) sum.clear();
  for (size_t axis = 0; axis < 4; ++axis)
    c.dbias_sum[axis] = sum.find("bhqk"[axis]) != std::string::npos;
  c.wanted[kDsinks] = line.choice("dsinks", 0, {"no", "yes"}) == 1;
  for (size_t n = 0; n < kGradients; ++n) {
    spec.place[n] = parse_placement(line, kGradientNames[n], "");
    spec.wanted[n] = line.numbers(std::string("want_") + kGradientNames[n]);
  }
}

// What would make a case mean something else than it says.
void check(CaseLine &line, const BackwardSpec &spec) {
  const AttentionSpec &forward = spec.forward;
  const std::string &zero = spec.place_dout.zero;
  const bool packed = forward.base.lengths_q_as == Lengths::kPacked ||
                      forward.base.lengths_q_as == Lengths::kPackedUsed;
  if (packed && zero.find_first_of("bs") != std::string::npos && zero != "hsd")
    line.fail("dout_zero", "packed queries have h, d, hd or hsd");
  if (!packed && line.has("lse_rows")) line.fail("lse_rows", "needs packed queries");
  if (!zero.empty() && spec.nan_dout > 0)
    line.fail("dout_zero", "cannot be together with nan_dout");
  if (!forward.place_q.zero.empty() && spec.nan_q > 0)
    line.fail("q_zero", "cannot be together with nan_q");
  if (forward.v.kind == Values::kKeys && spec.base.wanted[kDv] && forward.base.head_dim == 0)
    line.fail("v", "k has no channels");
}

}  // namespace

BackwardSpec parse_backward_spec(const std::string &text) {
  CaseLine line(text);
  BackwardSpec spec;
  spec.forward = parse_attention_settings(line);
  parse_outputs(line, spec);
  spec.dout = parse_values(line, "dout");
  spec.place_dout = parse_placement(line, "dout", "bhsd");
  spec.base.lse_padded = line.choice("lse_rows", 0, {"packed", "padded"}) == 1;
  spec.base.chained = line.choice("from", 0, {"oracle", "forward"}) == 1;
  spec.nan_dout = line.integer("nan_dout", 0, 0, 1 << 20);
  spec.nan_q = line.integer("nan_q", 0, 0, 1 << 20);
  check_attention_settings(line, spec.forward, kAbsent);
  check(line, spec);
  return spec;
}

}  // namespace flydsl::verify
