// The oracle of attention_backward: against values worked out by hand, against finite differences of the forward
// pass, which know nothing of the chain rule; and its judge, which must fail what is wrong.
#include "tools/verify/attention_backward_reference.h"

#include <gtest/gtest.h>

#include <string>

#include "tools/verify/attention_forward_reference.h"
#include "tools/verify/float16.h"
#include "tools/verify/random.h"

namespace flydsl::verify {
namespace {

const flydsl_aot_mask kNoMask{FLYDSL_AOT_UNLIMITED, FLYDSL_AOT_UNLIMITED, FLYDSL_AOT_ANCHOR_NONE,
                              0};

void expect_near(const std::vector<double> &got, const std::vector<double> &wanted,
                 double tolerance, const std::string &what) {
  ASSERT_EQ(got.size(), wanted.size()) << what;
  for (size_t n = 0; n < got.size(); ++n)
    EXPECT_NEAR(got[n], wanted[n], tolerance * std::max(1.0, std::fabs(wanted[n])))
        << what << ", element " << n;
}

// One head, one channel.
BackwardProblem column(const std::vector<double> &q, const std::vector<double> &k,
                       const std::vector<double> &v, const std::vector<double> &dout) {
  BackwardProblem p;
  p.rows = static_cast<int64_t>(q.size());
  p.keys = static_cast<int64_t>(k.size());
  p.head_dim = p.value_dim = 1;
  p.q = q;
  p.k = k;
  p.v = v;
  p.dout = dout;
  p.mask = kNoMask;
  return p;
}

TEST(Gradients, SoftcapOfTwoScores) {
  // Scores 1 and 0, capped at 2: 2 tanh(1/2) and 0. Values worked out by hand.
  BackwardProblem p = column({4}, {2, 0}, {1, 0}, {1});
  p.scale = 0.125;
  p.terms.softcap = 2;
  p.want_score_gradient = true;
  const Gradients g = attention_gradients(p, {});
  EXPECT_NEAR(g.out[0], 0.715904, 1e-6);
  EXPECT_NEAR(g.lse[0], 1.258443, 1e-6);
  expect_near(g.dq, {0.039988}, 1e-6, "dq");
  expect_near(g.dk, {0.079976, -0.101693}, 1e-6, "dk");  // at a score of 0 the cap does nothing
  expect_near(g.dv, {0.715904, 0.284096}, 1e-6, "dv");
  expect_near(g.score, {0.203386, -0.203386}, 1e-6, "dbias");
}

TEST(Gradients, SinkTakesItsShare) {
  // Three keys and a sink, all scores 0: weights 1/4; out = 6; dsink = -1/4 * 6 a row.
  BackwardProblem p = column({0, 0}, {0, 0, 0}, {4, 8, 12}, {1, 1});
  p.terms.sink = [](int64_t) { return 0; };
  p.terms.visible = [](int64_t, int64_t, int64_t i, int64_t) { return i == 0; };
  const Gradients g = attention_gradients(p, {});
  EXPECT_EQ(g.out, (std::vector<double>{6, 0}));
  EXPECT_NEAR(g.lse[0], std::log(4.0), 1e-12);
  EXPECT_EQ(g.lse[1], 0);
  EXPECT_EQ(g.dv, (std::vector<double>{0.25, 0.25, 0.25}));
  EXPECT_EQ(g.dsink, (std::vector<double>{-1.5}));
}

TEST(Gradients, RowsAndKeysThatTakeNoPart) {
  // Bottom-right causal, four queries, two keys: rows 0 and 1 see nothing. A key that is hidden from all may hold anything.
  BackwardProblem p = column({1, 1, 1, 1}, {1, 1, NAN}, {2, 4, NAN}, {NAN, 5, 1, 1});
  p.mask = {FLYDSL_AOT_UNLIMITED, 0, FLYDSL_AOT_ANCHOR_TOP_LEFT, 0};
  p.terms.visible = [](int64_t, int64_t, int64_t i, int64_t j) { return i >= 2 && j < i - 1; };
  const Gradients g = attention_gradients(p, {});
  expect_near(g.out, {0, 0, 2, 3}, 1e-12, "out");
  EXPECT_EQ(g.lse[0], -INFINITY);
  expect_near(g.dv, {1.5, 0.5, 0}, 1e-12, "dv");
  EXPECT_EQ(g.dv[2], 0);
  EXPECT_EQ(g.dk[2], 0);
  expect_near(g.dq, {0, 0, 0, 0}, 1e-12, "dq");
  EXPECT_EQ(g.dq[0], 0);
}

// A random problem with features.
struct Features {
  const char *name;
  flydsl_aot_mask mask = kNoMask;
  double softcap = 0;
  bool bias = false, visible = false, alibi = false, sink = false, dropout = false;
  double scale = 0.6;
};

class Differences : public ::testing::TestWithParam<Features> {
 protected:
  Differences() {
    const Features &f = GetParam();
    p_.heads_q = 4;
    p_.heads_kv = 2;
    p_.rows = 5;
    p_.keys = 7;
    p_.head_dim = 3;
    p_.value_dim = 2;
    p_.scale = f.scale;
    p_.mask = f.mask;
    const auto numbers = [&](int64_t count) {
      std::vector<double> values;
      for (int64_t n = 0; n < count; ++n) values.push_back(random_.normal());
      return values;
    };
    p_.q = numbers(4 * 5 * 3);
    p_.k = numbers(2 * 7 * 3);
    p_.v = numbers(2 * 7 * 2);
    p_.dout = numbers(4 * 5 * 2);
    bias_ = numbers(4 * 5 * 7);
    sinks_ = numbers(4);
    p_.terms.softcap = f.softcap;
    const auto at = [](int64_t h, int64_t i, int64_t j) {
      return static_cast<size_t>((h * 5 + i) * 7 + j);
    };
    if (f.bias)
      p_.terms.bias = [this, at](int64_t, int64_t h, int64_t i, int64_t j) {
        return bias_[at(h, i, j)];
      };
    if (f.visible)
      p_.terms.visible = [](int64_t, int64_t h, int64_t i, int64_t j) {
        return (h + 2 * i + 3 * j) % 4 != 0 && i != 3;
      };
    if (f.alibi)
      p_.terms.slope = [](int64_t, int64_t h) { return 0.1 * static_cast<double>(h + 1); };
    if (f.sink) p_.terms.sink = [this](int64_t h) { return sinks_[static_cast<size_t>(h)]; };
    if (f.dropout)
      p_.terms.dropout = [](int64_t, int64_t h, int64_t i, int64_t j) {
        return (5 * h + 3 * i + j) % 3 == 0 ? 0 : 1.5;
      };
    p_.want_score_gradient = true;
  }

  double loss() const {
    const Gradients g = attention_gradients(p_, {});
    double sum = 0;
    for (size_t n = 0; n < g.out.size(); ++n) sum += g.out[n] * p_.dout[n];
    return sum;
  }
  // Central differences with respect to each of `values`, which the problem refers to; their error is of order step^2.
  std::vector<double> differences(std::vector<double> &values) const {
    constexpr double kStep = 1e-4;
    std::vector<double> result;
    for (double &value : values) {
      const double middle = value;
      value = middle + kStep;
      const double above = loss();
      value = middle - kStep;
      const double below = loss();
      value = middle;
      result.push_back((above - below) / (2 * kStep));
    }
    return result;
  }

  Random random_{11};
  BackwardProblem p_;
  std::vector<double> bias_, sinks_;
};

TEST_P(Differences, AreTheGradients) {
  const Gradients g = attention_gradients(p_, {});
  constexpr double kTolerance = 1e-6;
  expect_near(g.dq, differences(p_.q), kTolerance, "dq");
  expect_near(g.dk, differences(p_.k), kTolerance, "dk");
  expect_near(g.dv, differences(p_.v), kTolerance, "dv");
  if (GetParam().bias) expect_near(g.score, differences(bias_), kTolerance, "dbias");
  if (GetParam().sink) expect_near(g.dsink, differences(sinks_), kTolerance, "dsink");
}

// The forward pass that the differences are of is that of attention_forward's own oracle.
TEST_P(Differences, AreOfTheForwardPass) {
  const auto narrow = [](std::vector<double> &values) {
    std::vector<uint16_t> bits;
    for (double &value : values) {
      bits.push_back(float_to_bf16(static_cast<float>(value)));
      value = bf16_to_float(bits.back());
    }
    return bits;
  };
  const std::vector<uint16_t> q = narrow(p_.q), k = narrow(p_.k), v = narrow(p_.v);
  const AttentionReference forward = attention_forward_reference(
      FLYDSL_AOT_BF16, {q.data(), {1, 4, 5, 3}, {60, 15, 3, 1}},
      {k.data(), {1, 2, 7, 3}, {42, 21, 3, 1}}, {v.data(), {1, 2, 7, 2}, {28, 14, 2, 1}}, p_.scale,
      p_.mask, p_.terms);
  const Gradients g = attention_gradients(p_, {});
  expect_near(g.out, forward.out, 1e-12, "out");
  for (size_t n = 0; n < g.lse.size(); ++n) {
    if (std::isfinite(forward.lse[n]))
      EXPECT_NEAR(g.lse[n], forward.lse[n], 1e-12);
    else
      EXPECT_EQ(g.lse[n], forward.lse[n]);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Of, Differences,
    ::testing::Values(
        Features{.name = "plain"},
        Features{.name = "causal_top_left", .mask = {-1, 0, FLYDSL_AOT_ANCHOR_TOP_LEFT, 0}},
        Features{.name = "causal_bottom_right", .mask = {-1, 0, FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT, 0}},
        Features{.name = "window", .mask = {2, 1, FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT, 0}},
        Features{.name = "negative_scale", .scale = -0.8},
        Features{.name = "softcap", .softcap = 0.7}, Features{.name = "bias", .bias = true},
        Features{.name = "visible", .visible = true}, Features{.name = "alibi", .alibi = true},
        Features{.name = "sink", .sink = true}, Features{.name = "dropout", .dropout = true},
        Features{.name = "all",
                 .mask = {4, 3, FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT, 0},
                 .softcap = 1.5,
                 .bias = true,
                 .visible = true,
                 .alibi = true,
                 .sink = true,
                 .dropout = true}),
    [](const auto &info) { return std::string(info.param.name); });

}  // namespace
}  // namespace flydsl::verify
