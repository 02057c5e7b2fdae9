// v_mfma_(scale_)f32_*_f8f6f4: every mix of formats, scales of every byte, against sums in double.
#include "test/emulator/isa/matrix_layouts.h"

namespace flydsl::emu::test {
namespace {

const SmallFormat kFormats[] = {kE4M3, kE5M2, kE2M3, kE3M2, kE2M1};
constexpr int kA = 0, kB = 8, kC = 16, kScaleA = 40, kScaleB = 41, kD = 48;

// Where element k of a lane's row is: lane group and place among the lane's 32 elements.
void place(int m, bool byte_format, int k, int &group, int &e) {
  const int half = 1024 / m;  // K / 2
  if (byte_format) {
    group = k % half / 16;
    e = k % 16 + (k >= half ? 16 : 0);
  } else {
    group = k / 32;
    e = k % 32;
  }
}
void put_code(Snippet &t, int first, int lane, int e, int width, uint32_t code) {
  for (int b = 0; b < width; ++b) {
    const int bit = e * width + b;
    if (code >> b & 1) t.v(first + bit / 32, lane) |= 1u << (bit % 32);
  }
}

void check(int m, int fa, int fb, bool scaled, int byte_a, int byte_b, int spread, Level level) {
  SCOPED_TRACE(std::to_string(m) + " formats " + std::to_string(fa) + " " + std::to_string(fb));
  const int k_count = 2048 / m, registers_d = m * m / 64;
  const std::string shape = m == 16 ? "16x16x128" : "32x32x64";
  auto end = [](int first, int format) {
    return std::to_string(first + (format < 2 ? 7 : format < 4 ? 5 : 3));
  };
  std::string text = std::string(scaled ? "v_mfma_scale_f32_" : "v_mfma_f32_") + shape +
                     "_f8f6f4 " + range('v', kD, registers_d) + ", v[0:" + end(kA, fa) +
                     "], v[8:" + end(kB, fb) + "], " + range('v', kC, registers_d);
  if (scaled)
    text += ", v40, v41 op_sel:[" + std::to_string(byte_a & 1) + "," + std::to_string(byte_b & 1) +
            ",0] op_sel_hi:[" + std::to_string(byte_a >> 1) + "," + std::to_string(byte_b >> 1) +
            ",0]";
  text += " cbsz:" + std::to_string(fa) + " blgp:" + std::to_string(fb);
  Snippet t(text, level);
  Random random(uint64_t(m * 100 + fa * 10 + fb));
  std::vector<double> a(size_t(m * k_count)), b(a.size());
  for (int side = 0; side < 2; ++side) {
    const int format = side ? fb : fa;
    const SmallFormat &f = kFormats[format];
    for (int i = 0; i < m; ++i)
      for (int k = 0; k < k_count; ++k) {
        // Small exponents only for fp8, so that sums in fp32 stay exact; any code otherwise.
        uint32_t code = random.next() & (2 * f.sign() - 1);
        if (format < 2) {
          const uint32_t one = uint32_t(f.bias()) << f.mantissa_bits;
          code = (code & f.sign()) | (one + random.next() % (2u << f.mantissa_bits));
        }
        int group, e;
        place(m, format < 2, k, group, e);
        put_code(t, side ? kB : kA, group * m + i, e, f.bits(), code);
        (side ? b : a)[size_t(i * k_count + k)] = f.value(code);
      }
    for (int l = 0; l < 64; ++l) {
      uint32_t word = random.next();
      const int byte = side ? byte_b : byte_a;
      const uint32_t scale = 127 + random.next() % uint32_t(spread);
      word = (word & ~(0xffu << (8 * byte))) | scale << (8 * byte);
      t.v(side ? kScaleB : kScaleA, l) = word;
      if (!scaled) continue;
      for (int k = 0; k < 32; ++k)
        (side ? b : a)[size_t(l % m * k_count + l / m * 32 + k)] *=
            std::ldexp(1.0, int(scale) - 127);
    }
  }
  for (int r = 0; r < registers_d; ++r)
    t.set_vf(kC + r, [&](int) { return float(int(random.next() % 65) - 32); });
  ASSERT_EQ(t.run(), "");
  for (int r = 0; r < registers_d; ++r)
    for (int l = 0; l < 64; ++l) {
      const int i = m == 32 ? 8 * (r / 4) + 4 * (l / 32) + r % 4 : 4 * (l / 16) + r, j = l % m;
      double sum = double(t.vf(kC + r, l));
      for (int k = 0; k < k_count; ++k)
        sum += a[size_t(i * k_count + k)] * b[size_t(j * k_count + k)];
      ASSERT_EQ(t.vf(kD + r, l), float(sum)) << "register " << r << " lane " << l;
    }
}

class MfmaScaled : public testing::TestWithParam<Level> {};

TEST_P(MfmaScaled, EveryMixOfFormats) {
  for (const int m : {16, 32})
    for (int fa = 0; fa < 5; ++fa)
      for (int fb = 0; fb < 5; ++fb) {
        check(m, fa, fb, false, 0, 0, 1, GetParam());
        check(m, fa, fb, true, (fa + fb) % 4, fb % 4, 3, GetParam());
      }
}

// All of one operand's elements are 1, the other's too: the sum is that of the scale products.
TEST_P(MfmaScaled, ScalesAtTheirLimits) {
  Snippet t(
      "v_mfma_scale_f32_16x16x128_f8f6f4 v[48:51], v[0:7], v[8:15], 0, v40, v41 "
      "op_sel_hi:[0,0,0]\n"
      "v_mfma_scale_f32_16x16x128_f8f6f4 v[52:55], v[0:7], v[8:15], 0, v42, v43 "
      "op_sel_hi:[0,0,0]\n"
      "v_mfma_scale_f32_16x16x128_f8f6f4 v[56:59], v[0:7], v[8:15], 0, v44, v45 "
      "op_sel_hi:[0,0,0]\n",
      GetParam());
  for (int r = 0; r < 16; ++r) t.set_v(r, [](int) { return 0x38383838u; });
  t.set_v(40, [](int) { return 254u; });  // 2^127 and 2^-127: products are 1
  t.set_v(41, [](int) { return 0u; });
  t.set_v(42, [](int l) { return l == 3 + 16 ? 255u : 127u; });  // NaN in row 3
  t.set_v(43, [](int) { return 127u; });
  t.set_v(44, [](int) { return 254u; });
  t.set_v(45, [](int) { return 254u; });
  ASSERT_EQ(t.run(), "");
  for (int r = 0; r < 4; ++r)
    for (int l = 0; l < 64; ++l) {
      EXPECT_EQ(t.vf(48 + r, l), 128.0f);
      EXPECT_EQ(t.v(52 + r, l), 4 * (l / 16) + r == 3 ? 0x7fc00000u : bits_of(128.0f));
      EXPECT_EQ(t.vf(56 + r, l), INFINITY);
    }
}

// The wide path of large scales rounds once a product, as the narrow one.
TEST_P(MfmaScaled, LargeScalesRoundAsSmallOnes) {
  Snippet t(
      "v_mfma_scale_f32_16x16x128_f8f6f4 v[48:51], v[0:7], v[8:15], v[16:19], v40, v41 "
      "op_sel_hi:[0,0,0]\n"
      "v_mfma_scale_f32_16x16x128_f8f6f4 v[52:55], v[0:7], v[8:15], v[16:19], v42, v43 "
      "op_sel_hi:[0,0,0]",
      GetParam());
  Random random(7);
  for (int r = 0; r < 16; ++r) t.set_v(r, [&](int) { return random.next() & 0x77777777u; });
  for (int r = 16; r < 20; ++r) t.set_vf(r, [&](int) { return random.uniform() * 1e-3f; });
  t.set_v(40, [](int l) { return uint32_t(120 + l % 9); });
  t.set_v(41, [](int l) { return uint32_t(121 + l % 7); });
  t.set_v(42, [](int l) { return uint32_t(120 + l % 9 + 115); });
  t.set_v(43, [](int l) { return uint32_t(121 + l % 7 - 115); });
  ASSERT_EQ(t.run(), "");
  for (int r = 0; r < 4; ++r)
    for (int l = 0; l < 64; ++l) EXPECT_EQ(t.v(52 + r, l), t.v(48 + r, l)) << r << " " << l;
}

TEST_P(MfmaScaled, UndefinedFormatStops) {
  // cbsz 5, which the assembler does not write.
  std::vector<uint8_t> code =
      assemble("v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[4:11], v[16:23], 0\ns_endpgm");
  code[1] |= 5;
  Snippet t(code, GetParam(), "gfx950");
  EXPECT_NE(t.run(), "");
}

INSTANTIATE_TEST_SUITE_P(Levels, MfmaScaled, testing::ValuesIn(levels()), level_name);

}  // namespace
}  // namespace flydsl::emu::test
