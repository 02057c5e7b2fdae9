// Rows of bad input of attention_forward, and what must come of each.
#pragma once

#include <functional>
#include <span>

#include "test/v2src/attention_fixture.h"

namespace flydsl::test {

// A change of a valid problem, the status it must give, and what the message must say.
struct BadInput {
  const char *name;
  flydsl_aot_status status;
  std::vector<const char *> parts;  // of the message
  std::function<void(flydsl_aot_attention_forward_params &)> edit;
  bool call_only = false;  // a query cannot see it
};

class AttentionBadInputTest : public AttentionTest {
 protected:
  // Call, query, explain and prefetch refuse every row, and nothing is launched.
  void expect_refused(std::span<const BadInput> rows);
};

inline void AttentionBadInputTest::expect_refused(std::span<const BadInput> rows) {
  for (const BadInput &row : rows) {
    SCOPED_TRACE(row.name);
    flydsl_aot_attention_forward_params params = valid_params();
    row.edit(params);
    const flydsl_aot_attention_forward_params before = params;
    const auto call = library_.attention_forward(params, nullptr);
    EXPECT_EQ(call.code(), row.status) << call.message();
    EXPECT_EQ(call.message().rfind("flydsl_aot_attention_forward: ", 0), 0u) << call.message();
    for (const char *part : row.parts)
      EXPECT_NE(call.message().find(part), std::string::npos) << part << " | " << call.message();
    EXPECT_EQ(0, std::memcmp(&before, &params, sizeof params));

    // Query, prefetch and explain say the same, but for what only the call looks at.
    flydsl_aot_query_result result;
    const auto query = library_.attention_forward_query(params, &result);
    const flydsl_aot_status expected = row.call_only ? FLYDSL_AOT_OK : row.status;
    EXPECT_EQ(query.code(), expected) << query.message();
    EXPECT_EQ(result.status, expected);
    EXPECT_EQ(std::strlen(result.reason) == 0, row.call_only) << result.reason;
    EXPECT_EQ(std::strlen(result.kernel) == 0, !row.call_only) << result.kernel;
    std::vector<flydsl_aot::Candidate> candidates;
    EXPECT_EQ(library_.attention_forward_explain(params, &candidates).code(), expected);
    EXPECT_EQ(candidates.empty(), !row.call_only);
    if (!row.call_only) {
      EXPECT_EQ(library_.attention_forward_prefetch(params).code(), expected);
    }
  }
  EXPECT_EQ(fake_->launches, 0);
  EXPECT_EQ(fake_->loads, 0);
  EXPECT_EQ(fake_->peek_at_last_error(), 0);
}

}  // namespace flydsl::test
