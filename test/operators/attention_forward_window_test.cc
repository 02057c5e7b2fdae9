// Sliding windows: both bounds, both anchors, tile edges, tiles that a work-group skips, NaN outside.
#include <gtest/gtest.h>

#include <cmath>

#include "test/support/attention_forward_case.h"
#include "tools/verify/float16.h"

namespace flydsl::test {
namespace {

constexpr flydsl_aot_anchor kTopLeft = FLYDSL_AOT_ANCHOR_TOP_LEFT;
constexpr flydsl_aot_anchor kBottomRight = FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT;

// Q = 0 and V[j] = j: a row is the mean of the keys it sees.
AttentionCase uniform_case(int64_t length, const flydsl_aot_mask &mask) {
  AttentionCase c;
  c.seq_q = c.seq_k = length;
  c.mask = mask;
  c.fill_q([](int64_t, int64_t, int64_t, int64_t) { return 0.0f; });
  c.fill_k([](int64_t, int64_t, int64_t, int64_t) { return 1.0f; });
  c.fill_v([](int64_t, int64_t, int64_t j, int64_t) { return static_cast<float>(j); });
  return c;
}

float row(const AttentionCase &c, const AttentionResult &result, int64_t i) {
  return to_float(c.dtype, result.out[static_cast<size_t>(i * c.value_dim())]);
}

// ROCm/aotriton#144, huggingface/transformers#39408: bounds mixed up, or off by one.
TEST(AttentionForwardWindow, aotriton_144_inclusive_bounds) {
  AttentionCase c = uniform_case(8, {3, 1, kTopLeft, 0});
  AttentionResult result = check_attention(c);
  EXPECT_EQ(row(c, result, 4), 3.0f);
  EXPECT_EQ(row(c, result, 0), 0.5f);
  EXPECT_EQ(row(c, result, 7), 5.5f);
  c = uniform_case(8, {2, 0, kTopLeft, 0});
  result = check_attention(c);
  EXPECT_EQ(row(c, result, 7), 6.0f);
  EXPECT_EQ(row(c, result, 1), 0.5f);
  for (const flydsl_aot_mask &mask :
       {flydsl_aot_mask{130, 3, kTopLeft, 0}, flydsl_aot_mask{3, 130, kBottomRight, 0}})
    check_attention(uniform_case(300, mask));
}

// pytorch/pytorch#173469, #159773: -1 read as a size.
TEST(AttentionForwardWindow, pytorch_173469_minus_one_is_unlimited) {
  for (const int64_t length : {8, 200}) {
    const auto last = static_cast<float>(length - 1);
    // Below 8 all means are bf16 numbers; up to 199 these are 1 apart, and a mean may lie between two.
    const float bound = length == 8 ? 0.0f : 0.501f;
    for (const flydsl_aot_anchor anchor : {kTopLeft, kBottomRight}) {
      AttentionCase c = uniform_case(length, {-1, -1, anchor, 0});
      AttentionResult none = check_attention(c);
      c = uniform_case(length, {-1, 0, anchor, 0});
      AttentionResult causal = check_attention(c);
      c = uniform_case(length, {0, -1, anchor, 0});
      AttentionResult later = check_attention(c);
      for (int64_t i = 0; i < length; ++i) {
        const auto x = static_cast<float>(i);
        EXPECT_NEAR(row(c, none, i), last / 2, bound);
        EXPECT_NEAR(row(c, causal, i), x / 2, bound);
        EXPECT_NEAR(row(c, later, i), (x + last) / 2, bound);
      }
      check_attention(uniform_case(length, {3, -1, anchor, 0}));
    }
  }
}

TEST(AttentionForwardWindow, RandomAgainstFloat64) {
  const uint64_t seed = test_seed(71);
  SCOPED_TRACE("FLYDSL_TEST_SEED=" + std::to_string(seed));
  Random random(seed);
  constexpr int64_t kLengths[] = {1, 31, 64, 65, 128, 130, 257, 400};
  constexpr int64_t kBounds[] = {-1, 0, 1, 31, 63, 64, 65, 127, 200, int64_t{1} << 31, INT64_MAX};
  for (int i = 0; i < 80; ++i) {
    AttentionCase c;
    c.dtype = random.chance(0.5) ? FLYDSL_AOT_BF16 : FLYDSL_AOT_FP16;
    constexpr int64_t kDims[] = {64, 64, 128, 40};
    c.head_dim = kDims[random.below(4)];
    c.heads_kv = random.between(1, 2);
    c.heads_q = c.heads_kv * random.between(1, 3);
    c.seq_q = kLengths[random.below(8)];
    c.seq_k = kLengths[random.below(8)];
    c.mask = {kBounds[random.below(11)], kBounds[random.below(11)],
              random.chance(0.5) ? kTopLeft : kBottomRight, 0};
    c.fill_random(random);
    const bool staged = random.chance(0.4);
    if (staged) c.place_k.offset_elements = random.between(1, 7);
    EXPECT_EQ(check_attention(c).kernel, instance_name(c, staged)) << describe(c);
  }
}

// Keys outside every window hold NaN, in tiles that are read and in tiles that are not.
TEST(AttentionForwardWindow, HiddenNanNeverLeaks) {
  for (const int64_t left : {0, 5, 70}) {
    AttentionCase c;
    c.seq_q = 50;
    c.seq_k = 400;
    c.mask = {left, 10, kBottomRight, 0};
    Random random(test_seed(72));
    c.fill_random(random);
    for (int64_t j = 0; j < 350 - left; ++j) {
      for (int64_t d = 0; d < 64; ++d)
        c.k[static_cast<size_t>(j * 64 + d)] = c.v[static_cast<size_t>(j * 64 + d)] = 0x7fc0;
    }
    const AttentionResult result = check_attention(c);
    for (const float lse : result.lse) EXPECT_TRUE(std::isfinite(lse));
  }
}

// Rows whose window lies before or after all keys are empty.
TEST(AttentionForwardWindow, EmptyRows) {
  AttentionCase c = uniform_case(4, {1, 1, kBottomRight, 0});
  c.seq_q = 200;
  c.fill_q([](int64_t, int64_t, int64_t, int64_t) { return 0.0f; });
  AttentionResult result = check_attention(c);
  EXPECT_EQ(result.lse[0], -INFINITY);
  EXPECT_EQ(row(c, result, 199), 2.5f);
  c.mask.anchor = kTopLeft;
  result = check_attention(c);
  EXPECT_EQ(result.lse[199], -INFINITY);
  EXPECT_EQ(row(c, result, 0), 0.5f);
}

}  // namespace
}  // namespace flydsl::test
