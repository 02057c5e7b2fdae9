// Matrix instructions: register layouts from an independent source, the documented order of sums,
// broadcasts.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "test/emulator/isa/lane_values.h"
#include "test/emulator/support/snippet.h"

namespace flydsl::emu::test {
namespace {

struct Layout {
  int m = 0, n = 0, k = 0, blocks = 0;
  std::vector<int> a, b, d;  // element held by (register, part of register, lane), in that order
};

std::map<std::string, Layout> read_layouts() {
  std::map<std::string, Layout> layouts;
  std::ifstream file(FLYDSL_TEST_DATA "/isa/matrix_layouts_cdna3.txt");
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string name, matrix;
    words >> name >> matrix;
    Layout &l = layouts[name];
    words >> l.m >> l.n >> l.k >> l.blocks;
    std::vector<int> &list = matrix == "A" ? l.a : matrix == "B" ? l.b : l.d;
    for (int index; words >> index;) list.push_back(index);
  }
  return layouts;
}

// gfx950's forms with twice the K: lane l holds row or column l % M and eight consecutive k from 8
// * (l / M).
Layout doubled(int m, int k) {
  Layout l;
  l.m = l.n = m;
  l.k = k;
  l.blocks = 1;
  for (int j = 0; j < 8; ++j)
    for (int lane = 0; lane < 64; ++lane) {
      const int kk = 8 * (lane / m) + j;
      l.a.push_back(lane % m * k + kk);
      l.b.push_back(kk * m + lane % m);
    }
  for (int i = 0; i < m * m / 64; ++i)
    for (int lane = 0; lane < 64; ++lane) {
      const int row = m == 32 ? 8 * (i / 4) + 4 * (lane / 32) + i % 4 : 4 * (lane / 16) + i;
      l.d.push_back(row * m + lane % m);
    }
  return l;
}

enum Format { kFloat, kHalf, kBrain, kDouble, kByte };
Format format_of(const std::string &name) {
  if (name.ends_with("bf16")) return kBrain;
  if (name.ends_with("f16")) return kHalf;
  if (name.ends_with("f64")) return kDouble;
  return name.ends_with("i8") ? kByte : kFloat;
}
int bits(Format f) {
  return f == kFloat ? 32 : f == kDouble ? 64 : f == kByte ? 8 : 16;
}

// Writes small integer `x` as part `p` (in units of the format's size) of register file row `first`
// in `lane`.
void put(Snippet &t, int first, int p, int lane, Format f, int x) {
  if (f == kDouble) {
    const double d = x;
    uint64_t u;
    std::memcpy(&u, &d, 8);
    t.v(first + 2 * p, lane) = uint32_t(u);
    t.v(first + 2 * p + 1, lane) = uint32_t(u >> 32);
    return;
  }
  const uint32_t u = f == kFloat   ? bits_of(float(x))
                     : f == kHalf  ? nearest_small_float(x, 5)
                     : f == kBrain ? nearest_small_float(x, 8)
                                   : uint32_t(x) & 0xff;
  const int per_register = 32 / bits(f);
  t.v(first + p / per_register, lane) |= u << (p % per_register * bits(f));
}
double get(Snippet &t, int first, int r, int lane, Format f) {
  if (f == kByte) return int32_t(t.v(first + r, lane));
  if (f != kDouble) return double(t.vf(first + r, lane));
  const uint64_t u = t.v(first + 2 * r, lane) | uint64_t(t.v(first + 2 * r + 1, lane)) << 32;
  double d;
  std::memcpy(&d, &u, 8);
  return d;
}

std::string range(char file, int first, int count) {
  if (count == 1) return file + std::to_string(first);
  return std::string(1, file) + "[" + std::to_string(first) + ":" +
         std::to_string(first + count - 1) + "]";
}
int registers(size_t elements, Format f) {
  return std::max(1, int(elements) / 64 * bits(f) / 32);
}

constexpr int kA = 0, kB = 16, kD = 256;  // D in accumulation registers

void check(const std::string &name, const Layout &l, Level level) {
  SCOPED_TRACE(name);
  const Format f = format_of(name);
  const int out = int(l.d.size()) / 64 * (f == kDouble ? 2 : 1);
  const std::string text = name + " " + range('a', 0, out) + ", " +
                           range('v', kA, registers(l.a.size(), f)) + ", " +
                           range('v', kB, registers(l.b.size(), f)) + ", ";
  // C in the same file as D.
  Snippet t(text + range('a', 0, out), level);
  Random random(uint64_t(l.m * 1000 + l.k));
  std::vector<int> a(size_t(l.blocks * l.m * l.k)), b(size_t(l.blocks * l.k * l.n)),
      c(size_t(l.blocks * l.m * l.n));
  for (auto *v : {&a, &b, &c})
    for (int &x : *v) x = int(random.next() % 17) - 8;
  for (size_t e = 0; e < l.a.size(); ++e)
    put(t, kA, int(e / 64), int(e % 64), f, a[size_t(l.a[e])]);
  for (size_t e = 0; e < l.b.size(); ++e)
    put(t, kB, int(e / 64), int(e % 64), f, b[size_t(l.b[e])]);
  for (size_t e = 0; e < l.d.size(); ++e) {
    const int x = c[size_t(l.d[e])];
    if (f == kDouble)
      put(t, kD, int(e / 64), int(e % 64), kDouble, x);
    else
      t.v(kD + int(e / 64), int(e % 64)) = f == kByte ? uint32_t(x) : bits_of(float(x));
  }
  ASSERT_EQ(t.run(), "");
  for (size_t e = 0; e < l.d.size(); ++e) {
    const int index = l.d[e], block = index / (l.m * l.n), i = index / l.n % l.m, j = index % l.n;
    int sum = c[size_t(index)];
    for (int k = 0; k < l.k; ++k)
      sum += a[size_t((block * l.m + i) * l.k + k)] * b[size_t((block * l.k + k) * l.n + j)];
    ASSERT_EQ(get(t, kD, int(e / 64), int(e % 64), f), double(sum))
        << "register " << e / 64 << " lane " << e % 64;
  }
  EXPECT_EQ(t.wave().mfma_flops, uint64_t(2) * uint64_t(l.m * l.n * l.k * l.blocks));
}

class Mfma : public testing::TestWithParam<Level> {};

TEST_P(Mfma, LayoutsOfTheCdna3Forms) {
  const auto layouts = read_layouts();
  ASSERT_EQ(layouts.size(), 22u);
  for (const auto &[name, layout] : layouts) check(name, layout, GetParam());
}

TEST_P(Mfma, LayoutsOfTheGfx950Forms) {
  check("v_mfma_f32_32x32x16_bf16", doubled(32, 16), GetParam());
  check("v_mfma_f32_32x32x16_f16", doubled(32, 16), GetParam());
  check("v_mfma_f32_16x16x32_bf16", doubled(16, 32), GetParam());
  check("v_mfma_f32_16x16x32_f16", doubled(16, 32), GetParam());
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

INSTANTIATE_TEST_SUITE_P(Levels, Mfma, testing::ValuesIn(levels()), [](const auto &p) {
  return std::string(p.param == Level::kBase   ? "base"
                     : p.param == Level::kAvx2 ? "avx2"
                                               : "avx512");
});

}  // namespace
}  // namespace flydsl::emu::test
