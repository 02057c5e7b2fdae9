// The oracle and its judge against values worked out by hand: the judge must fail what is wrong.
#include "tools/verify/attention_forward_reference.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tools/verify/float16.h"

namespace flydsl::verify {
namespace {

constexpr flydsl_aot_dtype kBf16 = FLYDSL_AOT_BF16;

std::vector<uint16_t> bits(const std::vector<float> &values) {
  std::vector<uint16_t> result;
  for (const float value : values) result.push_back(float_to_bf16(value));
  return result;
}

// One head with head dim 1.
struct Column {
  std::vector<uint16_t> values;
  explicit Column(const std::vector<float> &v) : values(bits(v)) {}
  HostView view() const {
    const int64_t n = static_cast<int64_t>(values.size());
    return {values.data(), {1, 1, n, 1}, {n, n, 1, 1}};
  }
};

TEST(Float16, EveryPatternSurvivesTheRoundTrip) {
  for (uint32_t pattern = 0; pattern < 0x10000; ++pattern) {
    const uint16_t b = static_cast<uint16_t>(pattern);
    if (!std::isnan(bf16_to_float(b))) {
      EXPECT_EQ(float_to_bf16(bf16_to_float(b)), b);
    }
    if (!std::isnan(fp16_to_float(b))) {
      EXPECT_EQ(float_to_fp16(fp16_to_float(b)), b);
    }
  }
}

TEST(Float16, RoundsToNearestEven) {
  EXPECT_EQ(float_to_bf16(1.0f + 0x1p-8f), 0x3f80);  // tie, even below
  EXPECT_EQ(float_to_bf16(1.0f + 0x3p-8f), 0x3f82);  // tie, even above
  EXPECT_EQ(float_to_fp16(1.0f + 0x1p-11f), 0x3c00);
  EXPECT_EQ(float_to_fp16(1.0f + 0x3p-11f), 0x3c02);
  EXPECT_EQ(float_to_fp16(65519.0f), 0x7bff);
  EXPECT_EQ(float_to_fp16(65520.0f), 0x7c00);
  EXPECT_EQ(float_to_fp16(0x1p-25f), 0);  // tie with 0
  EXPECT_EQ(float_to_fp16(0x1.8p-25f), 1);
  EXPECT_EQ(fp16_to_float(1), 0x1p-24f);
  EXPECT_TRUE(std::isnan(fp16_to_float(float_to_fp16(NAN))));
}

TEST(Reference, SoftmaxOfTwoScores) {
  // Scores 1 and 0: weights e/(1+e) and 1/(1+e); V = 3, -1.
  const AttentionReference r =
      attention_forward_reference(kBf16, Column({2}).view(), Column({1, 0}).view(),
                                  Column({3, -1}).view(), 0.5, {-1, -1, 0, 0});
  const double weight = std::exp(1) / (1 + std::exp(1));
  EXPECT_DOUBLE_EQ(r.out[0], 3 * weight - (1 - weight));
  EXPECT_DOUBLE_EQ(r.magnitude[0], 3 * weight + (1 - weight));
  EXPECT_DOUBLE_EQ(r.lse[0], std::log(1 + std::exp(1)));
}

TEST(Reference, CausalAnchorsAndEmptyRows) {
  const Column zeros3({0, 0, 0}), zeros5({0, 0, 0, 0, 0}), v3({0, 1, 2}), v5({0, 1, 2, 3, 4});
  const auto out = [](const AttentionReference &r) { return r.out; };
  const flydsl_aot_mask top{-1, 0, FLYDSL_AOT_ANCHOR_TOP_LEFT, 0},
      bottom{-1, 0, FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT, 0};
  EXPECT_EQ(
      out(attention_forward_reference(kBf16, zeros3.view(), zeros5.view(), v5.view(), 1, top)),
      (std::vector<double>{0, 0.5, 1}));
  EXPECT_EQ(
      out(attention_forward_reference(kBf16, zeros3.view(), zeros5.view(), v5.view(), 1, bottom)),
      (std::vector<double>{1, 1.5, 2}));
  const AttentionReference tall =
      attention_forward_reference(kBf16, zeros5.view(), zeros3.view(), v3.view(), 1, bottom);
  EXPECT_EQ(tall.out, (std::vector<double>{0, 0, 0, 0.5, 1}));
  EXPECT_EQ(tall.lse[1], -INFINITY);
  EXPECT_EQ(tall.lse[2], 0);
}

TEST(Reference, WindowIsInclusiveOnBothSides) {
  // Window (3, 1) over eight keys, V[j] = j: row 4 sees 1..5, row 0 sees 0..1, row 7 sees 4..7.
  const Column zeros(std::vector<float>(8, 0)), v({0, 1, 2, 3, 4, 5, 6, 7});
  const AttentionReference r = attention_forward_reference(
      kBf16, zeros.view(), zeros.view(), v.view(), 1, {3, 1, FLYDSL_AOT_ANCHOR_TOP_LEFT, 0});
  EXPECT_EQ(r.out[4], 3);
  EXPECT_EQ(r.out[0], 0.5);
  EXPECT_EQ(r.out[7], 5.5);
}

TEST(Reference, HiddenNanNeverCountsVisibleOnePoisons) {
  const Column q({1, 1}), v({1, NAN});
  const AttentionReference r = attention_forward_reference(
      kBf16, q.view(), Column({1, 1}).view(), v.view(), 1, {-1, 0, FLYDSL_AOT_ANCHOR_TOP_LEFT, 0});
  EXPECT_EQ(r.out[0], 1);
  EXPECT_TRUE(std::isnan(r.out[1]));
  // A score of -inf hides its key, even with a NaN value.
  const AttentionReference hidden = attention_forward_reference(
      kBf16, Column({1}).view(), Column({1, -INFINITY}).view(), v.view(), 1, {-1, -1, 0, 0});
  EXPECT_EQ(hidden.out[0], 1);
  EXPECT_EQ(hidden.lse[0], 1);
}

TEST(Reference, GroupsShareKeysAndStridesAreFollowed) {
  // Hq = 4, Hkv = 2, one key: out is the value of head h / 2. V is stored with its heads 8 elements
  // apart.
  const std::vector<uint16_t> one = bits({1, 1, 1, 1});
  std::vector<uint16_t> v(16, float_to_bf16(NAN));
  v[0] = float_to_bf16(5);
  v[8] = float_to_bf16(7);
  const AttentionReference r = attention_forward_reference(
      kBf16, {one.data(), {1, 4, 1, 1}, {4, 1, 1, 1}}, {one.data(), {1, 2, 1, 1}, {2, 1, 1, 1}},
      {v.data(), {1, 2, 1, 1}, {16, 8, 1, 1}}, 1, {-1, -1, 0, 0});
  EXPECT_EQ(r.out, (std::vector<double>{5, 5, 7, 7}));
}

TEST(Reference, Terms) {
  // One query, two keys with q . k = 1 and 3, V = 0 and 1: out is the second weight.
  const Column q({1}), k({1, 3}), v({0, 1});
  const auto run = [&](const ReferenceTerms &terms) {
    return attention_forward_reference(kBf16, q.view(), k.view(), v.view(), 2, {-1, -1, 0, 0},
                                       terms);
  };
  const auto weight = [](double s0, double s1) {
    return std::exp(s1) / (std::exp(s0) + std::exp(s1));
  };
  ReferenceTerms terms;
  terms.bias = [](int64_t, int64_t, int64_t, int64_t j) { return j == 0 ? 5.0 : -1.0; };
  EXPECT_NEAR(run(terms).out[0], weight(7, 5), 1e-15);
  EXPECT_EQ(run(terms).score_scale[0], 7);
  terms = {};
  terms.softcap = 3;  // before the bias
  terms.bias = [](int64_t, int64_t, int64_t, int64_t j) { return j == 0 ? 1.0 : 0.0; };
  EXPECT_NEAR(run(terms).out[0], weight(3 * std::tanh(2.0 / 3) + 1, 3 * std::tanh(2.0)), 1e-15);
  terms = {};
  terms.slope = [](int64_t, int64_t) { return 4.0; };  // the query sits at key 1
  EXPECT_NEAR(run(terms).out[0], weight(2 - 4, 6), 1e-15);
  terms = {};
  terms.visible = [](int64_t, int64_t, int64_t, int64_t j) { return j == 1; };
  EXPECT_EQ(run(terms).out[0], 1);
  EXPECT_EQ(run(terms).lse[0], 6);
  terms = {};
  terms.sink = [](int64_t) { return 6.0; };
  EXPECT_NEAR(run(terms).out[0], std::exp(6) / (std::exp(2) + 2 * std::exp(6)), 1e-15);
  EXPECT_NEAR(run(terms).lse[0], std::log(std::exp(2) + 2 * std::exp(6)), 1e-14);
  terms.visible = [](int64_t, int64_t, int64_t, int64_t) { return false; };
  EXPECT_EQ(run(terms).out[0], 0);
  EXPECT_EQ(run(terms).lse[0], 6);
  EXPECT_TRUE(run(terms).empty[0]);
}

// A reference of exact scores and weights, head dim 1.
AttentionReference reference(const std::vector<double> &out, const std::vector<double> &magnitude,
                             const std::vector<double> &lse) {
  AttentionReference r;
  r.out = out;
  r.magnitude = magnitude;
  r.lse = lse;
  r.underflow.assign(out.size(), 0);
  r.score_scale.assign(lse.size(), 0);
  r.empty.assign(lse.size(), false);
  return r;
}

TEST(Judge, AnEmptyRowWithASinkIsExactlyZero) {
  AttentionReference r = reference({0}, {0}, {1.5});
  r.empty = {true};
  EXPECT_TRUE(judge_out(kBf16, {0}, r, 1).ok);
  EXPECT_FALSE(judge_out(kBf16, {1}, r, 1).ok);  // the smallest subnormal
}

TEST(Judge, AcceptsTheRoundedReferenceAndRefusesWrongValues) {
  const AttentionReference r = reference({1.0, -0.3, 0.0, NAN, INFINITY},
                                         {1.0, 2.0, 0.0, NAN, INFINITY}, {0, 0, -INFINITY, NAN, 0});
  std::vector<uint16_t> out = bits({1.0f, -0.3f, 0.0f, NAN, INFINITY});
  EXPECT_TRUE(judge_out(kBf16, out, r, 1).ok);
  const auto with = [&](size_t index, float value) {
    std::vector<uint16_t> changed = out;
    changed[index] = float_to_bf16(value);
    return judge_out(kBf16, changed, r, 1).ok;
  };
  EXPECT_TRUE(with(0, 1.0f + 0x1p-7f));
  EXPECT_FALSE(with(0, 1.0f + 0x2p-7f));
  EXPECT_FALSE(with(1, -0.33f));
  EXPECT_FALSE(with(2, 1e-30f)) << "an empty row is exactly 0";
  EXPECT_FALSE(with(3, 0.0f));
  EXPECT_FALSE(with(4, 1.0f));
  EXPECT_FALSE(with(0, NAN));
  EXPECT_FALSE(with(0, INFINITY));
}

TEST(Judge, RefusesAnErrorThatIsEverywhereNearTheBound) {
  const std::vector<double> ones(1000, 1.0);
  const AttentionReference r = reference(ones, ones, std::vector<double>(1000, 0.0));
  // Two units in the last place each: within 1.25 * 2^-8 * 2, but never by rounding alone in every
  // element.
  const std::vector<uint16_t> out(1000, float_to_bf16(1.0f + 0x1p-7f));
  EXPECT_LE(judge_out(kBf16, out, r, 1).worst_ratio, 1);
  EXPECT_FALSE(judge_out(kBf16, out, r, 1).ok);
}

TEST(Judge, LogSumExp) {
  const AttentionReference r = reference({}, {}, {2.0, -INFINITY, 4430233600.0, NAN});
  EXPECT_TRUE(judge_lse({2.00005f, -INFINITY, 4430233600.0f, NAN}, r).ok);
  EXPECT_FALSE(judge_lse({2.0002f, -INFINITY, 4430233600.0f, NAN}, r).ok);
  EXPECT_FALSE(judge_lse({2.0f, -1e30f, 4430233600.0f, NAN}, r).ok);
  EXPECT_FALSE(judge_lse({2.0f, -INFINITY, 4430233600.0f + 1024, NAN}, r).ok);
  EXPECT_FALSE(judge_lse({2.0f, -INFINITY, 4430233600.0f, 0}, r).ok);
  EXPECT_FALSE(judge_lse({NAN, -INFINITY, 4430233600.0f, NAN}, r).ok);
}

// The bounds' terms for scores summed in fp32 and for weights that underflow in fp16.
TEST(Judge, ScoreErrorAndUnderflow) {
  AttentionReference r = reference({0.0}, {1.0}, {2.0});
  r.score_scale = {0x1p20};  // 4 2^-24 2^20 = 0.25
  EXPECT_TRUE(judge_out(kBf16, {float_to_bf16(0.25f)}, r, 1).ok);
  EXPECT_FALSE(judge_out(kBf16, {float_to_bf16(0.26f)}, r, 1).ok);
  EXPECT_TRUE(judge_lse({2.25f}, r).ok);
  EXPECT_FALSE(judge_lse({2.2502f}, r).ok);
  r = reference({0.0}, {0.0}, {2.0});
  r.underflow = {63};  // 2^-25 (1 + 63) = 2^-19
  EXPECT_TRUE(judge_out(FLYDSL_AOT_FP16, {float_to_fp16(0x1p-19f)}, r, 1).ok);
  EXPECT_FALSE(judge_out(FLYDSL_AOT_FP16, {float_to_fp16(0x1.1p-19f)}, r, 1).ok);
  EXPECT_FALSE(judge_out(kBf16, {float_to_bf16(0x1p-19f)}, r, 1).ok) << "bf16 does not underflow";
}

TEST(Reference, Underflow) {
  // Scores 1 and 0, V = 3 and -1: the larger weight is e / (1 + e), and meets |3| + |-1|.
  const AttentionReference r =
      attention_forward_reference(kBf16, Column({2}).view(), Column({1, 0}).view(),
                                  Column({3, -1}).view(), 0.5, {-1, -1, 0, 0});
  EXPECT_DOUBLE_EQ(r.underflow[0], 4 * std::exp(1) / (1 + std::exp(1)));
  EXPECT_EQ(r.score_scale[0], 1);
}

}  // namespace
}  // namespace flydsl::verify
