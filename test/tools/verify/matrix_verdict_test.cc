// The oracle and the judge of matrix products, on values known by hand.
#include "tools/verify/matrix_verdict.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "flydsl_aot/gemm.h"
#include "tools/verify/matrix_reference.h"
#include "tools/verify/random.h"

namespace flydsl::verify {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(MatrixReference, DotFollowsTheStrides) {
  const double a[] = {1, 2, 3, 4, 5, 6};      // (2, 3), row-major
  const double b[] = {1, -1, 2, 10, 20, 30};  // (3, 2), column-major
  const Dot sum = dot({a, 3, 1}, 1, {b, 1, 3}, 0, 0, 3);
  EXPECT_EQ(sum.sum, 4 * 1 - 5 * 1 + 6 * 2);
  EXPECT_EQ(sum.magnitude, 4 + 5 + 12);
  EXPECT_EQ(dot({a, 3, 1}, 0, {b, 1, 3}, 1, 1, 2).sum, 2 * 20);
  EXPECT_EQ(dot({a, 3, 1}, 0, {b, 1, 3}, 1, 2, 2).sum, 0);
}

TEST(MatrixReference, ErrorGrowsWithKAndThenWithItsRoot) {
  EXPECT_EQ(accumulation_error(0), 0);
  EXPECT_EQ(accumulation_error(16), 16 * 0x1p-23);
  EXPECT_EQ(accumulation_error(64), 64 * 0x1p-23);
  EXPECT_EQ(accumulation_error(1024), 256 * 0x1p-23);
}

TEST(MatrixReference, Activations) {
  EXPECT_EQ(activation_of(FLYDSL_AOT_ACTIVATION_NONE, -3), -3);
  EXPECT_EQ(activation_of(FLYDSL_AOT_ACTIVATION_RELU, -3), 0);
  EXPECT_TRUE(std::isnan(activation_of(FLYDSL_AOT_ACTIVATION_RELU, NAN)));
  // Phi(1) = 0.8413447460685429, and 1 - Phi(5) = 2.866515718791939e-7 (tables of the normal distribution).
  EXPECT_NEAR(activation_of(FLYDSL_AOT_ACTIVATION_GELU, 1), 0.8413447460685429, 1e-15);
  EXPECT_NEAR(activation_of(FLYDSL_AOT_ACTIVATION_GELU, -5), -5 * 2.866515718791939e-7, 1e-18);
  // As in PyTorch: gelu(1, approximate='tanh') and silu(1).
  EXPECT_NEAR(activation_of(FLYDSL_AOT_ACTIVATION_GELU_TANH, 1), 0.8411919906082768, 1e-15);
  EXPECT_NEAR(activation_of(FLYDSL_AOT_ACTIVATION_SILU, 1), 0.7310585786300049, 1e-15);
  for (const int activation :
       {FLYDSL_AOT_ACTIVATION_GELU, FLYDSL_AOT_ACTIVATION_GELU_TANH, FLYDSL_AOT_ACTIVATION_SILU}) {
    EXPECT_EQ(activation_of(activation, kInf), kInf);
    EXPECT_TRUE(std::isnan(activation_of(activation, -kInf)));
  }
}

TEST(Rounding, ToNearestEvenAndSaturating) {
  EXPECT_EQ(rounded_to(FLYDSL_AOT_BF16, 1 + 0x1p-8), 1);
  EXPECT_EQ(rounded_to(FLYDSL_AOT_BF16, 1 + 3 * 0x1p-8), 1 + 0x1p-6);
  // Not by way of fp32, where this would be a tie.
  EXPECT_EQ(rounded_to(FLYDSL_AOT_BF16, 1 + 0x1p-8 + 0x1p-40), 1 + 0x1p-7);
  EXPECT_EQ(rounded_to(FLYDSL_AOT_FP16, 65519.9), 65504);
  EXPECT_EQ(rounded_to(FLYDSL_AOT_FP16, 65520), kInf);
  EXPECT_EQ(rounded_to(FLYDSL_AOT_FP16, 0x1p-25), 0);
  EXPECT_EQ(rounded_to(FLYDSL_AOT_FP16, 1.5 * 0x1p-25), 0x1p-24);
  EXPECT_EQ(rounded_to(FLYDSL_AOT_E4M3, 1e9), 448);
  EXPECT_EQ(rounded_to(FLYDSL_AOT_E4M3, -kInf), -448);
  EXPECT_EQ(rounded_to(FLYDSL_AOT_E5M2, kInf), 57344);
  EXPECT_EQ(rounded_to(FLYDSL_AOT_E4M3, 0x1.8p-9), 0x1p-8);  // subnormals are multiples of 2^-9
  EXPECT_EQ(rounded_to(FLYDSL_AOT_FP32, 0x1p128), kInf);
}

TEST(Rounding, BitsThereAndBack) {
  EXPECT_EQ(encode_element(FLYDSL_AOT_E4M3, 1), 0x38u);
  EXPECT_EQ(encode_element(FLYDSL_AOT_E4M3, 1000), 0x7eu);
  EXPECT_EQ(encode_element(FLYDSL_AOT_E5M2, -1), 0xbcu);
  EXPECT_EQ(encode_element(FLYDSL_AOT_BF16, 1), 0x3f80u);
  EXPECT_EQ(encode_element(FLYDSL_AOT_FP32, 1), 0x3f800000u);
  for (const flydsl_aot_dtype dtype :
       {FLYDSL_AOT_E4M3, FLYDSL_AOT_E5M2, FLYDSL_AOT_FP16, FLYDSL_AOT_BF16, FLYDSL_AOT_FP32}) {
    for (const double value : {0.0, 1.0, -1.5, 0.25, 448.0})
      EXPECT_EQ(decode_element(dtype, encode_element(dtype, value)), rounded_to(dtype, value));
  }
}

// From the definition: the multiple of the unit in the last place that is nearest, ties to the even one.
double nearest(double value, int precision, int least_exponent) {
  if (value == 0) return value;
  const int exponent = std::max(std::ilogb(value), least_exponent) - precision + 1;
  return std::ldexp(std::nearbyint(std::ldexp(value, -exponent)), exponent);
}

TEST(Rounding, AsDefinedOverTheWholeRange) {
  struct Type {
    flydsl_aot_dtype dtype;
    int precision, least_exponent, most_exponent;
  };
  Random random(77);
  for (const auto &[dtype, precision, least, most] :
       {Type{FLYDSL_AOT_BF16, 8, -126, 127}, Type{FLYDSL_AOT_FP16, 11, -14, 15},
        Type{FLYDSL_AOT_FP32, 24, -126, 127}, Type{FLYDSL_AOT_E4M3, 4, -6, 7},
        Type{FLYDSL_AOT_E5M2, 3, -14, 14}}) {
    for (int i = 0; i < 200000; ++i) {
      // Few bits make ties; some lie between numbers of fp32.
      const int bits = static_cast<int>(random.between(1, precision + 4));
      double value =
          std::ldexp(static_cast<double>(random.below(int64_t{1} << bits)),
                     static_cast<int>(random.between(least - precision - 2, most)) - bits);
      if (random.chance(0.25)) value += std::ldexp(random.chance(0.5) ? value : -value, -40);
      if (random.chance(0.5)) value = -value;
      const double right = nearest(value, precision, least);
      ASSERT_EQ(rounded_to(dtype, value), right) << value << " dtype " << dtype;
      const double back = decode_element(dtype, encode_element(dtype, value));
      ASSERT_EQ(back, right) << value << " dtype " << dtype;
      ASSERT_EQ(std::signbit(back), std::signbit(value)) << value << " dtype " << dtype;
    }
  }
}

TEST(Rounding, EveryPatternOfSixteenBitsThereAndBack) {
  for (const flydsl_aot_dtype dtype : {FLYDSL_AOT_FP16, FLYDSL_AOT_BF16}) {
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
      const double value = decode_element(dtype, bits);
      if (std::isnan(value))
        EXPECT_TRUE(std::isnan(decode_element(dtype, encode_element(dtype, value))));
      else
        EXPECT_EQ(encode_element(dtype, value), bits);
    }
  }
}

MatrixVerdict judged(flydsl_aot_dtype dtype, double actual, double reference, double error) {
  MatrixVerdict verdict("d", dtype);
  verdict.judge(0, 0, 0, 1, 1, 0);
  verdict.judge(1, 2, 3, actual, reference, error);
  return verdict;
}

TEST(MatrixVerdict, WithoutErrorElementsMustBeTheRoundedReference) {
  EXPECT_EQ(judged(FLYDSL_AOT_BF16, 1, 1 + 0x1p-10, 0).fault(), "");
  EXPECT_NE(judged(FLYDSL_AOT_BF16, 1 + 0x1p-7, 1, 0).fault(), "");
  EXPECT_NE(judged(FLYDSL_AOT_FP32, 3, 2, 0).fault(), "");
}

TEST(MatrixVerdict, TheErrorIsAllowedBeforeRounding) {
  EXPECT_EQ(judged(FLYDSL_AOT_FP32, 100.5, 100, 0.5).fault(), "");
  EXPECT_NE(judged(FLYDSL_AOT_FP32, 100.6, 100, 0.5).fault(), "");
  EXPECT_EQ(judged(FLYDSL_AOT_BF16, 1 + 0x1p-7, 1 + 0x1p-8, 0x1p-20).fault(), "");
  EXPECT_EQ(judged(FLYDSL_AOT_BF16, 1, 1 + 0x1p-8, 0x1p-20).fault(), "");
  EXPECT_NE(judged(FLYDSL_AOT_BF16, 1 + 0x1p-6, 1 + 0x1p-8, 0x1p-20).fault(), "");
  EXPECT_EQ(judged(FLYDSL_AOT_FP16, kInf, 65519, 2).fault(), "");
  EXPECT_NE(judged(FLYDSL_AOT_FP16, kInf, 65500, 2).fault(), "");
}

TEST(MatrixVerdict, NanAndInfinityMustBeThemselves) {
  EXPECT_EQ(judged(FLYDSL_AOT_BF16, NAN, NAN, 1).fault(), "");
  EXPECT_NE(judged(FLYDSL_AOT_BF16, 0, NAN, 1).fault(), "");
  EXPECT_NE(judged(FLYDSL_AOT_BF16, NAN, 0, 1).fault(), "");
  EXPECT_EQ(judged(FLYDSL_AOT_BF16, -kInf, -kInf, 1).fault(), "");
  EXPECT_NE(judged(FLYDSL_AOT_BF16, kInf, -kInf, 1).fault(), "");
  EXPECT_EQ(judged(FLYDSL_AOT_E4M3, 448, kInf, 1).fault(), "");
  EXPECT_NE(judged(FLYDSL_AOT_E4M3, NAN, kInf, 1).fault(), "");
}

TEST(MatrixVerdict, NamesTheWorstAndCounts) {
  MatrixVerdict verdict("d", FLYDSL_AOT_FP32);
  verdict.judge(0, 0, 0, 1.5, 1, 0.25);
  verdict.judge(0, 1, 2, 9, 1, 0.25);
  verdict.judge(0, 2, 0, 1.2, 1, 0.25);
  const std::string fault = verdict.fault();
  EXPECT_NE(fault.find("2 of 3"), std::string::npos) << fault;
  EXPECT_NE(fault.find("row 1, column 2: 9 instead of 1"), std::string::npos) << fault;
}

}  // namespace
}  // namespace flydsl::verify
