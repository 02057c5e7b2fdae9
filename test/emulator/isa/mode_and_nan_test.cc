// Vectors that the plain implementation's disagreements left behind: MODE.FP16_OVFL, halves of a stochastic source,
// the high word of inline constants, denormals of dot products, NaN of xf32.
#include <gtest/gtest.h>

#include "test/emulator/isa/lane_values.h"
#include "test/emulator/support/snippet.h"

namespace flydsl::emu::test {
namespace {

using u32 = uint32_t;
constexpr u32 kDefaultMode = 0x3f0, kOverflow = 1u << 23;

class ModeAndNan : public testing::TestWithParam<Level> {};

// What is finite stays finite, poles of one-source functions included; an infinite source gives infinity.
TEST_P(ModeAndNan, Fp16OverflowGivesTheLargestNumber) {
  struct Case {
    const char *text;
    u32 a, b, plain, saturated;
  };
  const Case cases[] = {
      {"v_add_f16 v3, v0, v1", 0x7bff, 0x7bff, 0x7c00, 0x7bff},
      {"v_add_f16 v3, v0, v1", 0xfbff, 0xfbff, 0xfc00, 0xfbff},
      {"v_add_f16 v3, v0, v1", 0x7c00, 0x3c00, 0x7c00, 0x7c00},
      {"v_mul_f16 v3, v0, v1", 0x7bff, 0xfbff, 0xfc00, 0xfbff},
      {"v_fma_f16 v3, v0, v1, v1", 0x7bff, 0x7bff, 0x7c00, 0x7bff},
      {"v_mad_legacy_f16 v3, v0, v1, 1.0", 0x7bff, 0x7bff, 0x7c00, 0x7bff},
      {"v_pk_add_f16 v3, v0, v1", 0x7bff7c00, 0x7bff3c00, 0x7c007c00, 0x7bff7c00},
      {"v_ldexp_f16 v3, v0, v1", 0x3c00, 16, 0x7c00, 0x7bff},
      {"v_rcp_f16 v3, v0", 0x8000, 0, 0xfc00, 0xfbff},
      {"v_exp_f16 v3, v0", 0x4c00, 0, 0x7c00, 0x7bff},
      {"v_exp_f16 v3, v0", 0x7c00, 0, 0x7c00, 0x7c00},
      {"v_cvt_f16_f32 v3, v0", 0x47800000, 0, 0x7c00, 0x7bff},
      {"v_cvt_f16_f32 v3, v0", 0x7f800000, 0, 0x7c00, 0x7c00},
      {"v_cvt_f16_u16 v3, v0", 0xffff, 0, 0x7c00, 0x7bff},
      {"v_cvt_pk_f16_f32 v3, v0, v1", 0x47800000, 0xff800000, 0xfc007c00, 0xfc007bff},
      {"v_cvt_pk_bf16_f32 v3, v0, v1", 0x7f7fffff, 0xff800000, 0xff807f80, 0xff807f7f},
      {"v_fma_mixlo_f16 v3, v0, v1, v1", 0x47800000, 0x3f800000, 0x7c00, 0x7bff},
      {"v_cvt_sr_f16_f32 v3, v0, v1", 0x477ff000, ~0u, 0x7c00, 0x7bff},
      {"v_cvt_sr_bf16_f32 v3, v0, v1", 0xff7fffff, ~0u, 0xff80, 0xff7f},
      {"v_cvt_scalef32_pk_f16_fp8 v3, v0, v1", 0x00007e7e, 0x47000000, 0x7c007c00, 0x7bff7bff},
  };
  for (const Case &c : cases)
    for (const bool saturate : {false, true}) {
      SCOPED_TRACE(c.text);
      Snippet t(c.text, GetParam());
      t.wave().mode = kDefaultMode | (saturate ? kOverflow : 0);
      t.v(0, 5) = c.a;
      t.v(1, 5) = c.b;
      ASSERT_EQ(t.run(), "");
      EXPECT_EQ(t.v(3, 5), saturate ? c.saturated : c.plain);
    }
}

// fp32 arithmetic does not know the bit.
TEST_P(ModeAndNan, Fp16OverflowLeavesFp32Alone) {
  Snippet t("v_add_f32 v3, v0, v0\n v_mul_f32 v4, v1, v2", GetParam());
  t.wave().mode = kDefaultMode | kOverflow;
  t.v(0, 0) = 0x7f7fffff;
  t.v(1, 0) = 0x00800000;
  t.v(2, 0) = 0x3f000000;
  ASSERT_EQ(t.run(), "");
  EXPECT_EQ(t.v(3, 0), 0x7f800000u);
  EXPECT_EQ(t.v(4, 0), 0x00400000u);
}

// OP_SEL[0] picks the half of a 16-bit source (CDNA3 ISA, "VOP3"), bits 2 and 3 the byte of the result.
TEST_P(ModeAndNan, StochasticConversionOfEitherHalf) {
  Snippet t(
      "v_cvt_scalef32_sr_fp8_f16 v3, v0, v1, v2 op_sel:[0,0,1,0]\n"
      "v_cvt_scalef32_sr_fp8_f16 v4, v0, v1, v2 op_sel:[1,0,0,1]\n"
      "v_cvt_scalef32_sr_bf8_bf16 v5, v6, v1, v2 op_sel:[1,0,0,0]",
      GetParam());
  t.v(0, 7) = 0xc0003c00;  // fp16 -2, 1
  t.v(6, 7) = 0x40400000;  // bf16 3, 0
  t.v(2, 7) = 0x3f800000;
  for (int reg : {3, 4, 5}) t.v(reg, 7) = 0x11111111;
  ASSERT_EQ(t.run(), "");
  EXPECT_EQ(t.v(3, 7), 0x11113811u);
  EXPECT_EQ(t.v(4, 7), 0x11c01111u);
  EXPECT_EQ(t.v(5, 7), 0x11111142u);
}

// A floating constant has its bits in the low word only, an integer is sign-extended: LLVM writes op_sel_hi:0 where
// both results take a constant.
TEST_P(ModeAndNan, InlineConstantsOfPackedSingles) {
  Snippet t(
      "v_pk_add_f32 v[4:5], v[0:1], 2.0 op_sel_hi:[1,0]\n v_pk_add_f32 v[6:7], v[0:1], 2.0\n"
      "v_pk_mov_b32 v[8:9], 1.0, -5 op_sel:[1,1]",
      GetParam());
  t.v(0, 3) = t.v(1, 3) = 0x3f800000;
  ASSERT_EQ(t.run(), "");
  EXPECT_EQ(t.v(4, 3), 0x40400000u);
  EXPECT_EQ(t.v(5, 3), 0x40400000u);
  EXPECT_EQ(t.v(6, 3), 0x40400000u);
  EXPECT_EQ(t.v(7, 3), 0x3f800000u);
  EXPECT_EQ(t.v(8, 3), 0u);
  EXPECT_EQ(t.v(9, 3), ~0u);
}

// Of two 16-bit values a floating constant is the low one (llc writes v_dot2c_f32_f16 with 1.0 for (1.0, 0)).
TEST_P(ModeAndNan, InlineConstantsOfPackedHalves) {
  Snippet t(
      "v_dot2_f32_f16 v4, v0, 1.0, 0\n v_dot2_f32_bf16 v5, v1, 2.0, 0\n v_mov_b32 v6, 0\n"
      "v_dot2c_f32_f16 v6, -4.0, v0\n v_mov_b32 v7, 0\n v_pk_fmac_f16 v7, 1.0, v0\n"
      "v_cvt_scalef32_pk_fp8_f16 v8, 1.0, v2\n v_cvt_scalef32_pk_fp8_bf16 v9, 2.0, v2",
      GetParam());
  t.v(0, 1) = 0x42004000;  // fp16 3, 2
  t.v(1, 1) = 0x40404000;  // bf16 3, 2
  t.v(2, 1) = 0x3f800000;
  ASSERT_EQ(t.run(), "");
  EXPECT_EQ(t.vf(4, 1), 2.0f);
  EXPECT_EQ(t.vf(5, 1), 4.0f);
  EXPECT_EQ(t.vf(6, 1), -8.0f);
  EXPECT_EQ(t.v(7, 1), 0x4000u);
  EXPECT_EQ(t.v(8, 1), 0x0038u);
  EXPECT_EQ(t.v(9, 1), 0x0040u);
}

// round(x * 65535) of the exact product: 0.50097656 * 65535 = 32831.499023 is a tie in fp32.
TEST_P(ModeAndNan, NormalisedConversionsRoundOnce) {
  Snippet t(
      "v_cvt_pknorm_u16_f16 v4, v0, v0\n v_cvt_norm_u16_f16 v5, v0\n v_cvt_pknorm_u16_f32 v6, v1, "
      "v1",
      GetParam());
  t.v(0, 1) = 0x3802;
  t.v(1, 1) = 0x3f004000;
  ASSERT_EQ(t.run(), "");
  EXPECT_EQ(t.v(4, 1), 0x803f803fu);
  EXPECT_EQ(t.v(5, 1), 0x803fu);
  EXPECT_EQ(t.v(6, 1), 0x803f803fu);
}

// LLVM (SIISelLowering): fdot2 flushes an fp32 denormal operand and result whatever MODE says.
TEST_P(ModeAndNan, DotProductsOfTwoFlushDenormals) {
  Snippet t(
      "v_dot2_f32_f16 v3, v0, v1, v2\n v_dot2_f32_bf16 v4, v0, v5, v2\n v_mov_b32 v6, v2\n"
      "v_dot2c_f32_f16 v6, v0, v1\n v_dot2_f32_bf16 v8, v7, v7, v1",
      GetParam());
  t.v(2, 0) = 0x807fffff;  // a denormal C
  t.v(7, 0) = 0x1f800000;  // 2^-64: the square is a denormal
  ASSERT_EQ(t.run(), "");
  EXPECT_EQ(t.v(3, 0) & 0x7fffffff, 0u);
  EXPECT_EQ(t.v(4, 0) & 0x7fffffff, 0u);
  EXPECT_EQ(t.v(6, 0) & 0x7fffffff, 0u);
  EXPECT_EQ(t.v(8, 0), 0u);
}

// TF32 keeps the upper 19 bits, yet a NaN whose payload lies below them is no infinity.
TEST_P(ModeAndNan, Xf32KeepsNan) {
  Snippet t("v_mfma_f32_16x16x8_xf32 v[8:11], v[0:1], v[2:3], 0", GetParam(), "gfx942");
  t.v(0, 0) = 0x7f800001;
  t.v(2, 0) = 0x3f800000;
  ASSERT_EQ(t.run(), "");
  EXPECT_EQ(t.v(8, 0), 0x7fc00000u);
}

INSTANTIATE_TEST_SUITE_P(Levels, ModeAndNan, testing::ValuesIn(levels()), [](const auto &p) {
  return std::string(p.param == Level::kBase   ? "base"
                     : p.param == Level::kAvx2 ? "avx2"
                                               : "avx512");
});

}  // namespace
}  // namespace flydsl::emu::test
