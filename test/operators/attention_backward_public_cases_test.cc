// Faults reported in public for attention's backward pass, each named after its source, with values worked out by hand.
// (More of them are lines of test/cases/attention_backward.txt.)
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "test/support/attention_backward_case.h"
#include "test/support/library.h"
#include "test/support/seed.h"
#include "tools/verify/attention_forward_call.h"
#include "tools/verify/float16.h"
#include "tools/verify/gemm_verify.h"

namespace flydsl::test {
namespace {

const std::vector<flydsl_aot_dtype> kDtypes = {FLYDSL_AOT_BF16, FLYDSL_AOT_FP16};

// A case whose numbers the test sets: all are 0.
BackwardCase zeros(flydsl_aot_dtype dtype, int64_t seq_q, int64_t seq_k, int64_t head_dim) {
  BackwardCase c;
  AttentionCase &f = c.forward;
  f.dtype = dtype;
  f.seq_q = seq_q;
  f.seq_k = seq_k;
  f.head_dim = head_dim;
  const auto zero = [](int64_t, int64_t, int64_t, int64_t) { return 0.0f; };
  f.fill_q(zero);
  f.fill_k(zero);
  f.fill_v(zero);
  c.dout.assign(f.q.size(), 0);
  return c;
}

void set(const BackwardCase &c, std::vector<uint16_t> &values, int64_t row, int64_t channel,
         double value) {
  values[static_cast<size_t>(row * c.forward.head_dim + channel)] =
      from_float(c.forward.dtype, static_cast<float>(value));
}

// Of column 0 of a gradient, one head: within two roundings of a result and what weights and scores' gradients add.
void expect_column(const PreparedBackward &p, const BackwardResult &result, size_t gradient,
                   const std::vector<double> &rows) {
  const double unit = p.problem.forward.dtype == FLYDSL_AOT_FP16 ? 0x1p-11 : 0x1p-8;
  const std::vector<double> got = numbers(p, result, gradient);
  for (size_t row = 0; row < rows.size(); ++row) {
    const double value = got[row * static_cast<size_t>(p.problem.forward.head_dim)];
    EXPECT_NEAR(value, rows[row], 3 * unit * std::fabs(rows[row]))
        << kGradientNames[gradient] << ", row " << row;
  }
}

// pytorch/pytorch#103963, #103749, flashinfer-ai/flashinfer#4452: a row that may look at no key; all else is as if it were
// not there.
TEST(AttentionBackwardPublicCases, pytorch_103963_empty_rows) {
  for (const flydsl_aot_dtype dtype : kDtypes) {
    for (const int64_t head_dim : {8, 64, 128}) {
      PreparedBackward p("c hq=2 hkv=2 sq=6 sk=10 scale=0.125 d=" + std::to_string(head_dim) +
                         (dtype == FLYDSL_AOT_FP16 ? " dtype=fp16" : ""));
      BackwardCase &c = p.problem;
      for (int64_t n = 0; n < c.forward.score_count(); ++n) {
        const int64_t i = n / 10 % 6, j = n % 10;
        c.forward.visible.push_back(i < 5 && j <= i);
      }
      p.forward = exact_forward(c);
      const BackwardResult result = check_backward(p);
      const std::vector<double> dq = numbers(p, result, kDq);
      for (int64_t head = 0; head < 2; ++head) {
        for (int64_t d = 0; d < head_dim; ++d)
          EXPECT_EQ(dq[static_cast<size_t>((head * 6 + 5) * head_dim + d)], 0);
      }
      // Cut away.
      PreparedBackward cut = p;
      AttentionCase &f = cut.problem.forward;
      const auto drop = [](auto &values, size_t row_elements) {
        auto kept = values;
        kept.clear();
        for (size_t n = 0; n < values.size(); ++n)
          if (n / row_elements % 6 != 5) kept.push_back(values[n]);
        values = kept;
      };
      drop(f.q, static_cast<size_t>(head_dim));
      drop(cut.problem.dout, static_cast<size_t>(head_dim));
      drop(f.visible, 10);
      f.seq_q = 5;
      cut.forward = exact_forward(cut.problem);
      BackwardResult expected = check_backward(cut), without = result;
      drop(without.bits[kDq], static_cast<size_t>(head_dim));
      EXPECT_TRUE(same_bits(without, expected));
    }
    // Bottom-right causal, four queries, two keys.
    PreparedBackward p(zeros(dtype, 4, 2, 64));
    p.problem.forward.mask = causal_bottom_right();
    for (int64_t d = 0; d < 64; ++d) {
      set(p.problem, p.problem.forward.v, 0, d, 2);
      set(p.problem, p.problem.forward.v, 1, d, 4);
      for (int64_t i = 0; i < 4; ++i) set(p.problem, p.problem.dout, i, d, i < 2 ? 1000 : 1);
    }
    p.forward = exact_forward(p.problem);
    EXPECT_EQ(p.forward.lse[1], -INFINITY);
    EXPECT_EQ(p.forward.lse[2], 0);
    const BackwardResult result = check_backward(p);
    expect_column(p, result, kDv, {1.5, 0.5});
    expect_column(p, result, kDq, {0, 0, 0, 0});
    expect_column(p, result, kDk, {0, 0});
  }
}

// Dao-AILab/flash-attention#2466, NVIDIA/TransformerEngine#3391: the cap comes after the scale, and its factor 1 - tanh^2.
TEST(AttentionBackwardPublicCases, flash_attention_2466_softcap) {
  for (const flydsl_aot_dtype dtype : kDtypes) {
    PreparedBackward p(zeros(dtype, 1, 2, 64));
    p.problem.forward.softcap = 2;
    set(p.problem, p.problem.forward.q, 0, 0, 4);
    set(p.problem, p.problem.forward.k, 0, 0, 2);
    set(p.problem, p.problem.forward.v, 0, 0, 1);
    set(p.problem, p.problem.dout, 0, 0, 1);
    p.forward = exact_forward(p.problem);
    EXPECT_NEAR(p.forward.lse[0], 1.258443f, 1e-6f);
    const BackwardResult result = check_backward(p);
    expect_column(p, result, kDq, {0.039988});
    // The second key's score is 0, where the cap changes nothing: 0.715904 * 0.284096 * 0.125 * 4.
    expect_column(p, result, kDk, {0.079976, -0.101693});
    expect_column(p, result, kDv, {0.715904, 0.284096});
  }
}

// pytorch/torchtitan#2211, Dao-AILab/flash-attention#1819: a sink takes its share, and gets a gradient.
TEST(AttentionBackwardPublicCases, torchtitan_2211_gradient_of_a_sink) {
  for (const flydsl_aot_dtype dtype : kDtypes) {
    for (const int64_t rows : {1, 7}) {
      PreparedBackward p(zeros(dtype, rows, 3, 64));
      BackwardCase &c = p.problem;
      c.forward.sinks = {0};
      c.wanted[kDsinks] = true;
      for (int64_t d = 0; d < 64; ++d) {
        for (int64_t j = 0; j < 3; ++j) set(c, c.forward.v, j, d, 4 * static_cast<double>(j + 1));
        for (int64_t i = 0; i < rows; ++i) set(c, c.dout, i, d, 1.0 / 64);
      }
      // The last of several rows sees no key.
      if (rows > 1) {
        for (int64_t n = 0; n < rows * 3; ++n) c.forward.visible.push_back(n / 3 < rows - 1);
      }
      p.forward = exact_forward(c);
      EXPECT_NEAR(p.forward.lse[0], 1.386294f, 1e-6f);
      const BackwardResult result = check_backward(p);
      const double seeing = rows > 1 ? static_cast<double>(rows - 1) : 1;
      expect_column(p, result, kDv, std::vector<double>(3, seeing * 0.25 / 64));
      EXPECT_NEAR(numbers(p, result, kDsinks)[0], -1.5 * seeing, 1e-5);
    }
  }
}

// pytorch/pytorch#181825, #147460: the gradient of a bias with broadcast axes is the sum over each of them. With Q = K = 0
// and a constant bias weights are 1/Sk: dS = (dP - mean of dP) / Sk.
TEST(AttentionBackwardPublicCases, pytorch_181825_sums_over_broadcast_axes) {
  for (const char *zero : {"bh", "hq", "bk", "bhq", "bhqk"}) {
    PreparedBackward p(std::string("c b=3 hq=4 hkv=4 sq=20 sk=70 q=0 k=0 v=int dout=int bias=fp32 "
                                   "bias_factor=0 dbias=fp32 bias_zero=") +
                       zero);
    const BackwardCase &c = p.problem;
    const BackwardResult result = check_backward(p);
    const std::vector<int64_t> sizes = c.dbias_sizes();
    std::vector<double> wanted(static_cast<size_t>(sizes[0] * sizes[1] * sizes[2] * sizes[3]));
    double delta_squares = 0;  // of the terms of all rows' delta
    for (int64_t row = 0; row < 3 * 4 * 20; ++row) {
      const int64_t b = row / 80, h = row / 20 % 4, i = row % 20;
      for (int64_t d = 0; d < 64; ++d) {
        double out = 0;
        for (int64_t j = 0; j < 70; ++j)
          out += to_float(c.forward.dtype,
                          c.forward.v[static_cast<size_t>(((b * 4 + h) * 70 + j) * 64 + d)]) /
                 70.0;
        delta_squares +=
            std::pow(out * to_float(c.forward.dtype, c.dout[static_cast<size_t>(row * 64 + d)]), 2);
      }
      std::vector<double> dp(70);
      double mean = 0;
      for (int64_t j = 0; j < 70; ++j) {
        for (int64_t d = 0; d < 64; ++d)
          dp[static_cast<size_t>(j)] +=
              to_float(c.forward.dtype, c.dout[static_cast<size_t>(row * 64 + d)]) *
              to_float(c.forward.dtype,
                       c.forward.v[static_cast<size_t>(((b * 4 + h) * 70 + j) * 64 + d)]);
        mean += dp[static_cast<size_t>(j)] / 70;
      }
      for (int64_t j = 0; j < 70; ++j) {
        const int64_t place[4] = {b, h, i, j};
        int64_t element = 0;
        for (size_t axis = 0; axis < 4; ++axis)
          element = element * sizes[axis] + (sizes[axis] == 1 ? 0 : place[axis]);
        wanted[static_cast<size_t>(element)] += (dp[static_cast<size_t>(j)] - mean) / 70;
      }
    }
    // out is rounded to bf16 before delta is formed: a row's error is common to its keys.
    const std::vector<double> got = numbers(p, result, kDbias);
    double error = 0, norm = 0;
    for (size_t n = 0; n < wanted.size(); ++n) {
      error += std::pow(got[n] - wanted[n], 2);
      norm += wanted[n] * wanted[n];
    }
    if (std::string(zero).ends_with('k'))
      EXPECT_LT(std::sqrt(error), 0x1p-8 * std::sqrt(delta_squares)) << zero;  // the sum is 0
    else
      EXPECT_LT(std::sqrt(error / norm), 5e-3) << zero;
  }
}

// Dao-AILab/flash-attention#2562, #2568, #1713: sequences without queries get gradients of 0, not what was there.
TEST(AttentionBackwardPublicCases, flash_attention_2562_sequences_without_queries) {
  const PreparedBackward p(
      "c b=4 hq=4 hkv=1 sq=121 sk=256 d=256 q=0 k=0 v=1 dout=1 q_lengths=packed:0,121,84,0 "
      "k_lengths=packed:254,174,84,231");
  const BackwardResult result = check_backward(p);
  const std::vector<double> dv = numbers(p, result, kDv);
  const double values[] = {0, 4.0 * 121 / 174, 4, 0};
  const int64_t lengths[] = {254, 174, 84, 231};
  for (int64_t b = 0; b < 4; ++b) {
    for (int64_t n = 0; n < lengths[b] * 256; ++n)
      ASSERT_NEAR(dv[static_cast<size_t>(b * 256 * 256 + n)], values[b], 0x1p-7 * values[b]) << b;
  }
}

// ROCm/aotriton#54: scores of 4430233600, all equal. Weights are uniform but for the rounding of the LSE to fp32, whose
// spacing there is 512, and which attention_forward and attention_backward cannot do otherwise: gradients are finite.
TEST(AttentionBackwardPublicCases, aotriton_54_large_equal_scores) {
  for (const int64_t head_dim : {16, 64, 128}) {
    for (const double sign : {1.0, -1.0}) {
      BackwardCase c = zeros(FLYDSL_AOT_BF16, 64, 64, head_dim);
      c.forward.scale = 0.25;
      for (int64_t n = 0; n < 64; ++n) {
        set(c, c.forward.q, n, 0, 133120);
        set(c, c.forward.k, n, 0, sign * 133120);
        for (int64_t d = 0; d < head_dim; ++d) {
          set(c, c.forward.v, n, d, static_cast<double>(n) / 64);
          set(c, c.dout, n, d, 1);
        }
      }
      const PreparedBackward p(c);
      const BackwardResult result = check_backward(p);
      for (const size_t gradient : {kDq, kDk, kDv}) {
        for (const double value : numbers(p, result, gradient))
          ASSERT_TRUE(std::isfinite(value)) << kGradientNames[gradient] << " " << head_dim;
      }
    }
  }
}

// Dao-AILab/flash-attention#2896, #2715: head sizes that are padded inside the kernel: as if the caller had padded them.
TEST(AttentionBackwardPublicCases, flash_attention_2896_padded_head_sizes) {
  for (const int64_t head_dim : {40, 72, 80, 104, 136, 200}) {
    const std::string shape = "c b=2 hq=2 hkv=2 sq=65 sk=90 scale=0.1 d=";
    const PreparedBackward narrow(shape + std::to_string(head_dim));
    const int64_t padded = (head_dim + 31) / 32 * 32;
    PreparedBackward wide(shape + std::to_string(padded));
    const auto widen = [&](const std::vector<uint16_t> &from, std::vector<uint16_t> &to) {
      for (size_t n = 0; n < to.size(); ++n) {
        const int64_t row = static_cast<int64_t>(n) / padded, d = static_cast<int64_t>(n) % padded;
        to[n] = d < head_dim ? from[static_cast<size_t>(row * head_dim + d)] : 0;
      }
    };
    widen(narrow.problem.forward.q, wide.problem.forward.q);
    widen(narrow.problem.forward.k, wide.problem.forward.k);
    widen(narrow.problem.forward.v, wide.problem.forward.v);
    widen(narrow.problem.dout, wide.problem.dout);
    wide.forward = exact_forward(wide.problem);
    const BackwardResult a = check_backward(narrow), b = check_backward(wide);
    for (const size_t gradient : {kDq, kDk, kDv}) {
      const std::vector<double> got = numbers(narrow, a, gradient),
                                expected = numbers(wide, b, gradient);
      for (size_t n = 0; n < got.size(); ++n) {
        const size_t row = n / static_cast<size_t>(head_dim), d = n % static_cast<size_t>(head_dim);
        const double value = expected[row * static_cast<size_t>(padded) + d];
        ASSERT_NEAR(got[n], value, 0.05 * (1 + std::fabs(value))) << head_dim;
        ASSERT_FALSE(std::isnan(value));
      }
    }
  }
}

// ROCm/FlyDSL#317, #629, ROCm/aiter#4840, pytorch/pytorch#190903: forward, backward and matrix products in turn, from one handle:
// each gives the bits that it gives as the first call of a handle, in whatever order.
TEST(AttentionBackwardPublicCases, flydsl_317_order_of_calls_does_not_matter) {
  using Bits = std::vector<uint32_t>;
  std::vector<std::pair<std::string, std::function<Bits(flydsl_aot_handle *)>>> calls;
  const auto add_attention = [&](const std::string &line) {
    const PreparedBackward p("case " + line);
    calls.emplace_back("forward " + line, [p](flydsl_aot_handle *handle) {
      const AttentionResult result = call_attention_forward(handle, p.problem.forward);
      EXPECT_EQ(result.status, FLYDSL_AOT_OK) << result.message;
      Bits bits(result.out.begin(), result.out.end());
      for (const float lse : result.lse) bits.push_back(std::bit_cast<uint32_t>(lse));
      return bits;
    });
    calls.emplace_back("backward " + line, [p](flydsl_aot_handle *handle) {
      const BackwardResult result = call_attention_backward(handle, p.problem, p.forward);
      EXPECT_EQ(result.status, FLYDSL_AOT_OK) << result.message;
      EXPECT_EQ(result.stray_write, "");
      Bits bits;
      for (const auto &gradient : result.bits)
        bits.insert(bits.end(), gradient.begin(), gradient.end());
      return bits;
    });
  };
  const auto add_gemm = [&](const std::string &line) {
    const GemmSpec spec = parse_gemm_spec("case m=100 n=136 " + line);
    calls.emplace_back("gemm " + line, [spec](flydsl_aot_handle *handle) {
      const GemmResult result = call_gemm(handle, spec, gemm_numbers(spec));
      EXPECT_EQ(result.status, FLYDSL_AOT_OK) << result.message;
      return Bits(result.d.bits.begin(), result.d.bits.end());
    });
  };
  const char *const gemm_k[] = {"k=64", "k=72", "k=33"};
  size_t number = 0;
  for (const int length : {255, 256, 257, 383, 384, 385, 511, 512, 513, 640}) {
    add_attention("hq=2 hkv=2 d=128 mask=causal:top-left sq=" + std::to_string(length));
    add_gemm(std::string(gemm_k[number % 3]) + (number % 2 ? "" : " bias_n=normal"));
    ++number;
  }
  for (const char *heads : {"hq=8 hkv=8", "hq=16 hkv=16", "hq=4 hkv=1"})
    add_attention(std::string("sq=130 d=128 ") + heads);
  for (const char *change :
       {"d=128 bias=fp32 dbias=fp32", "d=128 bias=same", "d=64", "d=128 dtype=fp16",
        "d=128 q_place=pitch:8 k_place=pitch:8 dq_place=pitch:8",
        "d=128 q_place=pitch:1 dout_place=pitch:1", "d=128 q_place=offset:4 dk_place=offset:4",
        "d=128 k_place=offset:2 dq_place=offset:2", "d=128 v_place=offset:1 out_place=offset:1"})
    add_attention(std::string("hq=2 hkv=2 sq=130 ") + change);
  add_gemm("k=72 a_place=pitch:8");
  add_gemm("k=72 a_place=pitch:1 b_place=offset:1");

  std::vector<Bits> alone;
  for (const auto &[name, call] : calls) {
    SCOPED_TRACE(name);
    flydsl_aot_handle *const fresh = open_emulator();
    alone.push_back(call(fresh));
    flydsl_aot_close(fresh);
  }
  flydsl_aot_handle *const shared = open_emulator();
  const auto expect_as_alone = [&](size_t i) {
    EXPECT_TRUE(calls[i].second(shared) == alone[i]) << calls[i].first;
  };
  for (size_t i = 0; i < calls.size(); ++i) expect_as_alone(i);
  for (size_t i = calls.size(); i-- > 0;) expect_as_alone(i);
  flydsl_aot_close(shared);
}

// Standard normal inputs: the relative error over all elements that the header states.
TEST(AttentionBackward, RelativeErrorOnNormalInputs) {
  for (const char *dtype : {"bf16", "fp16"}) {
    for (const char *shape :
         {"hq=2 hkv=1 sq=300 d=64", "hq=2 hkv=2 sq=300 d=128 mask=causal:top-left",
          "hq=4 hkv=2 sq=200 sk=300 d=192 dv=128", "sq=200 d=256 mask=causal:bottom-right",
          "hq=2 sq=150 sk=200 bias=fp32 bias_zero=h dbias=fp32 sinks=normal dsinks=yes dropout=0.1",
          "hq=2 sq=150 softcap=30 alibi=h"}) {
      const PreparedBackward p(std::string("c dtype=") + dtype + " " + shape);
      std::array<GradientJudgement, kGradients> judgements;
      check_backward(p, &judgements);
      for (size_t n = 0; n < kGradients; ++n) {
        if (!p.problem.wanted[n]) continue;
        EXPECT_LT(judgements[n].frobenius, std::string(dtype) == "bf16" ? 1e-2 : 2e-3)
            << kGradientNames[n] << " " << dtype << " " << shape;
      }
    }
  }
}

}  // namespace
}  // namespace flydsl::test
