// Random inputs: the same in every type, with the moments they claim.
#include "tools/random_data.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tools/exit_status.h"
#include "tools/verify/float8.h"

namespace flydsl::tools {
namespace {

double decoded(uint16_t bits, int exponent_bits, int mantissa_bits) {
  const int exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const double magnitude =
      exponent ? std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits)
               : std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return bits >> 15 ? -magnitude : magnitude;
}

template <typename Element>
std::vector<Element> block(flydsl_aot_dtype dtype, uint64_t stream) {
  const std::vector<uint8_t> bytes = random_block("x", dtype, stream);
  std::vector<Element> values(bytes.size() / sizeof(Element));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST(RandomData, MomentsOfANormalDistribution) {
  const std::vector<double> x = block<double>(FLYDSL_AOT_FP64, 0);
  ASSERT_EQ(x.size(), kRandomBlockElements);
  double moments[5] = {};
  for (const double value : x)
    for (int i = 1; i <= 4; ++i) moments[i] += std::pow(value, i) / double(x.size());
  // Standard errors of the means of n = 524287: sqrt(var / n) with var 1, 2, 15, 96; five of each.
  EXPECT_NEAR(moments[1], 0, 0.007);
  EXPECT_NEAR(moments[2], 1, 0.010);
  EXPECT_NEAR(moments[3], 0, 0.027);
  EXPECT_NEAR(moments[4], 3, 0.068);
}

TEST(RandomData, EveryTypeRoundsTheSameValues) {
  const std::vector<double> exact = block<double>(FLYDSL_AOT_FP64, 3);
  const std::vector<float> single = block<float>(FLYDSL_AOT_FP32, 3);
  const std::vector<uint16_t> half = block<uint16_t>(FLYDSL_AOT_FP16, 3);
  const std::vector<uint16_t> bf16 = block<uint16_t>(FLYDSL_AOT_BF16, 3);
  // Half a unit of the last place, from the least exponent on. Single precision rounds first: by 2^-13 of
  // that at most.
  const auto bound = [](double value, int mantissa_bits, int least_exponent) {
    const int exponent = std::max(std::ilogb(value), least_exponent);
    return std::ldexp(1 + 0x1p-13, exponent - mantissa_bits - 1);
  };
  for (size_t i = 0; i < exact.size(); ++i) {
    ASSERT_EQ(single[i], static_cast<float>(exact[i])) << i;
    ASSERT_LE(std::abs(decoded(half[i], 5, 10) - exact[i]), bound(exact[i], 10, -14)) << i;
    ASSERT_LE(std::abs(decoded(bf16[i], 8, 7) - exact[i]), bound(exact[i], 7, -126)) << i;
  }
}

TEST(RandomData, EightBitsAndBooleans) {
  const std::vector<double> exact = block<double>(FLYDSL_AOT_FP64, 3);
  const std::vector<uint8_t> e4m3 = block<uint8_t>(FLYDSL_AOT_E4M3, 3);
  const std::vector<uint8_t> e5m2 = block<uint8_t>(FLYDSL_AOT_E5M2, 3);
  const std::vector<uint8_t> truths = block<uint8_t>(FLYDSL_AOT_BOOL, 3);
  size_t count = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    // Half a unit of the last place of 4 and of 3 bits; half of the least number below the normal ones.
    const double value = std::abs(exact[i]);
    ASSERT_LE(std::abs(verify::float8_to_float(FLYDSL_AOT_E4M3, e4m3[i]) - exact[i]),
              std::max(value * 0x1.001p-4, 0x1p-10));
    ASSERT_LE(std::abs(verify::float8_to_float(FLYDSL_AOT_E5M2, e5m2[i]) - exact[i]),
              std::max(value * 0x1.001p-3, 0x1p-17));
    ASSERT_LE(truths[i], 1);
    count += truths[i];
  }
  // Five standard errors of a share of a half: 5 / (2 sqrt(n)).
  EXPECT_NEAR(static_cast<double>(count) / static_cast<double>(truths.size()), 0.5, 0.0035);
}

TEST(RandomData, StreamsDifferAndIntegersAreRefused) {
  EXPECT_NE(random_block("x", FLYDSL_AOT_BF16, 0), random_block("x", FLYDSL_AOT_BF16, 1));
  EXPECT_EQ(random_block("x", FLYDSL_AOT_BF16, 1), random_block("x", FLYDSL_AOT_BF16, 1));
  EXPECT_THROW(random_block("x", FLYDSL_AOT_INT32, 0), ToolError);
}

}  // namespace
}  // namespace flydsl::tools
