// Sparse matrix instructions: layouts and index from the tables (gfx942) and by rule (gfx950).
#include "test/emulator/isa/matrix_layouts.h"

namespace flydsl::emu::test {
namespace {

constexpr int kA = 0, kB = 16, kIndex = 30, kD = 256;

// gfx950's forms with twice the K: A and the index as consecutive k of a lane, B in two halves.
Layout doubled(int m, int k) {
  Layout l;
  l.m = l.n = m;
  l.k = k;
  l.blocks = 1;
  const int per_lane = k * m / 64;
  for (int quad = 0; quad < per_lane / 4; ++quad)
    for (int lane = 0; lane < 64; ++lane) {
      const int q = lane % m * (k / 4) + lane / m * (per_lane / 4) + quad;
      l.of["A"].push_back(q);
      l.of["K"].push_back(q);
    }
  for (int e = 0; e < per_lane; ++e)
    for (int lane = 0; lane < 64; ++lane) {
      const int half = per_lane / 2;
      l.of["B"].push_back((e / half * (k / 2) + lane / m * half + e % half) * m + lane % m);
    }
  for (int i = 0; i < m * m / 64; ++i)
    for (int lane = 0; lane < 64; ++lane) {
      const int row = m == 32 ? 8 * (i / 4) + 4 * (lane / 32) + i % 4 : 4 * (lane / 16) + i;
      l.of["D"].push_back(row * m + lane % m);
    }
  return l;
}

void check(const std::string &name, const Layout &l, const std::string &processor, Level level) {
  const Format fa = format_of(name, 0), fb = format_of(name, 1);
  const bool fnuz = processor == "gfx942", integer = fa == kByte;
  const std::vector<int> &la = l.of.at("A"), &lb = l.of.at("B"), &lk = l.of.at("K"),
                         &ld = l.of.at("D");
  const int index_bits = int(lk.size()) / 64 * 4, sets = 32 / index_bits;
  const int out = int(ld.size()) / 64;
  // The last set takes cbsz != 0, which selects the lowest bits whatever abid says.
  for (int set = 0; set <= sets; ++set) {
    SCOPED_TRACE(name + " on " + processor + " set " + std::to_string(set));
    const bool lowest = set == sets;
    const int used = lowest ? 0 : set;
    Snippet t(name + " " + range('a', 0, out) + ", " +
                  range('v', kA, registers(2 * la.size(), fa)) + ", " +
                  range('v', kB, registers(lb.size(), fb)) + ", v" + std::to_string(kIndex) +
                  (lowest ? " cbsz:1 abid:1" : " abid:" + std::to_string(set)),
              level, processor);
    Random random(uint64_t(l.m * 1000 + l.k + set));
    const size_t quads = size_t(l.m * l.k / 4);
    std::vector<int> values(2 * quads), dense(size_t(l.m * l.k)), b(size_t(l.k * l.n)),
        c(size_t(l.m * l.n));
    std::vector<uint32_t> nibble(quads);
    for (auto *v : {&values, &b, &c})
      for (int &x : *v) x = int(random.next() % 17) - 8;
    for (size_t q = 0; q < quads; ++q) {
      const uint32_t first = random.next() % 3, second = first + 1 + random.next() % (3 - first);
      nibble[q] = first | second << 2;
      const size_t row = q / size_t(l.k / 4), k = q % size_t(l.k / 4) * 4;
      dense[row * size_t(l.k) + k + first] = values[2 * q];
      dense[row * size_t(l.k) + k + second] = values[2 * q + 1];
    }
    for (size_t e = 0; e < la.size(); ++e)
      for (int part = 0; part < 2; ++part)
        put(t, kA, 2 * int(e / 64) + part, int(e % 64), fa,
            values[2 * size_t(la[e]) + size_t(part)], fnuz);
    for (size_t e = 0; e < lb.size(); ++e)
      put(t, kB, int(e / 64), int(e % 64), fb, b[size_t(lb[e])], fnuz);
    // Other sets hold noise.
    const uint32_t mask = index_bits == 32 ? ~0u : ((1u << index_bits) - 1) << (index_bits * used);
    t.set_v(kIndex, [&](int) { return random.next() & ~mask; });
    for (size_t e = 0; e < lk.size(); ++e)
      t.v(kIndex, int(e % 64)) |= nibble[size_t(lk[e])]
                                  << (index_bits * used % 32 + 4 * int(e / 64));
    for (size_t e = 0; e < ld.size(); ++e) {
      const int x = c[size_t(ld[e])];
      t.v(kD + int(e / 64), int(e % 64)) = integer ? uint32_t(x) : bits_of(float(x));
    }
    ASSERT_EQ(t.run(), "");
    for (size_t e = 0; e < ld.size(); ++e) {
      const int i = ld[e] / l.n, j = ld[e] % l.n;
      int sum = c[size_t(ld[e])];
      for (int k = 0; k < l.k; ++k) sum += dense[size_t(i * l.k + k)] * b[size_t(k * l.n + j)];
      ASSERT_EQ(get(t, kD, int(e / 64), int(e % 64), integer ? kByte : kFloat), double(sum))
          << "register " << e / 64 << " lane " << e % 64;
    }
  }
}

class Smfmac : public testing::TestWithParam<Level> {};

TEST_P(Smfmac, TabledForms) {
  int forms = 0;
  for (const auto &[name, layout] : read_layouts()) {
    if (!name.starts_with("v_smfmac")) continue;
    ++forms;
    check(name, layout, "gfx942", GetParam());
    check(name, layout, "gfx950", GetParam());
  }
  EXPECT_EQ(forms, 14);
}

TEST_P(Smfmac, FormsWithTwiceTheK) {
  for (const char *type : {"f16", "bf16"}) {
    check(std::string("v_smfmac_f32_16x16x64_") + type, doubled(16, 64), "gfx950", GetParam());
    check(std::string("v_smfmac_f32_32x32x32_") + type, doubled(32, 32), "gfx950", GetParam());
  }
  for (const char *types : {"fp8_fp8", "fp8_bf8", "bf8_fp8", "bf8_bf8"}) {
    check(std::string("v_smfmac_f32_16x16x128_") + types, doubled(16, 128), "gfx950", GetParam());
    check(std::string("v_smfmac_f32_32x32x64_") + types, doubled(32, 64), "gfx950", GetParam());
  }
  check("v_smfmac_i32_16x16x128_i8", doubled(16, 128), "gfx950", GetParam());
  check("v_smfmac_i32_32x32x64_i8", doubled(32, 64), "gfx950", GetParam());
}

// A k that the index leaves out takes no part, whatever B holds there.
TEST_P(Smfmac, SkippedElementsOfBDoNotMatter) {
  Snippet t("v_smfmac_f32_16x16x32_f16 v[8:11], v[0:1], v[2:5], v6", GetParam());
  t.set_v(0, [](int) { return 0x3c003c00u; });
  t.set_v(1, [](int) { return 0x3c003c00u; });
  for (int r = 2; r < 6; ++r) t.set_v(r, [](int) { return 0x7e003c00u; });  // 1, NaN, 1, NaN ...
  t.set_v(6, [](int) { return 0x88u; });                                    // k 0 and 2 of four
  ASSERT_EQ(t.run(), "");
  EXPECT_EQ(t.vf(8, 0), 16.0f);
}

INSTANTIATE_TEST_SUITE_P(Levels, Smfmac, testing::ValuesIn(levels()), level_name);

}  // namespace
}  // namespace flydsl::emu::test
