// Vector arithmetic against values worked out in double or in integers, at every SIMD level.
#include <gtest/gtest.h>

#include <cmath>

#include "test/emulator/isa/lane_values.h"
#include "test/emulator/support/snippet.h"

namespace flydsl::emu::test {
namespace {

class Valu : public testing::TestWithParam<Level> {
 protected:
  // v3 = op(v0, v1, v2) for one lane each of the cases; returns lane 0.
  uint32_t one(const std::string &text, uint32_t x = 0, uint32_t y = 0, uint32_t z = 0) {
    Snippet t(text, GetParam());
    t.set_v(0, [=](int) { return x; });
    t.set_v(1, [=](int) { return y; });
    t.set_v(2, [=](int) { return z; });
    EXPECT_EQ(t.run(), "");
    for (int lane = 1; lane < 64; ++lane)
      EXPECT_EQ(t.v(3, lane), t.v(3, 0)) << text << " lane " << lane;
    return t.v(3, 0);
  }
};

constexpr uint32_t kOne = 0x3f800000, kTwo = 0x40000000, kMinusZero = 0x80000000, kInf = 0x7f800000;
constexpr uint32_t kQuietNan = 0x7fc01234, kSignalNan = 0x7f801234;

struct Vector {
  const char *text;
  uint32_t x, y, z, expected;
};
const Vector kVectors[] = {
    {"v_add_f32 v3, v0, v1", kOne, kTwo, 0, 0x40400000},
    {"v_sub_f32 v3, v0, v1", kOne, kTwo, 0, 0xbf800000},
    {"v_subrev_f32 v3, v0, v1", kOne, kTwo, 0, kOne},
    {"v_add_f32 v3, v0, v1", 1, 1, 0, 2},  // denormals are kept
    {"v_add_f32_e64 v3, -v0, |v1|", kOne, 0xc0000000, 0, kOne},
    // Ignored: MODE keeps denormals and IEEE is 1.
    {"v_add_f32_e64 v3, v0, v1 mul:2", kOne, kTwo, 0, 0x40400000},
    {"v_add_f32_e64 v3, v0, v1 clamp", kOne, kTwo, 0, kOne},
    {"v_mul_f32_e64 v3, v0, v1 clamp div:2", kOne, kTwo, 0, kOne},
    {"v_add_f32 v3, v0, v1", kSignalNan, kOne, 0, 0x7fc01234},
    {"v_fma_f32 v3, v0, v1, v2", 0x3f800001, 0x3f800001, 0xbf800002,
     0x28800000},  // one rounding only
    {"v_mul_legacy_f32 v3, v0, v1", 0, kInf, 0, 0},
    // Minimum and maximum: numbers beat quiet NaNs, -0 < +0, a signalling NaN is quieted (IEEE
    // mode).
    {"v_min_f32 v3, v0, v1", kQuietNan, kOne, 0, kOne},
    {"v_max_f32 v3, v0, v1", kOne, kQuietNan, 0, kOne},
    {"v_min_f32 v3, v0, v1", 0, kMinusZero, 0, kMinusZero},
    {"v_min_f32 v3, v0, v1", kMinusZero, 0, 0, kMinusZero},
    {"v_max_f32 v3, v0, v1", kMinusZero, 0, 0, 0},
    {"v_max_f32 v3, v0, v1", 0, kMinusZero, 0, 0},
    {"v_max_f32 v3, v0, v1", kSignalNan, kOne, 0, 0x7fc01234},
    {"v_min_f32 v3, v0, v1", kOne, kSignalNan, 0, 0x7fc01234},
    {"v_max3_f32 v3, v0, v1, v2", kOne, kTwo, kQuietNan, kTwo},
    {"v_med3_f32 v3, v0, v1, v2", kTwo, 0, kOne, kOne},
    {"v_maximum3_f32 v3, v0, v1, v2", kOne, kQuietNan, kTwo, kQuietNan},
    {"v_rcp_f32 v3, v0", 1, 0, 0, kInf},        // denormal input counts as 0
    {"v_rcp_f32 v3, v0", 0x7f000001, 0, 0, 0},  // denormal result is flushed
    {"v_sqrt_f32 v3, v0", 0x40800000, 0, 0, kTwo},
    {"v_sqrt_f32 v3, v0", kMinusZero, 0, 0, kMinusZero},
    {"v_rsq_f32 v3, v0", 0x40800000, 0, 0, 0x3f000000},
    {"v_exp_f32 v3, v0", 0xc3010000, 0, 0, 0},  // 2^-129 is a denormal
    {"v_exp_f32 v3, v0", 0x43000000, 0, 0, kInf},
    {"v_exp_f32 v3, v0", 0xff800000, 0, 0, 0},
    {"v_log_f32 v3, v0", 0x41000000, 0, 0, 0x40400000},
    {"v_log_f32 v3, v0", 0, 0, 0, 0xff800000},
    {"v_ldexp_f32 v3, v0, v1", kOne, 0xffffffff, 0, 0x3f000000},
    {"v_floor_f32 v3, v0", 0xbfc00000, 0, 0, 0xc0000000},
    {"v_rndne_f32 v3, v0", 0x40200000, 0, 0, kTwo},
    {"v_fract_f32 v3, v0", 0xbe800000, 0, 0, 0x3f400000},
    {"v_frexp_exp_i32_f32 v3, v0", 0x41000000, 0, 0, 4},
    {"v_cvt_i32_f32 v3, v0", 0xc0200000, 0, 0, 0xfffffffe},
    {"v_cvt_i32_f32 v3, v0", 0x4f000000, 0, 0, 0x7fffffff},
    {"v_cvt_i32_f32 v3, v0", kQuietNan, 0, 0, 0},
    {"v_cvt_u32_f32 v3, v0", 0xbf800000, 0, 0, 0},
    {"v_cvt_u32_f32 v3, v0", 0x4f800000, 0, 0, 0xffffffff},
    {"v_cvt_f32_u32 v3, v0", 0xffffffff, 0, 0, 0x4f800000},
    {"v_cvt_pkrtz_f16_f32 v3, v0, v1", 0x477fffff, 0x38d1b717, 0, 0x068d7bff},
    {"v_cvt_f32_ubyte2 v3, v0", 0x00070000, 0, 0, 0x40e00000},
    // Integers.
    {"v_add_u32 v3, v0, v1", 0xffffffff, 2, 0, 1},
    {"v_add_u32_e64 v3, v0, v1 clamp", 0xffffffff, 2, 0, 0xffffffff},
    {"v_sub_u32_e64 v3, v0, v1 clamp", 1, 2, 0, 0},
    {"v_add_i32 v3, v0, v1 clamp", 0x7fffffff, 1, 0, 0x7fffffff},
    {"v_lshlrev_b32 v3, v0, v1", 33, 1, 0, 2},  // shift counts are taken modulo 32
    {"v_ashrrev_i32 v3, v0, v1", 4, 0x80000000, 0, 0xf8000000},
    {"v_mul_hi_u32 v3, v0, v1", 0xffffffff, 0xffffffff, 0, 0xfffffffe},
    {"v_mul_hi_i32 v3, v0, v1", 0xffffffff, 2, 0, 0xffffffff},
    {"v_mul_i32_i24 v3, v0, v1", 0x00ffffff, 3, 0, 0xfffffffd},
    {"v_mad_u32_u24 v3, v0, v1, v2", 0xff000002, 3, 4, 10},
    {"v_bfe_u32 v3, v0, v1, v2", 0x12345678, 8, 12, 0x456},
    {"v_bfe_i32 v3, v0, v1, v2", 0x0000f000, 12, 4, 0xffffffff},
    {"v_bfe_i32 v3, v0, v1, v2", 0x12345678, 8, 0, 0},
    {"v_bfi_b32 v3, v0, v1, v2", 0xff, 0x12, 0x3400, 0x3412},
    {"v_perm_b32 v3, v0, v1, v2", 0x44332211, 0x88776655, 0x0c0d0400, 0x00ff1155},
    {"v_perm_b32 v3, v0, v1, v2", 0x84332211, 0x88778655, 0x0b0a0908, 0xff00ffff},
    {"v_alignbit_b32 v3, v0, v1, v2", 1, 2, 1, 0x80000001},
    {"v_alignbyte_b32 v3, v0, v1, v2", 0x11223344, 0x55667788, 1, 0x44556677},
    {"v_lshl_add_u32 v3, v0, v1, v2", 5, 2, 7, 27},
    {"v_add_lshl_u32 v3, v0, v1, v2", 5, 2, 3, 56},
    {"v_lshl_or_b32 v3, v0, v1, v2", 1, 8, 3, 0x103},
    {"v_and_or_b32 v3, v0, v1, v2", 0xff, 0x0f, 0xf00, 0xf0f},
    {"v_or3_b32 v3, v0, v1, v2", 1, 2, 4, 7},
    {"v_xad_u32 v3, v0, v1, v2", 3, 1, 5, 7},
    {"v_add3_u32 v3, v0, v1, v2", 1, 2, 3, 6},
    {"v_bcnt_u32_b32 v3, v0, v1", 0xf0f, 2, 0, 10},
    {"v_bfrev_b32 v3, v0", 1, 0, 0, 0x80000000},
    {"v_ffbh_u32 v3, v0", 0x00100000, 0, 0, 11},
    {"v_ffbl_b32 v3, v0", 0x00100000, 0, 0, 20},
    {"v_ffbh_u32 v3, v0", 0, 0, 0, 0xffffffff},
    {"v_min_i32 v3, v0, v1", 0xffffffff, 1, 0, 0xffffffff},
    {"v_max_u32 v3, v0, v1", 0xffffffff, 1, 0, 0xffffffff},
    {"v_med3_i32 v3, v0, v1, v2", 5, 0xffffffff, 3, 3},
    {"v_bitop3_b32 v3, v0, v1, v2 bitop3:0x96", 0xff00, 0xf0f0, 0xcccc, 0xc33c},
    {"v_sad_u8 v3, v0, v1, v2", 0x01020304, 0x04030201, 10, 18},
    {"v_add_u16 v3, v0, v1", 0x1ffff, 2, 0, 1},  // the high half of a 16-bit result is 0
    {"v_pk_add_u16 v3, v0, v1", 0x0001ffff, 0x00020002, 0, 0x00030001},
    {"v_pk_add_u16 v3, v0, v1 op_sel:[1,0] op_sel_hi:[0,1]", 0x00050007, 0x00020001, 0, 0x00090006},
    {"v_pk_fma_f16 v3, v0, v1, v2", 0x3c004000, 0x40004200, 0x3c003c00, 0x42004700},
    {"v_pk_fma_f16 v3, v0, v1, v2 neg_lo:[1,0,0]", 0x3c004000, 0x40004200, 0x3c003c00, 0x4200c500},
    {"v_pk_mul_f16 v3, v0, 2.0 op_sel_hi:[1,0]", 0x3c004000, 0, 0, 0x40004400},
    {"v_dot2_f32_f16 v3, v0, v1, v2", 0x3c004000, 0x40004200, kOne, 0x41100000},
    {"v_fma_mix_f32 v3, v0, v1, v2 op_sel:[1,0,0] op_sel_hi:[1,1,0]", 0x40000000, 0x00004200, kOne,
     0x40e00000},
    // An inline constant is the fp16 one where op_sel_hi makes its source fp16; integers stay bits.
    {"v_fma_mix_f32 v3, -v0, 1.0, v1 op_sel_hi:[0,1,1]", 0x3f000000, 0x4000, 0, 0x3fc00000},
    {"v_fma_mixlo_f16 v3, v0, 1.0, v1 op_sel_hi:[0,1,1]", 0x3f000000, 0x4000, 0, 0x4100},
    {"v_fma_mix_f32 v3, v0, 0.15915494, 0 op_sel_hi:[0,1,0]", kOne, 0, 0, 0x3e230000},
    {"v_fma_mix_f32 v3, v0, 1, 0 op_sel_hi:[0,1,0]", kOne, 0, 0, 0x33800000},  // 2^-24
    {"v_fma_mix_f32 v3, v0, 1.0, v1", kTwo, kOne, 0, 0x40400000},
    {"v_fma_f16 v3, v0, v1, v2", 0x3c00, 0x4000, 0x3c00, 0x4200},
    // SDWA and DPP.
    {"v_add_u32_sdwa v3, v0, v1 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_1 "
     "src1_sel:WORD_1",
     0x1234, 0x00050000, 0, 0x17},
    {"v_mov_b32_dpp v3, v0 quad_perm:[3,2,1,0] row_mask:0xf bank_mask:0xf", 9, 0, 0, 9},
    {"v_accvgpr_write_b32 a5, v0\nv_accvgpr_read_b32 v3, a5", 77, 0, 0, 77},
    {"v_div_fixup_f32 v3, v0, v1, v2", kOne, 0, kOne, kInf},
    {"v_div_fixup_f32 v3, v0, v1, v2", kOne, 0, 0, 0xffc00000},
};

TEST_P(Valu, Vectors) {
  for (const Vector &c : kVectors) {
    SCOPED_TRACE(c.text);
    EXPECT_EQ(one(c.text, c.x, c.y, c.z), c.expected) << std::hex << one(c.text, c.x, c.y, c.z);
  }
}

TEST_P(Valu, DisabledLanesKeepTheirValue) {
  Snippet t("v_add_u32 v0, 1, v0\nv_add_f32_e64 v1, v1, v1 clamp", GetParam());
  const uint64_t exec = 0x8000000180000003ull;
  t.set_v(0, [](int lane) { return uint32_t(lane); });
  t.set_vf(1, [](int) { return 0.25f; });
  t.set_exec(exec);
  ASSERT_EQ(t.run(), "");
  for (int lane = 0; lane < 64; ++lane) {
    const bool on = exec >> lane & 1;
    EXPECT_EQ(t.v(0, lane), uint32_t(lane) + on);
    EXPECT_EQ(t.vf(1, lane), on ? 0.5f : 0.25f);
  }
}

TEST_P(Valu, WithoutIeeeModeASignallingNanLosesLikeAQuietOne) {
  Snippet t("v_max_f32 v3, v0, v1", GetParam());
  t.set_v(0, [](int) { return kSignalNan; });
  t.set_v(1, [](int) { return kOne; });
  t.wave().mode = 0xf0;
  ASSERT_EQ(t.run(), "");
  EXPECT_EQ(t.v(3, 5), kOne);
}

TEST_P(Valu, ModeRegisterSetsRoundingAndDenormals) {
  // Round towards +inf, then flush denormals; the registers are read back through s_getreg.
  Snippet t(
      "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 1\n v_add_f32 v3, v0, v1\n"
      "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 8), 0xc0\n v_add_f32 v4, v2, v2\n v_add_f32 v5, "
      "v0, v1\n"
      "s_getreg_b32 s0, hwreg(HW_REG_MODE, 4, 4)",
      GetParam());
  t.set_v(0, [](int) { return kOne; });
  t.set_v(1, [](int) { return 1u; });
  t.set_v(2, [](int) { return 1u; });
  ASSERT_EQ(t.run(), "");
  EXPECT_EQ(t.v(3, 0), 0x3f800001u);
  EXPECT_EQ(t.v(4, 0), 0u);
  EXPECT_EQ(t.v(5, 0), kOne);
  EXPECT_EQ(t.s(0), 0xcu);
}

TEST_P(Valu, ExponentAndLogarithmAreWithinOneUnit) {
  Random random(11);
  Snippet t("v_exp_f32 v2, v0\nv_log_f32 v3, v1", GetParam());
  for (int round = 0; round < 50; ++round) {
    t.set_vf(0, [&](int) { return random.uniform() * 125; });
    t.set_vf(1, [&](int) { return std::exp2(random.uniform() * 120); });
    ASSERT_EQ(t.run(), "");
    for (int lane = 0; lane < 64; ++lane) {
      const double e = std::exp2(double(t.vf(0, lane))), l = std::log2(double(t.vf(1, lane)));
      EXPECT_LE(std::fabs(t.vf(2, lane) - e), e * 0x1p-24 * 1.001);
      EXPECT_LE(std::fabs(t.vf(3, lane) - l), std::fabs(l) * 0x1p-24 * 1.01 + 1e-12);
    }
  }
}

TEST_P(Valu, HalfAndBf16ConversionsRoundToNearestEven) {
  Random random(5);
  Snippet t("v_cvt_f16_f32 v2, v0\nv_cvt_pk_bf16_f32 v3, v0, v1\nv_cvt_f32_f16 v4, v1", GetParam());
  for (int round = 0; round < 200; ++round) {
    // Halfway cases and denormals are frequent: few significant bits, exponents around fp16's
    // limits.
    t.set_v(0, [&](int) {
      const uint32_t exponent = 100 + random.next() % 46,
                     mantissa = random.next() & 0x7fffff & (~0u << random.next() % 20);
      return (random.next() & 0x80000000u) | exponent << 23 | mantissa;
    });
    t.set_v(1, [&](int) { return random.next() & 0xffff; });
    ASSERT_EQ(t.run(), "");
    for (int lane = 0; lane < 64; ++lane) {
      const double x = t.vf(0, lane);
      ASSERT_EQ(t.v(2, lane), nearest_small_float(x, 5)) << std::hexfloat << x;
      ASSERT_EQ(t.v(3, lane) & 0xffff, nearest_small_float(x, 8)) << std::hexfloat << x;
      const double h = half(t.v(1, lane));
      if (std::isnan(h)) {
        ASSERT_TRUE(std::isnan(t.vf(4, lane)));
      } else {
        ASSERT_EQ(double(t.vf(4, lane)), h);
      }
    }
  }
}

TEST_P(Valu, Fp16FmaRoundsOnce) {
  Random random(6);
  Snippet t("v_fma_f16 v3, v0, v1, v2", GetParam());
  for (int round = 0; round < 300; ++round) {
    for (int reg = 0; reg < 3; ++reg) t.set_v(reg, [&](int) { return random.next() & 0xffff; });
    ASSERT_EQ(t.run(), "");
    for (int lane = 0; lane < 64; ++lane) {
      // long double holds the exact product and, for these exponents, the exact sum.
      const long double exact =
          (long double)half(t.v(0, lane)) * half(t.v(1, lane)) + half(t.v(2, lane));
      if (std::isnan(double(exact))) continue;
      double nearest = double(exact);
      if ((long double)nearest != exact)  // keep the direction in the last bit
        nearest = std::nextafter(nearest, exact > nearest ? INFINITY : -INFINITY);
      ASSERT_EQ(t.v(3, lane) & 0xffff, nearest_small_float(nearest, 5))
          << std::hex << t.v(0, lane) << " " << t.v(1, lane) << " " << t.v(2, lane);
    }
  }
}

TEST_P(Valu, DivisionSequenceGivesIeeeQuotient) {
  Snippet t(
      "v_div_scale_f32 v2, s[0:1], v1, v1, v0\n v_div_scale_f32 v3, vcc, v0, v1, v0\n v_rcp_f32 "
      "v4, v2\n"
      "v_fma_f32 v5, -v2, v4, 1.0\n v_fmac_f32 v4, v5, v4\n v_mul_f32 v5, v3, v4\n v_fma_f32 v6, "
      "-v2, v5, v3\n"
      "v_fmac_f32 v5, v6, v4\n v_fma_f32 v2, -v2, v5, v3\n v_div_fmas_f32 v2, v2, v4, v5\n"
      "v_div_fixup_f32 v7, v2, v1, v0",
      GetParam());
  Random random(9);
  for (int round = 0; round < 100; ++round) {
    t.set_v(0, [&](int) { return random.next(); });
    t.set_v(1, [&](int) { return random.next(); });
    ASSERT_EQ(t.run(), "");
    for (int lane = 0; lane < 64; ++lane) {
      const float q = t.vf(0, lane) / t.vf(1, lane);
      // A denormal quotient is rounded twice (fused multiply-add, then scaling).
      if (std::isnan(q)) {
        EXPECT_TRUE(std::isnan(t.vf(7, lane)));
      } else if (std::isnormal(q) || q == 0 || std::isinf(q)) {
        EXPECT_EQ(t.vf(7, lane), q) << t.vf(0, lane) << " " << t.vf(1, lane);
      } else {
        EXPECT_NEAR(t.vf(7, lane), q, 0x1p-149) << t.vf(0, lane) << " " << t.vf(1, lane);
      }
    }
  }
}

TEST_P(Valu, Wide) {
  Snippet t(
      "v_mad_u64_u32 v[10:11], s[0:1], v0, v1, v[2:3]\n v_lshl_add_u64 v[12:13], v[2:3], 3, "
      "v[2:3]\n"
      "v_lshlrev_b64 v[14:15], 36, v[0:1]\n v_ashrrev_i64 v[16:17], 4, v[2:3]\n"
      "v_add_co_u32 v18, vcc, v0, v2\n v_addc_co_u32 v19, vcc, v1, v3, vcc\n"
      "v_mad_i64_i32 v[20:21], s[2:3], v0, v1, v[2:3]\n v_mov_b64 v[22:23], v[2:3]\n"
      "v_pk_mov_b32 v[24:25], v[0:1], v[2:3] op_sel:[1,0]\n v_fma_f64 v[26:27], v[4:5], 2.0, "
      "-v[4:5]\n"
      "v_frexp_exp_i32_f64 v32, v[4:5]\n v_frexp_mant_f64 v[34:35], v[4:5]\n v_frexp_exp_i32_f64 "
      "v33, v[36:37]\n"
      "v_pk_fma_f32 v[28:29], v[30:31], v[30:31], 1.0 op_sel_hi:[1,1,0]\n v_cmp_lt_i64 s[6:7], "
      "v[2:3], 0",
      GetParam());
  Random random(3);
  for (int reg = 0; reg < 4; ++reg) t.set_v(reg, [&](int) { return random.next(); });
  t.set_v(4, [](int) { return 0u; });
  t.set_v(5, [](int) { return 0x40080000u; });  // 3.0
  t.set_v(36, [](int) { return 1u; });
  t.set_vf(30, [](int) { return 2.0f; });
  t.set_vf(31, [](int) { return 3.0f; });
  ASSERT_EQ(t.run(), "");
  for (int lane = 0; lane < 64; ++lane) {
    auto pair = [&](int reg) { return t.v(reg, lane) | uint64_t(t.v(reg + 1, lane)) << 32; };
    const uint64_t a = t.v(0, lane), b = t.v(1, lane), c = pair(2);
    EXPECT_EQ(pair(10), a * b + c);
    EXPECT_EQ(t.s64(0) >> lane & 1, uint64_t(a * b + c < c));
    EXPECT_EQ(pair(12), (c << 3) + c);
    EXPECT_EQ(pair(14), pair(0) << 36);
    EXPECT_EQ(pair(16), uint64_t(int64_t(c) >> 4));
    EXPECT_EQ(pair(18), pair(0) + c);
    EXPECT_EQ(t.vcc() >> lane & 1, uint64_t(pair(0) + c < c));
    EXPECT_EQ(pair(20), uint64_t(int64_t(int32_t(a)) * int32_t(b)) + c);
    EXPECT_EQ(pair(22), c);
    EXPECT_EQ(pair(24), b | uint64_t(t.v(2, lane)) << 32);
    EXPECT_EQ(pair(26), 0x4008000000000000ull);
    EXPECT_EQ(t.v(32, lane), 2u);  // 3 = 0.75 * 2^2
    EXPECT_EQ(pair(34), 0x3fe8000000000000ull);
    EXPECT_EQ(t.v(33, lane), uint32_t(-1073));  // 2^-1074 = 0.5 * 2^-1073
    EXPECT_EQ(t.vf(28, lane), 5.0f);
    EXPECT_EQ(t.vf(29, lane), 10.0f);
    EXPECT_EQ(t.s64(6) >> lane & 1, c >> 63);
  }
}

TEST_P(Valu, CompareWritesZeroForDisabledLanesAndCmpxWritesExec) {
  Snippet t("v_cmp_lt_u32 s[0:1], v0, v1\n v_cmpx_gt_u32 vcc, 8, v0\n v_mov_b32 v2, 1", GetParam());
  t.set_v(0, [](int lane) { return uint32_t(lane); });
  t.set_v(1, [](int) { return 32u; });
  t.set_exec(0xffff0000ffff00ffull);
  ASSERT_EQ(t.run(), "");
  EXPECT_EQ(t.s64(0), 0x00000000ffff00ffull);
  EXPECT_EQ(t.vcc(), 0xffull);
  EXPECT_EQ(t.s64(126), 0xffull);
  for (int lane = 0; lane < 64; ++lane) EXPECT_EQ(t.v(2, lane), lane < 8 ? 1u : 0u);
}

TEST_P(Valu, NanComparisons) {
  Snippet t(
      "v_cmp_lt_f32 s[0:1], v0, v1\nv_cmp_nlt_f32 s[2:3], v0, v1\nv_cmp_u_f32 s[4:5], v0, v1\n"
      "v_cmp_lg_f32 s[6:7], v0, v1\nv_cmp_neq_f32 s[8:9], v0, v1\nv_cmp_class_f32 s[10:11], v0, 3",
      GetParam());
  t.set_v(0, [](int) { return kQuietNan; });
  ASSERT_EQ(t.run(), "");
  EXPECT_EQ(t.s64(0), 0u);
  EXPECT_EQ(t.s64(2), ~uint64_t(0));
  EXPECT_EQ(t.s64(4), ~uint64_t(0));
  EXPECT_EQ(t.s64(6), 0u);
  EXPECT_EQ(t.s64(8), ~uint64_t(0));
  EXPECT_EQ(t.s64(10), ~uint64_t(0));
}

INSTANTIATE_TEST_SUITE_P(Levels, Valu, testing::ValuesIn(levels()), [](const auto &p) {
  return std::string(p.param == Level::kBase   ? "base"
                     : p.param == Level::kAvx2 ? "avx2"
                                               : "avx512");
});

}  // namespace
}  // namespace flydsl::emu::test
