// Faults reported in public for attention libraries, each named after its source, with values
// worked out by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "test/support/attention_forward_case.h"
#include "tools/verify/float16.h"

namespace flydsl::test {
namespace {

const std::vector<flydsl_aot_dtype> kDtypes = {FLYDSL_AOT_BF16, FLYDSL_AOT_FP16};

float zero(int64_t, int64_t, int64_t, int64_t) {
  return 0;
}

// Q = 0, so that every visible key weighs the same and a row is the mean of what it sees.
AttentionCase uniform_case(flydsl_aot_dtype dtype, int64_t seq_q, int64_t seq_k,
                           const flydsl_aot_mask &mask) {
  AttentionCase c;
  c.dtype = dtype;
  c.seq_q = seq_q;
  c.seq_k = seq_k;
  c.mask = mask;
  c.fill_q(zero);
  c.fill_k([](int64_t, int64_t, int64_t, int64_t) { return 1.0f; });
  c.fill_v([](int64_t, int64_t, int64_t j, int64_t) { return static_cast<float>(j); });
  return c;
}

void expect_column(const AttentionCase &c, const AttentionResult &result,
                   const std::vector<float> &rows) {
  ASSERT_EQ(result.out.size(), rows.size() * static_cast<size_t>(c.head_dim));
  for (size_t i = 0; i < result.out.size(); ++i) {
    EXPECT_EQ(to_float(c.dtype, result.out[i]), rows[i / static_cast<size_t>(c.head_dim)])
        << describe(c) << " row " << i / static_cast<size_t>(c.head_dim);
  }
}

// pytorch/pytorch#108108, ROCm/aotriton#55, Dao-AILab/flash-attention#1778: which diagonal causal
// means when Lq != Lk.
TEST(AttentionForwardPublicCases, pytorch_108108_causal_anchor) {
  for (const flydsl_aot_dtype dtype : kDtypes) {
    const auto run = [&](int64_t seq_q, int64_t seq_k, const flydsl_aot_mask &mask,
                         const std::vector<float> &expected) {
      const AttentionCase c = uniform_case(dtype, seq_q, seq_k, mask);
      expect_column(c, check_attention(c), expected);
    };
    run(3, 5, causal_top_left(), {0, 0.5, 1});
    run(3, 5, causal_bottom_right(), {1, 1.5, 2});
    run(5, 3, causal_top_left(), {0, 0.5, 1, 1, 1});
    run(5, 3, causal_bottom_right(), {0, 0, 0, 0.5, 1});
    const AttentionCase tall = uniform_case(dtype, 5, 3, causal_bottom_right());
    const AttentionResult result = check_attention(tall);
    EXPECT_EQ(result.lse[0], -INFINITY);
    EXPECT_EQ(result.lse[1], -INFINITY);
    EXPECT_EQ(result.lse[2], 0.0f);

    // Long enough to cross tiles. The mean of 0 .. n-1 is (n-1)/2; the sum of equal weights is
    // exact.
    for (const auto &[seq_q, seq_k] : {std::pair<int64_t, int64_t>{129, 257}, {257, 129}}) {
      for (const bool bottom_right : {false, true}) {
        const AttentionCase c = uniform_case(
            dtype, seq_q, seq_k, bottom_right ? causal_bottom_right() : causal_top_left());
        std::vector<float> expected;
        for (int64_t i = 0; i < seq_q; ++i) {
          const int64_t seen =
              std::clamp<int64_t>(i + 1 + (bottom_right ? seq_k - seq_q : 0), 0, seq_k);
          const float mean = seen == 0 ? 0 : static_cast<float>(seen - 1) / 2;
          expected.push_back(to_float(dtype, from_float(dtype, mean)));
        }
        // V[j] = j is exact in bf16 up to 256; the expected means are rounded as the output is.
        expect_column(c, check_attention(c), expected);
      }
    }
  }
}

// pytorch/pytorch#103963, flashinfer-ai/flashinfer#4452: a row that may look at no key.
TEST(AttentionForwardPublicCases, pytorch_103963_empty_rows) {
  for (const flydsl_aot_dtype dtype : kDtypes) {
    for (const int64_t head_dim : {64, 128}) {
      AttentionCase c = uniform_case(dtype, 4, 2, causal_bottom_right());
      c.head_dim = head_dim;
      c.fill_q(zero);
      c.fill_k(zero);
      c.fill_v([](int64_t, int64_t, int64_t j, int64_t) { return j == 0 ? 2.0f : 4.0f; });
      const AttentionResult result = check_attention(c);
      expect_column(c, result, {0, 0, 2, 3});
      EXPECT_EQ(result.lse[0], -INFINITY);
      EXPECT_EQ(result.lse[1], -INFINITY);
      EXPECT_EQ(result.lse[2], 0.0f);
      EXPECT_NEAR(result.lse[3], 0.693147, 1e-6);
    }
  }
}

// ROCm/aotriton#183, pytorch/pytorch#181645: LSE in another base, padded, or not written. The
// report uses fp32, which is refused here; in bf16 the inputs (zeros) and so the values are the
// same.
TEST(AttentionForwardPublicCases, aotriton_183_lse_values) {
  for (const auto &[seq_q, seq_k] : {std::pair<int64_t, int64_t>{256, 32}, {64, 32}, {64, 64}}) {
    for (const bool bottom_right : {false, true}) {
      AttentionCase c = uniform_case(FLYDSL_AOT_BF16, seq_q, seq_k,
                                     bottom_right ? causal_bottom_right() : causal_top_left());
      c.batches = 3;
      c.heads_q = c.heads_kv = 5;
      c.fill_q(zero);
      c.fill_k([](int64_t, int64_t, int64_t j, int64_t d) {
        return static_cast<float>((j * 7 + d) % 11 - 5);
      });
      c.fill_v([](int64_t, int64_t, int64_t j, int64_t) { return static_cast<float>(j); });
      const AttentionResult result = check_attention(c);
      ASSERT_EQ(result.lse.size(), static_cast<size_t>(15 * seq_q));
      for (size_t n = 0; n < result.lse.size(); ++n) {
        const int64_t i = static_cast<int64_t>(n) % seq_q;
        const int64_t seen =
            std::clamp<int64_t>(i + 1 + (bottom_right ? seq_k - seq_q : 0), 0, seq_k);
        if (seen == 0) {
          EXPECT_EQ(result.lse[n], -INFINITY) << describe(c) << " row " << i;
        } else {
          EXPECT_NEAR(result.lse[n], std::log(static_cast<double>(seen)), 2e-6)
              << describe(c) << " row " << i;
        }
      }
    }
  }
  const AttentionCase c = uniform_case(FLYDSL_AOT_BF16, 3, 1024, no_mask());
  for (const float lse : check_attention(c).lse) EXPECT_NEAR(lse, 6.931472, 2e-6);
}

TEST(AttentionForwardPublicCases, aotriton_183_repeated_calls_are_equal) {
  for (const auto &[seq_q, seq_k] : {std::pair<int64_t, int64_t>{256, 32}, {64, 64}}) {
    AttentionCase c;
    c.batches = 3;
    c.heads_q = c.heads_kv = 5;
    c.seq_q = seq_q;
    c.seq_k = seq_k;
    c.mask = causal_top_left();
    Random random(test_seed(31));
    c.fill_random(random);
    const AttentionResult first = check_attention(c);
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(same_bits(first, run_attention(c))) << "call " << i;
  }
}

// ROCm/aotriton#54: large equal scores; a maximum taken from a rounded product leaves 2^247.
TEST(AttentionForwardPublicCases, aotriton_54_large_equal_scores) {
  for (const int64_t head_dim : {64, 128}) {
    for (const float sign : {1.0f, -1.0f}) {
      AttentionCase c;
      c.head_dim = head_dim;
      c.scale = 0.25f;
      c.seq_q = c.seq_k = 64;
      c.fill_q([](int64_t, int64_t, int64_t, int64_t d) { return d == 0 ? 133120.0f : 0.0f; });
      c.fill_k(
          [&](int64_t, int64_t, int64_t, int64_t d) { return d == 0 ? sign * 133120.0f : 0.0f; });
      c.fill_v([](int64_t, int64_t, int64_t j, int64_t) { return static_cast<float>(j) / 64; });
      const AttentionResult result = check_attention(c);
      expect_column(c, result, std::vector<float>(64, 0.4921875f));
      for (const float lse : result.lse) EXPECT_NEAR(lse, sign * 4430233600.0, 512);
    }
  }
}

// flashinfer-ai/flashinfer#4267: all scores below a finite "minus infinity". The second input of
// the report is fp32 with D = 16; in bf16 1e15 becomes 999799117152256, and the score -9.99598e29.
TEST(AttentionForwardPublicCases, flashinfer_4267_very_negative_scores) {
  AttentionCase c;
  c.head_dim = 128;
  c.scale = static_cast<float>(1 / std::sqrt(128.0));
  c.seq_q = 1;
  c.seq_k = 64;
  const auto fill = [&](float q, float k) {
    c.fill_q([=](int64_t, int64_t, int64_t, int64_t d) { return d == 0 ? q : 0.0f; });
    c.fill_k([=](int64_t, int64_t, int64_t, int64_t d) { return d == 0 ? k : 0.0f; });
    c.fill_v([](int64_t, int64_t, int64_t j, int64_t) { return static_cast<float>(j) / 64; });
  };
  fill(448, -1880);
  AttentionResult result = check_attention(c);
  expect_column(c, result, {0.4921875f});
  EXPECT_NEAR(result.lse[0], -74440.04, 0.02);

  c.scale = 1;
  fill(1e15f, -1e15f);
  result = check_attention(c);
  expect_column(c, result, {0.4921875f});
  const double score = -std::pow(static_cast<double>(bf16_to_float(float_to_bf16(1e15f))), 2);
  EXPECT_NEAR(result.lse[0] / score, 1, 1e-6);
}

// pytorch/pytorch#194498, ROCm/aotriton#210: a kernel that is not there must be the call's own
// status, the outputs as they were, and the next call right.
TEST(AttentionForwardPublicCases, pytorch_194498_unsupported_is_reported_by_the_call) {
  for (const int64_t head_dim : {513, 577}) {
    AttentionCase c = uniform_case(FLYDSL_AOT_BF16, 4, 4, no_mask());
    c.head_dim = head_dim;
    c.fill_q(zero);
    c.fill_k(zero);
    c.fill_v(zero);
    const AttentionResult refused = run_attention(c);
    EXPECT_EQ(refused.status, FLYDSL_AOT_UNSUPPORTED_HEAD_DIM) << refused.message;
    EXPECT_NE(refused.message.find(std::to_string(head_dim)), std::string::npos) << refused.message;
    EXPECT_TRUE(refused.outputs_untouched);
    AttentionCase good = uniform_case(FLYDSL_AOT_BF16, 3, 5, causal_top_left());
    expect_column(good, check_attention(good), {0, 0.5, 1});
  }
  Random random(test_seed(32));
  for (const auto &[length, head_dim] : {std::pair<int64_t, int64_t>{8, 128}, {512, 64}}) {
    AttentionCase c;
    c.heads_q = c.heads_kv = 16;
    c.seq_q = c.seq_k = length;
    c.head_dim = head_dim;
    c.mask = causal_top_left();
    c.fill_random(random);
    check_attention(c);
  }
}

// pytorch/torchtitan#2211, Dao-AILab/flash-attention#1819: a sink is one more weight in the softmax, no gate and
// no part of key 0. Four equal weights; V = 4, 8, 12 and nothing.
TEST(AttentionForwardPublicCases, torchtitan_2211_sink) {
  AttentionCase c = uniform_case(FLYDSL_AOT_BF16, 1, 3, no_mask());
  c.fill_v([](int64_t, int64_t, int64_t j, int64_t) { return 4.0f * static_cast<float>(j + 1); });
  c.sinks = {0};
  AttentionResult result = check_attention(c);
  expect_column(c, result, {6});
  EXPECT_NEAR(result.lse[0], 1.386294, 1e-6);
  c.visible = {0, 0, 0};
  result = check_attention(c);
  expect_column(c, result, {0});
  EXPECT_EQ(result.lse[0], 0.0f);
}

// Dao-AILab/flash-attention#2466: the cap comes after the scale. Scores 1 and 0 become 2 tanh(1/2) and 0.
TEST(AttentionForwardPublicCases, flash_attention_2466_softcap_after_scale) {
  for (const flydsl_aot_dtype dtype : kDtypes) {
    AttentionCase c = uniform_case(dtype, 1, 2, no_mask());
    c.scale = 0.125f;
    c.softcap = 2;
    c.fill_q([](int64_t, int64_t, int64_t, int64_t d) { return d == 0 ? 4.0f : 0.0f; });
    c.fill_k([](int64_t, int64_t, int64_t j, int64_t d) { return j + d == 0 ? 2.0f : 0.0f; });
    c.fill_v([](int64_t, int64_t, int64_t j, int64_t) { return j == 0 ? 1.0f : 0.0f; });
    const AttentionResult result = check_attention(c);
    EXPECT_NEAR(to_float(dtype, result.out[0]), 0.715904, dtype == FLYDSL_AOT_BF16 ? 4e-3 : 5e-4);
    EXPECT_NEAR(result.lse[0], 1.258443, 2e-6);
    c.softcap = 0;
    const AttentionResult off = check_attention(c);
    EXPECT_NEAR(off.lse[0], std::log(1 + std::exp(1.0)), 2e-6);
  }
}

// pytorch/pytorch#181825, #147460: left padding by a bias of the type's lowest number, which is not -inf: rows
// that see nothing else weigh the padding alike, the others do not see it.
TEST(AttentionForwardPublicCases, pytorch_147460_left_padding) {
  AttentionCase c;
  c.dtype = FLYDSL_AOT_FP16;
  c.batches = 2;
  c.heads_q = c.heads_kv = 32;
  c.seq_q = c.seq_k = 7;
  c.head_dim = 128;
  c.mask = causal_top_left();
  c.bias_dtype = c.dtype;
  c.fill_q(zero);
  c.fill_k(zero);
  c.fill_v([](int64_t, int64_t, int64_t j, int64_t) { return static_cast<float>(j); });
  for (int64_t n = 0; n < c.score_count(); ++n) c.bias.push_back(n % 7 < 3 ? -65504.0f : 0.0f);
  c.place_bias.broadcast = {true, true, true, false};
  const AttentionResult result = check_attention(c);
  const float expected[] = {0, 0.5, 1, 3, 3.5, 4, 4.5};
  for (size_t n = 0; n < result.out.size(); ++n)
    ASSERT_EQ(fp16_to_float(result.out[n]), expected[n / 128 % 7]) << n;
}

// pytorch/pytorch#146704, #142228, ROCm/rocm-libraries#10551: batch or head counts past the y/z
// grid limit of 65535. Q and K are zero and shared by all, V is one row per batch and head.
void check_many(int64_t batches, int64_t heads, int64_t length) {
  AttentionCase c = uniform_case(FLYDSL_AOT_FP16, length, length, no_mask());
  c.batches = batches;
  c.heads_q = c.heads_kv = heads;
  c.want_lse = false;
  const auto expected = [](int64_t b, int64_t h) {
    return static_cast<float>((b + h) % 251) / 256;
  };
  c.q.assign(static_cast<size_t>(batches * heads * length * c.head_dim), 0);
  c.k = c.q;
  c.fill_v([&](int64_t b, int64_t h, int64_t, int64_t) { return expected(b, h); });
  c.place_q.broadcast = c.place_k.broadcast = {true, true, true, false};
  c.place_v.broadcast = {false, false, true, false};
  const AttentionResult result = run_attention(c);
  ASSERT_EQ(result.status, FLYDSL_AOT_OK) << result.message;
  EXPECT_EQ(result.stray_write, "");
  size_t wrong = 0;
  for (size_t i = 0; i < result.out.size(); ++i) {
    const int64_t row = static_cast<int64_t>(i) / (length * c.head_dim);
    wrong += fp16_to_float(result.out[i]) != expected(row / heads, row % heads);
  }
  EXPECT_EQ(wrong, 0u) << "of " << result.out.size();
}

TEST(AttentionForwardPublicCases, Slow_pytorch_146704_65536_batches) {
  check_many(65536, 1, 4);
}
TEST(AttentionForwardPublicCases, Slow_pytorch_142228_65536_heads) {
  check_many(1, 65536, 10);
}

}  // namespace
}  // namespace flydsl::test
