// The judge of attention_forward must find what a wrong kernel would give: results changed by hand, and
// results of another mathematics, for every case that ships.
#include "tools/verify/attention_forward_verdict.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>

#include "tools/verify/attention_forward_spec.h"
#include "tools/verify/attention_forward_verify.h"
#include "tools/verify/case_list.h"
#include "tools/verify/float16.h"
#include "tools/verify/shipped_cases.h"

namespace flydsl::verify {
namespace {

// What a kernel without error would give.
AttentionResult rounded(const AttentionCase &c, const AttentionReference &reference) {
  AttentionResult result;
  for (const double value : reference.out)
    result.out.push_back(from_float(c.dtype, static_cast<float>(value)));
  for (const double value : reference.lse) result.lse.push_back(static_cast<float>(value));
  if (!c.want_lse) result.lse.clear();
  if (c.random_on_device) result.used = {c.seed, c.offset};
  for (int64_t n = 0; n < c.score_count() && c.want_kept; ++n) {
    const int64_t j = n % c.seq_k, i = n / c.seq_k % c.seq_q, h = n / c.seq_k / c.seq_q % c.heads_q,
                  b = n / c.seq_k / c.seq_q / c.heads_q;
    const bool inside = i < c.rows_of(b) && j < c.keys_of(b);
    result.kept.push_back(inside ? c.keeps(b, h, i, j) : static_cast<uint8_t>(kOutputPoison));
  }
  return result;
}

class Mutations : public ::testing::Test {
 protected:
  Mutations() {
    case_ = build_attention_case(
        parse_attention_spec("mutated b=2 hq=4 hkv=2 sq=33 sk=70 mask=causal:bottom-right "
                             "q_lengths=used:33,20 dropout=0.2 kept=yes dropout_from=device"));
    reference_ = reference_of(case_);
    right_ = rounded(case_, reference_);
  }

  std::string fault(const std::function<void(AttentionResult &)> &mutate) const {
    AttentionResult result = right_;
    mutate(result);
    return judge(case_, result, reference_).fault;
  }
  auto head(AttentionResult &result, int64_t b, int64_t h) const {
    return result.out.begin() + (b * 4 + h) * 33 * 64;
  }

  AttentionCase case_;
  AttentionReference reference_;
  AttentionResult right_;
};

TEST_F(Mutations, TheRoundedOraclePasses) {
  EXPECT_EQ(fault([](AttentionResult &) {}), "");
}

TEST_F(Mutations, OneElement) {
  // Each of the two batches' first and last row: at 1.5 bounds it is found, and named.
  for (const size_t row : {size_t{0}, size_t{32}, size_t{4 * 33}, size_t{4 * 33 + 19}}) {
    const size_t element = row * 64 + 17;
    const double bound =
        1.25 * 0x1p-8 * (std::fabs(reference_.out[element]) + reference_.magnitude[element]);
    const std::string text = fault([&](AttentionResult &result) {
      result.out[element] =
          float_to_bf16(static_cast<float>(reference_.out[element] + 1.5 * bound));
    });
    EXPECT_NE(text.find("out: element " + std::to_string(element) + " (row " + std::to_string(row) +
                        ", column 17)"),
              std::string::npos)
        << text;
  }
}

TEST_F(Mutations, OneRow) {
  const auto row = [&](AttentionResult &result, int64_t i) { return head(result, 0, 1) + i * 64; };
  EXPECT_NE(fault([&](AttentionResult &r) { std::fill_n(row(r, 5), 64, 0); }), "");
  EXPECT_NE(fault([&](AttentionResult &r) { std::fill_n(row(r, 5), 64, 0xabab); }), "");
  EXPECT_NE(fault([&](AttentionResult &r) { std::fill_n(row(r, 5), 64, 0x7fc0); }), "");
  EXPECT_NE(fault([&](AttentionResult &r) { std::copy_n(row(r, 6), 64, row(r, 5)); }), "");
}

TEST_F(Mutations, HeadsOrBatchesSwapped) {
  EXPECT_NE(fault([&](AttentionResult &r) {
              std::swap_ranges(head(r, 0, 0), head(r, 0, 1), head(r, 0, 1));
            }),
            "");
  EXPECT_NE(fault([&](AttentionResult &r) {
              std::swap_ranges(head(r, 0, 2), head(r, 0, 2) + 20 * 64, head(r, 1, 2));
            }),
            "");
  EXPECT_NE(fault([&](AttentionResult &r) {
              std::swap_ranges(r.lse.begin(), r.lse.begin() + 33, r.lse.begin() + 33);
            }),
            "");
}

TEST_F(Mutations, LogSumExp) {
  const auto change = [&](const std::function<double(double)> &function, size_t begin, size_t end) {
    return fault([&](AttentionResult &r) {
      for (size_t n = begin; n < end; ++n) r.lse[n] = static_cast<float>(function(r.lse[n]));
    });
  };
  const double ln2 = std::log(2.0);
  EXPECT_NE(change([&](double lse) { return lse / ln2; }, 0, 33), "");
  EXPECT_NE(change([&](double lse) { return lse + ln2; }, 0, 33), "");
  const std::string one = change([](double lse) { return lse + 3e-4; }, 7, 8);
  EXPECT_NE(one.find("lse: row 7:"), std::string::npos) << one;
  EXPECT_NE(change([](double) { return -INFINITY; }, 3, 4), "");
  EXPECT_NE(change([](double) { return NAN; }, 3, 4), "");
}

// Bits that the judges' bounds would not tell from the poison.
TEST_F(Mutations, RowsPastTheSequence) {
  EXPECT_NE(fault([&](AttentionResult &r) { r.lse[4 * 33 + 20] = 0; }), "");
  EXPECT_NE(fault([&](AttentionResult &r) { *(head(r, 1, 0) + 20 * 64) ^= 1; }), "");
}

TEST_F(Mutations, WhatElseIsWritten) {
  EXPECT_NE(fault([](AttentionResult &r) { r.stray_write = "a byte"; }), "");
  EXPECT_NE(fault([](AttentionResult &r) { ++r.used[1]; }), "");
  EXPECT_NE(fault([](AttentionResult &r) { r.kept[70 * 5 + 3] ^= 1; }), "");
  EXPECT_NE(fault([](AttentionResult &r) { r.kept[70 * (4 * 33 + 20)] = 0; }), "");
}

// The same problem without one of its features.
struct Feature {
  const char *name;
  std::function<bool(const AttentionCase &)> is_in;
  std::function<void(AttentionCase &)> drop;
};

const std::vector<Feature> &features() {
  static const std::vector<Feature> all = {
      {"left bound", [](const AttentionCase &c) { return c.mask.left >= 0; },
       [](AttentionCase &c) { c.mask.left = -1; }},
      {"right bound", [](const AttentionCase &c) { return c.mask.right >= 0; },
       [](AttentionCase &c) { c.mask.right = -1; }},
      {"left bound by one", [](const AttentionCase &c) { return c.mask.left >= 0; },
       [](AttentionCase &c) { ++c.mask.left; }},
      {"right bound by one", [](const AttentionCase &c) { return c.mask.right >= 0; },
       [](AttentionCase &c) { ++c.mask.right; }},
      {"anchor", [](const AttentionCase &c) { return c.mask.anchor != FLYDSL_AOT_ANCHOR_NONE; },
       [](AttentionCase &c) {
         c.mask.anchor =
             FLYDSL_AOT_ANCHOR_TOP_LEFT + FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT - c.mask.anchor;
       }},
      {"softcap", [](const AttentionCase &c) { return c.softcap > 0; },
       [](AttentionCase &c) { c.softcap = 0; }},
      {"bias", [](const AttentionCase &c) { return !c.bias.empty(); },
       [](AttentionCase &c) { c.bias.clear(); }},
      {"boolean mask", [](const AttentionCase &c) { return !c.visible.empty(); },
       [](AttentionCase &c) { c.visible.clear(); }},
      {"ALiBi", [](const AttentionCase &c) { return !c.alibi_slopes.empty(); },
       [](AttentionCase &c) { c.alibi_slopes.clear(); }},
      {"sinks", [](const AttentionCase &c) { return !c.sinks.empty(); },
       [](AttentionCase &c) { c.sinks.clear(); }},
      {"dropout", [](const AttentionCase &c) { return c.dropout_p > 0; },
       [](AttentionCase &c) { c.dropout_p = 0; }},
      {"dropout's seed", [](const AttentionCase &c) { return c.dropout_p > 0; },
       [](AttentionCase &c) { ++c.seed; }},
      {"dropout's offset", [](const AttentionCase &c) { return c.dropout_p > 0; },
       [](AttentionCase &c) { ++c.offset; }},
      {"factor of q", [](const AttentionCase &c) { return !c.q_descale.values.empty(); },
       [](AttentionCase &c) { c.q_descale = {}; }},
      {"factor of k", [](const AttentionCase &c) { return !c.k_descale.values.empty(); },
       [](AttentionCase &c) { c.k_descale = {}; }},
      {"factor of v", [](const AttentionCase &c) { return !c.v_descale.values.empty(); },
       [](AttentionCase &c) { c.v_descale = {}; }},
      {"lengths of keys", [](const AttentionCase &c) { return c.lengths_k_as != Lengths::kDense; },
       [](AttentionCase &c) {
         for (int64_t &length : c.lengths_k) length = std::max<int64_t>(0, length - 1);
       }},
      {"scale", [](const AttentionCase &) { return true; },
       [](AttentionCase &c) { c.scale *= 1.1f; }},
  };
  return all;
}

TEST(AttentionForwardCases, DroppingAFeatureIsFound) {
  std::map<std::string, int> found, all;
  for (const std::string &line :
       select_cases(case_lines("shipped", kAttentionForwardCases), "smoke", "")) {
    const AttentionSpec spec = parse_attention_spec(line);
    // The longest would take most of the time.
    if (!spec.expect.empty() || spec.base.score_count() > 200000) continue;
    const AttentionCase c = build_attention_case(spec);
    const AttentionReference reference = reference_of(c);
    EXPECT_EQ(judge(c, rounded(c, reference), reference).fault, "") << spec.name;
    EXPECT_EQ(check_wanted(spec, c, reference), "") << spec.name;
    for (const Feature &feature : features()) {
      if (!feature.is_in(c)) continue;
      AttentionCase other = c;
      feature.drop(other);
      AttentionResult result = rounded(other, reference_of(other));
      result.kept = rounded(c, reference).kept;
      ++all[feature.name];
      found[feature.name] += !judge(c, result, reference).fault.empty();
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
