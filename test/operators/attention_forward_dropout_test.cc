// Dropout: the very weights that the header's rule drops, whatever the tiles, the lengths and the way
// seed and offset are given, against the float64 oracle and a host Philox.
#include <gtest/gtest.h>

#include <cmath>

#include "test/support/attention_forward_case.h"
#include "tools/verify/float16.h"
#include "tools/verify/philox.h"

namespace flydsl::test {
namespace {

// Known answers of the authors' library (Random123, kat_vectors, philox4x32 10).
TEST(Philox, KnownAnswers) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(philox_4x32_10({0, 0}, {0, 0, 0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(
      philox_4x32_10({0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}),
      (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(
      philox_4x32_10({0xa4093822, 0x299f31d0}, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}),
      (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

class AttentionForwardDropout : public ::testing::Test {
 protected:
  const uint64_t seed_ = test_seed(101);
  ::testing::ScopedTrace trace_{__FILE__, __LINE__, "FLYDSL_TEST_SEED=" + std::to_string(seed_)};
  Random random_{seed_};

  AttentionCase random_case() {
    AttentionCase c;
    c.dtype = random_.chance(0.5) ? FLYDSL_AOT_BF16 : FLYDSL_AOT_FP16;
    constexpr int64_t kDims[] = {64, 128, 24, 160};
    c.head_dim = kDims[random_.below(4)];
    c.batches = random_.between(1, 2);
    c.heads_kv = random_.between(1, 2);
    c.heads_q = c.heads_kv * random_.between(1, 2);
    c.seq_q = random_.between(1, 90);
    c.seq_k = random_.between(1, 200);
    const flydsl_aot_mask masks[] = {no_mask(),
                                     causal_top_left(),
                                     causal_bottom_right(),
                                     {70, 5, FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT, 0}};
    c.mask = masks[random_.below(4)];
    c.dropout_p = static_cast<float>(random_.uniform() * 0.9);
    c.seed = random_.bits();
    c.offset = random_.bits();
    c.fill_random(random_);
    return c;
  }
};

TEST_F(AttentionForwardDropout, RandomAgainstFloat64) {
  for (int i = 0; i < 40; ++i) {
    AttentionCase c = random_case();
    c.random_on_device = random_.chance(0.5);
    c.want_lse = random_.chance(0.8);
    if (random_.chance(0.3)) {
      c.sinks.assign(static_cast<size_t>(c.heads_q), 0.5f);
      c.softcap = 3;
    }
    if (random_.chance(0.3)) {
      c.lengths_q_as = random_.chance(0.5) ? Lengths::kPacked : Lengths::kUsed;
      c.lengths_k_as = random_.chance(0.5) ? Lengths::kPacked : Lengths::kUsed;
      for (int64_t b = 0; b < c.batches; ++b) {
        c.lengths_q.push_back(random_.between(1, c.seq_q));
        c.lengths_k.push_back(random_.between(0, c.seq_k));
      }
    }
    const AttentionResult result = check_attention(c);
    EXPECT_EQ(result.kernel, instance_name(c, false)) << describe(c);
    if (c.random_on_device) {
      EXPECT_EQ(result.used, (std::vector<uint64_t>{c.seed, c.offset})) << describe(c);
    }
  }
}

// Host and device numbers are the same numbers, and the kept output is the rule, also where the mask
// hides.
TEST_F(AttentionForwardDropout, KeptWeightsAreThoseOfTheRule) {
  for (const float p : {0.0f, 0.25f, 0.999f}) {
    AttentionCase c = random_case();
    c.dropout_p = p;
    c.offset = ~uint64_t{0} - 3;  // the sum with j / 4 wraps
    c.want_kept = true;
    c.place_kept = Placement{{2, 0, 3, 1}, {1, 0, 3, 0}, {}, 5, 7};
    const AttentionResult host = check_attention(c);
    c.random_on_device = true;
    const AttentionResult device = check_attention(c);
    EXPECT_TRUE(same_bits(host, device));
    EXPECT_EQ(host.kept, device.kept);
    size_t n = 0;
    int64_t dropped = 0;
    for (int64_t b = 0; b < c.batches; ++b) {
      for (int64_t h = 0; h < c.heads_q; ++h) {
        for (int64_t i = 0; i < c.seq_q; ++i) {
          for (int64_t j = 0; j < c.seq_k; ++j) {
            ASSERT_EQ(host.kept[n], c.keeps(b, h, i, j)) << b << " " << h << " " << i << " " << j;
            dropped += host.kept[n++] == 0;
          }
        }
      }
    }
    // Six standard deviations.
    const double count = static_cast<double>(n), mean = count * static_cast<double>(p);
    EXPECT_NEAR(static_cast<double>(dropped), mean,
                6 * std::sqrt(mean * (1 - static_cast<double>(p))) + 1e-9);
  }
}

// A weight does not depend on the head dim's class, the instance or what else is asked for.
TEST_F(AttentionForwardDropout, TheSameInEveryInstance) {
  AttentionCase c = random_case();
  c.want_kept = true;
  std::vector<uint8_t> kept;
  for (const int64_t head_dim : {32, 64, 96, 128, 192, 256}) {
    c.head_dim = head_dim;
    c.fill_random(random_);
    const AttentionResult result = check_attention(c);
    if (kept.empty()) kept = result.kept;
    EXPECT_EQ(result.kept, kept) << head_dim;
  }
}

// The slow path drops the same weights: NaN in V of a hidden key, in one column of a visible one.
TEST_F(AttentionForwardDropout, SlowPath) {
  for (const flydsl_aot_dtype dtype : {FLYDSL_AOT_BF16, FLYDSL_AOT_FP16}) {
    AttentionCase c = random_case();
    c.dtype = dtype;
    c.seq_q = 50;
    c.seq_k = 120;
    c.mask = causal_top_left();
    c.fill_random(random_);
    const uint16_t nan = from_float(dtype, NAN);
    for (int64_t d = 0; d < c.head_dim; ++d) c.v[static_cast<size_t>(45 * c.head_dim + d)] = nan;
    c.v[static_cast<size_t>(3 * c.head_dim + 2)] = nan;
    check_attention(c);
  }
}

// A NaN score whose weight is dropped makes the row NaN all the same, also as the only key that the row
// sees.
TEST_F(AttentionForwardDropout, DroppedNanStaysNan) {
  AttentionCase c = random_case();
  c.mask = causal_top_left();
  c.dropout_p = 0.9f;
  c.seq_q = c.seq_k = 60;
  c.fill_random(random_);
  const uint16_t nan = from_float(c.dtype, NAN);
  for (int64_t d = 0; d < c.head_dim; ++d) c.k[static_cast<size_t>(d)] = nan;
  EXPECT_TRUE(std::isnan(to_float(c.dtype, check_attention(c).out[0])));
}

}  // namespace
}  // namespace flydsl::test
