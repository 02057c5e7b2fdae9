// Dot products, and the LDS reads that transpose.
#include <gtest/gtest.h>

#include "test/emulator/isa/matrix_layouts.h"

namespace flydsl::emu::test {
namespace {

class Dot : public testing::TestWithParam<Level> {};

int64_t field(uint32_t x, int n, int width, bool is_signed) {
  const int64_t u = x >> (n * width) & ((1u << width) - 1);
  return is_signed && u >> (width - 1) ? u - (int64_t(1) << width) : u;
}
int64_t sum(uint32_t a, uint32_t b, uint32_t c, int width, bool is_signed) {
  int64_t s = is_signed ? int64_t(int32_t(c)) : int64_t(c);
  for (int n = 0; n < 32 / width; ++n)
    s += field(a, n, width, is_signed) * field(b, n, width, is_signed);
  return s;
}

TEST_P(Dot, Integers) {
  struct Case {
    const char *name;
    int width;
    bool is_signed, accumulates;
  };
  for (const Case &c : {Case{"v_dot2_i32_i16", 16, true, false},
                        {"v_dot2_u32_u16", 16, false, false},
                        {"v_dot4_i32_i8", 8, true, false},
                        {"v_dot4_u32_u8", 8, false, false},
                        {"v_dot8_i32_i4", 4, true, false},
                        {"v_dot8_u32_u4", 4, false, false},
                        {"v_dot2c_i32_i16", 16, true, true},
                        {"v_dot4c_i32_i8", 8, true, true},
                        {"v_dot8c_i32_i4", 4, true, true}}) {
    SCOPED_TRACE(c.name);
    const std::string n = c.name;
    Snippet t(
        c.accumulates ? n + " v3, v0, v1" : n + " v3, v0, v1, v2\n" + n + " v4, v0, v1, v2 clamp",
        GetParam());
    Random random(1);
    t.set_v(0, [&](int l) { return l == 0 ? 0x80008000u : l == 1 ? 0x80808080u : random.next(); });
    t.set_v(1, [&](int l) { return l == 0 ? 0x80008000u : l == 1 ? 0x80808080u : random.next(); });
    for (int r : {2, 3})
      t.set_v(r, [&](int l) {
        return l % 3 == 0 ? 0x7fffff00u + uint32_t(l) : l % 3 == 1 ? 0xffffff00u : 0x80000010u;
      });
    ASSERT_EQ(t.run(), "");
    for (int l = 0; l < 64; ++l) {
      const int64_t s = sum(t.v(0, l), t.v(1, l), t.v(2, l), c.width, c.is_signed);
      EXPECT_EQ(t.v(3, l), uint32_t(s)) << l;
      if (c.accumulates) continue;
      const int64_t low = c.is_signed ? INT32_MIN : 0, high = c.is_signed ? INT32_MAX : UINT32_MAX;
      EXPECT_EQ(t.v(4, l), uint32_t(std::clamp(s, low, high))) << l;
    }
  }
}

// One rounding a step: with products of few bits the order shows in the last bit.
TEST_P(Dot, Floats) {
  Snippet t(
      "v_dot2_f32_f16 v3, v0, v1, v2\n"
      "v_dot2_f32_bf16 v4, v5, v6, v2\n"
      "v_dot2c_f32_f16 v7, v0, v1\n"
      "v_dot2c_f32_bf16 v8, v5, v6\n"
      "v_dot2_f32_f16 v9, v0, v1, v2 neg_lo:[1,0,1] neg_hi:[0,1,0]\n"
      "v_dot2_f32_bf16 v10, v5, v6, v2 clamp",
      GetParam());
  Random random(2);
  auto pair = [&](int exponent_bits) {
    return nearest_small_float(double(random.uniform()), exponent_bits) |
           nearest_small_float(double(random.uniform()), exponent_bits) << 16;
  };
  for (int r : {0, 1}) t.set_v(r, [&](int) { return pair(5); });
  for (int r : {5, 6}) t.set_v(r, [&](int) { return pair(8); });
  t.set_vf(2, [&](int) { return random.uniform(); });
  for (int r : {7, 8})
    for (int l = 0; l < 64; ++l) t.v(r, l) = t.v(2, l);
  ASSERT_EQ(t.run(), "");
  for (int l = 0; l < 64; ++l) {
    const float c = t.vf(2, l);
    auto h = [&](int r, int part) { return half(t.v(r, l) >> (16 * part) & 0xffff); };
    auto b = [&](int r, int part) { return bf16(t.v(r, l) >> (16 * part) & 0xffff); };
    const double h0 = h(0, 0) * h(1, 0), h1 = h(0, 1) * h(1, 1), b0 = b(5, 0) * b(6, 0),
                 b1 = b(5, 1) * b(6, 1);
    const float half_first = float(double(float(double(c) + h0)) + h1);
    EXPECT_EQ(t.vf(3, l), half_first);
    EXPECT_EQ(t.vf(7, l), half_first);
    const float brain_last = float(double(float(double(float(b0)) + b1)) + double(c));
    EXPECT_EQ(t.vf(4, l), brain_last);
    EXPECT_EQ(t.vf(8, l), float(double(float(double(c) + b0)) + b1));
    EXPECT_EQ(t.vf(9, l), float(double(float(-double(c) - h0)) - h1));
    EXPECT_EQ(t.vf(10, l), std::fmin(std::fmax(brain_last, 0.0f), 1.0f));
  }
}

// op_sel names the halves of the first product, op_sel_hi those of the second. The assembler writes
// only the defaults: op_sel:[1,0,0] op_sel_hi:[1,0,1] are set by hand.
TEST_P(Dot, Halves) {
  std::vector<uint8_t> code = assemble("v_dot2_i32_i16 v3, v0, v1, v2\ns_endpgm");
  code[1] |= 0x08;
  code[7] &= uint8_t(~0x10);
  Snippet t(code, GetParam(), "gfx950");
  t.set_v(0, [](int l) { return 0x00050007u + uint32_t(l); });
  t.set_v(1, [](int l) { return 0x00110013u + uint32_t(l) * 0x10000u; });
  t.set_v(2, [](int) { return 1000u; });
  ASSERT_EQ(t.run(), "");
  for (int l = 0; l < 64; ++l) EXPECT_EQ(t.v(3, l), 1000u + 2 * 5 * 0x13);
}

// Sixteen lanes read a tile of `columns` = 16 elements a row, several lanes a row; lane l gets
// column l, row n in element n.
TEST_P(Dot, TransposedReads) {
  struct Case {
    const char *name;
    int width, words;
  };
  for (const Case &c : {Case{"ds_read_b64_tr_b16", 16, 2},
                        {"ds_read_b64_tr_b8", 8, 2},
                        {"ds_read_b64_tr_b4", 4, 2},
                        {"ds_read_b96_tr_b6", 6, 3}}) {
    SCOPED_TRACE(c.name);
    Snippet t(std::string(c.name) + " " + range('v', 4, c.words) + ", v0 offset:64", GetParam());
    const int rows = 32 * c.words / c.width, row_bits = 16 * c.width;
    Random random(3);
    std::vector<std::vector<uint32_t>> tile(size_t(rows) * 4, std::vector<uint32_t>(16));
    // Row r of group g is at 16-byte aligned places that do not follow each other.
    auto place = [&](int g, int r) { return 64 + 1024 * g + 48 * r; };
    for (int g = 0; g < 4; ++g)
      for (int r = 0; r < rows; ++r)
        for (int column = 0; column < 16; ++column) {
          const uint32_t x = random.next() & ((1u << c.width) - 1);
          tile[size_t(g * rows + r)][size_t(column)] = x;
          for (int b = 0; b < c.width; ++b)
            if (x >> b & 1) {
              const int bit = column * c.width + b;
              t.lds()[size_t(place(g, r) + bit / 8)] |= uint8_t(1u << (bit % 8));
            }
        }
    const int lanes_per_row = row_bits / (32 * c.words);
    t.set_v(0, [&](int l) {
      return uint32_t(place(l / 16, l % 16 / lanes_per_row) - 64 + l % lanes_per_row * 4 * c.words);
    });
    ASSERT_EQ(t.run(), "");
    for (int l = 0; l < 64; ++l)
      for (int n = 0; n < rows; ++n) {
        uint32_t x = 0;
        for (int b = 0; b < c.width; ++b) {
          const int bit = n * c.width + b;
          x |= (t.v(4 + bit / 32, l) >> (bit % 32) & 1) << b;
        }
        ASSERT_EQ(x, tile[size_t(l / 16 * rows + n)][size_t(l % 16)]) << l << " " << n;
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, Dot, testing::ValuesIn(levels()), level_name);

}  // namespace
}  // namespace flydsl::emu::test
