// v_cvt_scalef32_*: every code and every fp16 value under several scales, op_sel places, stochastic
// rounding, 32 values a lane.
#include <gtest/gtest.h>

#include "test/emulator/isa/matrix_layouts.h"

namespace flydsl::emu::test {
namespace {

struct Target {
  const char *name;
  SmallFormat format;
};
const Target kEight[] = {{"fp8", kE4M3}, {"bf8", kE5M2}};
const Target kFour = {"fp4", kE2M1};
const Target kSix[] = {{"fp6", kE2M3}, {"bf6", kE3M2}};
constexpr SmallFormat kHalfFormat{5, 10, SmallFormat::kIeee},
    kBrainFormat{8, 7, SmallFormat::kIeee};

// The scale operand counts by its exponent field only.
uint32_t scale_operand(uint32_t byte, uint32_t noise) {
  return (noise & 0x807fffffu) | byte << 23;
}
double scale_value(uint32_t byte) {
  return byte == 255 ? NAN : std::ldexp(1.0, int(byte) - 127);
}
const uint32_t kScales[] = {127, 126, 130, 118, 140, 0, 254, 255, 1, 100};

double scaled(double x, uint32_t byte, bool down) {
  const double s = scale_value(byte);
  if (std::isnan(s) && !std::isnan(x)) return std::copysign(NAN, x);
  return down ? x / s : x * s;
}

class ConvertScale : public testing::TestWithParam<Level> {
 protected:
  void again(Snippet &t) {
    t.wave().pc = 0;
    t.wave().stop = Stop::kNone;
    ASSERT_EQ(t.run(), "");
  }
};

::testing::AssertionResult same(uint32_t bits, double expected, const char *type) {
  const bool single = !std::strcmp(type, "f32");
  const SmallFormat f = !std::strcmp(type, "f16") ? kHalfFormat : kBrainFormat;
  if (std::isnan(expected))
    return std::isnan(single ? double(float_of(bits)) : f.value(bits))
               ? ::testing::AssertionSuccess()
               : ::testing::AssertionFailure() << bits << " is not NaN";
  const uint32_t want = single ? bits_of(float(expected))
                               : nearest_small_float(expected, !std::strcmp(type, "f16") ? 5 : 8);
  return bits == want ? ::testing::AssertionSuccess()
                      : ::testing::AssertionFailure() << bits << " instead of " << want;
}

TEST_P(ConvertScale, EveryCodeWidens) {
  for (const Target &c : {kEight[0], kEight[1], kFour})
    for (const char *type : {"f32", "f16", "bf16"}) {
      SCOPED_TRACE(std::string(c.name) + type);
      const bool single = !std::strcmp(type, "f32"), nibbles = c.format.bits() == 4;
      const std::string cvt = std::string("v_cvt_scalef32_pk_") + type + "_" + c.name + " ";
      Snippet t(cvt + (single ? "v[2:3]" : "v2") + ", v0, v1\n" + cvt + (single ? "v[4:5]" : "v4") +
                    ", v0, v1 op_sel:[" + (nibbles ? "1,1" : "1,0") + ",0]",
                GetParam());
      Random random(1);
      for (const uint32_t byte : kScales)
        for (uint32_t first = 0; first < 256; first += 64) {
          t.set_v(0, [&](int l) { return (first + uint32_t(l)) * 0x01010101u ^ 0x13570000u; });
          t.set_v(1, [&](int) { return scale_operand(byte, random.next()); });
          again(t);
          for (int l = 0; l < 64; ++l)
            for (int part = 0; part < 2; ++part) {
              const int width = c.format.bits();
              const uint32_t mask = (1u << width) - 1, u = t.v(0, l);
              const uint32_t low = u >> (part * width) & mask,
                             high = u >> ((nibbles ? 24 : 16) + part * width) & mask;
              auto got = [&](int r) {
                return single ? t.v(r + part, l) : t.v(r, l) >> (16 * part) & 0xffff;
              };
              EXPECT_TRUE(same(got(2), scaled(c.format.value(low), byte, false), type))
                  << low << " scale " << byte;
              EXPECT_TRUE(same(got(4), scaled(c.format.value(high), byte, false), type))
                  << high << " scale " << byte;
            }
        }
    }
}

TEST_P(ConvertScale, SingleBytesWiden) {
  for (const Target &c : kEight) {
    const std::string n = c.name;
    Snippet t("v_cvt_scalef32_f32_" + n + " v2, v0, v1 op_sel:[0,1,0]\n" + "v_cvt_scalef32_f16_" +
                  n + " v3, v0, v1 op_sel:[1,0,1]\n" + "v_cvt_scalef32_f16_" + n + " v4, v0, v1",
              GetParam());
    Random random(2);
    t.set_v(0, [&](int) { return random.next(); });
    t.set_v(1, [&](int l) { return scale_operand(kScales[l % 10], 0); });
    t.set_v(3, [](int) { return 0x12345678u; });
    t.set_v(4, [](int) { return 0x12345678u; });
    again(t);
    for (int l = 0; l < 64; ++l) {
      auto expected = [&](int byte) {
        return scaled(c.format.value(t.v(0, l) >> (8 * byte) & 255), kScales[l % 10], false);
      };
      EXPECT_TRUE(same(t.v(2, l), expected(2), "f32"));
      EXPECT_TRUE(same(t.v(3, l) >> 16, expected(1), "f16"));
      EXPECT_EQ(t.v(3, l) & 0xffff, 0x5678u);
      EXPECT_TRUE(same(t.v(4, l) & 0xffff, expected(0), "f16"));
      EXPECT_EQ(t.v(4, l) >> 16, 0x1234u);
    }
  }
}

// With the sign of a NaN, which the results keep.
double value_of(uint32_t bits, const char *type) {
  if (!std::strcmp(type, "f32")) return double(float_of(bits));
  const double x = !std::strcmp(type, "f16") ? half(bits & 0xffff) : bf16(bits & 0xffff);
  return std::copysign(x, bits & 0x8000 ? -1.0 : 1.0);
}

TEST_P(ConvertScale, PairsNarrow) {
  for (const Target &c : {kEight[0], kEight[1], kFour})
    for (const char *type : {"f32", "f16", "bf16"})
      for (const bool saturate : {false, true}) {
        SCOPED_TRACE(std::string(c.name) + type + (saturate ? " saturating" : ""));
        const bool single = !std::strcmp(type, "f32"), nibbles = c.format.bits() == 4;
        const std::string cvt = std::string("v_cvt_scalef32_pk_") + c.name + "_" + type + " ",
                          sources = single ? ", v0, v1, v2" : ", v0, v2",
                          high = single ? " op_sel:[0,0,0,1]" : " op_sel:[0,0,1]",
                          byte3 = single ? " op_sel:[0,0,1,1]" : " op_sel:[0,0,1,1]";
        Snippet t(cvt + "v3" + sources + "\n" + cvt + "v4" + sources + (nibbles ? byte3 : high),
                  GetParam());
        t.wave().mode = 0x3fc | uint32_t(saturate) << 23;
        Random random(3);
        const int rounds = single ? 64 : 1024 / 4;
        for (int round = 0; round < rounds; ++round) {
          const uint32_t byte = kScales[round % 10];
          t.set_v(0, [&](int l) {
            if (!single) return uint32_t(round * 256 + 4 * l) | random.next() << 16;
            const uint32_t exponent = byte + random.next() % 24 - 12;
            return (random.next() & 0x807fffffu) | (exponent & 255) << 23;
          });
          t.set_v(1, [&](int l) {
            return l % 8 == 0 ? 0xff800000u : l % 8 == 1 ? 0x7fc00000u : random.next();
          });
          t.set_v(2, [&](int) { return scale_operand(byte, random.next()); });
          t.set_v(3, [](int) { return 0xa5a5a5a5u; });
          t.set_v(4, [](int) { return 0xa5a5a5a5u; });
          again(t);
          for (int l = 0; l < 64; ++l) {
            const double x = value_of(t.v(0, l), type),
                         y = single ? value_of(t.v(1, l), type) : value_of(t.v(0, l) >> 16, type);
            const uint32_t code = c.format.nearest(scaled(x, byte, true), saturate) |
                                  c.format.nearest(scaled(y, byte, true), saturate)
                                      << c.format.bits();
            ASSERT_EQ(t.v(3, l), nibbles ? 0xa5a5a500u | code : 0xa5a50000u | code)
                << x << " " << y << " scale " << byte;
            ASSERT_EQ(t.v(4, l), nibbles ? 0x00a5a5a5u | code << 24 : 0xa5a5u | code << 16);
          }
        }
      }
}

uint32_t prng(uint32_t x) {
  return (x << 1) ^ (x >> 31 ? 197u : 0u);
}
int mantissa_bits(const char *type) {
  return !std::strcmp(type, "f32") ? 23 : !std::strcmp(type, "f16") ? 10 : 7;
}

TEST_P(ConvertScale, StochasticRounding) {
  for (const char *type : {"f32", "f16", "bf16"}) {
    const bool single = !std::strcmp(type, "f32");
    for (const Target &c : {kEight[0], kEight[1], kFour}) {
      SCOPED_TRACE(std::string(c.name) + type);
      const bool pair = c.format.bits() == 4;
      const std::string cvt = std::string("v_cvt_scalef32_sr_") + (pair ? "pk_" : "") + c.name +
                              "_" + type + " v4, " + (pair && single ? "v[0:1]" : "v0") +
                              ", v2, v3 op_sel:[0,0,1,0]";
      Snippet t(cvt, GetParam());
      Random random(4);
      for (int round = 0; round < 20; ++round) {
        const uint32_t byte = kScales[round % 10];
        auto number = [&] {
          const uint32_t exponent = byte + random.next() % 20 - 10;
          const uint32_t u = (random.next() & 0x807fffffu) | (exponent & 255) << 23;
          const double x = double(float_of(u));
          return single                      ? u
                 : !std::strcmp(type, "f16") ? nearest_small_float(std::isnan(x) ? 0.0 : x, 5)
                                             : u >> 16;
        };
        t.set_v(0, [&](int) { return single ? number() : number() | number() << 16; });
        t.set_v(1, [&](int) { return number(); });
        t.set_v(2, [&](int) { return random.next(); });
        t.set_v(3, [&](int) { return scale_operand(byte, random.next()); });
        t.set_v(4, [](int) { return 0x99999999u; });
        again(t);
        for (int l = 0; l < 64; ++l) {
          const int dropped = mantissa_bits(type) - c.format.mantissa_bits;
          const double x = scaled(value_of(t.v(0, l), type), byte, true);
          uint32_t code = c.format.stochastic(x, dropped, t.v(2, l), false);
          if (pair) {
            const double y =
                scaled(value_of(single ? t.v(1, l) : t.v(0, l) >> 16, type), byte, true);
            code |= c.format.stochastic(y, dropped, prng(t.v(2, l)), false) << 4;
          }
          ASSERT_EQ(t.v(4, l), 0x99990099u | code << 8) << x << " random " << t.v(2, l);
        }
      }
    }
  }
}

uint32_t six(Snippet &t, int first, int lane, int k) {
  uint32_t code = 0;
  for (int b = 0; b < 6; ++b)
    code |= (t.v(first + (6 * k + b) / 32, lane) >> ((6 * k + b) % 32) & 1) << b;
  return code;
}

TEST_P(ConvertScale, ThirtyTwoValuesALane) {
  for (const Target &c : kSix)
    for (const char *type : {"f32", "f16", "bf16"}) {
      SCOPED_TRACE(std::string(c.name) + type);
      const bool single = !std::strcmp(type, "f32");
      const std::string n = c.name, wide = single ? "v[0:31]" : "v[0:15]",
                        out = single ? "v[64:95]" : "v[64:79]";
      const std::string narrow =
          single ? "v_cvt_scalef32_2xpk16_" + n + "_f32 v[40:45], v[0:15], v[16:31], v32\n"
                 : "v_cvt_scalef32_pk32_" + n + "_" + type + " v[40:45], " + wide + ", v32\n";
      Snippet t(narrow + "v_cvt_scalef32_sr_pk32_" + n + "_" + type + " v[48:53], " + wide +
                    ", v33, v32\n" + "v_cvt_scalef32_pk32_" + type + "_" + n + " " + out +
                    ", v[34:39], v32",
                GetParam());
      Random random(5);
      t.set_exec(0x7fffffffffffffffull);
      for (int r = 0; r < (single ? 32 : 16); ++r)
        t.set_v(r, [&](int l) {
          const double x = double(random.uniform()) * 16;
          const double s = scale_value(kScales[l % 5]);
          const auto bits = [&](double v) {
            return single ? bits_of(float(v))
                          : nearest_small_float(v, single                      ? 8
                                                   : !std::strcmp(type, "f16") ? 5
                                                                               : 8);
          };
          return single ? bits(x * s) : bits(x * s) | bits(double(random.uniform()) * s) << 16;
        });
      t.set_v(32, [&](int l) { return scale_operand(kScales[l % 5], random.next()); });
      t.set_v(33, [&](int) { return random.next(); });
      for (int r = 34; r < 40; ++r) t.set_v(r, [&](int) { return random.next(); });
      again(t);
      for (int r : {40, 48, 64}) EXPECT_EQ(t.v(r, 63), 0u);  // disabled
      for (int l = 0; l < 63; ++l) {
        const uint32_t byte = kScales[l % 5];
        uint32_t seed = t.v(33, l);
        for (int k = 0; k < 32; ++k, seed = prng(seed)) {
          auto element = [&](int e) {
            return single ? value_of(t.v(e, l), type)
                          : value_of(t.v(e / 2, l) >> (16 * (e % 2)), type);
          };
          // The fp32 form takes its values from both sources in turn.
          const double x = scaled(element(single ? k / 2 + k % 2 * 16 : k), byte, true);
          ASSERT_EQ(six(t, 40, l, k), c.format.nearest(x, true)) << l << " " << k << " " << x;
          ASSERT_EQ(six(t, 48, l, k),
                    c.format.stochastic(scaled(element(k), byte, true),
                                        mantissa_bits(type) - c.format.mantissa_bits, seed, true))
              << l << " " << k;
          const uint32_t got =
              single ? t.v(64 + k, l) : t.v(64 + k / 2, l) >> (16 * (k % 2)) & 0xffff;
          ASSERT_TRUE(same(got, scaled(c.format.value(six(t, 34, l, k)), byte, false), type));
        }
      }
    }
}

// 32 values in place: the results cover the source.
TEST_P(ConvertScale, ResultMayOverlapItsSource) {
  Snippet t("v_cvt_scalef32_pk32_f32_fp6 v[0:31], v[0:5], v40", GetParam());
  t.set_v(40, [](int) { return 0x3f800000u; });
  Random random(6);
  uint32_t words[6];
  for (uint32_t &x : words) x = random.next();
  for (int r = 0; r < 6; ++r) t.set_v(r, [&](int) { return words[r]; });
  again(t);
  Snippet codes("s_nop 0", GetParam());
  for (int r = 0; r < 6; ++r) codes.v(r, 0) = words[r];
  for (int k = 0; k < 32; ++k) EXPECT_EQ(double(t.vf(k, 9)), kE2M3.value(six(codes, 0, 0, k))) << k;
}

INSTANTIATE_TEST_SUITE_P(Levels, ConvertScale, testing::ValuesIn(levels()), level_name);

}  // namespace
}  // namespace flydsl::emu::test
