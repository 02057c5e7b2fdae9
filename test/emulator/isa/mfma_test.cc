// Matrix instructions: register layouts from an independent source, the documented order of sums,
// broadcasts.
#include <cmath>

#include "test/emulator/isa/matrix_layouts.h"

namespace flydsl::emu::test {
namespace {

// gfx950's forms with twice the K: lane l holds row or column l % M and eight consecutive k from 8
// * (l / M).
Layout doubled(int m, int k, int per_lane = 8) {
  Layout l;
  l.m = l.n = m;
  l.k = k;
  l.blocks = 1;
  for (int j = 0; j < per_lane; ++j)
    for (int lane = 0; lane < 64; ++lane) {
      const int kk = per_lane * (lane / m) + j;
      l.of["A"].push_back(lane % m * k + kk);
      l.of["B"].push_back(kk * m + lane % m);
    }
  for (int i = 0; i < m * m / 64; ++i)
    for (int lane = 0; lane < 64; ++lane) {
      const int row = m == 32 ? 8 * (i / 4) + 4 * (lane / 32) + i % 4 : 4 * (lane / 16) + i;
      l.of["D"].push_back(row * m + lane % m);
    }
  return l;
}

constexpr int kA = 0, kB = 16, kD = 256;  // D in accumulation registers

void check(const std::string &name, const Layout &l, const std::string &processor, Level level) {
  SCOPED_TRACE(name + " on " + processor);
  const Format fa = format_of(name, 0), fb = format_of(name, 1);
  const Format f = fa == kDouble || fa == kByte ? fa : kFloat;
  const bool fnuz = processor == "gfx942";
  const std::vector<int> &la = l.of.at("A"), &lb = l.of.at("B"), &ld = l.of.at("D");
  const int out = int(ld.size()) / 64 * (f == kDouble ? 2 : 1);
  const std::string text = name + " " + range('a', 0, out) + ", " +
                           range('v', kA, registers(la.size(), fa)) + ", " +
                           range('v', kB, registers(lb.size(), fb)) + ", ";
  // C in the same file as D.
  Snippet t(text + range('a', 0, out), level, processor);
  Random random(uint64_t(l.m * 1000 + l.k));
  std::vector<int> a(size_t(l.blocks * l.m * l.k)), b(size_t(l.blocks * l.k * l.n)),
      c(size_t(l.blocks * l.m * l.n));
  for (auto *v : {&a, &b, &c})
    for (int &x : *v) x = int(random.next() % 17) - 8;
  for (size_t e = 0; e < la.size(); ++e)
    put(t, kA, int(e / 64), int(e % 64), fa, a[size_t(la[e])], fnuz);
  for (size_t e = 0; e < lb.size(); ++e)
    put(t, kB, int(e / 64), int(e % 64), fb, b[size_t(lb[e])], fnuz);
  for (size_t e = 0; e < ld.size(); ++e) {
    const int x = c[size_t(ld[e])];
    if (f == kDouble)
      put(t, kD, int(e / 64), int(e % 64), kDouble, x, fnuz);
    else
      t.v(kD + int(e / 64), int(e % 64)) = f == kByte ? uint32_t(x) : bits_of(float(x));
  }
  ASSERT_EQ(t.run(), "");
  for (size_t e = 0; e < ld.size(); ++e) {
    const int index = ld[e], block = index / (l.m * l.n), i = index / l.n % l.m, j = index % l.n;
    int sum = c[size_t(index)];
    for (int k = 0; k < l.k; ++k)
      sum += a[size_t((block * l.m + i) * l.k + k)] * b[size_t((block * l.k + k) * l.n + j)];
    ASSERT_EQ(get(t, kD, int(e / 64), int(e % 64), f), double(sum))
        << "register " << e / 64 << " lane " << e % 64;
  }
  EXPECT_EQ(t.wave().mfma_flops, uint64_t(2) * uint64_t(l.m * l.n * l.k * l.blocks));
}

class Mfma : public testing::TestWithParam<Level> {};

TEST_P(Mfma, LayoutsOfTheTabledForms) {
  int forms = 0;
  for (const auto &[name, layout] : read_layouts()) {
    if (name.starts_with("v_smfmac")) continue;  // smfmac_test.cc
    ++forms;
    check(name, layout, layout.processor, GetParam());
    if (layout.processor == "gfx942" && !name.ends_with("xf32"))
      check(name, layout, "gfx950", GetParam());
  }
  EXPECT_EQ(forms, 59);
}

TEST_P(Mfma, LayoutsOfTheGfx950Forms) {
  for (const char *type : {"bf16", "f16"}) {
    check(std::string("v_mfma_f32_32x32x16_") + type, doubled(32, 16), "gfx950", GetParam());
    check(std::string("v_mfma_f32_16x16x32_") + type, doubled(16, 32), "gfx950", GetParam());
  }
  // 16 consecutive k a lane.
  check("v_mfma_i32_32x32x32_i8", doubled(32, 32, 16), "gfx950", GetParam());
  check("v_mfma_i32_16x16x64_i8", doubled(16, 64, 16), "gfx950", GetParam());
}

// The documented model: C first, then k upwards, one fused multiply-add each.
TEST_P(Mfma, SumsInIncreasingKWithOneRoundingEach) {
  Snippet t("v_mfma_f32_16x16x32_bf16 v[8:11], v[0:3], v[4:7], 1.0", GetParam());
  Random random(1);
  for (int reg = 0; reg < 8; ++reg)
    t.set_v(reg, [&](int) {
      const uint32_t low = bits_of(random.uniform()) >> 16, high = bits_of(random.uniform()) >> 16;
      return low | high << 16;
    });
  ASSERT_EQ(t.run(), "");
  for (int lane = 0; lane < 64; ++lane)
    for (int i = 0; i < 4; ++i) {
      const int row = 4 * (lane / 16) + i, column = lane % 16;
      float sum = 1.0f;
      for (int k = 0; k < 32; ++k) {
        const int from_a = row + 16 * (k / 8), from_b = column + 16 * (k / 8), e = k % 8;
        const uint32_t x = t.v(e / 2, from_a) >> (e % 2 * 16) << 16,
                       y = t.v(4 + e / 2, from_b) >> (e % 2 * 16) << 16;
        sum = std::fmaf(float_of(x), float_of(y), sum);
      }
      ASSERT_EQ(t.vf(8 + i, lane), sum);
    }
}

TEST_P(Mfma, TinyProductsAndDenormalsAreKeptWhateverModeSays) {
  Snippet t("v_mfma_f32_4x4x1_16b_f32 v[4:7], v0, v1, v[4:7]", GetParam());
  t.set_vf(0, [](int) { return 0x1p-100f; });
  t.set_vf(1, [](int) { return 0x1p-40f; });
  t.set_v(4, [](int) { return 3u; });  // denormal
  t.wave().mode = 0x300;               // flush everything
  ASSERT_EQ(t.run(), "");
  EXPECT_EQ(t.v(4, 9), 3u + 512u);  // 2^-140 is 512 units of 2^-149
}

TEST_P(Mfma, NanAndInfinity) {
  Snippet t("v_mfma_f32_4x4x1_16b_f32 v[4:7], v0, v1, 0", GetParam());
  t.set_vf(0, [](int lane) { return lane == 0 ? INFINITY : 1.0f; });
  t.set_vf(1, [](int lane) { return lane == 1 ? 0.0f : 2.0f; });
  ASSERT_EQ(t.run(), "");
  EXPECT_EQ(t.v(4, 0), 0x7f800000u);
  EXPECT_EQ(t.v(4, 1), 0x7fc00000u);  // inf * 0
  EXPECT_EQ(t.vf(5, 0), 2.0f);
}

// cbsz, abid: the A block that a group of blocks shares; blgp: lanes of B broadcast or rotated.
TEST_P(Mfma, Broadcasts) {
  Snippet t(
      "v_mfma_f32_4x4x1_16b_f32 v[4:7], v0, v1, 0 cbsz:2 abid:1\n"
      "v_mfma_f32_4x4x1_16b_f32 v[8:11], v0, v1, 0 blgp:3\n"
      "v_mfma_f32_4x4x1_16b_f32 v[12:15], v0, v1, 0 blgp:2\n"
      "v_mfma_f32_4x4x1_16b_f32 v[16:19], v0, v1, 0 blgp:5",
      GetParam());
  t.set_vf(0, [](int lane) { return float(lane + 1); });
  t.set_vf(1, [](int lane) { return float(lane + 100); });
  ASSERT_EQ(t.run(), "");
  for (int lane = 0; lane < 64; ++lane)
    for (int i = 0; i < 4; ++i) {
      const int block = lane / 4, shared = block / 4 * 4 + 1;
      EXPECT_EQ(t.vf(4 + i, lane), float((4 * shared + i + 1) * (lane + 100)));
      const int a = 4 * block + i + 1;
      EXPECT_EQ(t.vf(8 + i, lane), float(a * ((lane + 16) % 64 + 100)));
      EXPECT_EQ(t.vf(12 + i, lane), float(a * (32 + lane % 32 + 100)));
      EXPECT_EQ(t.vf(16 + i, lane), float(a * (16 + lane % 16 + 100)));
    }
}

TEST_P(Mfma, IgnoresExec) {
  Snippet t("v_mfma_f32_4x4x1_16b_f32 v[4:7], v0, v1, 0", GetParam());
  t.set_vf(0, [](int) { return 2.0f; });
  t.set_vf(1, [](int) { return 3.0f; });
  t.set_exec(1);
  ASSERT_EQ(t.run(), "");
  EXPECT_EQ(t.vf(7, 63), 6.0f);
}

// neg of the fp64 forms; xf32 ignores the 13 low bits.
TEST_P(Mfma, SignsOfDoublesAndPrecisionOfXf32) {
  Snippet t("v_mfma_f64_4x4x4_4b_f64 v[8:9], v[0:1], v[2:3], v[4:5] neg:[1,0,1]", GetParam());
  for (int lane = 0; lane < 64; ++lane) {
    put(t, 0, 0, lane, kDouble, 2, false);
    put(t, 2, 0, lane, kDouble, 3, false);
    put(t, 4, 0, lane, kDouble, 100, false);
  }
  ASSERT_EQ(t.run(), "");
  EXPECT_EQ(get(t, 8, 0, 5, kDouble), -4 * 2 * 3 - 100.0);

  Snippet x("v_mfma_f32_32x32x4_xf32 v[16:31], v[0:1], v[2:3], 0", GetParam(), "gfx942");
  x.set_v(0, [](int lane) { return lane < 32 ? 0x3f801fffu : 0; });
  x.set_v(2, [](int lane) { return lane < 32 ? 0xbf803fffu : 0; });
  ASSERT_EQ(x.run(), "");
  EXPECT_EQ(x.v(16, 0), 0xbf802000u);
}

TEST_P(Mfma, RefusesAnUnknownModel) {
  setenv("FLYDSL_EMU_MFMA", "exact", 1);
  Snippet t("v_mfma_f32_4x4x1_16b_f32 v[4:7], v0, v1, 0", GetParam());
  unsetenv("FLYDSL_EMU_MFMA");
  EXPECT_NE(t.run().find("FLYDSL_EMU_MFMA"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Levels, Mfma, testing::ValuesIn(levels()), level_name);

}  // namespace
}  // namespace flydsl::emu::test
