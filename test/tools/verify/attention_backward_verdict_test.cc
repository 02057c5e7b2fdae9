// The verdict on attention_backward must fail what a wrong kernel would give: results made by the oracle's own formulas
// with one thing left out.
#include "tools/verify/attention_backward_verdict.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <string>

#include "tools/verify/attention_backward_spec.h"
#include "tools/verify/attention_backward_verify.h"
#include "tools/verify/case_list.h"
#include "tools/verify/float16.h"
#include "tools/verify/shipped_cases.h"

namespace flydsl::verify {
namespace {

constexpr auto kPoison16 = static_cast<uint16_t>(kOutputPoison);

class Mutations : public ::testing::TestWithParam<const char *> {
 protected:
  Mutations() {
    case_ = build_backward_case(parse_backward_spec(
        std::string("mutated dtype=") + GetParam() +
        " b=2 hq=4 hkv=2 sq=70 sk=150 mask=causal:bottom-right q_lengths=used:70,20 bias=fp32 "
        "bias_zero=h dbias=fp32 sinks=normal dsinks=yes dropout=0.2"));
    forward_ = exact_forward(case_);
    reference_ = backward_reference_of(case_, forward_);
    right_ = as_result(case_, reference_);
  }

  std::string fault(const std::function<void(BackwardResult &)> &mutate) const {
    BackwardResult result = right_;
    mutate(result);
    return judge_backward(case_, result, reference_).fault;
  }
  // What a kernel gives that computes another problem, or is given another forward pass.
  std::string fault_of(const BackwardCase &other, const ForwardOutputs &forward) const {
    BackwardResult result = as_result(other, backward_reference_of(other, forward));
    return judge_backward(case_, result, reference_).fault;
  }
  auto scaled(size_t gradient, double factor) const {
    return [this, gradient, factor](BackwardResult &result) {
      for (uint32_t &bits : result.bits[gradient]) bits = times(gradient, bits, factor);
    };
  }
  uint32_t times(size_t gradient, uint32_t bits, double factor) const {
    const flydsl_aot_dtype dtype = case_.dtype_of(gradient);
    if (dtype == FLYDSL_AOT_FP32)
      return std::bit_cast<uint32_t>(static_cast<float>(factor * std::bit_cast<float>(bits)));
    if (bits == kPoison16) return bits;
    return from_float(dtype,
                      static_cast<float>(factor * to_float(dtype, static_cast<uint16_t>(bits))));
  }

  BackwardCase case_;
  ForwardOutputs forward_;
  BackwardReference reference_;
  BackwardResult right_;
};

INSTANTIATE_TEST_SUITE_P(Of, Mutations, ::testing::Values("bf16", "fp16"),
                         [](const auto &info) { return std::string(info.param); });

bool names(const std::string &fault, const std::string &gradient) {
  return fault.starts_with(gradient + ": ");
}

TEST_P(Mutations, TheRoundedFormulasPass) {
  EXPECT_EQ(fault([](BackwardResult &) {}), "");
}

// delta = 0: as if out were.
TEST_P(Mutations, WithoutDelta) {
  ForwardOutputs forward = forward_;
  std::fill(forward.out.begin(), forward.out.end(), 0);
  EXPECT_TRUE(names(fault_of(case_, forward), "dq"));
}

TEST_P(Mutations, WithoutTheScale) {
  EXPECT_TRUE(names(fault(scaled(kDq, 8)), "dq"));
  EXPECT_TRUE(names(fault(scaled(kDk, 8)), "dk"));
}

// By little: 5% of each.
TEST_P(Mutations, ScaledByLittle) {
  for (const size_t gradient : {kDq, kDk, kDv, kDbias, kDsinks})
    EXPECT_TRUE(names(fault(scaled(gradient, 1.05)), kGradientNames[gradient]))
        << kGradientNames[gradient];
}

// Keys 64 to 127, or the last ones, take no part in dq, or get no gradient.
TEST_P(Mutations, WithoutABlockOfKeys) {
  for (const auto &[first, last] : {std::pair{64, 128}, {128, 150}}) {
    const AttentionCase &f = case_.forward;
    BackwardCase other = case_;  // those keys hidden, out and lse as they are
    for (int64_t n = 0; n < f.score_count(); ++n) {
      const int64_t j = n % f.seq_k;
      other.forward.visible.push_back(j < first || j >= last);
    }
    BackwardResult result = right_;
    const BackwardResult without = as_result(other, backward_reference_of(other, forward_));
    result.bits[kDq] = without.bits[kDq];
    EXPECT_TRUE(names(judge_backward(case_, result, reference_).fault, "dq")) << first;
    for (const size_t gradient : {kDk, kDv}) {
      const std::string text = fault([&](BackwardResult &r) {
        for (int64_t j = first; j < last; ++j)
          std::fill_n(r.bits[gradient].begin() + (f.seq_k + j) * 64, 64, 0);
      });
      EXPECT_TRUE(names(text, kGradientNames[gradient])) << first;
    }
  }
}

// One of the two query heads of a group is left out of dk and dv.
TEST_P(Mutations, WithoutAHead) {
  for (const int64_t head : {0, 3}) {
    BackwardCase other = case_;
    const AttentionCase &f = case_.forward;
    for (int64_t b = 0; b < f.batches; ++b)
      std::fill_n(other.dout.begin() + (b * f.heads_q + head) * f.seq_q * f.value_dim(),
                  f.seq_q * f.value_dim(), 0);
    const BackwardResult without = as_result(other, backward_reference_of(other, forward_));
    for (const size_t gradient : {kDq, kDk, kDv, kDbias, kDsinks}) {
      const std::string text =
          fault([&](BackwardResult &r) { r.bits[gradient] = without.bits[gradient]; });
      EXPECT_TRUE(names(text, kGradientNames[gradient])) << head << " " << text;
    }
  }
}

TEST_P(Mutations, RowsThatAreOthers) {
  const auto row = [](BackwardResult &r, size_t gradient, int64_t n) {
    return r.bits[gradient].begin() + n * 64;
  };
  for (const size_t gradient : {kDq, kDk, kDv}) {
    const char *name = kGradientNames[gradient];
    EXPECT_TRUE(names(fault([&](BackwardResult &r) {
                        std::copy_n(row(r, gradient, 8), 64, row(r, gradient, 9));
                      }),
                      name));
    EXPECT_TRUE(
        names(fault([&](BackwardResult &r) { std::fill_n(row(r, gradient, 69), 64, 0); }), name));
    EXPECT_TRUE(names(
        fault([&](BackwardResult &r) { std::fill_n(row(r, gradient, 3), 64, kPoison16); }), name));
    EXPECT_TRUE(names(fault([&](BackwardResult &r) {
                        *row(r, gradient, 3) = from_float(case_.forward.dtype, NAN);
                      }),
                      name));
  }
}

TEST_P(Mutations, WhatElseIsWritten) {
  EXPECT_NE(fault([](BackwardResult &r) { r.stray_write = "a byte"; }), "");
  // Row 20 of the second batch is past its length.
  EXPECT_NE(fault([](BackwardResult &r) { r.bits[kDq][(4 * 70 + 20) * 64] ^= 1; }), "");
}

// A lse in units of log2, or without the sink.
TEST_P(Mutations, AnotherLogSumExp) {
  ForwardOutputs forward = forward_;
  for (float &lse : forward.lse) lse *= 1.4427f;
  EXPECT_NE(fault_of(case_, forward), "");
  BackwardCase other = case_;
  other.forward.sinks.clear();
  other.wanted[kDsinks] = false;
  BackwardResult result = as_result(other, backward_reference_of(other, exact_forward(other)));
  result.bits[kDsinks] = right_.bits[kDsinks];
  EXPECT_TRUE(names(judge_backward(case_, result, reference_).fault, "dq"));
}

// A query that sees nothing, a key that nobody sees: exactly 0.
TEST(BackwardVerdict, RowsThatTakeNoPartAreExactlyZero) {
  const BackwardCase c =
      build_backward_case(parse_backward_spec("zeros sq=20 sk=40 mask=2,0:top-left"));
  const BackwardReference reference = backward_reference_of(c, exact_forward(c));
  BackwardResult result = as_result(c, reference);
  EXPECT_EQ(judge_backward(c, result, reference).fault, "");
  result.bits[kDk][30 * 64] = 1;  // the least number
  EXPECT_TRUE(names(judge_backward(c, result, reference).fault, "dk"));
}

// The same problem without one of its features.
struct Feature {
  const char *name;
  std::function<bool(const BackwardCase &)> is_in;
  std::function<void(BackwardCase &)> drop;
};

const std::vector<Feature> &features() {
  static const std::vector<Feature> all = {
      {"left bound", [](const BackwardCase &c) { return c.forward.mask.left >= 0; },
       [](BackwardCase &c) { c.forward.mask.left = -1; }},
      {"left bound by one", [](const BackwardCase &c) { return c.forward.mask.left >= 0; },
       [](BackwardCase &c) { ++c.forward.mask.left; }},
      {"right bound by one", [](const BackwardCase &c) { return c.forward.mask.right >= 0; },
       [](BackwardCase &c) { ++c.forward.mask.right; }},
      {"anchor",
       [](const BackwardCase &c) { return c.forward.mask.anchor != FLYDSL_AOT_ANCHOR_NONE; },
       [](BackwardCase &c) {
         c.forward.mask.anchor =
             FLYDSL_AOT_ANCHOR_TOP_LEFT + FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT - c.forward.mask.anchor;
       }},
      {"softcap", [](const BackwardCase &c) { return c.forward.softcap > 0; },
       [](BackwardCase &c) { c.forward.softcap = 0; }},
      {"bias", [](const BackwardCase &c) { return !c.forward.bias.empty(); },
       [](BackwardCase &c) { std::fill(c.forward.bias.begin(), c.forward.bias.end(), 0.f); }},
      {"boolean mask", [](const BackwardCase &c) { return !c.forward.visible.empty(); },
       [](BackwardCase &c) { c.forward.visible.clear(); }},
      {"ALiBi", [](const BackwardCase &c) { return !c.forward.alibi_slopes.empty(); },
       [](BackwardCase &c) { c.forward.alibi_slopes.clear(); }},
      {"dropout", [](const BackwardCase &c) { return c.forward.dropout_p > 0; },
       [](BackwardCase &c) { c.forward.dropout_p = 0; }},
      {"dropout's seed", [](const BackwardCase &c) { return c.forward.dropout_p > 0; },
       [](BackwardCase &c) { ++c.forward.seed; }},
      {"scale", [](const BackwardCase &) { return true; },
       [](BackwardCase &c) { c.forward.scale *= 1.1f; }},
      {"dout", [](const BackwardCase &) { return true; },
       [](BackwardCase &c) {
         for (uint16_t &value : c.dout)
           value = from_float(c.forward.dtype, 1.1f * to_float(c.forward.dtype, value));
       }},
  };
  return all;
}

TEST(AttentionBackwardCases, DroppingAFeatureIsFound) {
  std::map<std::string, int> found, all;
  for (const std::string &line :
       select_cases(case_lines("shipped", kAttentionBackwardCases), "smoke", "")) {
    const BackwardSpec spec = parse_backward_spec(line);
    // The longest would take most of the time.
    if (!spec.forward.expect.empty() || spec.forward.base.score_count() > 30000) continue;
    const BackwardCase c = build_backward_case(spec);
    const BackwardReference reference = backward_reference_of(c, exact_forward(c));
    EXPECT_EQ(judge_backward(c, as_result(c, reference), reference).fault, "") << line;
    EXPECT_EQ(check_wanted(spec, c, reference), "") << line;
    for (const Feature &feature : features()) {
      if (!feature.is_in(c)) continue;
      BackwardCase other = c;
      feature.drop(other);
      // Given the forward pass of the problem as it is.
      const BackwardResult result =
          as_result(other, backward_reference_of(other, exact_forward(c)));
      ++all[feature.name];
      found[feature.name] += !judge_backward(c, result, reference).fault.empty();
    }
  }
  for (const Feature &feature : features()) {
    const std::string name = feature.name;
    RecordProperty(name, std::to_string(found[name]) + " of " + std::to_string(all[name]));
    std::printf("%-20s found in %d of %d cases\n", feature.name, found[name], all[name]);
    // Not in all: a mask may hide no key of a case, a scale multiply zeros.
    EXPECT_GE(found[name], std::max(3, all[name] * 2 / 3)) << name << " of " << all[name];
  }
}

}  // namespace
}  // namespace flydsl::verify
