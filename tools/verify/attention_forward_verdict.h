// Whether the result of a call is right.
#pragma once

#include <string>

#include "tools/verify/attention_forward_call.h"
#include "tools/verify/attention_forward_reference.h"

namespace flydsl::verify {

// The oracle on the case's dense arrays. Rows past a sequence's length are the poison that they must still
// hold.
AttentionReference reference_of(const AttentionCase &c);

struct Verdict {
  std::string fault;   // empty: right
  Judgement out, lse;  // lse: of no rows if it is not wanted
};

// A call that succeeded: out and lse within the judges' bounds, nothing else written, rows past a sequence's
// length untouched, the kept weights and the seed and offset that were used as the header says.
Verdict judge(const AttentionCase &c, const AttentionResult &result,
              const AttentionReference &reference);

}  // namespace flydsl::verify
