// LDS atomics with two data operands, exchanges of pairs, lane counts, addresses from the lane,
// swizzle modes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/emulator/isa/lane_values.h"
#include "test/emulator/support/snippet.h"

namespace flydsl::emu::test {
namespace {

using testing::HasSubstr;
using u32 = uint32_t;
using u64 = uint64_t;

class LdsOps : public testing::TestWithParam<Level> {
 protected:
  template <class T>
  static T get(Snippet &t, size_t offset) {
    T x;
    std::memcpy(&x, t.lds().data() + offset, sizeof x);
    return x;
  }
  template <class T>
  static void put(Snippet &t, size_t offset, T x) {
    std::memcpy(t.lds().data() + offset, &x, sizeof x);
  }
};

TEST_P(LdsOps, TwoDataOperands) {
  Snippet t(
      "ds_mskor_rtn_b32 v10, v0, v1, v2\n ds_wrap_rtn_b32 v11, v0, v1, v2 offset:256\n"
      "ds_cmpst_f32 v0, v3, v4 offset:512\n ds_condxchg32_rtn_b64 v[12:13], v5, v[6:7] "
      "offset:1024\n"
      "ds_cmpst_rtn_f64 v[14:15], v5, v[20:21], v[22:23] offset:2048\n"
      "ds_mskor_b64 v5, v[6:7], v[22:23] offset:3072",
      GetParam());
  Random random(1);
  t.set_v(0, [](int lane) { return u32(lane) * 4; });
  t.set_v(5, [](int lane) { return u32(lane) * 8; });
  for (const int reg : {1, 2, 6, 7, 22, 23}) t.set_v(reg, [&](int) { return random.next(); });
  t.set_vf(3, [](int lane) { return lane % 2 ? 0.0f : 2.0f; });
  t.set_v(4, [](int lane) { return 4000u + u32(lane); });
  t.set_v(20, [](int) { return 0u; });
  t.set_v(21, [](int) { return 0u; });
  for (u32 lane = 0; lane < 64; ++lane) {
    put(t, lane * 4, random.next());
    put(t, 256 + lane * 4, random.next());
    put(t, 512 + lane * 4, lane % 2 ? 0x80000000u : 0x40000001u);  // -0 equals 0, 2+ulp is not 2
    put(t, 1024 + lane * 8, u64(random.next()) << 32 | random.next());
    put(t, 2048 + lane * 8, lane % 3 ? 0x8000000000000000ull : 0x7ff8000000000000ull);
    put(t, 3072 + lane * 8, u64(random.next()) << 32 | random.next());
  }
  const std::vector<uint8_t> before = t.lds();
  auto old32 = [&](size_t at) {
    u32 x;
    std::memcpy(&x, before.data() + at, 4);
    return x;
  };
  auto old64 = [&](size_t at) { return old32(at) | u64(old32(at + 4)) << 32; };
  ASSERT_EQ(t.run(), "");
  for (int lane = 0; lane < 64; ++lane) {
    const size_t at = size_t(lane) * 4, at8 = size_t(lane) * 8;
    EXPECT_EQ(t.v(10, lane), old32(at));
    EXPECT_EQ(get<u32>(t, at), (old32(at) & ~t.v(1, lane)) | t.v(2, lane));
    const u32 m = old32(256 + at);
    EXPECT_EQ(t.v(11, lane), m);
    EXPECT_EQ(get<u32>(t, 256 + at), m >= t.v(1, lane) ? m - t.v(1, lane) : m + t.v(2, lane));
    EXPECT_EQ(get<u32>(t, 512 + at), lane % 2 ? 4000u + u32(lane) : 0x40000001u);
    for (int k = 0; k < 2; ++k) {
      const u32 x = old32(1024 + at8 + size_t(k) * 4), d = t.v(6 + k, lane);
      EXPECT_EQ(t.v(12 + k, lane), x);
      EXPECT_EQ(get<u32>(t, 1024 + at8 + size_t(k) * 4), d >> 31 ? d & 0x7fffffff : x);
    }
    const u64 d64 = t.v(22, lane) | u64(t.v(23, lane)) << 32;
    EXPECT_EQ(t.v(14, lane) | u64(t.v(15, lane)) << 32, old64(2048 + at8));
    EXPECT_EQ(get<u64>(t, 2048 + at8), lane % 3 ? d64 : old64(2048 + at8)) << "-0 is 0, NaN is not";
    const u64 mask = t.v(6, lane) | u64(t.v(7, lane)) << 32;
    EXPECT_EQ(get<u64>(t, 3072 + at8), (old64(3072 + at8) & ~mask) | d64);
  }
}

TEST_P(LdsOps, ExchangesOfPairsAndWideCounters) {
  Snippet t(
      "ds_wrxchg2_rtn_b32 v[10:11], v0, v1, v2 offset0:1 offset1:3\n"
      "ds_wrxchg2st64_rtn_b64 v[12:15], v3, v[4:5], v[6:7] offset0:4 offset1:5\n"
      "ds_inc_rtn_u64 v[16:17], v8, v[20:21] offset:8192\n ds_dec_u64 v8, v[20:21] offset:8200\n"
      "ds_rsub_u64 v8, v[20:21] offset:8208",
      GetParam());
  t.set_v(0, [](int lane) { return u32(lane) * 16; });
  t.set_v(3, [](int lane) { return u32(lane) * 8; });
  for (const int reg : {1, 2, 4, 5, 6, 7})
    t.set_v(reg, [=](int lane) { return u32(reg * 1000 + lane); });
  t.set_v(8, [](int) { return 0u; });
  t.set_v(20, [](int) { return 50u; });
  t.set_v(21, [](int) { return 0u; });
  for (u32 i = 0; i < 2048; ++i) put(t, i * 4, 0x10000 + i);
  put<u64>(t, 8192, 3);
  put<u64>(t, 8200, 3);
  put<u64>(t, 8208, 7);
  ASSERT_EQ(t.run(), "");
  u64 up = 3, down = 3, reversed = 7;
  for (int lane = 0; lane < 64; ++lane) {
    EXPECT_EQ(t.v(10, lane), 0x10000u + u32(lane) * 4 + 1);
    EXPECT_EQ(t.v(11, lane), 0x10000u + u32(lane) * 4 + 3);
    EXPECT_EQ(get<u32>(t, size_t(lane) * 16 + 4), t.v(1, lane));
    EXPECT_EQ(get<u32>(t, size_t(lane) * 16 + 12), t.v(2, lane));
    for (int k = 0; k < 4; ++k)
      EXPECT_EQ(t.v(12 + k, lane),
                0x10000u + u32(k / 2 ? 2560 : 2048) / 4 + u32(lane) * 2 + u32(k % 2));
    EXPECT_EQ(get<u32>(t, 2048 + size_t(lane) * 8 + 4), t.v(5, lane));
    EXPECT_EQ(get<u32>(t, 2560 + size_t(lane) * 8), t.v(6, lane));
    EXPECT_EQ(t.v(16, lane), u32(up));
    up = up >= 50 ? 0 : up + 1;
    down = down == 0 || down > 50 ? 50 : down - 1;
    reversed = 50 - reversed;
  }
  EXPECT_EQ(get<u64>(t, 8192), up);
  EXPECT_EQ(get<u64>(t, 8200), down);
  EXPECT_EQ(get<u64>(t, 8208), reversed);
}

TEST_P(LdsOps, LaneCountsAndLaneAddresses) {
  Snippet t(
      "s_mov_b32 m0, 0x400000\n s_nop 0\n ds_append v10 offset:16\n ds_append v11 offset:16\n"
      "ds_consume v12 offset:16\n s_mov_b32 m0, 256\n s_nop 0\n ds_write_addtid_b32 v0 offset:32\n"
      "ds_read_addtid_b32 v13 offset:36",
      GetParam());
  t.set_exec(0x00ff00ff00ff00f0ull);
  t.set_v(0, [](int lane) { return 700u + u32(lane); });
  put<u32>(t, 16, 1000);  // M0 is a base for GDS only
  ASSERT_EQ(t.run(), "");
  for (const int lane : {4, 16, 55}) {
    EXPECT_EQ(t.v(10, lane), 1000u);
    EXPECT_EQ(t.v(11, lane), 1028u);
    EXPECT_EQ(t.v(12, lane), 1056u);
  }
  EXPECT_EQ(t.v(10, 0), 0u);
  EXPECT_EQ(get<u32>(t, 16), 1028u);
  EXPECT_EQ(get<u32>(t, 256 + 32 + 4 * 17), 717u);
  EXPECT_EQ(get<u32>(t, 256 + 32 + 4 * 8), 0u);
  EXPECT_EQ(t.v(13, 16), 717u);
  EXPECT_EQ(t.v(13, 23), 0u) << "lane 24 is disabled and wrote nothing";
}

// CDNA4 ISA, "Float Memory Atomics": LDS flushes as MODE says (compares only to compare), fp64 adds
// never do; a signalling NaN wins a minimum or maximum, a quiet one loses.
TEST_P(LdsOps, FloatAtomicsFollowMode) {
  for (const bool flush : {false, true}) {
    Snippet t(
        "ds_add_f32 v0, v1\n ds_min_f32 v0, v1 offset:4\n ds_cmpst_f32 v0, v2, v1 offset:8\n"
        "ds_add_f64 v0, v[4:5] offset:16\n ds_max_f64 v0, v[4:5] offset:24\n"
        "ds_max_f64 v0, v[6:7] offset:32\n ds_min_f64 v0, v[8:9] offset:40\n"
        "ds_pk_add_f16 v0, v3 offset:48\n ds_pk_add_bf16 v0, v3 offset:52",
        GetParam());
    t.set_exec(1);
    t.wave().mode = flush ? 0x300 : 0x3f0;
    t.v(1, 0) = 5, t.v(2, 0) = 0, t.v(3, 0) = 0x00030004;
    t.v(4, 0) = 7, t.v(5, 0) = 0;                    // a denormal
    t.v(6, 0) = 1, t.v(7, 0) = 0x7ff00000;           // signalling
    t.v(8, 0) = 0, t.v(9, 0) = 0x7ff80000;           // quiet
    put<u32>(t, 0, 3), put<u32>(t, 4, 9), put<u32>(t, 8, 6);
    put<u64>(t, 16, 2), put<u64>(t, 24, 6), put<u64>(t, 32, 0x4000000000000000);
    put<u64>(t, 40, 0x4000000000000000), put<u32>(t, 48, 0x00010002), put<u32>(t, 52, 0x00010002);
    ASSERT_EQ(t.run(), "");
    EXPECT_EQ(get<u32>(t, 0), flush ? 0u : 8u);
    EXPECT_EQ(get<u32>(t, 4), flush ? 9u : 5u) << "equal when flushed: memory stays as it is";
    EXPECT_EQ(get<u32>(t, 8), flush ? 0u : 6u) << "0 equals a flushed denormal, and 5 is flushed";
    EXPECT_EQ(get<u64>(t, 16), 9u);
    EXPECT_EQ(get<u64>(t, 24), flush ? 6u : 7u);
    EXPECT_EQ(get<u64>(t, 32), 0x7ff8000000000001u);
    EXPECT_EQ(get<u64>(t, 40), 0x4000000000000000u);
    EXPECT_EQ(get<u32>(t, 48), flush ? 0u : 0x00040006u);
    EXPECT_EQ(get<u32>(t, 52), flush ? 0u : 0x00040006u);
  }
}

// The lanes that the CDNA3 ISA prints for FFT mode (1-based there), and rotations.
TEST_P(LdsOps, SwizzleModes) {
  Snippet t(
      "ds_swizzle_b32 v10, v0 offset:0xe000\n ds_swizzle_b32 v11, v0 offset:0xe010\n"
      "ds_swizzle_b32 v12, v0 offset:0xe01f\n ds_swizzle_b32 v13, v0 offset:0xc060\n"
      "ds_swizzle_b32 v14, v0 offset:0xc478",
      GetParam());
  t.set_v(0, [](int lane) { return u32(lane); });
  ASSERT_EQ(t.run(), "");
  const u32 all[32] = {0x01, 0x11, 0x09, 0x19, 0x05, 0x15, 0x0d, 0x1d, 0x03, 0x13, 0x0b,
                       0x1b, 0x07, 0x17, 0x0f, 0x1f, 0x02, 0x12, 0x0a, 0x1a, 0x06, 0x16,
                       0x0e, 0x1e, 0x04, 0x14, 0x0c, 0x1c, 0x08, 0x18, 0x10, 0x20};
  const u32 halves[32] = {0x01, 0x09, 0x05, 0x0d, 0x03, 0x0b, 0x07, 0x0f, 0x02, 0x0a, 0x06,
                          0x0e, 0x04, 0x0c, 0x08, 0x10, 0x11, 0x19, 0x15, 0x1d, 0x13, 0x1b,
                          0x17, 0x1f, 0x12, 0x1a, 0x16, 0x1e, 0x14, 0x1c, 0x18, 0x20};
  for (int lane = 0; lane < 64; ++lane) {
    const u32 base = u32(lane & 32), in = u32(lane & 31);
    EXPECT_EQ(t.v(10, lane), base + all[in] - 1);
    EXPECT_EQ(t.v(11, lane), base + halves[in] - 1);
    EXPECT_EQ(t.v(12, lane), u32(lane));
    EXPECT_EQ(t.v(13, lane), base + (in + 3) % 32);
    // Right by 3 inside groups of 8.
    EXPECT_EQ(t.v(14, lane), base + in / 8 * 8 + (in % 8 + 5) % 8);
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, LdsOps, testing::ValuesIn(levels()), [](const auto &p) {
  return std::string(p.param == Level::kBase   ? "base"
                     : p.param == Level::kAvx2 ? "avx2"
                                               : "avx512");
});

}  // namespace
}  // namespace flydsl::emu::test
