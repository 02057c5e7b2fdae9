// Every head dim from 1 to 256 and the larger classes, D and Dv alike or not, through the instances of the head-dim
// classes, against the float64 oracle.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "test/support/attention_forward_case.h"
#include "tools/verify/float16.h"

namespace flydsl::test {
namespace {

class AttentionForwardHeadDims : public ::testing::TestWithParam<flydsl_aot_dtype> {
 protected:
  // A small problem of random lengths, heads, mask and placement.
  AttentionCase random_case(int64_t head_dim, int64_t head_dim_v, Random &random) const {
    AttentionCase c;
    c.dtype = GetParam();
    c.head_dim = head_dim;
    c.head_dim_v = head_dim_v;
    c.heads_kv = random.between(1, 2);
    c.heads_q = c.heads_kv * random.between(1, 2);
    c.seq_q = random.between(1, 70);
    c.seq_k = random.between(1, 140);
    c.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(head_dim)));
    const flydsl_aot_mask masks[] = {no_mask(), causal_top_left(), causal_bottom_right()};
    c.mask = masks[random.below(3)];
    c.fill_random(random);
    const bool aligned = random.chance(0.5);
    for (Placement *place : {&c.place_q, &c.place_k, &c.place_v, &c.place_out})
      *place = random_placement(random, 4, 3, aligned);
    if (!aligned) c.place_k.offset_elements = random.between(1, 7);
    c.place_lse = random_placement(random, 3, 3, false);
    return c;
  }
  void check(int64_t head_dim, int64_t head_dim_v, Random &random) const {
    const AttentionCase c = random_case(head_dim, head_dim_v, random);
    const AttentionResult result = check_attention(c);
    EXPECT_EQ(result.kernel, instance_name(c, c.place_k.offset_elements % 8 != 0)) << describe(c);
  }
};

INSTANTIATE_TEST_SUITE_P(Dtypes, AttentionForwardHeadDims,
                         ::testing::Values(FLYDSL_AOT_BF16, FLYDSL_AOT_FP16), [](const auto &info) {
                           return std::string(flydsl_aot_dtype_name(info.param));
                         });

TEST_P(AttentionForwardHeadDims, ClassEdges) {
  const uint64_t seed = test_seed(61);
  SCOPED_TRACE("FLYDSL_TEST_SEED=" + std::to_string(seed));
  Random random(seed);
  for (const int64_t head_dim : {1,   7,   8,   9,   31,  32,  33,  65,  72,  80,  96,  100,
                                 127, 129, 160, 161, 192, 224, 255, 256, 257, 300, 511, 512})
    check(head_dim, head_dim, random);
  for (const auto &[head_dim, head_dim_v] : std::vector<std::pair<int64_t, int64_t>>{{192, 128},
                                                                                     {64, 32},
                                                                                     {32, 64},
                                                                                     {1, 256},
                                                                                     {256, 1},
                                                                                     {128, 64},
                                                                                     {161, 127},
                                                                                     {128, 129},
                                                                                     {576, 512},
                                                                                     {576, 256},
                                                                                     {513, 257},
                                                                                     {40, 400},
                                                                                     {512, 64}})
    check(head_dim, head_dim_v, random);
}

TEST_P(AttentionForwardHeadDims, EveryOne) {
  const uint64_t seed = test_seed(62);
  SCOPED_TRACE("FLYDSL_TEST_SEED=" + std::to_string(seed));
  Random random(seed);
  for (int64_t head_dim = 1; head_dim <= 256; ++head_dim)
    check(head_dim, random.chance(0.5) ? head_dim : random.between(1, 256), random);
}

// Longer problems, so that every class passes many tiles and rescales its sums.
TEST_P(AttentionForwardHeadDims, LongSequences) {
  const uint64_t seed = test_seed(63);
  SCOPED_TRACE("FLYDSL_TEST_SEED=" + std::to_string(seed));
  Random random(seed);
  for (const auto &[head_dim, head_dim_v] : std::vector<std::pair<int64_t, int64_t>>{{32, 32},
                                                                                     {96, 96},
                                                                                     {80, 80},
                                                                                     {160, 160},
                                                                                     {192, 128},
                                                                                     {192, 192},
                                                                                     {224, 200},
                                                                                     {256, 256},
                                                                                     {512, 512},
                                                                                     {576, 512}}) {
    AttentionCase c = random_case(head_dim, head_dim_v, random);
    c.seq_q = random.between(129, 300);
    c.seq_k = random.between(300, 600);
    c.fill_random(random);
    // Scores that grow with the key: the running maximum moves in every tile.
    for (int64_t j = 0; j < c.heads_kv * c.seq_k; ++j) {
      uint16_t &first = c.k[static_cast<size_t>(j * head_dim)];
      first = from_float(c.dtype, static_cast<float>(j % c.seq_k) / 8);
    }
    check_attention(c);
  }
}

// Scores that jump from tile to tile, up and down, by less and by more than fp32 weights can follow: each time the
// reference has to move before a weight is used.
TEST_P(AttentionForwardHeadDims, ScoresJump) {
  const uint64_t seed = test_seed(67);
  SCOPED_TRACE("FLYDSL_TEST_SEED=" + std::to_string(seed));
  Random random(seed);
  const float jumps[] = {0, 12, -300, 20, 200, 190, 600};
  for (const int64_t head_dim : {32, 64, 80, 96, 128, 160, 192, 256}) {
    AttentionCase c = random_case(head_dim, head_dim, random);
    c.seq_q = 70;
    c.seq_k = 7 * 64 - 5;
    c.scale = 1;
    c.place_k = c.place_q = c.place_v = c.place_out = Placement{};
    c.fill_random(random);
    // (In the last element: added first it would take the others' last bits.)
    for (int64_t i = 1; i <= c.heads_q * c.seq_q; ++i)
      c.q[static_cast<size_t>(i * head_dim - 1)] = from_float(c.dtype, 1.0f);
    for (int64_t j = 0; j < c.heads_kv * c.seq_k; ++j) {
      c.k[static_cast<size_t>((j + 1) * head_dim - 1)] =
          from_float(c.dtype, jumps[j % c.seq_k / 64] + static_cast<float>(j % 3));
    }
    check_attention(c);
  }
}

// What is padded inside the kernel must not show: the same problem, padded with zeros by the caller
// to the class, gives the same bits (the order of the sums is the class's).
TEST_P(AttentionForwardHeadDims, flash_attention_2896_padding_by_the_caller_is_equal) {
  const uint64_t seed = test_seed(64);
  SCOPED_TRACE("FLYDSL_TEST_SEED=" + std::to_string(seed));
  Random random(seed);
  for (const auto &[head_dim, padded] : std::vector<std::pair<int64_t, int64_t>>{{72, 96},
                                                                                 {80, 96},
                                                                                 {65, 96},
                                                                                 {136, 160},
                                                                                 {161, 192},
                                                                                 {200, 224},
                                                                                 {250, 256},
                                                                                 {13, 32},
                                                                                 {300, 512}}) {
    AttentionCase c = random_case(head_dim, head_dim, random);
    AttentionCase p = c;
    p.head_dim = p.head_dim_v = padded;
    const auto pad = [&](const std::vector<uint16_t> &from) {
      std::vector<uint16_t> to(
          from.size() / static_cast<size_t>(head_dim) * static_cast<size_t>(padded), 0);
      for (size_t i = 0; i < from.size(); ++i)
        to[i / static_cast<size_t>(head_dim) * static_cast<size_t>(padded) +
           i % static_cast<size_t>(head_dim)] = from[i];
      return to;
    };
    p.q = pad(c.q);
    p.k = pad(c.k);
    p.v = pad(c.v);
    const AttentionResult a = check_attention(c), b = check_attention(p);
    EXPECT_EQ(pad(a.out), b.out) << describe(c);
    EXPECT_EQ(a.lse, b.lse) << describe(c);
  }
}

// The slow path at partial rows: hidden NaN in K and V, and a visible one in one column of V.
TEST_P(AttentionForwardHeadDims, NanNeverLeaks) {
  const uint64_t seed = test_seed(65);
  SCOPED_TRACE("FLYDSL_TEST_SEED=" + std::to_string(seed));
  Random random(seed);
  const uint16_t nan = from_float(GetParam(), NAN);
  for (const auto &[head_dim, head_dim_v] : std::vector<std::pair<int64_t, int64_t>>{
           {40, 40}, {100, 77}, {192, 128}, {256, 255}, {576, 512}}) {
    AttentionCase c = random_case(head_dim, head_dim_v, random);
    c.seq_q = 40;
    c.seq_k = 90;
    c.mask = causal_top_left();
    c.fill_random(random);
    for (int64_t j = 30; j < c.seq_k; ++j) {
      c.k[static_cast<size_t>(j * head_dim + 5)] = nan;
      for (int64_t d = 0; d < head_dim_v; ++d) c.v[static_cast<size_t>(j * head_dim_v + d)] = nan;
    }
    c.v[static_cast<size_t>(7 * head_dim_v + head_dim_v - 1)] = nan;
    const AttentionResult result = check_attention(c);
    EXPECT_TRUE(std::isfinite(result.lse[29]));
    EXPECT_TRUE(std::isfinite(to_float(c.dtype, result.out[static_cast<size_t>(29 * head_dim_v)])));
  }
}

// Sums of 2^30 in fp32 and beyond, every sign of the scale, scale 0.
TEST_P(AttentionForwardHeadDims, EveryScale) {
  for (const float scale : {0.0f, -1.0f, 1e-45f, 37.5f, -1e4f, 1e20f}) {
    Random random(test_seed(66));
    AttentionCase c = random_case(72, 72, random);
    c.scale = scale;
    const AttentionCase::Fill small = [&](int64_t, int64_t, int64_t, int64_t) {
      return static_cast<float>(random.between(-2, 2));
    };
    c.fill_q(small);
    c.fill_k(small);
    check_attention(c);
  }
}

}  // namespace
}  // namespace flydsl::test
