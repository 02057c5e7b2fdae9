#include "tools/verify/attention_operators.h"

#include "tools/verify/attention_decode_call.h"
#include "tools/verify/attention_decode_fuzz.h"
#include "tools/verify/attention_forward_fuzz.h"
#include "tools/verify/shipped_cases.h"

namespace flydsl::verify {

const AttentionOperator &attention_forward_cases() {
  static const AttentionOperator op = {"attention_forward",
                                       kAttentionForwardCases,
                                       fuzz_attention_forward_line,
                                       call_attention_forward,
                                       {}};
  return op;
}

const AttentionOperator &attention_decode_cases() {
  static const AttentionOperator op = {"attention_decode",
                                       kAttentionDecodeCases,
                                       fuzz_attention_decode_line,
                                       call_attention_decode,
                                       {"q_dtype", "q_descale", "q_lengths", "k_lengths=packed",
                                        "bias", "visible", "dropout", "kept"}};
  return op;
}

const AttentionOperator *find_attention_operator(const std::string &name) {
  for (const AttentionOperator *op : {&attention_forward_cases(), &attention_decode_cases()})
    if (name == op->name) return op;
  return nullptr;
}

std::string attention_operator_names() {
  return std::string(attention_forward_cases().name) + ", " + attention_decode_cases().name;
}

}  // namespace flydsl::verify
