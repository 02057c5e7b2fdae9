// The rules stated in include/flydsl_aot/attention_forward.h: NaN and infinity, rows that see
// nothing, every scale, determinism.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>

#include "test/support/attention_forward_case.h"
#include "tools/verify/float16.h"

namespace flydsl::test {
namespace {

struct Specials {
  uint16_t nan, negative_nan, infinity, negative_infinity;
};

Specials specials(flydsl_aot_dtype dtype) {
  return dtype == FLYDSL_AOT_BF16 ? Specials{0x7fc1, 0xffff, 0x7f80, 0xff80}
                                  : Specials{0x7e01, 0xffff, 0x7c00, 0xfc00};
}

class AttentionForwardPolicy : public ::testing::TestWithParam<flydsl_aot_dtype> {
 protected:
  AttentionCase random_case(uint64_t seed, int64_t seq_q, int64_t seq_k,
                            const flydsl_aot_mask &mask) const {
    AttentionCase c;
    c.dtype = GetParam();
    c.seq_q = seq_q;
    c.seq_k = seq_k;
    c.mask = mask;
    Random random(test_seed(seed));
    c.fill_random(random);
    return c;
  }
  static uint16_t &at(std::vector<uint16_t> &values, const AttentionCase &c, int64_t position,
                      int64_t channel) {
    return values[static_cast<size_t>(position * c.head_dim + channel)];
  }
};

INSTANTIATE_TEST_SUITE_P(Dtypes, AttentionForwardPolicy,
                         ::testing::Values(FLYDSL_AOT_BF16, FLYDSL_AOT_FP16), [](const auto &info) {
                           return std::string(flydsl_aot_dtype_name(info.param));
                         });

// Keys past the diagonal, in the same tile as visible ones and in later tiles, hold NaN and
// infinity: rows that do not see them are finite and within the bound. In K such keys change no bit
// of those rows. In V the kernel notices the NaN that 0 * NaN gave and computes the row anew
// another way (kernels/attention_forward/exact.hip.h), which may round differently.
TEST_P(AttentionForwardPolicy, HiddenNanAndInfinityNeverLeak) {
  const Specials special = specials(GetParam());
  const AttentionCase clean = random_case(41, 100, 100, causal_top_left());
  const AttentionResult expected = check_attention(clean);
  for (const uint16_t pattern :
       {special.nan, special.negative_nan, special.infinity, special.negative_infinity}) {
    for (const bool in_k : {true, false}) {
      AttentionCase c = clean;
      constexpr int64_t kFirstBad = 37;
      for (int64_t j = kFirstBad; j < c.seq_k; ++j) {
        for (int64_t d = 0; d < c.head_dim; ++d) at(in_k ? c.k : c.v, c, j, d) = pattern;
      }
      const AttentionResult result = check_attention(c);
      for (int64_t i = 0; i < kFirstBad; ++i) {
        const float lse = result.lse[static_cast<size_t>(i)];
        ASSERT_TRUE(std::isfinite(lse)) << "row " << i;
        if (in_k) {
          EXPECT_EQ(lse, expected.lse[static_cast<size_t>(i)]) << "row " << i;
        }
        for (int64_t d = 0; d < c.head_dim; ++d) {
          const size_t element = static_cast<size_t>(i * c.head_dim + d);
          ASSERT_TRUE(std::isfinite(to_float(c.dtype, result.out[element])))
              << "row " << i << " pattern " << pattern;
          if (in_k) {
            ASSERT_EQ(result.out[element], expected.out[element]) << "row " << i;
          }
        }
      }
    }
  }
}

// The same where no row at all sees the bad keys.
TEST_P(AttentionForwardPolicy, NanHiddenFromEveryRowNeverLeaks) {
  const Specials special = specials(GetParam());
  AttentionCase c = random_case(54, 37, 100, causal_top_left());
  const AttentionResult expected = check_attention(c);
  for (int64_t j = 37; j < c.seq_k; ++j) {
    for (int64_t d = 0; d < c.head_dim; ++d) at(c.k, c, j, d) = at(c.v, c, j, d) = special.nan;
  }
  const AttentionResult result = check_attention(c);
  for (size_t i = 0; i < result.lse.size(); ++i) {
    EXPECT_NEAR(result.lse[i], expected.lse[i], 1e-5) << "row " << i;
  }
}

TEST_P(AttentionForwardPolicy, VisibleNanInKMakesTheRowNan) {
  const Specials special = specials(GetParam());
  for (const flydsl_aot_mask &mask : {no_mask(), causal_top_left()}) {
    AttentionCase c = random_case(42, 140, 140, mask);
    constexpr int64_t kBad = 70;
    at(c.k, c, kBad, 5) = special.nan;
    const AttentionResult result = check_attention(c);
    for (int64_t i = 0; i < c.seq_q; ++i) {
      const bool sees = mask.right != 0 || i >= kBad;
      EXPECT_EQ(std::isnan(result.lse[static_cast<size_t>(i)]), sees) << "row " << i;
      for (int64_t d = 0; d < c.head_dim; ++d) {
        EXPECT_EQ(
            std::isnan(to_float(c.dtype, result.out[static_cast<size_t>(i * c.head_dim + d)])),
            sees)
            << "row " << i;
      }
    }
  }
}

TEST_P(AttentionForwardPolicy, NanInQMakesOnlyThatRowNan) {
  AttentionCase c = random_case(43, 130, 90, no_mask());
  at(c.q, c, 65, 3) = specials(GetParam()).nan;
  const AttentionResult result = check_attention(c);
  for (int64_t i = 0; i < c.seq_q; ++i)
    EXPECT_EQ(std::isnan(result.lse[static_cast<size_t>(i)]), i == 65) << "row " << i;
}

TEST_P(AttentionForwardPolicy, NanInVMakesOnlyItsColumnNan) {
  AttentionCase c = random_case(44, 80, 80, causal_top_left());
  at(c.v, c, 33, 9) = specials(GetParam()).nan;
  const AttentionResult result = check_attention(c);
  for (int64_t i = 0; i < c.seq_q; ++i) {
    EXPECT_FALSE(std::isnan(result.lse[static_cast<size_t>(i)]));
    for (int64_t d = 0; d < c.head_dim; ++d) {
      EXPECT_EQ(std::isnan(to_float(c.dtype, result.out[static_cast<size_t>(i * c.head_dim + d)])),
                i >= 33 && d == 9)
          << "row " << i << " column " << d;
    }
  }
}

// An infinite key makes scores of +inf, -inf or NaN as the query's sign says: +inf and NaN poison
// the row, -inf hides the key.
TEST_P(AttentionForwardPolicy, InfiniteScores) {
  for (const flydsl_aot_mask &mask : {no_mask(), causal_bottom_right()}) {
    AttentionCase c = random_case(45, 70, 150, mask);
    const float infinity = std::numeric_limits<float>::infinity();
    c.fill_q([](int64_t, int64_t, int64_t i, int64_t d) {
      return d == 0 ? (i % 3 == 0   ? 1.0f
                       : i % 3 == 1 ? -1.0f
                                    : 0.0f)
                    : static_cast<float>((i + d) % 5) * 0.25f;
    });
    for (const int64_t bad : {3, 64, 149}) at(c.k, c, bad, 0) = from_float(c.dtype, infinity);
    // What a hidden key's value holds does not count.
    AttentionReference reference;
    AttentionResult result = check_attention(c, &reference);
    for (int64_t i = 0; i < c.seq_q; ++i) {
      EXPECT_EQ(std::isfinite(result.lse[static_cast<size_t>(i)]), i % 3 == 1) << "row " << i;
    }
    for (const int64_t bad : {3, 64, 149}) {
      for (int64_t d = 0; d < c.head_dim; ++d) at(c.v, c, bad, d) = specials(GetParam()).nan;
    }
    result = check_attention(c);
    for (int64_t d = 0; d < c.head_dim; ++d) {
      EXPECT_TRUE(
          std::isfinite(to_float(c.dtype, result.out[static_cast<size_t>(c.head_dim + d)])));
    }
  }
}

TEST_P(AttentionForwardPolicy, RowWhoseEveryScoreIsMinusInfinityIsEmpty) {
  AttentionCase c = random_case(46, 3, 100, no_mask());
  const float infinity = std::numeric_limits<float>::infinity();
  c.fill_q([](int64_t, int64_t, int64_t i, int64_t) { return i == 1 ? 1.0f : 0.5f; });
  c.fill_k([=](int64_t, int64_t, int64_t, int64_t d) { return d == 7 ? -infinity : 1.0f; });
  c.fill_v(
      [](int64_t, int64_t, int64_t, int64_t) { return std::numeric_limits<float>::quiet_NaN(); });
  const AttentionResult result = check_attention(c);
  for (const float lse : result.lse) EXPECT_EQ(lse, -infinity);
  for (const uint16_t bits : result.out) EXPECT_EQ(bits, 0);
}

TEST_P(AttentionForwardPolicy, NoKeysAtAll) {
  for (const flydsl_aot_mask &mask : {no_mask(), causal_top_left(), causal_bottom_right()}) {
    const AttentionCase c = random_case(47, 130, 0, mask);
    const AttentionResult result = check_attention(c);
    for (const uint16_t bits : result.out) EXPECT_EQ(bits, 0);
    for (const float lse : result.lse) EXPECT_EQ(lse, -INFINITY);
  }
}

TEST_P(AttentionForwardPolicy, EmptyOutputsAreSuccess) {
  AttentionCase c = random_case(48, 0, 20, no_mask());
  EXPECT_EQ(run_attention(c).status, FLYDSL_AOT_OK);
  c.seq_q = 4;
  c.batches = 0;
  c.q.clear();
  c.k.clear();
  c.v.clear();
  EXPECT_EQ(run_attention(c).status, FLYDSL_AOT_OK);
}

// Small integers, so that the dot products are exact in fp32 and even a huge scale has one right
// answer.
TEST_P(AttentionForwardPolicy, EveryScale) {
  for (const float scale : {0.0f, -0.0f, 1.0f, -1.0f, -0.125f, 1e-30f, -1e-30f, 1e-45f, 37.5f, 1e4f,
                            -1e4f, 1e20f, -1e20f}) {
    for (const flydsl_aot_mask &mask : {no_mask(), causal_top_left()}) {
      AttentionCase c = random_case(49, 90, 140, mask);
      c.scale = scale;
      Random random(test_seed(50));
      const AttentionCase::Fill small = [&](int64_t, int64_t, int64_t, int64_t) {
        return static_cast<float>(random.between(-2, 2));
      };
      c.fill_q(small);
      c.fill_k(small);
      check_attention(c);
    }
  }
}

// With scale 0 every visible key weighs the same, but a NaN or an infinity times 0 is still a NaN.
TEST_P(AttentionForwardPolicy, ScaleZeroIsUniform) {
  AttentionCase c = random_case(51, 2, 64, no_mask());
  c.scale = 0;
  c.fill_v([](int64_t, int64_t, int64_t j, int64_t) { return static_cast<float>(j) / 64; });
  const AttentionResult result = check_attention(c);
  for (const uint16_t bits : result.out) EXPECT_EQ(to_float(c.dtype, bits), 0.4921875f);
  for (const float lse : result.lse) EXPECT_NEAR(lse, std::log(64.0), 1e-6);
  at(c.k, c, 20, 0) = specials(GetParam()).nan;
  check_attention(c);
}

TEST_P(AttentionForwardPolicy, RepeatedCallsGiveEqualBits) {
  AttentionCase c = random_case(52, 300, 333, causal_bottom_right());
  const AttentionResult first = check_attention(c);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(same_bits(first, run_attention(c)));
}

uint64_t digest(const AttentionResult &result) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  const auto add = [&](const void *data, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i)
      hash = (hash ^ static_cast<const uint8_t *>(data)[i]) * 0x100000001b3;
  };
  add(result.out.data(), result.out.size() * sizeof(uint16_t));
  add(result.lse.data(), result.lse.size() * sizeof(float));
  return hash;
}

// The emulator reads its thread count once, so each count gets a process: this test runs the next
// one.
TEST(AttentionForwardThreads, EqualBitsForEveryThreadCount) {
  char program[4096] = {};
  ASSERT_GT(readlink("/proc/self/exe", program, sizeof program - 1), 0);
  std::string digests[3];
  const char *thread_counts[] = {"1", "2", "5"};
  for (int i = 0; i < 3; ++i) {
    const std::string command = std::string("FLYDSL_EMU_THREADS=") + thread_counts[i] + " '" +
                                program +
                                "' --gtest_also_run_disabled_tests --gtest_filter=*PrintDigest";
    std::unique_ptr<FILE, int (*)(FILE *)> child(popen(command.c_str(), "r"), pclose);
    ASSERT_TRUE(child);
    char line[256];
    while (std::fgets(line, sizeof line, child.get())) {
      if (std::string(line).starts_with("digest ")) digests[i] = line;
    }
    ASSERT_NE(digests[i], "") << command;
  }
  EXPECT_EQ(digests[0], digests[1]);
  EXPECT_EQ(digests[0], digests[2]);
}

TEST(AttentionForwardThreads, DISABLED_PrintDigest) {
  AttentionCase c;
  c.batches = 2;
  c.heads_q = 6;
  c.heads_kv = 2;
  c.seq_q = 300;
  c.seq_k = 257;
  c.mask = causal_bottom_right();
  Random random(53);
  c.fill_random(random);
  std::printf("digest %016" PRIx64 "\n", digest(check_attention(c)));
}

}  // namespace
}  // namespace flydsl::test
