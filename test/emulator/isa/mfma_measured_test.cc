// FLYDSL_EMU_MFMA=measured: sums worked out by hand that tell the measured rules from other orders.
#include <cstdlib>

#include "test/emulator/isa/matrix_layouts.h"

namespace flydsl::emu::test {
namespace {

class MfmaMeasured : public testing::TestWithParam<Level> {
 protected:
  // The model is chosen when the code is decoded.
  Snippet measured(const std::string &text, const std::string &processor) {
    setenv("FLYDSL_EMU_MFMA", "measured", 1);
    Snippet t(text, GetParam(), processor);
    unsetenv("FLYDSL_EMU_MFMA");
    return t;
  }
  // A row 0 and B column 0 of a 16x16x16 instruction on f16: products a[k] * b[k].
  static void set_products(Snippet &t, const std::vector<std::pair<double, double>> &p) {
    for (size_t k = 0; k < p.size(); ++k) {
      const int lane = int(k / 4) * 16, reg = int(k % 4 / 2), shift = int(k % 2) * 16;
      t.v(reg, lane) |= nearest_small_float(p[k].first, 5) << shift;
      t.v(4 + reg, lane) |= nearest_small_float(p[k].second, 5) << shift;
    }
  }
};
const double k2_13 = 8192, k2_12 = 4096, k2_11 = 2048;

TEST_P(MfmaMeasured, Cdna3TruncatesProductsBelowTheLargest) {
  const std::string text = "v_mfma_f32_16x16x16_f16 v[8:11], v[0:1], v[4:5], ";
  // 2^25, 3, then -2^25 in the next group of 8: 3 counts as 2, in steps of 2^25 / 2^24, and 2^25 + 2
  // is a tie that goes to 2^25.
  const std::vector<std::pair<double, double>> p = {{k2_13, k2_12}, {3, 1}, {}, {}, {}, {}, {}, {},
                                                    {-k2_13, k2_12}};
  Snippet t = measured(text + "0", "gfx942");
  set_products(t, p);
  ASSERT_EQ(t.run(), "");
  EXPECT_EQ(t.vf(8, 0), 0.0f);
  // The other model rounds 2^25 + 3 to 2^25 + 4.
  Snippet f(text + "0", GetParam(), "gfx942");
  set_products(f, p);
  ASSERT_EQ(f.run(), "");
  EXPECT_EQ(f.vf(8, 0), 4.0f);
  // C is rounded down, so -2^-30 beside 1 takes a whole step of 2^-24; positive it vanishes.
  for (const float c : {-0x1p-30f, 0x1p-30f}) {
    Snippet d = measured(text + "v[8:11]", "gfx950");
    d.v(8, 0) = bits_of(c);
    set_products(d, {{1, 1}});
    ASSERT_EQ(d.run(), "");
    EXPECT_EQ(d.vf(8, 0), c < 0 ? 1.0f - 0x1p-24f : 1.0f);
  }
}

TEST_P(MfmaMeasured, Cdna2AddsPairsInGroupsOfFour) {
  Snippet t = measured("v_mfma_f32_16x16x16f16 v[8:11], v[0:1], v[4:5], 0", "gfx90a");
  // (2^24 + 1) + (1 + 1): the first 1 is a tie and lost.
  set_products(t, {{k2_13, k2_11}, {1, 1}, {1, 1}, {1, 1}});
  ASSERT_EQ(t.run(), "");
  EXPECT_EQ(t.vf(8, 0), 0x1p24f + 2);
  // Subnormal f16 inputs count as zero, normal ones do not.
  Snippet s = measured("v_mfma_f32_16x16x16f16 v[8:11], v[0:1], v[4:5], 0", "gfx90a");
  set_products(s, {{0x1p-15, 1}, {0x1p-14, 1}});
  ASSERT_EQ(s.run(), "");
  EXPECT_EQ(s.vf(8, 0), 0x1p-14f);
}

TEST_P(MfmaMeasured, Bf16OfCdna2WithoutOneKGoesByTwo) {
  Snippet t = measured("v_mfma_f32_16x16x8bf16 v[8:11], v0, v4, 0", "gfx90a");
  // Products 2^24, 1 | 1, 1: groups of two give 2^24, then 2^24 + 2; four products in pairs would too,
  // but C comes between: -2^24 first leaves 0 + 2.
  t.v(0, 0) = 0x3f804b80u;  // 2^24, 1
  t.v(4, 0) = 0x3f803f80u;
  t.v(0, 16) = 0x3f803f80u;
  t.v(4, 16) = 0x3f803f80u;
  ASSERT_EQ(t.run(), "");
  EXPECT_EQ(t.vf(8, 0), 0x1p24f + 2);
}

TEST_P(MfmaMeasured, Fp8SplitsEvenAndOddProducts) {
  // One lane's 8 k: even products 2^16 (256 * 256) and 2^-12, odd ones 2^-12 twice. The even sum cuts
  // below 2^-8; the odd one keeps 2^-11, which the common step of 2^-8 then rounds down to 0.
  Snippet t = measured("v_mfma_f32_16x16x32_fp8_fp8 v[8:11], v[0:1], v[2:3], 0", "gfx950");
  const SmallFormat f = kE4M3;
  auto code = [&](double x) { return f.nearest(x, false); };
  const double a[8] = {256, -0x1p-6, 0x1p-6, -0x1p-6}, b[8] = {256, 0x1p-6, 0x1p-6, 0x1p-6};
  for (int k = 0; k < 8; ++k) {
    t.v(k / 4, 0) |= code(a[k]) << (8 * (k % 4));
    t.v(2 + k / 4, 0) |= code(b[k]) << (8 * (k % 4));
  }
  ASSERT_EQ(t.run(), "");
  // The odd sum is negative: rounding down makes it one step of 2^-8, which fp32 holds beside 2^16.
  EXPECT_EQ(t.vf(8, 0), 65536.0f - 0x1p-8f);
}

TEST_P(MfmaMeasured, ScaledAndSparseFormsRunUnderIt) {
  Snippet t = measured(
      "v_mfma_scale_f32_16x16x128_f8f6f4 v[48:51], v[0:7], v[8:15], 1.0, v40, v41 "
      "op_sel_hi:[0,0,0]\n"
      "v_smfmac_f32_16x16x32_f16 v[52:55], v[16:17], v[20:23], v42",
      "gfx950");
  for (int r = 0; r < 16; ++r) t.set_v(r, [](int) { return 0x38383838u; });
  for (int r = 16; r < 24; ++r) t.set_v(r, [](int) { return 0x3c003c00u; });
  t.set_v(40, [](int l) { return l % 16 == 2 ? 255u : 128u; });
  t.set_v(41, [](int) { return 125u; });
  t.set_v(42, [](int) { return 0x44u; });
  ASSERT_EQ(t.run(), "");
  EXPECT_EQ(t.vf(48, 0), 1.0f + 128.0f / 2);
  EXPECT_EQ(t.v(50, 0), 0x7fc00000u);
  EXPECT_EQ(t.vf(52, 0), 16.0f);
}

// fp32 is measured as the fused chain, and infinities pass.
TEST_P(MfmaMeasured, SpecialValues) {
  Snippet t = measured("v_mfma_f32_16x16x16_f16 v[8:11], v[0:1], v[4:5], 0", "gfx942");
  t.v(0, 0) = 0x7c00;  // inf * 1
  t.v(4, 0) = 0x3c00;
  t.v(0, 1) = 0x7c00;  // inf * 0 in column 1
  ASSERT_EQ(t.run(), "");
  EXPECT_EQ(t.v(8, 0), 0x7f800000u);
  EXPECT_EQ(t.v(8, 1), 0x7fc00000u);
}

INSTANTIATE_TEST_SUITE_P(Levels, MfmaMeasured, testing::ValuesIn(levels()), level_name);

}  // namespace
}  // namespace flydsl::emu::test
