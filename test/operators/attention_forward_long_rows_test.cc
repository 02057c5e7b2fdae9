// The instances for long rows (kernels/attention_forward/pipelined/): the ends of their software pipeline,
// and rows whose scores grow after the first tile, from which their reference exponent is.
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "test/support/attention_forward_case.h"

namespace flydsl::test {
namespace {

struct LongRows {
  flydsl_aot_dtype dtype;
  int64_t head_dim, head_dim_v;
};

class AttentionForwardLongRows : public ::testing::TestWithParam<LongRows> {
 protected:
  // Long enough for every mask (_FROM of codegen/describe/attention_forward/pipelined.py).
  AttentionCase long_case(int64_t seq_q, int64_t seq_k, const flydsl_aot_mask &mask) const {
    AttentionCase c;
    c.dtype = GetParam().dtype;
    c.head_dim = GetParam().head_dim;
    c.head_dim_v = GetParam().head_dim_v;
    c.seq_q = seq_q;
    c.seq_k = seq_k;
    c.mask = mask;
    c.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(c.head_dim)));
    return c;
  }
  static AttentionResult check(const AttentionCase &c) {
    EXPECT_NE(instance_name(c, false).find("_pipelined_"), std::string::npos) << describe(c);
    AttentionResult result = check_attention(c);
    EXPECT_EQ(result.kernel, instance_name(c, false)) << describe(c);
    return result;
  }
};

INSTANTIATE_TEST_SUITE_P(Instances, AttentionForwardLongRows,
                         ::testing::Values(LongRows{FLYDSL_AOT_BF16, 128, 128},
                                           LongRows{FLYDSL_AOT_FP16, 128, 128},
                                           LongRows{FLYDSL_AOT_BF16, 192, 128},
                                           LongRows{FLYDSL_AOT_FP16, 192, 128}),
                         [](const auto &info) {
                           return std::string(flydsl_aot_dtype_name(info.param.dtype)) + "_d" +
                                  std::to_string(info.param.head_dim);
                         });

// Every way into and out of the loop: no complete tile, one, an odd or even number, a partial last one.
TEST_P(AttentionForwardLongRows, NumbersOfTiles) {
  Random random(test_seed(141));
  for (const int64_t seq_k : {1, 63, 64, 65, 128, 129, 192, 193, 256, 257, 320, 447}) {
    AttentionCase c = long_case(2048 + random.below(3), seq_k, no_mask());
    c.fill_random(random);
    check(c);
  }
}

// Tiles that rows see in part, in several row tiles; rows that see nothing.
TEST_P(AttentionForwardLongRows, Causal) {
  Random random(test_seed(142));
  for (const int64_t seq_k : {1, 64, 129, 500}) {
    for (const flydsl_aot_mask &mask :
         {causal_top_left(), causal_bottom_right(),
          flydsl_aot_mask{FLYDSL_AOT_UNLIMITED, 37, FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT, 0}}) {
      AttentionCase c = long_case(4096 + random.below(3), seq_k, mask);
      c.fill_random(random);
      check(c);
    }
  }
}

// Numbers of heads that do and do not fill the XCDs (kernels/attention_forward/work_order.hip.h), grouped
// heads, sequences of different lengths, some empty.
TEST_P(AttentionForwardLongRows, HeadsAndLengths) {
  Random random(test_seed(143));
  AttentionCase c = long_case(2048, 70, no_mask());
  c.batches = 3;
  c.heads_q = 6;
  c.heads_kv = 2;
  c.fill_random(random);
  check(c);
  c.lengths_q_as = c.lengths_k_as = Lengths::kPacked;
  c.lengths_q = {2048, 300, 0};
  c.lengths_k = {70, 0, 30};
  check(c);
}

// More row tiles than compute units: work-groups go on with a second and a third one, some of whose rows see
// nothing, or few keys; the last round is not full.
TEST_P(AttentionForwardLongRows, MoreTilesThanComputeUnits) {
  Random random(test_seed(146));
  // With 6 tiles the loop takes part; the reference is slow.
  const bool first = GetParam().dtype == FLYDSL_AOT_BF16 && GetParam().head_dim == 128;
  for (const auto &[heads, seq_q, seq_k, mask] :
       {std::tuple{33, 2048, first ? 330 : 70, no_mask()},
        std::tuple{17, 4096, 150, causal_top_left()},
        std::tuple{17, 4096, 90, causal_bottom_right()}}) {
    AttentionCase c = long_case(seq_q, seq_k, mask);
    c.heads_q = heads;
    c.heads_kv = 1;
    c.scale = -c.scale;
    c.fill_random(random);
    // One row goes the slow path.
    c.q[static_cast<size_t>(300 * c.head_dim)] = 0x7fc1;
    check(c);
  }
}

// Scores grow by `step` (in log2) a tile: the reference moves, for some rows only; beyond 2^127 a tile the
// slow path takes over.
TEST_P(AttentionForwardLongRows, ScoresThatGrow) {
  for (const float step : {3.0f, 15.0f, 100.0f, 300.0f}) {
    AttentionCase c = long_case(2048, 300, no_mask());
    c.scale = static_cast<float>(std::log(2.0));
    Random random(test_seed(144));
    c.fill_random(random);
    // One channel carries it: for even rows.
    c.fill_q([](int64_t, int64_t, int64_t row, int64_t d) {
      return d == 0 && row % 2 == 0 ? 1.0f : d == 1 ? 0.5f : 0.0f;
    });
    c.fill_k([&](int64_t, int64_t, int64_t key, int64_t d) {
      return d == 0   ? step * static_cast<float>(key / 64)
             : d == 1 ? static_cast<float>(key % 7)
                      : 0.0f;
    });
    check(c);
  }
}

// As AttentionForwardPolicy.HiddenNanAndInfinityNeverLeak.
TEST_P(AttentionForwardLongRows, NanBesideTheDiagonal) {
  AttentionCase c = long_case(4096, 400, causal_top_left());
  Random random(test_seed(145));
  c.fill_random(random);
  for (int64_t d = 0; d < c.head_dim; ++d)
    c.k[static_cast<size_t>(300 * c.head_dim + d)] = 0x7fc1;  // NaN in both types
  for (int64_t d = 0; d < c.head_dim_v; ++d)
    c.v[static_cast<size_t>(310 * c.head_dim_v + d)] = 0x7fc1;
  const AttentionResult result = check(c);
  EXPECT_FALSE(std::isnan(result.lse[299]));
  EXPECT_TRUE(std::isnan(result.lse[300]));
}

}  // namespace
}  // namespace flydsl::test
