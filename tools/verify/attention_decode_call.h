// A call of attention_decode on a case of what attention_forward computes, of which it takes a part: dense
// queries, dense or paged keys, no bias, boolean mask or dropout.
#pragma once

#include "tools/verify/attention_forward_case.h"
#include "tools/verify/attention_result.h"

namespace flydsl::verify {

// As call_attention_forward.
AttentionResult call_attention_decode(flydsl_aot_handle *handle, const AttentionCase &c);

}  // namespace flydsl::verify
