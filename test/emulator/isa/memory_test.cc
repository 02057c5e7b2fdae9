// LDS, global, scratch and buffer instructions: what they move, and what they refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

#include "test/emulator/isa/lane_values.h"
#include "test/emulator/support/snippet.h"

namespace flydsl::emu::test {
namespace {

using testing::HasSubstr;

class MemoryOps : public testing::TestWithParam<Level> {
 protected:
  // Puts `pointer` into the scalar pair `reg`.
  static void set_pointer(Snippet &t, int reg, const void *pointer) {
    const auto p = reinterpret_cast<uint64_t>(pointer);
    t.s(reg) = uint32_t(p);
    t.s(reg + 1) = uint32_t(p >> 32);
  }
  static void set_pointers(Snippet &t, int reg, const std::function<const void *(int)> &of_lane) {
    t.set_v(reg, [&](int lane) { return uint32_t(reinterpret_cast<uint64_t>(of_lane(lane))); });
    t.set_v(reg + 1,
            [&](int lane) { return uint32_t(reinterpret_cast<uint64_t>(of_lane(lane)) >> 32); });
  }
  static uint32_t lds_word(Snippet &t, size_t offset) {
    uint32_t x;
    std::memcpy(&x, t.lds().data() + offset, 4);
    return x;
  }
};

TEST_P(MemoryOps, LdsReadsAndWrites) {
  Snippet t(
      "ds_write_b128 v0, v[4:7] offset:16\n ds_read2_b64 v[8:11], v0 offset0:2 offset1:3\n"
      "ds_read_b96 v[12:14], v0 offset:20\n ds_write2st64_b32 v1, v4, v5 offset0:64 offset1:65\n"
      "ds_read2st64_b32 v[16:17], v1 offset0:65 offset1:64\n ds_write_b16 v1, v6 offset:32768\n"
      "ds_read_u16 v18, v1 offset:32768\n ds_read_i8 v19, v1 offset:32769\n v_mov_b32 v20, -1\n"
      "ds_read_u16_d16_hi v20, v1 offset:32768",
      GetParam());
  t.set_v(0, [](int lane) { return uint32_t(lane) * 32; });
  t.set_v(1, [](int lane) { return uint32_t(lane) * 4; });
  Random random(2);
  for (int reg = 4; reg < 8; ++reg) t.set_v(reg, [&](int) { return random.next(); });
  ASSERT_EQ(t.run(), "");
  for (int lane = 0; lane < 64; ++lane) {
    for (int k = 0; k < 4; ++k) EXPECT_EQ(t.v(8 + k, lane), t.v(4 + k, lane));
    for (int k = 0; k < 3; ++k) EXPECT_EQ(t.v(12 + k, lane), t.v(5 + k, lane));
    EXPECT_EQ(t.v(16, lane), t.v(5, lane));
    EXPECT_EQ(t.v(17, lane), t.v(4, lane));
    EXPECT_EQ(t.v(18, lane), t.v(6, lane) & 0xffff);
    EXPECT_EQ(t.v(19, lane), uint32_t(int32_t(int8_t(t.v(6, lane) >> 8))));
    EXPECT_EQ(t.v(20, lane), (t.v(6, lane) << 16) | 0xffff);
  }
}

TEST_P(MemoryOps, LdsOutOfBoundsIsReported) {
  Snippet t("ds_read_b64 v[2:3], v0 offset:8", GetParam());
  t.lds().resize(1024);
  t.set_v(0, [](int lane) { return lane == 17 ? 1012u : 0u; });
  const std::string fault = t.run();
  EXPECT_THAT(fault, HasSubstr("lane 17"));
  EXPECT_THAT(fault, HasSubstr("ds_read_b64 v[2:3], v0 offset:8"));
  EXPECT_THAT(fault, HasSubstr("8 bytes of LDS at offset 0x3fc; the work-group has 1024 bytes"));
  // A disabled lane does not access.
  t.set_exec(~(uint64_t(1) << 17));
  EXPECT_EQ(t.run(), "");
}

TEST_P(MemoryOps, TransposeReadMovesElementsBetween16Lanes) {
  Snippet t("ds_read_b64_tr_b16 v[2:3], v0", GetParam());
  t.set_v(0, [](int lane) { return uint32_t(lane) * 8; });
  for (uint32_t i = 0; i < 256; ++i) {
    const auto x = uint16_t(i);  // lane i / 4, element i % 4
    std::memcpy(t.lds().data() + 2 * i, &x, 2);
  }
  ASSERT_EQ(t.run(), "");
  for (int lane = 0; lane < 64; ++lane)
    for (int n = 0; n < 4; ++n) {
      const int source_lane = (lane & ~15) + 4 * n + (lane >> 2 & 3), element = lane & 3;
      EXPECT_EQ(t.v(2 + n / 2, lane) >> (n % 2 * 16) & 0xffff, uint32_t(source_lane * 4 + element));
    }
}

// The sum of base and offset has 32 bits: a negative base may come back inside.
TEST_P(MemoryOps, LdsAddressesWrap) {
  Snippet t(
      "ds_write_b32 v1, v0\n s_waitcnt lgkmcnt(0)\n ds_read_b32 v3, v2 offset:1024\n"
      "s_waitcnt lgkmcnt(0)",
      GetParam());
  t.set_v(0, [](int lane) { return 700u + uint32_t(lane); });
  t.set_v(1, [](int lane) { return uint32_t(lane) * 4; });
  t.set_v(2, [](int lane) { return uint32_t(lane * 4 - 1024); });
  ASSERT_EQ(t.run(), "");
  for (int lane = 0; lane < 64; ++lane) EXPECT_EQ(t.v(3, lane), 700u + uint32_t(lane));
}

TEST_P(MemoryOps, LdsAtomics) {
  Snippet t(
      "ds_add_u32 v0, v1\n ds_add_rtn_u32 v2, v0, v1\n ds_max_u32 v3, v4 offset:4\n ds_add_f32 v3, "
      "v5 offset:8",
      GetParam());
  t.set_v(1, [](int) { return 2u; });
  t.set_v(4, [](int lane) { return uint32_t(lane * 7 % 64); });
  t.set_vf(5, [](int) { return 0.5f; });
  ASSERT_EQ(t.run(), "");
  EXPECT_EQ(lds_word(t, 0), 256u);
  EXPECT_EQ(t.v(2, 0), 128u);
  EXPECT_EQ(t.v(2, 63), 254u);
  EXPECT_EQ(lds_word(t, 4), 63u);
  EXPECT_EQ(lds_word(t, 8), bits_of(32.0f));
}

TEST_P(MemoryOps, Permutations) {
  Snippet t(
      "ds_bpermute_b32 v2, v0, v1\n ds_permute_b32 v3, v0, v1\n ds_swizzle_b32 v4, v1 "
      "offset:swizzle(BROADCAST,32,3)\n"
      "ds_swizzle_b32 v5, v1 offset:swizzle(QUAD_PERM,1,0,3,2)",
      GetParam());
  t.set_v(0, [](int lane) { return uint32_t((lane + 5) % 64 * 4); });
  t.set_v(1, [](int lane) { return uint32_t(lane + 100); });
  ASSERT_EQ(t.run(), "");
  for (int lane = 0; lane < 64; ++lane) {
    EXPECT_EQ(t.v(2, lane), uint32_t((lane + 5) % 64 + 100));
    EXPECT_EQ(t.v(3, lane), uint32_t((lane + 59) % 64 + 100));
    EXPECT_EQ(t.v(4, lane), uint32_t((lane & 32) + 3 + 100));
    EXPECT_EQ(t.v(5, lane), uint32_t((lane ^ 1) + 100));
  }
}

TEST_P(MemoryOps, GlobalLoadsAndStores) {
  std::vector<uint32_t> in(64 * 4 + 8), out(64 * 4, 0);
  for (size_t i = 0; i < in.size(); ++i) in[i] = uint32_t(i * 2654435761u);
  Snippet t(
      "global_load_dwordx4 v[4:7], v0, s[0:1] offset:16\n global_load_dwordx2 v[8:9], v[2:3], off "
      "offset:-4\n"
      "global_load_ushort v10, v0, s[0:1] offset:2\n v_mov_b32 v11, -1\n"
      "global_load_short_d16_hi v11, v0, s[0:1]\n global_load_sbyte v12, v0, s[0:1] offset:3\n"
      "global_store_dwordx4 v0, v[4:7], s[2:3]\n flat_load_dword v13, v[2:3]",
      GetParam());
  t.allow(in.data(), in.size() * 4, false);
  t.allow(out.data(), out.size() * 4);
  set_pointer(t, 0, in.data());
  set_pointer(t, 2, out.data());
  t.set_v(0, [](int lane) { return uint32_t(lane) * 16; });
  set_pointers(t, 2, [&](int lane) { return in.data() + lane + 1; });
  ASSERT_EQ(t.run(), "");
  for (int lane = 0; lane < 64; ++lane) {
    for (int k = 0; k < 4; ++k) EXPECT_EQ(out[size_t(lane * 4 + k)], in[size_t(lane * 4 + 4 + k)]);
    EXPECT_EQ(t.v(8, lane), in[size_t(lane)]);
    EXPECT_EQ(t.v(9, lane), in[size_t(lane + 1)]);
    EXPECT_EQ(t.v(10, lane), in[size_t(lane * 4)] >> 16);
    EXPECT_EQ(t.v(11, lane), in[size_t(lane * 4)] << 16 | 0xffff);
    EXPECT_EQ(t.v(12, lane), uint32_t(int32_t(in[size_t(lane * 4)]) >> 24));
    EXPECT_EQ(t.v(13, lane), in[size_t(lane + 1)]);
  }
}

TEST_P(MemoryOps, GlobalFaultsNameTheNearestRegion) {
  std::vector<uint32_t> data(64);
  Snippet t("global_load_dword v2, v[0:1], off offset:4", GetParam());
  t.allow(data.data(), 256);
  set_pointers(t, 0, [&](int lane) { return data.data() + lane; });
  const std::string fault = t.run();
  EXPECT_THAT(fault, HasSubstr("lane 63"));
  EXPECT_THAT(fault, HasSubstr("reads 4 bytes at"));
  EXPECT_THAT(fault, HasSubstr("0 bytes past the end of the nearest region, test"));
  set_pointers(t, 0, [](int) { return nullptr; });
  EXPECT_THAT(t.run(), HasSubstr("a null pointer"));
}

TEST_P(MemoryOps, PartlyOutsideAndReadOnly) {
  std::vector<uint8_t> data(258);
  Snippet t("global_store_dword v0, v1, s[0:1]", GetParam());
  t.allow(data.data(), 258);
  set_pointer(t, 0, data.data());
  t.set_v(0, [](int) { return 256u; });
  EXPECT_THAT(t.run(), HasSubstr("2 past the end of the test region"));
  Snippet r("global_store_dword v0, v1, s[0:1]", GetParam());
  r.allow(data.data(), 258, false);
  set_pointer(r, 0, data.data());
  EXPECT_THAT(r.run(), HasSubstr("writes 4 bytes at"));
}

TEST_P(MemoryOps, GlobalAtomics) {
  std::vector<uint64_t> data(4, 0);
  Snippet t(
      "global_atomic_add v4, v0, v1, s[0:1] sc0\n global_atomic_add_f32 v0, v2, s[0:1] offset:4\n"
      "global_atomic_add_x2 v0, v[6:7], s[0:1] offset:8\n global_atomic_umax v0, v5, s[0:1] "
      "offset:16",
      GetParam());
  t.allow(data.data(), 32);
  set_pointer(t, 0, data.data());
  t.set_v(1, [](int) { return 3u; });
  t.set_vf(2, [](int) { return 0.25f; });
  t.set_v(5, [](int lane) { return uint32_t(63 - lane); });
  t.set_v(7, [](int) { return 1u; });
  ASSERT_EQ(t.run(), "");
  EXPECT_EQ(uint32_t(data[0]), 192u);
  EXPECT_EQ(data[0] >> 32, bits_of(16.0f));
  EXPECT_EQ(data[1], uint64_t(64) << 32);
  EXPECT_EQ(uint32_t(data[2]), 63u);
  EXPECT_EQ(t.v(4, 10), 30u);
}

// fp32 adds in memory flush denormals on gfx90a (CDNA2 ISA), keep them later (LLVM selects the instruction
// for IEEE denormals from gfx942 on); fp64 minima and maxima prefer a signalling NaN.
TEST_P(MemoryOps, FloatAtomicsInMemory) {
  for (const char *processor : {"gfx90a", "gfx942"}) {
    alignas(8) uint64_t data[2] = {3, 0x4000000000000000};
    Snippet t(
        "global_atomic_add_f32 v0, v1, s[0:1]\n global_atomic_min_f64 v0, v[2:3], s[0:1] offset:8",
        GetParam(), processor);
    t.set_exec(1);
    t.allow(data, sizeof data);
    set_pointer(t, 0, data);
    t.v(1, 0) = 5, t.v(2, 0) = 1, t.v(3, 0) = 0xfff00000;
    ASSERT_EQ(t.run(), "");
    EXPECT_EQ(uint32_t(data[0]), std::string_view(processor) == "gfx90a" ? 0u : 8u);
    EXPECT_EQ(data[1], 0xfff8000000000001u);
  }
}

// Until a copy lands its destination holds what it held, or a pattern in the strict model.
TEST_P(MemoryOps, CopyToLdsLandsAtTheWaitThatCoversIt) {
  for (const MemoryModel model : {MemoryModel::kNominal, MemoryModel::kStrict}) {
    const uint32_t before = model == MemoryModel::kStrict ? 0xababababu : 0;
    std::vector<uint32_t> data(64 * 8);
    for (size_t i = 0; i < data.size(); ++i) data[i] = uint32_t(i + 1);
    // Two copies; vmcnt(1) lands the first only. LDS address: M0 + instruction offset + lane * 16.
    Snippet t(
        "s_mov_b32 m0, 0x8000\n s_nop 0\n global_load_lds_dwordx4 v0, s[0:1]\n"
        "global_load_lds_dwordx4 v0, s[0:1] offset:1024\n v_lshlrev_b32 v1, 4, v4\n v_add_u32 v1, "
        "0x8000, v1\n"
        "ds_read_b32 v2, v1\n s_waitcnt vmcnt(1)\n ds_read_b32 v3, v1\n ds_read_b32 v5, v1 "
        "offset:1024\n"
        "s_waitcnt vmcnt(0)\n ds_read_b128 v[8:11], v1 offset:1024",
        GetParam());
    t.allow(data.data(), data.size() * 4, false);
    set_pointer(t, 0, data.data());
    t.set_v(0, [](int lane) { return uint32_t(lane) * 16; });
    t.set_v(4, [](int lane) { return uint32_t(lane); });
    t.set_memory_model(model);
    ASSERT_EQ(t.run(), "");
    for (int lane = 0; lane < 64; ++lane) {
      EXPECT_EQ(t.v(2, lane), before);
      EXPECT_EQ(t.v(3, lane), uint32_t(lane * 4 + 1));
      EXPECT_EQ(t.v(5, lane), before);
      for (int k = 0; k < 4; ++k) EXPECT_EQ(t.v(8 + k, lane), uint32_t(256 + lane * 4 + k + 1));
    }
  }
}

// CDNA4 ISA, "Memory Buffer Load to LDS": M0[17:2] * 4, lanes 16 bytes apart, of which the last 4 stay.
TEST_P(MemoryOps, CopyOf3DwordsSkipsTheFourth) {
  std::vector<uint32_t> data(64 * 3);
  for (size_t i = 0; i < data.size(); ++i) data[i] = uint32_t(1000 + i);
  Snippet t(
      "s_mov_b32 m0, 0xfffc0103\n s_nop 0\n global_load_lds_dwordx3 v0, s[0:1]\n"
      "s_waitcnt vmcnt(0)",
      GetParam());
  t.allow(data.data(), data.size() * 4, false);
  set_pointer(t, 0, data.data());
  t.set_v(0, [](int lane) { return uint32_t(lane) * 12; });
  ASSERT_EQ(t.run(), "");
  for (uint32_t lane = 0; lane < 64; ++lane)
    for (uint32_t k = 0; k < 4; ++k)
      EXPECT_EQ(lds_word(t, 0x100 + lane * 16 + k * 4), k < 3 ? 1000 + lane * 3 + k : 0u);
}

TEST_P(MemoryOps, CopyToLdsUsesAllOfM0AndChecksIt) {
  std::vector<uint32_t> data(64, 7);
  Snippet t("s_mov_b32 m0, 0x10000\n global_load_lds_dword v0, s[0:1]\n s_waitcnt vmcnt(0)",
            GetParam());
  t.allow(data.data(), 256, false);
  set_pointer(t, 0, data.data());
  EXPECT_THAT(t.run(),
              HasSubstr("4 bytes of LDS at offset 0x10000; the work-group has 65536 bytes"));
  t.lds().assign(0x10100, 0);
  ASSERT_EQ(t.run(), "");
  EXPECT_EQ(lds_word(t, 0x10000 + 63 * 4), 7u);
  EXPECT_EQ(lds_word(t, 0), 0u);
}

TEST_P(MemoryOps, BufferBoundsComeFromTheDescriptor) {
  std::vector<uint32_t> data(64);
  for (size_t i = 0; i < 64; ++i) data[i] = uint32_t(i + 1);
  Snippet t(
      "buffer_load_dwordx4 v[4:7], v0, s[0:3], 0 offen\n buffer_load_ushort v8, v0, s[0:3], s4 "
      "offen offset:2\n"
      "buffer_store_dword v1, v0, s[0:3], 0 offen offset:4\n s_mov_b32 m0, 256\n s_nop 0\n"
      "buffer_load_dword v0, s[0:3], 0 offen offset:8 lds\n s_waitcnt vmcnt(0)",
      GetParam());
  t.allow(data.data(), 256);
  set_pointer(t, 0, data.data());
  t.s(2) = 200;  // num_records: 50 words
  t.s(3) = 0x00020000;
  t.s(4) = 4;
  t.set_v(0, [](int lane) { return uint32_t(lane) * 4; });
  t.set_v(1, [](int) { return 1000u; });
  const std::vector<uint32_t> before = data;
  ASSERT_EQ(t.run(), "");
  for (int lane = 0; lane < 64; ++lane) {
    for (int k = 0; k < 4; ++k)
      EXPECT_EQ(t.v(4 + k, lane), lane + k < 50 ? before[size_t(lane + k)] : 0u);
    EXPECT_EQ(t.v(8, lane), lane < 49 ? before[size_t(lane + 1)] >> 16 : 0u);
    EXPECT_EQ(data[size_t(lane)], lane >= 1 && lane < 50 ? 1000u : before[size_t(lane)]);
    EXPECT_EQ(lds_word(t, 256 + 8 + size_t(lane) * 4), lane + 2 < 50 ? 1000u : 0u);
  }
}

TEST_P(MemoryOps, Scratch) {
  Snippet t(
      "scratch_store_dwordx2 v0, v[2:3], s0 offset:8\n scratch_load_dword v4, off, s1 offset:4\n"
      "scratch_load_dword v5, off, s2",
      GetParam());
  t.set_scratch(64);
  t.set_v(0, [](int lane) { return uint32_t(lane % 2) * 4; });
  t.set_v(2, [](int lane) { return uint32_t(lane); });
  t.s(0) = 16;
  t.s(1) = 24;
  const std::string ok = t.run();
  ASSERT_EQ(ok, "");
  for (int lane = 0; lane < 64; ++lane) EXPECT_EQ(t.v(4, lane), lane % 2 ? uint32_t(lane) : 0u);
  t.s(2) = 61;
  EXPECT_THAT(t.run(), HasSubstr("scratch beyond the kernel's private segment"));
}

TEST_P(MemoryOps, ScalarLoads) {
  alignas(64) uint32_t data[20];
  for (uint32_t i = 0; i < 20; ++i) data[i] = i + 1;
  Snippet t(
      "s_load_dwordx8 s[8:15], s[0:1], 0x4\n s_mov_b32 s4, 8\n s_load_dword s16, s[0:1], s4 "
      "offset:0x4",
      GetParam());
  t.allow(data, sizeof data, false);
  set_pointer(t, 0, data);
  ASSERT_EQ(t.run(), "");
  for (int i = 0; i < 8; ++i) EXPECT_EQ(t.s(8 + i), uint32_t(i + 2));
  EXPECT_EQ(t.s(16), 4u);
  set_pointer(t, 0, reinterpret_cast<uint8_t *>(data) + 2);
  EXPECT_THAT(t.run(), HasSubstr("not a multiple of 4"));
  set_pointer(t, 0, data + 18);
  EXPECT_THAT(t.run(), HasSubstr("past the end of the"));
}

INSTANTIATE_TEST_SUITE_P(Levels, MemoryOps, testing::ValuesIn(levels()), [](const auto &p) {
  return std::string(p.param == Level::kBase   ? "base"
                     : p.param == Level::kAvx2 ? "avx2"
                                               : "avx512");
});

}  // namespace
}  // namespace flydsl::emu::test
