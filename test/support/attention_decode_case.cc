#include "test/support/attention_decode_case.h"

#include <gtest/gtest.h>

#include "test/support/library.h"
#include "tools/verify/attention_decode_call.h"

namespace flydsl::test {

AttentionResult run_decode(const AttentionCase &c) {
  AttentionResult result = call_attention_decode(emulator(), c);
  EXPECT_EQ(result.contradiction + result.stray_write, "") << describe(c);
  return result;
}

AttentionResult check_decode(const AttentionCase &c) {
  AttentionResult result = run_decode(c);
  EXPECT_EQ(result.status, FLYDSL_AOT_OK) << describe(c) << ": " << result.message;
  if (result.status == FLYDSL_AOT_OK) {
    EXPECT_EQ(judge(c, result, reference_of(c)).fault, "") << describe(c);
  }
  return result;
}

}  // namespace flydsl::test
