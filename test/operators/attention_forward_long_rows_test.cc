// The instances for long rows (kernels/attention_forward/pipelined/) without a mask: the ends of their software pipeline,
// and rows whose scores grow after the first tile, from which their reference exponent is.
#include "test/operators/attention_forward_long_rows.h"

namespace flydsl::test {
namespace {

AttentionResult check(const AttentionCase &c) {
  EXPECT_NE(instance_name(c, false).find("_pipelined_"), std::string::npos) << describe(c);
  AttentionResult result = check_attention(c);
  EXPECT_EQ(result.kernel, instance_name(c, false)) << describe(c);
  return result;
}

INSTANTIATE_TEST_SUITE_P(Instances, AttentionForwardLongRows, long_rows_instances(),
                         [](const auto &info) { return long_rows_name(info); });

// Every way into and out of the loop: no complete tile, one, an odd or even number, a partial last one.
TEST_P(AttentionForwardLongRows, NumbersOfTiles) {
  Random random(test_seed(141));
  for (const int64_t seq_k : {1, 63, 64, 65, 128, 129, 192, 193, 256, 257, 320, 447}) {
    AttentionCase c = long_case(2048 + random.below(3), seq_k, no_mask());
    c.fill_random(random);
    check(c);
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
  AttentionCase c = long_case(2048, first ? 330 : 70, no_mask());
  c.heads_q = heads_of_more_tiles_than_units(8);
  c.heads_kv = 1;
  c.scale = -c.scale;
  c.fill_random(random);
  // One row goes the slow path.
  c.q[static_cast<size_t>(300 * c.head_dim)] = 0x7fc1;
  check(c);
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

}  // namespace
}  // namespace flydsl::test
