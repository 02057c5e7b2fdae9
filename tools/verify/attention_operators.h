// The operators that cases of attention are for.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tools/verify/attention_forward_verify.h"

namespace flydsl::verify {

// A case that was read.
struct ReadCase {
  std::string name;
  std::function<Outcome(flydsl_aot_handle *)> run;
};

struct AttentionOperator {
  const char *name;
  const char *cases;  // the list test/cases/<name>.txt
  std::string (*fuzz)(uint64_t seed);
  // Throws CaseError. `added_seed`: to that of the line.
  ReadCase (*read)(const std::string &line, uint64_t added_seed);
};

const AttentionOperator &attention_forward_cases();
const AttentionOperator &attention_decode_cases();
const AttentionOperator &attention_backward_cases();

// Null: there is none of this name.
const AttentionOperator *find_attention_operator(const std::string &name);
std::string attention_operator_names();  // for messages

}  // namespace flydsl::verify
