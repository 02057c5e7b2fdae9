// The causal instances for long rows (kernels/attention_forward/pipelined/). They are for problems with many rows; this
// runs on the archive of many_rows_archive.py, which has them take small ones.
#include <tuple>

#include "test/operators/attention_forward_long_rows.h"

namespace flydsl::test {
namespace {

using AttentionForwardLongCausalRows = AttentionForwardLongRows;

AttentionResult check(const AttentionCase &c) {
  AttentionResult result = check_attention(c);
  EXPECT_NE(result.kernel.find("_causal_pipelined_"), std::string::npos) << describe(c);
  return result;
}

INSTANTIATE_TEST_SUITE_P(Instances, AttentionForwardLongCausalRows, long_rows_instances(),
                         [](const auto &info) { return long_rows_name(info); });

// Tiles that rows see in part, in several row tiles; rows that see nothing.
TEST_P(AttentionForwardLongCausalRows, Causal) {
  Random random(test_seed(142));
  for (const int64_t seq_k : {2, 64, 129, 500}) {  // 1 is hidden from no row
    for (const flydsl_aot_mask &mask :
         {causal_top_left(), causal_bottom_right(),
          flydsl_aot_mask{FLYDSL_AOT_UNLIMITED, 37, FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT, 0}}) {
      AttentionCase c = long_case(4096 + random.below(3), seq_k, mask);
      c.fill_random(random);
      check(c);
    }
  }
}

// More row tiles than compute units: work-groups go on with a second and a third one, some of whose rows see
// nothing, or few keys; the last round is not full.
TEST_P(AttentionForwardLongCausalRows, MoreTilesThanComputeUnits) {
  Random random(test_seed(146));
  for (const auto &[seq_k, mask] :
       {std::tuple{150, causal_top_left()}, std::tuple{90, causal_bottom_right()}}) {
    AttentionCase c = long_case(4096, seq_k, mask);
    c.heads_q = heads_of_more_tiles_than_units(16);
    c.heads_kv = 1;
    c.scale = -c.scale;
    c.fill_random(random);
    // One row goes the slow path.
    c.q[static_cast<size_t>(300 * c.head_dim)] = 0x7fc1;
    check(c);
  }
}

// As AttentionForwardPolicy.HiddenNanAndInfinityNeverLeak. Few rows see it, the last ones: they go the slow path.
TEST_P(AttentionForwardLongCausalRows, NanBesideTheDiagonal) {
  AttentionCase c = long_case(4096, 400, causal_bottom_right());
  Random random(test_seed(145));
  c.fill_random(random);
  for (int64_t d = 0; d < c.head_dim; ++d)
    c.k[static_cast<size_t>(300 * c.head_dim + d)] = 0x7fc1;  // NaN in both types
  for (int64_t d = 0; d < c.head_dim_v; ++d)
    c.v[static_cast<size_t>(310 * c.head_dim_v + d)] = 0x7fc1;
  const AttentionResult result = check(c);
  const size_t first_row = 4096 - 400 + 300;
  EXPECT_FALSE(std::isnan(result.lse[first_row - 1]));
  EXPECT_TRUE(std::isnan(result.lse[first_row]));
}

}  // namespace
}  // namespace flydsl::test
