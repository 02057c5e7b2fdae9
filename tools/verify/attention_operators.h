// The operators that cases of attention are for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/verify/attention_forward_call.h"

namespace flydsl::verify {

struct AttentionOperator {
  const char *name;
  const char *cases;  // the list test/cases/<name>.txt
  std::string (*fuzz)(uint64_t seed);
  AttentionResult (*call)(flydsl_aot_handle *handle, const AttentionCase &c);
  // What attention_forward takes and this one does not: keys of lines, "key" or "key=beginning of a value".
  std::vector<std::string> absent;
};

const AttentionOperator &attention_forward_cases();
const AttentionOperator &attention_decode_cases();

// Null: there is none of this name.
const AttentionOperator *find_attention_operator(const std::string &name);
std::string attention_operator_names();  // for messages

}  // namespace flydsl::verify
