// Bias, boolean mask, ALiBi, softcap and sinks: each alone with its corners, and all of them together
// at random, against the float64 oracle.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "test/support/attention_forward_case.h"
#include "test/support/library.h"
#include "tools/verify/float16.h"

namespace flydsl::test {
namespace {

AttentionCase random_case(Random &random) {
  AttentionCase c;
  c.dtype = random.chance(0.5) ? FLYDSL_AOT_BF16 : FLYDSL_AOT_FP16;
  c.bias_dtype = random.chance(0.5) ? FLYDSL_AOT_FP32 : c.dtype;
  constexpr int64_t kDims[] = {64, 128, 40, 96};
  c.head_dim = kDims[random.below(4)];
  c.batches = random.between(1, 2);
  c.heads_kv = random.between(1, 2);
  c.heads_q = c.heads_kv * random.between(1, 2);
  c.seq_q = random.between(1, 90);
  c.seq_k = random.between(1, 200);
  const flydsl_aot_mask masks[] = {no_mask(),
                                   causal_top_left(),
                                   causal_bottom_right(),
                                   {70, 5, FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT, 0}};
  c.mask = masks[random.below(4)];
  c.fill_random(random);
  return c;
}

// Numbers over (B, Hq, Sq, Sk) that do not change along broadcast axes.
template <typename Number, typename Draw>
std::vector<Number> score_numbers(const AttentionCase &c, const Placement &placement, Draw draw) {
  const int64_t sizes[] = {c.batches, c.heads_q, c.seq_q, c.seq_k};
  std::vector<Number> values;
  for (int64_t n = 0; n < c.score_count(); ++n) {
    int64_t rest = n, source = 0, extent = 1;
    for (int axis = 3; axis >= 0; --axis) {
      const int64_t index = rest % sizes[axis];
      rest /= sizes[axis];
      const bool same =
          !placement.broadcast.empty() && placement.broadcast[static_cast<size_t>(axis)];
      source += same ? 0 : index * extent;
      extent *= sizes[axis];
    }
    values.push_back(source < n ? values[static_cast<size_t>(source)] : draw());
  }
  return values;
}

Placement random_broadcast(Random &random) {
  Placement placement{{}, {}, {}, random.between(0, 9), random.between(0, 50)};
  for (int axis = 0; axis < 4; ++axis) placement.broadcast.push_back(random.chance(0.4));
  if (random.chance(0.5)) placement.order = {1, 3, 0, 2};
  return placement;
}

void add_bias(AttentionCase &c, Random &random) {
  c.place_bias = random_broadcast(random);
  c.bias = score_numbers<float>(
      c, c.place_bias, [&] { return random.chance(0.1) ? -INFINITY : random.normal() * 2; });
}
void add_visible(AttentionCase &c, Random &random) {
  c.place_visible = random_broadcast(random);
  c.visible = score_numbers<uint8_t>(c, c.place_visible, [&] {
    return static_cast<uint8_t>(random.chance(0.3) ? 0 : random.between(1, 255));
  });
}
void add_slopes(AttentionCase &c, Random &random) {
  const int64_t count = random.chance(0.5) ? c.heads_q : c.batches * c.heads_q;
  for (int64_t h = 0; h < count; ++h)
    c.alibi_slopes.push_back(
        std::exp2(-8.0f * static_cast<float>(h + 1) / static_cast<float>(count)));
}
void add_sinks(AttentionCase &c, Random &random) {
  for (int64_t h = 0; h < c.heads_q; ++h)
    c.sinks.push_back(random.chance(0.2) ? -INFINITY : random.normal() * 3);
}

class AttentionForwardScores : public ::testing::Test {
 protected:
  const uint64_t seed_ = test_seed(91);
  ::testing::ScopedTrace trace_{__FILE__, __LINE__, "FLYDSL_TEST_SEED=" + std::to_string(seed_)};
  Random random_{seed_};

  void check(const AttentionCase &c) {
    EXPECT_EQ(check_attention(c).kernel, instance_name(c, false)) << describe(c);
  }
};

TEST_F(AttentionForwardScores, Bias) {
  for (int i = 0; i < 25; ++i) {
    AttentionCase c = random_case(random_);
    add_bias(c, random_);
    check(c);
  }
}

TEST_F(AttentionForwardScores, BooleanMask) {
  for (int i = 0; i < 25; ++i) {
    AttentionCase c = random_case(random_);
    add_visible(c, random_);
    check(c);
  }
}

TEST_F(AttentionForwardScores, Alibi) {
  for (int i = 0; i < 25; ++i) {
    AttentionCase c = random_case(random_);
    add_slopes(c, random_);
    check(c);
  }
}

TEST_F(AttentionForwardScores, Softcap) {
  for (const float cap : {0.5f, 1.0f, 15.0f, 50.0f, 1000.0f, 1e-3f}) {
    for (const float scale : {0.125f, -2.0f, 100.0f, 0.0f, 1e-30f}) {
      AttentionCase c = random_case(random_);
      c.softcap = cap;
      c.scale = scale;
      check(c);
    }
  }
}

TEST_F(AttentionForwardScores, Sinks) {
  for (int i = 0; i < 25; ++i) {
    AttentionCase c = random_case(random_);
    add_sinks(c, random_);
    if (i % 5 == 0) c.sinks[0] = 80;  // far above every score
    check(c);
  }
}

TEST_F(AttentionForwardScores, AllTogetherAtRandom) {
  for (int i = 0; i < 60; ++i) {
    AttentionCase c = random_case(random_);
    if (random_.chance(0.5)) add_bias(c, random_);
    if (random_.chance(0.5)) add_visible(c, random_);
    if (random_.chance(0.5)) add_slopes(c, random_);
    if (random_.chance(0.5)) add_sinks(c, random_);
    if (random_.chance(0.5)) c.softcap = 5;
    if (random_.chance(0.3)) {
      c.lengths_q_as = random_.chance(0.5) ? Lengths::kPacked : Lengths::kUsed;
      c.lengths_k_as = random_.chance(0.5) ? Lengths::kPacked : Lengths::kUsed;
      for (int64_t b = 0; b < c.batches; ++b) {
        c.lengths_q.push_back(random_.between(0, c.seq_q));
        c.lengths_k.push_back(random_.between(0, c.seq_k));
      }
    }
    c.want_lse = random_.chance(0.8);
    check(c);
  }
}

// pytorch/pytorch#103963: a boolean mask whose last row sees nothing. The other rows are as if it were
// not there.
TEST_F(AttentionForwardScores, pytorch_103963_masked_row_is_empty) {
  for (const int64_t head_dim : {8, 64, 128}) {
    AttentionCase c;
    c.heads_q = 2;
    c.heads_kv = 2;
    c.head_dim = head_dim;
    c.seq_q = 6;
    c.seq_k = 10;
    c.fill_random(random_);
    for (int64_t n = 0; n < c.score_count(); ++n)
      c.visible.push_back(n / 10 % 6 < 5 && n % 10 <= n / 10 % 6);
    const AttentionResult result = check_attention(c);
    for (int64_t h = 0; h < 2; ++h) {
      EXPECT_EQ(result.lse[static_cast<size_t>(h * 6 + 5)], -INFINITY);
      for (int64_t d = 0; d < head_dim; ++d)
        EXPECT_EQ(result.out[static_cast<size_t>((h * 6 + 5) * head_dim + d)], 0);
    }
  }
}

// Hidden by the boolean mask or by a bias of -inf, NaN in V never leaks; nor in K under the mask. (Under
// a bias a NaN score stays NaN.) NaN and +inf in a bias make the rows that see them NaN.
TEST_F(AttentionForwardScores, HiddenNanNeverLeaks) {
  for (const bool by_bias : {false, true}) {
    AttentionCase c = random_case(random_);
    c.dtype = FLYDSL_AOT_BF16;
    c.mask = no_mask();
    c.seq_k = 100;
    c.fill_random(random_);
    for (int64_t n = 0; n < c.score_count(); ++n) {
      const bool hidden = n % 100 % 3 == 1;
      if (by_bias)
        c.bias.push_back(hidden ? -INFINITY : 0.5f);
      else
        c.visible.push_back(!hidden);
    }
    for (int64_t row = 0; row < c.batches * c.heads_kv * 100; ++row) {
      if (row % 100 % 3 != 1) continue;
      for (int64_t d = 0; d < c.head_dim; ++d) {
        c.v[static_cast<size_t>(row * c.head_dim + d)] = 0x7fc0;
        if (!by_bias) c.k[static_cast<size_t>(row * c.head_dim + d)] = 0x7fc0;
      }
    }
    for (const float lse : check_attention(c).lse) EXPECT_TRUE(std::isfinite(lse));
  }
  for (const float bad : {NAN, INFINITY}) {
    AttentionCase c = random_case(random_);
    c.mask = causal_top_left();
    add_bias(c, random_);
    c.place_bias = {};
    c.bias[0] = bad;
    EXPECT_TRUE(std::isnan(check_attention(c).lse[0]));
  }
}

// A sink of -inf is none; NaN and +inf poison every row that sees a key.
TEST_F(AttentionForwardScores, SinkCorners) {
  AttentionCase c = random_case(random_);
  c.mask = causal_bottom_right();
  c.seq_q = 40;
  c.seq_k = 30;
  c.fill_random(random_);
  const auto with = [&](float sink) {
    c.sinks.assign(static_cast<size_t>(c.heads_q), sink);
    return run_attention(c);
  };
  const AttentionResult none = with(-INFINITY);
  EXPECT_EQ(none.lse[0], -INFINITY);
  EXPECT_EQ(with(1.5f).lse[0], 1.5f);
  check_attention(c);
  for (const float bad : {NAN, INFINITY}) {
    const AttentionResult result = with(bad);
    ASSERT_EQ(result.status, FLYDSL_AOT_OK);
    for (int64_t i = 0; i < 40; ++i) {
      const float first = to_float(c.dtype, result.out[static_cast<size_t>(i * c.head_dim)]);
      if (i < 10)
        EXPECT_EQ(first, 0.0f) << i;
      else
        EXPECT_TRUE(std::isnan(first) && std::isnan(result.lse[static_cast<size_t>(i)])) << i;
    }
  }
}

// pytorch/pytorch#181825: broadcast through sizes of 1 as through strides of 0, bit for bit the dense
// bias.
TEST_F(AttentionForwardScores, pytorch_181825_broadcast_equals_dense) {
  for (unsigned axes = 1; axes < 16; ++axes) {
    AttentionCase c;
    c.batches = 2;
    c.heads_q = 4;
    c.heads_kv = 2;
    c.seq_q = 33;
    c.seq_k = 70;
    c.fill_random(random_);
    for (unsigned axis = 0; axis < 4; ++axis) c.place_bias.broadcast.push_back(axes >> axis & 1);
    c.bias = score_numbers<float>(c, c.place_bias, [&] { return random_.normal(); });
    const AttentionResult broadcast = check_attention(c);
    c.place_bias = {};
    EXPECT_TRUE(same_bits(broadcast, check_attention(c))) << axes;
  }
}

}  // namespace
}  // namespace flydsl::test
