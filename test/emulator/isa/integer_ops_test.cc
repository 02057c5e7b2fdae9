// Byte, 16-bit and saturating integer instructions, against plain arithmetic in 64 bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "test/emulator/isa/lane_values.h"
#include "test/emulator/support/snippet.h"

namespace flydsl::emu::test {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;
using i64 = int64_t;

class IntegerOps : public testing::TestWithParam<Level> {};

// One instruction of up to three 32-bit sources v0, v1, v2 and what it must give.
struct Case {
  const char *mnemonic, *modifiers;
  u32 (*expected)(u32 a, u32 b, u32 c);
};
i64 byte(u32 x, int k) {
  return x >> (8 * k) & 0xff;
}
i64 s16(u32 x) {
  return int16_t(x & 0xffff);
}
i64 u16(u32 x) {
  return x & 0xffff;
}
i64 s24(u32 x) {
  const i64 v = x & 0xffffff;
  return v >= 0x800000 ? v - 0x1000000 : v;
}
i64 s32(u32 x) {
  return int32_t(x);
}
i64 fit(i64 x, i64 low, i64 high) {
  return std::min(std::max(x, low), high);
}
i64 sad(u32 a, u32 b, bool masked) {
  i64 sum = 0;
  for (int k = 0; k < 4; ++k)
    if (!masked || byte(b, k) != 0) sum += std::llabs(byte(a, k) - byte(b, k));
  return sum;
}
u32 table(u32 a, u32 b, u32 c, u32 entries, int bits) {
  u32 r = 0;
  for (int k = 0; k < bits; ++k) {
    const u32 index = (a >> k & 1) * 4 + (b >> k & 1) * 2 + (c >> k & 1);
    if (entries >> index & 1) r |= 1u << k;
  }
  return r;
}
constexpr i64 kMaxU = 0xffffffff, kMaxI = 0x7fffffff, kMinI = -kMaxI - 1;

const Case kThree[] = {
    {"v_sad_u8", "", [](u32 a, u32 b, u32 c) { return u32(sad(a, b, false) + c); }},
    {"v_sad_u8", " clamp",
     [](u32 a, u32 b, u32 c) { return u32(fit(sad(a, b, false) + i64(c), 0, kMaxU)); }},
    {"v_msad_u8", "", [](u32 a, u32 b, u32 c) { return u32(sad(a, b, true) + c); }},
    {"v_sad_hi_u8", "", [](u32 a, u32 b, u32 c) { return u32(sad(a, b, false) * 65536 + c); }},
    {"v_sad_u16", "",
     [](u32 a, u32 b, u32 c) {
       return u32(std::llabs(u16(a) - u16(b)) + std::llabs(i64(a >> 16) - i64(b >> 16)) + c);
     }},
    {"v_sad_u32", "", [](u32 a, u32 b, u32 c) { return u32(std::llabs(i64(a) - i64(b)) + c); }},
    {"v_lerp_u8", "",
     [](u32 a, u32 b, u32 c) {
       u32 r = 0;
       for (int k = 0; k < 4; ++k)
         r += u32((byte(a, k) + byte(b, k) + (byte(c, k) & 1)) / 2) << (8 * k);
       return r;
     }},
    {"v_mad_i32_i24", "", [](u32 a, u32 b, u32 c) { return u32(s24(a) * s24(b) + s32(c)); }},
    {"v_mad_i32_i24", " clamp",
     [](u32 a, u32 b, u32 c) { return u32(fit(s24(a) * s24(b) + s32(c), kMinI, kMaxI)); }},
    {"v_mad_u32_u24", " clamp",
     [](u32 a, u32 b, u32 c) {
       return u32(fit(i64(a & 0xffffff) * i64(b & 0xffffff) + i64(c), 0, kMaxU));
     }},
    {"v_mad_i32_i16", "", [](u32 a, u32 b, u32 c) { return u32(s16(a) * s16(b) + s32(c)); }},
    {"v_mad_i32_i16", " op_sel:[1,0,0,0] clamp",
     [](u32 a, u32 b, u32 c) { return u32(fit(s16(a >> 16) * s16(b) + s32(c), kMinI, kMaxI)); }},
    {"v_mad_u32_u16", " op_sel:[0,1,0,0]",
     [](u32 a, u32 b, u32 c) { return u32(u16(a) * i64(b >> 16) + i64(c)); }},
    {"v_bitop3_b32", " bitop3:0xca", [](u32 a, u32 b, u32 c) { return table(a, b, c, 0xca, 32); }},
};
// The destination begins as v3 = 0xdead0000 + lane; three-source 16-bit forms keep the other half.
struct HalfCase {
  const char *mnemonic, *modifiers;
  bool keeps, high;
  u32 (*expected)(u32 a, u32 b, u32 c);
};
const HalfCase kHalves[] = {
    {"v_mad_u16", "", true, false, [](u32 a, u32 b, u32 c) { return u32(a * b + c); }},
    {"v_mad_u16", " clamp", true, false,
     [](u32 a, u32 b, u32 c) { return u32(fit(u16(a) * u16(b) + u16(c), 0, 0xffff)); }},
    {"v_mad_i16", " op_sel:[1,0,1,1] clamp", true, true,
     [](u32 a, u32 b, u32 c) {
       return u32(fit(s16(a >> 16) * s16(b) + s16(c >> 16), -32768, 32767));
     }},
    {"v_min3_i16", "", true, false,
     [](u32 a, u32 b, u32 c) {
       return u32(std::min({s16(a), s16(b), s16(c)}));
     }},
    {"v_max3_i16", "", true, false,
     [](u32 a, u32 b, u32 c) {
       return u32(std::max({s16(a), s16(b), s16(c)}));
     }},
    {"v_min3_u16", "", true, false,
     [](u32 a, u32 b, u32 c) {
       return u32(std::min({u16(a), u16(b), u16(c)}));
     }},
    {"v_max3_u16", "", true, false,
     [](u32 a, u32 b, u32 c) {
       return u32(std::max({u16(a), u16(b), u16(c)}));
     }},
    {"v_med3_i16", "", true, false,
     [](u32 a, u32 b, u32 c) {
       i64 x[] = {s16(a), s16(b), s16(c)};
       std::sort(x, x + 3);
       return u32(x[1]);
     }},
    {"v_med3_u16", " op_sel:[0,1,0,1]", true, true,
     [](u32 a, u32 b, u32 c) {
       i64 x[] = {u16(a), u16(b >> 16), u16(c)};
       std::sort(x, x + 3);
       return u32(x[1]);
     }},
    {"v_bitop3_b16", " bitop3:0x96", true, false,
     [](u32 a, u32 b, u32 c) { return table(a, b, c, 0x96, 16); }},
    {"v_mad_legacy_i16", "", false, false, [](u32 a, u32 b, u32 c) { return u32(a * b + c); }},
    {"v_ashr_pk_i8_i32", "", true, false,
     [](u32 a, u32 b, u32 c) {
       return u32(fit(s32(a) >> (c & 31), -128, 127) & 0xff) |
              u32(fit(s32(b) >> (c & 31), -128, 127) & 0xff) << 8;
     }},
    {"v_ashr_pk_u8_i32", " op_sel:[0,0,0,1]", true, true,
     [](u32 a, u32 b, u32 c) {
       return u32(fit(s32(a) >> (c & 31), 0, 255)) | u32(fit(s32(b) >> (c & 31), 0, 255)) << 8;
     }},
};
const HalfCase kPairs[] = {
    {"v_add_u16_e64", " clamp", false, false,
     [](u32 a, u32 b, u32) { return u32(fit(u16(a) + u16(b), 0, 0xffff)); }},
    {"v_sub_u16_e64", " clamp", false, false,
     [](u32 a, u32 b, u32) { return u32(fit(u16(a) - u16(b), 0, 0xffff)); }},
    {"v_sub_u16_e32", "", false, false, [](u32 a, u32 b, u32) { return a - b; }},
    {"v_add_i16", " clamp", false, false,
     [](u32 a, u32 b, u32) { return u32(fit(s16(a) + s16(b), -32768, 32767)); }},
    {"v_sub_i16", "", false, false, [](u32 a, u32 b, u32) { return a - b; }},
    {"v_ashrrev_i16", "", false, false, [](u32 a, u32 b, u32) { return u32(s16(b) >> (a & 15)); }},
};

void set_sources(Snippet &t, uint64_t seed) {
  Random random(seed);
  const u32 edges[] = {0,          1,          0x7fffffff, 0x80000000,
                       0xffffffff, 0x7fff8000, 0x80007fff, 0x00ff00ff};
  for (int reg = 0; reg < 3; ++reg)
    t.set_v(reg, [&](int lane) {
      return lane < 32 ? edges[size_t(lane >> (reg % 2 ? 0 : 2)) % 8] : random.next();
    });
  t.set_v(3, [](int lane) { return 0xdead0000u + u32(lane); });
}

TEST_P(IntegerOps, ThreeSources) {
  std::string text;
  int reg = 10;
  for (const Case &c : kThree)
    text += std::string(c.mnemonic) + " v" + std::to_string(reg++) + ", v0, v1, v2" + c.modifiers +
            "\n";
  Snippet t(text, GetParam());
  set_sources(t, 11);
  ASSERT_EQ(t.run(), "");
  reg = 10;
  for (const Case &c : kThree) {
    for (int lane = 0; lane < 64; ++lane)
      ASSERT_EQ(t.v(reg, lane), c.expected(t.v(0, lane), t.v(1, lane), t.v(2, lane)))
          << c.mnemonic << c.modifiers << " lane " << lane;
    ++reg;
  }
}

TEST_P(IntegerOps, Halves) {
  std::string text;
  int reg = 10;
  for (const HalfCase &c : kHalves) {
    text += "v_mov_b32 v" + std::to_string(reg) + ", v3\n" + c.mnemonic + " v" +
            std::to_string(reg) + ", v0, v1, v2" + c.modifiers + "\n";
    ++reg;
  }
  for (const HalfCase &c : kPairs) {
    text += std::string(c.mnemonic) + " v" + std::to_string(reg) + ", v0, v1" + c.modifiers + "\n";
    ++reg;
  }
  Snippet t(text, GetParam());
  set_sources(t, 12);
  ASSERT_EQ(t.run(), "");
  reg = 10;
  auto check = [&](const HalfCase &c) {
    for (int lane = 0; lane < 64; ++lane) {
      const u32 x = c.expected(t.v(0, lane), t.v(1, lane), t.v(2, lane)) & 0xffff;
      const u32 before = 0xdead0000u + u32(lane);
      const u32 expected = !c.keeps ? x
                           : c.high ? x << 16 | (before & 0xffff)
                                    : x | (before & 0xffff0000);
      ASSERT_EQ(t.v(reg, lane), expected) << c.mnemonic << c.modifiers << " lane " << lane;
    }
    ++reg;
  };
  for (const HalfCase &c : kHalves) check(c);
  for (const HalfCase &c : kPairs) check(c);
}

TEST_P(IntegerOps, SlidingSumsOfDifferences) {
  Snippet t(
      "v_qsad_pk_u16_u8 v[10:11], v[0:1], v2, v[4:5]\n"
      "v_mqsad_pk_u16_u8 v[12:13], v[0:1], v2, v[4:5]\n"
      "v_qsad_pk_u16_u8 v[14:15], v[0:1], v2, v[4:5] clamp\n"
      "v_mqsad_u32_u8 v[16:19], v[0:1], v2, v[4:7]\n v_sat_pk_u8_i16 v20, v0",
      GetParam());
  Random random(5);
  for (const int reg : {0, 1, 2, 4, 5, 6, 7})
    t.set_v(reg, [&](int lane) { return random.next() & (lane % 3 ? ~0u : 0xff00ffffu); });
  t.set_v(4, [](int lane) { return lane % 2 ? 0xfffffff0u : 17u; });
  ASSERT_EQ(t.run(), "");
  for (int lane = 0; lane < 64; ++lane) {
    const u64 data = t.v(0, lane) | u64(t.v(1, lane)) << 32;
    const u64 add = t.v(4, lane) | u64(t.v(5, lane)) << 32;
    for (int k = 0; k < 4; ++k) {
      const u32 window = u32(data >> (8 * k)), reference = t.v(2, lane);
      const i64 base = i64(add >> (16 * k) & 0xffff);
      auto got = [&](int reg) { return t.v(reg + k / 2, lane) >> (k % 2 * 16) & 0xffff; };
      EXPECT_EQ(got(10), u32(base + sad(window, reference, false)) & 0xffff);
      EXPECT_EQ(got(12), u32(base + sad(window, reference, true)) & 0xffff);
      EXPECT_EQ(got(14), u32(fit(base + sad(window, reference, false), 0, 0xffff)));
      EXPECT_EQ(t.v(16 + k, lane), u32(t.v(4 + k, lane) + sad(window, reference, true)));
    }
    EXPECT_EQ(t.v(20, lane),
              u32(fit(s16(t.v(0, lane)), 0, 255) | fit(s16(t.v(0, lane) >> 16), 0, 255) << 8));
  }
}

TEST_P(IntegerOps, WideMultiplyAddSaturates) {
  Snippet t(
      "v_mad_u64_u32 v[10:11], s[0:1], v0, v1, v[2:3] clamp\n"
      "v_mad_i64_i32 v[12:13], s[2:3], v0, v1, v[2:3] clamp\n"
      "v_mad_i64_i32 v[14:15], s[4:5], v0, v1, v[2:3]",
      GetParam());
  set_sources(t, 13);
  t.set_v(3, [](int lane) {
    return lane % 4 == 0 ? 0x7fffffffu : lane % 4 == 1 ? 0x80000000u : ~0u;
  });
  ASSERT_EQ(t.run(), "");
  for (int lane = 0; lane < 64; ++lane) {
    const u64 add = t.v(2, lane) | u64(t.v(3, lane)) << 32;
    const unsigned __int128 sum = (unsigned __int128)(t.v(0, lane)) * t.v(1, lane) + add;
    EXPECT_EQ(t.v(10, lane) | u64(t.v(11, lane)) << 32, sum >> 64 ? ~u64(0) : u64(sum));
    EXPECT_EQ(t.s64(0) >> lane & 1, u64(sum >> 64));
    const __int128 exact = __int128(s32(t.v(0, lane))) * s32(t.v(1, lane)) + i64(add);
    const __int128 high = (__int128(1) << 63) - 1, low = -high - 1;
    const i64 clamped = i64(exact > high ? high : exact < low ? low : exact);
    EXPECT_EQ(i64(t.v(12, lane) | u64(t.v(13, lane)) << 32), clamped);
    EXPECT_EQ(i64(t.v(14, lane) | u64(t.v(15, lane)) << 32), i64(exact));
    // The ISA text concatenates carry and result to 65 bits of the exact sum: the carry is its bit 64, also
    // where a signed sum fits in 64 bits (CDNA3 ISA, V_MAD_I64_I32; test/emulator/plain/README.md).
    EXPECT_EQ(t.s64(2) >> lane & 1, u64(exact >> 64) & 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, IntegerOps, testing::ValuesIn(levels()), [](const auto &p) {
  return std::string(p.param == Level::kBase   ? "base"
                     : p.param == Level::kAvx2 ? "avx2"
                                               : "avx512");
});

}  // namespace
}  // namespace flydsl::emu::test
