// Buffer descriptors: range checks by bytes and by records, swizzled layouts, atomics.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/emulator/isa/lane_values.h"
#include "test/emulator/support/snippet.h"

namespace flydsl::emu::test {
namespace {

using testing::HasSubstr;

class BufferOps : public testing::TestWithParam<Level> {
 protected:
  static constexpr uint32_t kFormat = 0x00020000;
  std::vector<uint32_t> data_ = std::vector<uint32_t>(1024);
  BufferOps() {
    for (size_t i = 0; i < data_.size(); ++i) data_[i] = uint32_t(i + 1);
  }
  // Descriptor in s[0:3].
  void describe(Snippet &t, uint32_t stride, uint32_t records, uint32_t word3 = kFormat,
                bool swizzle = false) {
    const auto p = reinterpret_cast<uint64_t>(data_.data());
    t.s(0) = uint32_t(p);
    t.s(1) = uint32_t(p >> 32 & 0xffff) | stride << 16 | uint32_t(swizzle) << 31;
    t.s(2) = records;
    t.s(3) = word3;
    t.allow(data_.data(), data_.size() * 4);
  }
};

// Without idxen num_records is in bytes even when the descriptor has a stride.
TEST_P(BufferOps, BytesAreCountedWithoutAnIndex) {
  Snippet t("buffer_load_dwordx2 v[2:3], v0, s[0:3], 0 offen offset:4", GetParam());
  describe(t, 4, 100);
  t.set_v(0, [](int lane) { return uint32_t(lane) * 4; });
  ASSERT_EQ(t.run(), "");
  for (int lane = 0; lane < 64; ++lane) {
    EXPECT_EQ(t.v(2, lane), lane + 1 < 25 ? data_[size_t(lane + 1)] : 0u) << lane;
    EXPECT_EQ(t.v(3, lane), lane + 2 < 25 ? data_[size_t(lane + 2)] : 0u) << lane;
  }
}

// CDNA4 ISA, "Range Checking": a private buffer, one that adds the lane without idxen, is not
// checked; its data format extends the stride (Table 45), but not for instructions with a format.
TEST_P(BufferOps, PrivateBuffersAreNotChecked) {
  const uint32_t add_lane = 1u << 23, data_format_32 = 4u << 15, uint = 4u << 12, identity = 0xfac;
  Snippet plain("buffer_load_dword v2, off, s[0:3], 0 offset:4", GetParam());
  describe(plain, 8, 0, add_lane);
  ASSERT_EQ(plain.run(), "");
  Snippet typed("buffer_load_format_x v2, off, s[0:3], 0 offset:4", GetParam());
  describe(typed, 8, 0, add_lane | data_format_32 | uint | identity);
  ASSERT_EQ(typed.run(), "");
  for (int lane = 0; lane < 64; ++lane) {
    EXPECT_EQ(plain.v(2, lane), data_[size_t(lane * 2 + 1)]);
    EXPECT_EQ(typed.v(2, lane), data_[size_t(lane * 2 + 1)]);
  }
}

// With idxen it is in records, and an access may be wider than a record.
TEST_P(BufferOps, RecordsAreCountedWithAnIndex) {
  Snippet t(
      "buffer_load_dwordx4 v[4:7], v0, s[0:3], 0 idxen\n s_mov_b32 m0, 64\n s_nop 0\n"
      "buffer_load_dwordx4 v0, s[0:3], 0 idxen lds\n s_waitcnt vmcnt(0)\n"
      "buffer_load_dword v8, v[10:11], s[0:3], s4 idxen offen offset:4",
      GetParam());
  describe(t, 4, 40);
  t.set_v(0, [](int lane) { return uint32_t(lane); });
  t.set_v(10, [](int lane) { return uint32_t(lane); });
  t.set_v(11, [](int lane) { return uint32_t(lane % 3) * 4; });
  t.s(4) = 400;
  ASSERT_EQ(t.run(), "");
  for (int lane = 0; lane < 64; ++lane) {
    for (int k = 0; k < 4; ++k) {
      const uint32_t expected = lane < 40 ? data_[size_t(lane + k)] : 0;
      EXPECT_EQ(t.v(4 + k, lane), expected);
      uint32_t copied;
      std::memcpy(&copied, t.lds().data() + 64 + lane * 16 + k * 4, 4);
      EXPECT_EQ(copied, expected);
    }
    EXPECT_EQ(t.v(8, lane), lane < 40 ? data_[size_t(100 + lane + 1 + lane % 3)] : 0u);
  }
}

// Word e of record r of a buffer with index stride n: groups of n records, inside a group word by
// word.
TEST_P(BufferOps, SwizzledRecordsAreInterleaved) {
  constexpr uint32_t kStride = 16, kRecords = 50;
  for (uint32_t code = 0; code < 4; ++code) {
    const uint32_t n = 8u << code;
    auto word_of = [&](uint32_t record, uint32_t word) {
      return record / n * n * (kStride / 4) + word * n + record % n;
    };
    Snippet t(
        "buffer_load_dwordx4 v[4:7], v0, s[0:3], 0 idxen\n"
        "buffer_load_dwordx2 v[8:9], v0, s[0:3], 0 idxen offset:8\n"
        "buffer_load_ushort v10, v0, s[0:3], 0 idxen offset:6\n"
        "buffer_load_dwordx2 v[14:15], v0, s[0:3], 0 idxen offset:12\n"
        "buffer_store_dwordx2 v[12:13], v0, s[0:3], 0 idxen offset:4",
        GetParam());
    describe(t, kStride, kRecords, kFormat | code << 21, true);
    t.set_v(0, [](int lane) { return uint32_t(lane); });
    t.set_v(12, [](int lane) { return 5000u + uint32_t(lane); });
    t.set_v(13, [](int lane) { return 6000u + uint32_t(lane); });
    std::vector<uint32_t> expected = data_;
    const std::vector<uint32_t> before = data_;
    ASSERT_EQ(t.run(), "");
    for (uint32_t lane = 0; lane < 64; ++lane) {
      const bool inside = lane < kRecords;
      auto at = [&](uint32_t word) { return inside ? before[word_of(lane, word)] : 0; };
      for (uint32_t k = 0; k < 4; ++k) EXPECT_EQ(t.v(int(4 + k), int(lane)), at(k));
      EXPECT_EQ(t.v(8, int(lane)), at(2));
      EXPECT_EQ(t.v(9, int(lane)), at(3));
      EXPECT_EQ(t.v(10, int(lane)), at(1) >> 16);
      EXPECT_EQ(t.v(14, int(lane)), at(3));
      EXPECT_EQ(t.v(15, int(lane)), 0u) << "past the stride";
      if (inside) {
        expected[word_of(lane, 1)] = 5000 + lane;
        expected[word_of(lane, 2)] = 6000 + lane;
      }
    }
    EXPECT_EQ(data_, expected);
  }
}

// The lane is added to the index; four more bits of stride come from the format field.
TEST_P(BufferOps, AddedLaneIsAnIndex) {
  Snippet t("buffer_load_dword v2, off, s[0:3], 0 offset:4", GetParam());
  describe(t, 12, 0xffffffff, 1u << 23);
  ASSERT_EQ(t.run(), "");
  for (int lane = 0; lane < 64; ++lane) EXPECT_EQ(t.v(2, lane), data_[size_t(lane * 3 + 1)]);
  Snippet far("buffer_load_dword v2, off, s[0:3], 0", GetParam());
  describe(far, 0, 0xffffffff, 1u << 23 | 1u << 15);
  far.set_exec(1);
  ASSERT_EQ(far.run(), "");
  EXPECT_EQ(far.v(2, 0), data_[0]);
  far.set_exec(2);
  EXPECT_THAT(far.run(), HasSubstr("12288 bytes past the end of"));
}

TEST_P(BufferOps, AtomicsOutsideTheBufferDoNothing) {
  Snippet t(
      "buffer_atomic_add v2, v0, s[0:3], 0 offen sc0\n"
      "buffer_atomic_add_f32 v3, v1, s[0:3], 0 offen offset:512\n"
      "buffer_atomic_umax_x2 v[4:5], off, s[0:3], 0 offset:1024 sc0\n"
      "buffer_atomic_cmpswap v[6:7], v0, s[0:3], 0 offen offset:2048 sc0\n"
      "buffer_atomic_pk_add_bf16 v8, off, s[0:3], 0 offset:1032 sc0",
      GetParam());
  for (size_t i = 128; i < 192; ++i) data_[i] = bits_of(1.0f);
  data_[256] = 7, data_[257] = 0;
  data_[258] = 0x3f803f80;
  describe(t, 0, 2048 + 100);
  t.set_v(0, [](int lane) { return uint32_t(lane) * 4; });
  t.set_v(1, [](int lane) { return lane == 9 ? 0x10000u : uint32_t(lane / 2) * 4; });
  t.set_v(2, [](int lane) { return uint32_t(lane) * 100; });
  t.set_vf(3, [](int lane) { return float(lane); });
  t.set_v(4, [](int lane) { return uint32_t(lane * 2); });
  t.set_v(5, [](int) { return 0u; });
  t.set_v(6, [](int) { return 9u; });
  t.set_v(7, [](int lane) { return uint32_t(512 + lane / 2 * 2 + 1); });
  t.set_v(8, [](int) { return 0x40003f80u; });
  const std::vector<uint32_t> before = data_;
  ASSERT_EQ(t.run(), "");
  uint32_t low = 7;
  for (int lane = 0; lane < 64; ++lane) {
    EXPECT_EQ(data_[size_t(lane)], before[size_t(lane)] + uint32_t(lane) * 100);
    EXPECT_EQ(t.v(2, lane), before[size_t(lane)]);
    EXPECT_EQ(t.v(4, lane), low);
    EXPECT_EQ(t.v(5, lane), 0u);
    low = std::max(low, uint32_t(lane * 2));
    const bool inside = lane < 25, equal = lane % 2 == 0;
    EXPECT_EQ(t.v(6, lane), inside ? before[size_t(512 + lane)] : 0u);
    EXPECT_EQ(data_[size_t(512 + lane)], inside && equal ? 9u : before[size_t(512 + lane)]);
    // 1, 2, ... 64 and 1, 3, ... 127: exact in bf16.
    EXPECT_EQ(bf16(t.v(8, lane) & 0xffff), lane + 1);
    EXPECT_EQ(bf16(t.v(8, lane) >> 16), 2 * lane + 1);
  }
  EXPECT_EQ(data_[256], 126u);
  for (int i = 0; i < 32; ++i)
    EXPECT_EQ(float_of(data_[size_t(128 + i)]), i == 4 ? 9.0f : float(1 + 4 * i + 1));
}

INSTANTIATE_TEST_SUITE_P(Levels, BufferOps, testing::ValuesIn(levels()), [](const auto &p) {
  return std::string(p.param == Level::kBase   ? "base"
                     : p.param == Level::kAvx2 ? "avx2"
                                               : "avx512");
});

}  // namespace
}  // namespace flydsl::emu::test
