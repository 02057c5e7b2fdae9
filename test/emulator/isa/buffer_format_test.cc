// Typed buffer loads and stores: formats of the instruction (MTBUF) and of the descriptor (MUBUF).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/emulator/isa/lane_values.h"
#include "test/emulator/support/snippet.h"

namespace flydsl::emu::test {
namespace {

using testing::HasSubstr;
using u32 = uint32_t;

class BufferFormat : public testing::TestWithParam<Level> {
 protected:
  alignas(16) uint8_t data_[1024] = {};
  // Descriptor in s[0:3]: bytes, identity selection, formats of word 3.
  void describe(Snippet &t, u32 data_format, u32 number_format, u32 select = 0xfac) {
    const auto p = reinterpret_cast<uint64_t>(data_);
    t.s(0) = u32(p);
    t.s(1) = u32(p >> 32 & 0xffff);
    t.s(2) = sizeof data_;
    t.s(3) = select | number_format << 12 | data_format << 15;
    t.allow(data_, sizeof data_);
  }
  void put(size_t at, u32 x) { std::memcpy(data_ + at, &x, 4); }
  u32 get(size_t at) const {
    u32 x;
    std::memcpy(&x, data_ + at, 4);
    return x;
  }
};

// One lane's element and the registers it becomes; written back it must be the same again.
struct Row {
  const char *format;
  u32 memory[4];
  int words;  // of memory
  u32 registers[4];
};
constexpr u32 kOne = 0x3f800000;
const Row kRows[] = {
    {"BUF_DATA_FORMAT_8_8_8_8,BUF_NUM_FORMAT_UNORM",
     {0xff330080},
     1,
     {bits_of(128.0f / 255), 0, bits_of(51.0f / 255), kOne}},
    {"BUF_DATA_FORMAT_8_8_8_8,BUF_NUM_FORMAT_SNORM",
     {0x7f0081c0},
     1,
     {bits_of(-64.0f / 127), 0xbf800000, 0, kOne}},
    {"BUF_DATA_FORMAT_8_8_8_8,BUF_NUM_FORMAT_UINT", {0xff330080}, 1, {0x80, 0, 0x33, 0xff}},
    {"BUF_DATA_FORMAT_8_8_8_8,BUF_NUM_FORMAT_SINT", {0xff337f80}, 1, {0xffffff80, 0x7f, 0x33, ~0u}},
    {"BUF_DATA_FORMAT_8_8_8_8,BUF_NUM_FORMAT_SSCALED",
     {0xff337f80},
     1,
     {bits_of(-128.0f), bits_of(127.0f), bits_of(51.0f), bits_of(-1.0f)}},
    {"BUF_DATA_FORMAT_16_16_16_16,BUF_NUM_FORMAT_FLOAT",
     {0x3c00c000, 0x7c000001},
     2,
     {bits_of(-2.0f), kOne, bits_of(0x1p-24f), 0x7f800000}},
    {"BUF_DATA_FORMAT_16_16_16_16,BUF_NUM_FORMAT_USCALED",
     {0xffff0001, 0x00020003},
     2,
     {kOne, bits_of(65535.0f), bits_of(3.0f), bits_of(2.0f)}},
    {"BUF_DATA_FORMAT_32_32_32_32,BUF_NUM_FORMAT_FLOAT",
     {1, 2, 0x7fc12345, 4},
     4,
     {1, 2, 0x7fc12345, 4}},
    {"BUF_DATA_FORMAT_10_10_10_2,BUF_NUM_FORMAT_UINT", {0}, 1, {0, 0, 0, 0}},
    {"BUF_DATA_FORMAT_2_10_10_10,BUF_NUM_FORMAT_UINT",
     {0xc0000000u | 5u << 20 | 6u << 10 | 7},
     1,
     {7, 6, 5, 3}},
};

TEST_P(BufferFormat, InstructionNamesTheFormat) {
  for (const Row &row : kRows) {
    // LLVM's 2_10_10_10 has the two bits on top, as the hardware's format 9 does.
    const std::string format = std::string(" format:[") + row.format + "]";
    Snippet t("tbuffer_load_format_xyzw v[4:7], v0, s[0:3], 0" + format +
                  " offen\ntbuffer_store_format_xyzw v[4:7], v0, s[0:3], 0" + format +
                  " offen offset:512",
              GetParam());
    describe(t, 0, 0);
    std::memset(data_, 0, sizeof data_);
    for (int k = 0; k < row.words; ++k) put(32 + size_t(k) * 4, row.memory[k]);
    t.set_v(0, [](int) { return 32u; });
    ASSERT_EQ(t.run(), "");
    for (int k = 0; k < 4; ++k)
      EXPECT_EQ(t.v(4 + k, 5), row.registers[k]) << row.format << " " << k;
    for (int k = 0; k < row.words; ++k)
      EXPECT_EQ(get(512 + 32 + size_t(k) * 4), row.memory[k]) << row.format;
    EXPECT_EQ(get(512 + 32 + size_t(row.words) * 4), 0u);
  }
}

TEST_P(BufferFormat, DescriptorNamesFormatAndComponents) {
  // 16_16 float; select: x = component 1, y = 1, z = 0, w = component 3, which the format lacks.
  Snippet t("buffer_load_format_xyzw v[4:7], off, s[0:3], 0 offset:8", GetParam());
  describe(t, 5, 7, 5 | 1 << 3 | 0 << 6 | 7 << 9);
  put(8, 0xbc004000);
  ASSERT_EQ(t.run(), "");
  EXPECT_EQ(t.vf(4, 0), -1.0f);
  EXPECT_EQ(t.vf(5, 0), 1.0f);
  EXPECT_EQ(t.v(6, 0), 0u);
  EXPECT_EQ(t.vf(7, 0), 1.0f);
  Snippet none("buffer_load_format_x v4, off, s[0:3], 0", GetParam());
  describe(none, 0, 7);
  EXPECT_THAT(none.run(), HasSubstr("buffer format without meaning"));
  Snippet reordered("buffer_store_format_x v4, off, s[0:3], 0", GetParam());
  describe(reordered, 4, 7, 5);
  EXPECT_THAT(reordered.run(), HasSubstr("reorders components"));
}

// CDNA4 ISA: outside, selection 1 still gives 1 ("Range Checking"); MTBUF gives 0 for components that
// the format lacks ("Buffer Data"); fp16 passes as it is.
TEST_P(BufferFormat, OutsideAndAbsentComponents) {
  Snippet t(
      "buffer_load_format_xy v[4:5], v0, s[0:3], 0 offen\n"
      "tbuffer_load_format_xyzw v[8:11], off, s[0:3], 0 "
      "format:[BUF_DATA_FORMAT_16_16,BUF_NUM_FORMAT_UINT]\n"
      "buffer_load_format_d16_x v12, off, s[0:3], 0",
      GetParam());
  describe(t, 5, 7, 1 | 4 << 3);
  put(0, 0x44007c01);
  t.set_v(0, [](int) { return 4096u; });
  ASSERT_EQ(t.run(), "");
  EXPECT_EQ(t.vf(4, 0), 1.0f);
  EXPECT_EQ(t.v(5, 0), 0u);
  EXPECT_EQ(t.v(8, 0), 0x7c01u);
  EXPECT_EQ(t.v(10, 0), 0u);
  EXPECT_EQ(t.v(11, 0), 0u);
  EXPECT_EQ(t.v(12, 0), 0x3c00u);
  Snippet half("buffer_load_format_d16_x v12, off, s[0:3], 0", GetParam());
  describe(half, 5, 7);
  put(0, 0x44007c01);
  ASSERT_EQ(half.run(), "");
  EXPECT_EQ(half.v(12, 0), 0x7c01u) << "a signalling NaN stays one";
}

TEST_P(BufferFormat, SmallFloatsAndOutOfRange) {
  // 10_11_11: x has 11 bits, y 11, z 10, all with a 5-bit exponent: 1.5, 0.25, 64.
  Snippet t(
      "buffer_load_format_xyz v[4:6], off, s[0:3], 0\n buffer_store_format_xyz v[4:6], off, "
      "s[0:3], 0 offset:64\n"
      "buffer_store_format_xyz v[8:10], off, s[0:3], 0 offset:68\n"
      "buffer_load_format_xy v[12:13], v0, s[0:3], 0 offen",
      GetParam());
  describe(t, 6, 7);
  const u32 packed = (15u << 6 | 32) | (13u << 6) << 11 | (21u << 5) << 22;
  put(0, packed);
  t.set_vf(8, [](int) { return -3.0f; });
  t.set_vf(9, [](int) { return 1e9f; });
  t.set_vf(10, [](int) { return 1.0f; });
  t.set_v(0, [](int lane) { return lane ? 1022u : 0u; });
  t.set_v(12, [](int) { return 77u; });
  ASSERT_EQ(t.run(), "");
  EXPECT_EQ(t.vf(4, 0), 1.5f);
  EXPECT_EQ(t.vf(5, 0), 0.25f);
  EXPECT_EQ(t.vf(6, 0), 64.0f);
  EXPECT_EQ(get(64), packed);
  EXPECT_EQ(get(68), 0u | (31u << 6) << 11 | (15u << 5) << 22) << "negative is 0, large infinity";
  EXPECT_EQ(t.vf(12, 0), 1.5f);
  EXPECT_EQ(t.v(12, 1), 0u) << "an element across the end is outside";
}

TEST_P(BufferFormat, HalvesOfRegisters) {
  Snippet t(
      "buffer_load_format_d16_xyz v[4:5], off, s[0:3], 0\n buffer_load_format_d16_hi_x v6, off, "
      "s[0:3], 0\n"
      "buffer_store_format_d16_xyzw v[8:9], off, s[0:3], 0 offset:128",
      GetParam());
  describe(t, 10, 0);  // 8_8_8_8 unorm
  put(0, 0x00ff0033);
  t.set_v(5, [](int) { return 0xabcd0000u; });
  t.set_v(6, [](int) { return 0x1234u; });
  t.set_v(8, [](int) { return 0x3c003800u; });  // 0.5, 1
  t.set_v(9, [](int) { return 0x0000bc00u; });  // -1, 0
  ASSERT_EQ(t.run(), "");
  EXPECT_EQ(t.v(4, 3), nearest_small_float(51.0 / 255, 5));
  EXPECT_EQ(t.v(5, 3), 0xabcd3c00u);
  EXPECT_EQ(t.v(6, 3), nearest_small_float(51.0 / 255, 5) << 16 | 0x1234);
  EXPECT_EQ(get(128), 0x0000ff80u) << "127.5 rounds to even";
}

INSTANTIATE_TEST_SUITE_P(Levels, BufferFormat, testing::ValuesIn(levels()), [](const auto &p) {
  return std::string(p.param == Level::kBase   ? "base"
                     : p.param == Level::kAvx2 ? "avx2"
                                               : "avx512");
});

}  // namespace
}  // namespace flydsl::emu::test
