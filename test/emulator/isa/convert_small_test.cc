// Conversions of fp8: every code, every fp16 value, edges and random numbers, against the formats'
// definitions.
#include <gtest/gtest.h>

#include <cmath>

#include "test/emulator/isa/lane_values.h"
#include "test/emulator/isa/small_formats.h"
#include "test/emulator/support/snippet.h"

namespace flydsl::emu::test {
namespace {

class ConvertSmall : public testing::TestWithParam<Level> {};

struct Case {
  const char *processor, *name;
  SmallFormat format;
};
const Case kCases[] = {{"gfx950", "fp8", kE4M3},
                       {"gfx950", "bf8", kE5M2},
                       {"gfx942", "fp8", kE4M3Fnuz},
                       {"gfx942", "bf8", kE5M2Fnuz}};

// fp32 inputs: every fp16 value, neighbours of every value of the format and of the middle between
// two, large, tiny and special ones, random bits.
std::vector<uint32_t> inputs(const SmallFormat &f) {
  std::vector<uint32_t> list;
  for (uint32_t h = 0; h < 65536; h += 7) list.push_back(bits_of(float(half(h))));
  for (uint32_t code = 0; code <= f.largest(); ++code)
    for (const double x : {f.magnitude(code), (f.magnitude(code) + f.magnitude(code + 1)) / 2})
      for (int step = -1; step <= 1; ++step)
        for (uint32_t sign : {0u, 0x80000000u})
          list.push_back(sign | (bits_of(float(x)) + (x > 0 ? uint32_t(step) : 0)));
  for (uint32_t u : {0u, 1u, 0x007fffffu, 0x00800000u, 0x7f7fffffu, 0x7f800000u, 0x7f800001u,
                     0x7fc00000u, 0x7fffffffu})
    for (uint32_t sign : {0u, 0x80000000u}) list.push_back(u | sign);
  Random random(1);
  for (int i = 0; i < 512; ++i) list.push_back(random.next());
  while (list.size() % 64) list.push_back(0);
  return list;
}
::testing::AssertionResult same_float(uint32_t bits, double expected) {
  const float got = float_of(bits);
  if (std::isnan(expected) ? std::isnan(got) : bits == bits_of(float(expected)))
    return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << got << " instead of " << expected;
}

TEST_P(ConvertSmall, EveryCodeToSingle) {
  for (const Case &c : kCases) {
    SCOPED_TRACE(std::string(c.processor) + c.name);
    const std::string cvt = std::string("v_cvt_f32_") + c.name,
                      pair = std::string("v_cvt_pk_f32_") + c.name;
    Snippet t(cvt + "_e32 v1, v0\n" + cvt + "_sdwa v2, v0 src0_sel:BYTE_2\n" + pair +
                  "_e32 v[4:5], v0\n" + pair + "_sdwa v[6:7], v0 src0_sel:WORD_1",
              GetParam(), c.processor);
    for (uint32_t first = 0; first < 256; first += 64) {
      t.wave().pc = 0;
      t.wave().stop = Stop::kNone;
      auto code = [&](int lane, uint32_t offset) {
        return (first + uint32_t(lane) + offset) & 255;
      };
      t.set_v(0, [&](int l) {
        return code(l, 0) | code(l, 17) << 8 | code(l, 101) << 16 | code(l, 200) << 24;
      });
      ASSERT_EQ(t.run(), "");
      for (int l = 0; l < 64; ++l) {
        EXPECT_TRUE(same_float(t.v(1, l), c.format.value(code(l, 0)))) << l;
        EXPECT_TRUE(same_float(t.v(2, l), c.format.value(code(l, 101)))) << l;
        EXPECT_TRUE(same_float(t.v(4, l), c.format.value(code(l, 0)))) << l;
        EXPECT_TRUE(same_float(t.v(5, l), c.format.value(code(l, 17)))) << l;
        EXPECT_TRUE(same_float(t.v(6, l), c.format.value(code(l, 101)))) << l;
        EXPECT_TRUE(same_float(t.v(7, l), c.format.value(code(l, 200)))) << l;
      }
    }
  }
}

TEST_P(ConvertSmall, PairsRoundToNearestEven) {
  for (const Case &c : kCases)
    for (const bool saturate : {false, true}) {
      SCOPED_TRACE(std::string(c.processor) + c.name + (saturate ? " saturating" : ""));
      const std::string cvt = std::string("v_cvt_pk_") + c.name + "_f32 ";
      Snippet t(cvt + "v2, v0, -v1\n" + cvt + "v3, v1, |v0| op_sel:[0,0,1]", GetParam(),
                c.processor);
      // Rounding towards zero and flushing in MODE must not matter.
      t.wave().mode = 0x30f | uint32_t(saturate) << 23;
      const auto list = inputs(c.format);
      for (size_t first = 0; first + 64 <= list.size(); first += 64) {
        t.wave().pc = 0;
        t.wave().stop = Stop::kNone;
        t.set_v(0, [&](int l) { return list[first + size_t(l)]; });
        t.set_v(1, [&](int l) { return list[list.size() - 1 - first - size_t(l)]; });
        t.set_v(2, [](int) { return 0xabcd1234u; });
        t.set_v(3, [](int) { return 0xabcd1234u; });
        ASSERT_EQ(t.run(), "");
        for (int l = 0; l < 64; ++l) {
          const double a = double(float_of(t.v(0, l))), b = double(float_of(t.v(1, l)));
          const auto code = [&](double x) { return c.format.nearest(x, saturate); };
          ASSERT_EQ(t.v(2, l), 0xabcd0000u | code(a) | code(-b) << 8) << a << " " << b;
          ASSERT_EQ(t.v(3, l), 0x1234u | (code(b) | code(std::fabs(a)) << 8) << 16)
              << a << " " << b;
        }
      }
    }
}

TEST_P(ConvertSmall, StochasticRounding) {
  for (const Case &c : kCases) {
    SCOPED_TRACE(std::string(c.processor) + c.name);
    const std::string cvt = std::string("v_cvt_sr_") + c.name + "_f32 ";
    Snippet t(cvt + "v2, v0, v1\n" + cvt + "v3, v0, v1 op_sel:[0,0,1,1]\n" + cvt +
                  "v4, v0, v1 op_sel:[0,0,1,0]",
              GetParam(), c.processor);
    Random random(2);
    const auto list = inputs(c.format);
    for (size_t first = 0; first + 64 <= list.size(); first += 64) {
      t.wave().pc = 0;
      t.wave().stop = Stop::kNone;
      t.set_v(0, [&](int l) { return list[first + size_t(l)]; });
      t.set_v(1, [&](int l) { return l == 5 ? 0 : l == 6 ? ~0u : random.next(); });
      for (int r : {2, 3, 4}) t.set_v(r, [](int) { return 0x11223344u; });
      ASSERT_EQ(t.run(), "");
      for (int l = 0; l < 64; ++l) {
        const double a = double(float_of(t.v(0, l)));
        const uint32_t code = c.format.stochastic(a, 23 - c.format.mantissa_bits, t.v(1, l), false);
        ASSERT_EQ(t.v(2, l), 0x11223300u | code) << a << " " << t.v(1, l);
        ASSERT_EQ(t.v(3, l), 0x00223344u | code << 24) << a;
        ASSERT_EQ(t.v(4, l), 0x11220044u | code << 8) << a;
      }
    }
  }
}

TEST_P(ConvertSmall, StochasticRoundingToSixteenBits) {
  Snippet t(
      "v_cvt_sr_bf16_f32 v2, v0, v1\n"
      "v_cvt_sr_f16_f32 v3, v0, v1 op_sel:[0,0,1]",
      GetParam());
  Random random(3);
  constexpr SmallFormat kHalf{5, 10, SmallFormat::kIeee};
  for (int round = 0; round < 20; ++round) {
    t.wave().pc = 0;
    t.wave().stop = Stop::kNone;
    // Exponents around fp16's range, subnormals included.
    t.set_v(0, [&](int l) {
      const uint32_t exponent = 127 - 20 + random.next() % 40;
      return l == 0   ? 0x7f800000u
             : l == 1 ? 0xffc12345u
             : l == 2 ? 0x80000000u
                      : (random.next() & 0x807fffffu) | exponent << 23;
    });
    t.set_v(1, [&](int) { return random.next(); });
    t.set_v(2, [](int) { return 0xdead0000u; });
    t.set_v(3, [](int) { return 0x0000beefu; });
    ASSERT_EQ(t.run(), "");
    for (int l = 0; l < 64; ++l) {
      const uint32_t u = t.v(0, l), r = t.v(1, l);
      const float x = float_of(u);
      if (std::isnan(x)) {
        EXPECT_TRUE(std::isnan(bf16(t.v(2, l) & 0xffff)));
        EXPECT_TRUE(std::isnan(half(t.v(3, l) >> 16)));
        continue;
      }
      // bf16: up when the dropped half plus the random half carries.
      const uint32_t up = (u & 0xffff) + (r >> 16) > 0xffff;
      EXPECT_EQ(t.v(2, l), 0xdead0000u | (std::isinf(x) ? u >> 16 : (u >> 16) + up)) << x;
      EXPECT_EQ(t.v(3, l), 0xbeefu | kHalf.stochastic(double(x), 13, r, false) << 16) << x;
    }
  }
}

TEST_P(ConvertSmall, ExecAndNormalisedForms) {
  Snippet t(
      "s_mov_b64 exec, 1\n"
      "v_cvt_pk_fp8_f32 v1, v0, v0\n"
      "s_mov_b64 exec, -1\n"
      "v_cvt_norm_i16_f16 v2, v0\n"
      "v_cvt_norm_u16_f16 v3, v0\n"
      "v_cvt_pknorm_i16_f16 v4, v0, v0 op_sel:[0,1,0]\n"
      "v_cvt_off_f32_i4 v5, v0",
      GetParam());
  const uint32_t halves[] = {0x0000, 0x3c00, 0xbc00, 0x3800, 0x7c00, 0xfc00, 0x7e00, 0x4000};
  t.set_v(0, [&](int l) { return halves[l % 8] | halves[l / 8] << 16; });
  t.set_v(1, [](int) { return 0x55555555u; });
  ASSERT_EQ(t.run(), "");
  EXPECT_EQ(t.v(1, 0), 0x55550000u);
  EXPECT_EQ(t.v(1, 1), 0x55555555u);
  auto norm = [](uint32_t h, double low, double scale) {
    const double x = half(h);
    const double c = std::isnan(x) ? 0 : std::fmin(std::fmax(x, low), 1.0);
    return uint32_t(int32_t(std::nearbyint(c * scale))) & 0xffff;
  };
  for (int l = 0; l < 64; ++l) {
    const uint32_t a = halves[l % 8], b = halves[l / 8];
    EXPECT_EQ(t.v(2, l), norm(a, -1, 32767)) << l;
    EXPECT_EQ(t.v(3, l), norm(a, 0, 65535)) << l;
    EXPECT_EQ(t.v(4, l), norm(a, -1, 32767) | norm(b, -1, 32767) << 16) << l;
    const int nibble = int(a & 15);
    EXPECT_EQ(t.vf(5, l), float(nibble < 8 ? nibble : nibble - 16) / 16.0f);
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, ConvertSmall, testing::ValuesIn(levels()), [](const auto &p) {
  return std::string(p.param == Level::kBase   ? "base"
                     : p.param == Level::kAvx2 ? "avx2"
                                               : "avx512");
});

}  // namespace
}  // namespace flydsl::emu::test
