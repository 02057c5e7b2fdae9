// Rarer floating-point instructions: mad with flushed denormals, fp16 parts and powers, cube maps,
// bits of 2/pi.
#include <gtest/gtest.h>

#include <cmath>

#include "test/emulator/isa/lane_values.h"
#include "test/emulator/support/snippet.h"

namespace flydsl::emu::test {
namespace {

using u32 = uint32_t;

class FloatOps : public testing::TestWithParam<Level> {};

uint64_t pair(Snippet &t, int reg, int lane) {
  return t.v(reg, lane) | uint64_t(t.v(reg + 1, lane)) << 32;
}
double flushed(double x, double smallest) {
  return std::fabs(x) < smallest ? std::copysign(0.0, x) : x;
}

// Product and sum are rounded apart, denormals are 0 on the way in, between and out.
TEST_P(FloatOps, MadRoundsTwice) {
  Snippet t(
      "v_mad_f16 v10, v0, v1, v2\n v_mad_legacy_f16 v11, v0, v1, v2\n v_mov_b32 v12, v2\n"
      "v_mac_f16 v12, v0, v1",
      GetParam());
  Random random(3);
  for (int reg = 0; reg < 3; ++reg)
    t.set_v(reg, [&](int lane) {
      const u32 x = random.next() & 0xffff;
      return lane < 8 ? x & 0x83ff : (x & 0x7c00) == 0x7c00 ? x & 0xbfff : x;
    });
  // (1 + 2^-10)^2 = 1 + 2^-9 + 2^-20: the last term is lost, so subtracting the rest gives 0.
  t.v(0, 63) = t.v(1, 63) = 0x3c01;
  t.v(2, 63) = 0xbc02;
  t.set_v(10, [](int) { return 0x77770000u; });
  ASSERT_EQ(t.run(), "");
  auto flush = [](double x) { return flushed(x, 0x1p-14); };
  for (int lane = 0; lane < 64; ++lane) {
    const double a = flush(half(t.v(0, lane))), b = flush(half(t.v(1, lane))),
                 c = flush(half(t.v(2, lane)));
    const double product = flush(half(nearest_small_float(a * b, 5)));
    u32 expected = nearest_small_float(flush(half(nearest_small_float(product + c, 5))), 5);
    if (product + c == 0) expected = std::signbit(product + c) ? 0x8000 : 0;
    EXPECT_EQ(t.v(11, lane), expected) << lane;
    EXPECT_EQ(t.v(10, lane), 0x77770000u | expected) << lane;
    EXPECT_EQ(t.v(12, lane), expected) << lane;
  }
  EXPECT_EQ(t.v(11, 63), 0u);
}

TEST_P(FloatOps, HalfParts) {
  Snippet t(
      "v_frexp_exp_i16_f16 v10, v0\n v_frexp_mant_f16 v11, v0\n v_fract_f16 v12, v0\n"
      "v_ldexp_f16 v13, v0, v1\n v_sin_f16 v14, v0\n v_cos_f16 v15, v0",
      GetParam());
  const u32 values[] = {0x0000, 0x8000, 0x0001, 0x83ff, 0x0400, 0x3c00, 0xbc01, 0x4248,
                        0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7d01, 0xfe55, 0x3555, 0xb800};
  t.set_v(0, [&](int lane) { return values[lane % 16]; });
  t.set_v(1, [](int lane) { return u32(lane / 16 * 20 - 30) & 0xffff; });
  ASSERT_EQ(t.run(), "");
  for (int lane = 0; lane < 64; ++lane) {
    const u32 bits = values[lane % 16];
    const double x = half(bits);
    const u32 quiet = bits | 0x200;
    int e = 0;
    const double m = std::frexp(x, &e);
    EXPECT_EQ(t.v(10, lane), std::isfinite(x) ? u32(e) & 0xffff : 0u) << std::hex << bits;
    EXPECT_EQ(t.v(11, lane), std::isnan(x)   ? quiet
                             : std::isinf(x) ? bits
                                             : nearest_small_float(m, 5));
    if (std::isnan(x)) {
      EXPECT_EQ(t.v(12, lane), quiet);
      EXPECT_EQ(t.v(13, lane), quiet);
      continue;
    }
    if (std::isinf(x)) continue;
    EXPECT_EQ(half(t.v(12, lane)),
              half(nearest_small_float(std::fmin(x - std::floor(x), 0x1.ffcp-1), 5)));
    const int by = lane / 16 * 20 - 30;
    EXPECT_EQ(t.v(13, lane), nearest_small_float(std::ldexp(x, by), 5)) << x << " " << by;
    const bool valid = std::fabs(x) <= 256;
    EXPECT_NEAR(half(t.v(14, lane)), valid ? std::sin(2 * M_PI * x) : 0, 1e-3);
    EXPECT_NEAR(half(t.v(15, lane)), valid ? std::cos(2 * M_PI * x) : 1, 1e-3);
  }
}

// Faces of a cube map in the order +x -x +y -y +z -z; the largest coordinate is the major axis.
TEST_P(FloatOps, CubeMaps) {
  Snippet t(
      "v_cubeid_f32 v10, v0, v1, v2\n v_cubesc_f32 v11, v0, v1, v2\n"
      "v_cubetc_f32 v12, v0, v1, v2\n v_cubema_f32 v13, v0, v1, v2",
      GetParam());
  struct Row {
    float x, y, z, face, s, t, major;
  };
  const Row rows[] = {
      {3, 1, 2, 0, -2, -1, 6},  {-3, 1, 2, 1, 2, -1, -6}, {1, 3, 2, 2, 1, 2, 6},
      {1, -3, 2, 3, 1, -2, -6}, {1, 2, 3, 4, 1, -2, 6},   {1, 2, -3, 5, -1, -2, -6},
      {2, 2, 2, 4, 2, -2, 4},   {2, -2, 1, 3, 2, -1, -4}, {-1, 0.5, 0.25, 1, 0.25, -0.5, -2},
  };
  constexpr int kRows = int(sizeof rows / sizeof *rows);
  t.set_vf(0, [&](int lane) { return rows[lane % kRows].x; });
  t.set_vf(1, [&](int lane) { return rows[lane % kRows].y; });
  t.set_vf(2, [&](int lane) { return rows[lane % kRows].z; });
  ASSERT_EQ(t.run(), "");
  for (int lane = 0; lane < kRows; ++lane) {
    EXPECT_EQ(t.vf(10, lane), rows[lane].face) << lane;
    EXPECT_EQ(t.vf(11, lane), rows[lane].s) << lane;
    EXPECT_EQ(t.vf(12, lane), rows[lane].t) << lane;
    EXPECT_EQ(t.vf(13, lane), rows[lane].major) << lane;
  }
}

// Expected values from 1201 bits of 2/pi computed with Machin's formula in integers.
TEST_P(FloatOps, BitsOfTwoOverPi) {
  struct Row {
    u32 exponent, segment;
    uint64_t expected;
  };
  const Row rows[] = {
      {0x3ff, 0, 0x3fe45f306dc9c882ull}, {0x3ff, 1, 0x3c94a7f09d5f47d4ull},
      {0x3ff, 2, 0x394a6ee06db14accull}, {0x43f, 0, 0x3f4cc1b727220a94ull},
      {0x7b0, 3, 0x064bc529497535fdull}, {0x3ff, 20, 0x000000000000294aull},
  };
  constexpr int kRows = int(sizeof rows / sizeof *rows);
  Snippet t("v_trig_preop_f64 v[10:11], v[0:1], v2", GetParam());
  t.set_v(1, [&](int lane) { return rows[lane % kRows].exponent << 20; });
  t.set_v(2, [&](int lane) { return rows[lane % kRows].segment; });
  ASSERT_EQ(t.run(), "");
  for (int lane = 0; lane < kRows; ++lane)
    EXPECT_EQ(pair(t, 10, lane), rows[lane].expected) << lane;
}

INSTANTIATE_TEST_SUITE_P(Levels, FloatOps, testing::ValuesIn(levels()), [](const auto &p) {
  return std::string(p.param == Level::kBase   ? "base"
                     : p.param == Level::kAvx2 ? "avx2"
                                               : "avx512");
});

}  // namespace
}  // namespace flydsl::emu::test
