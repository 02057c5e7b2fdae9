// The optional terms of a case, as its oracle takes them.
#pragma once

#include "tools/verify/attention_forward_case.h"
#include "tools/verify/attention_score.h"

namespace flydsl::verify {

// Of batch b alone, whatever batch the functions are given. The case must outlive them.
ReferenceTerms terms_of(const AttentionCase &c, int64_t b);

}  // namespace flydsl::verify
