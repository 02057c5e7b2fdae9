// Every instance over a grid of sequence lengths at and around the tile edges, with all masks,
// grouped heads and random placements, against the float64 oracle.
#include <gtest/gtest.h>

#include <cstdio>
#include <tuple>

#include "test/support/attention_forward_case.h"

namespace flydsl::test {
namespace {

const std::vector<int64_t> kLengths = {0, 1, 31, 32, 33, 63, 64, 65, 127, 128, 129, 197, 300, 513};
const std::vector<int64_t> kQuickLengths = {1, 33, 128, 130};

struct HeadDims {
  int64_t qk, v;
};
using Instance = std::tuple<flydsl_aot_dtype, HeadDims>;

class AttentionForwardTails : public ::testing::TestWithParam<Instance> {
 protected:
  // One problem under one mask: through the kernel for aligned data and the one for any data.
  void check_pair(int64_t seq_q, int64_t seq_k, const flydsl_aot_mask &mask, Random &random) {
    AttentionCase c;
    c.dtype = std::get<0>(GetParam());
    c.head_dim = std::get<1>(GetParam()).qk;
    c.head_dim_v = std::get<1>(GetParam()).v;
    const std::vector<std::pair<int64_t, int64_t>> heads =
        seq_q * seq_k <= 20000
            ? std::vector<std::pair<int64_t, int64_t>>{{9, 3}, {4, 4}, {8, 1}, {2, 1}}
            : std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {2, 1}, {3, 1}};
    std::tie(c.heads_q, c.heads_kv) =
        heads[static_cast<size_t>(random.below(static_cast<int64_t>(heads.size())))];
    c.batches = seq_q * seq_k <= 5000 ? random.between(1, 3) : 1;
    c.seq_q = seq_q;
    c.seq_k = seq_k;
    c.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(c.head_dim)));
    c.mask = mask;
    c.fill_random(random);
    const AttentionReference reference = reference_of(c);
    for (const bool staged : {false, true}) {
      c.want_lse = random.chance(0.8);
      for (Placement *place : {&c.place_q, &c.place_k, &c.place_v, &c.place_out}) {
        *place = random_placement(random, 4, 3, true);
      }
      if (staged) c.place_k.offset_elements += random.between(1, 7);
      c.place_lse = random_placement(random, 3, 3, false);
      const AttentionResult result = run_attention(c);
      ASSERT_EQ(result.status, FLYDSL_AOT_OK) << describe(c) << ": " << result.message;
      if (seq_q > 0 && seq_k > 0) {
        EXPECT_EQ(result.kernel, instance_name(c, staged)) << describe(c);
      }
      EXPECT_EQ(result.stray_write, "") << describe(c);
      const Judgement out = judge_out(c.dtype, result.out, reference, c.value_dim());
      EXPECT_TRUE(out.ok) << describe(c) << (staged ? " staged" : " direct")
                          << ": out: " << out.text;
      worst_ratio_ = std::max(worst_ratio_, out.worst_ratio);
      worst_frobenius_ = std::max(worst_frobenius_, out.frobenius);
      if (c.want_lse) {
        const Judgement lse = judge_lse(result.lse, reference);
        EXPECT_TRUE(lse.ok) << describe(c) << (staged ? " staged" : " direct")
                            << ": lse: " << lse.text;
      }
    }
  }

  void check_grid(const std::vector<int64_t> &lengths, uint64_t fallback_seed) {
    const uint64_t seed = test_seed(fallback_seed);
    SCOPED_TRACE("FLYDSL_TEST_SEED=" + std::to_string(seed));
    Random random(seed);
    for (const int64_t seq_q : lengths) {
      for (const int64_t seq_k : lengths) {
        const flydsl_aot_mask window = {random.between(0, 70), random.between(0, 70),
                                        FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT, 0};
        for (const flydsl_aot_mask &mask :
             {no_mask(), causal_top_left(), causal_bottom_right(), window}) {
          check_pair(seq_q, seq_k, mask, random);
          if (HasFatalFailure()) return;
        }
      }
    }
    std::printf("worst element %.3f of its bound, worst relative Frobenius norm %.3g, seed %llu\n",
                worst_ratio_, worst_frobenius_, static_cast<unsigned long long>(seed));
  }

  double worst_ratio_ = 0;
  double worst_frobenius_ = 0;
};

TEST_P(AttentionForwardTails, Quick) {
  check_grid(kQuickLengths, 11);
}
// One row or key, part of a tile, two tiles and a part.
TEST_P(AttentionForwardTails, Ragged) {
  check_grid({1, 33, 130}, 13);
}
TEST_P(AttentionForwardTails, Full) {
  check_grid(kLengths, 12);
}

std::string instance_name_of(const ::testing::TestParamInfo<Instance> &info) {
  const auto &[dtype, dims] = info.param;
  std::string name = std::string(flydsl_aot_dtype_name(dtype)) + "_d" + std::to_string(dims.qk);
  return dims.qk == dims.v ? name : name + "x" + std::to_string(dims.v);
}

INSTANTIATE_TEST_SUITE_P(Instances, AttentionForwardTails,
                         ::testing::Combine(::testing::Values(FLYDSL_AOT_BF16, FLYDSL_AOT_FP16),
                                            ::testing::Values(HeadDims{64, 64},
                                                              HeadDims{128, 128})),
                         instance_name_of);
// Classes whose widths are no powers of two, and head dims below them.
INSTANTIATE_TEST_SUITE_P(
    Classes, AttentionForwardTails,
    ::testing::Combine(::testing::Values(FLYDSL_AOT_BF16, FLYDSL_AOT_FP16),
                       ::testing::Values(HeadDims{32, 32}, HeadDims{40, 40}, HeadDims{80, 80},
                                         HeadDims{96, 96}, HeadDims{112, 104}, HeadDims{160, 160},
                                         HeadDims{192, 128}, HeadDims{184, 104}, HeadDims{192, 192},
                                         HeadDims{208, 224}, HeadDims{256, 256},
                                         HeadDims{232, 248})),
    instance_name_of);

}  // namespace
}  // namespace flydsl::test
