// Bank-conflict ladders against counts by hand, and the lane groups that were measured.
#include "emulator/timing/lds_conflicts.h"

#include <gtest/gtest.h>

#include <functional>

namespace flydsl::emu::timing {
namespace {

LdsPasses passes(bool read, uint32_t bytes, const std::function<uint64_t(int)> &at,
                 uint64_t mask = ~uint64_t(0)) {
  uint64_t address[64];
  for (int lane = 0; lane < 64; ++lane) address[lane] = at(lane);
  return lds_passes(read, bytes, mask, address);
}

TEST(LdsConflicts, LaddersOfStrides) {
  // Words apart -> passes of a read of 4 bytes: 64 lanes over 64 banks.
  const int kRead4[][2] = {{0, 1},   {1, 1},   {2, 2},  {3, 1},   {4, 4},  {8, 8},
                           {16, 16}, {32, 32}, {33, 1}, {64, 64}, {65, 1}, {96, 32}};
  for (const auto &[stride, wanted] : kRead4)
    EXPECT_EQ(passes(true, 4, [&](int l) { return uint64_t(l * stride * 4); }).passes, wanted)
        << stride;
  // Of a write: two groups of 32 lanes over 32 banks.
  const int kWrite4[][2] = {{0, 2}, {1, 2}, {2, 4}, {4, 8}, {32, 64}, {33, 2}, {64, 64}};
  for (const auto &[stride, wanted] : kWrite4)
    EXPECT_EQ(passes(false, 4, [&](int l) { return uint64_t(l * stride * 4); }).passes, wanted)
        << stride;
}

// (Reads of 12 bytes side by side do collide: their lane groups are made for a pitch of 16.)
TEST(LdsConflicts, WithoutConflictsEachWidthMovesAtItsRate) {
  const struct {
    bool read;
    uint32_t bytes;
    int passes, pass_bytes;
  } kCases[] = {{true, 1, 1, 256},   {true, 2, 1, 256},  {true, 4, 1, 256},  {true, 8, 2, 256},
                {true, 12, 8, 128},  {true, 16, 4, 256}, {false, 4, 2, 128}, {false, 8, 4, 128},
                {false, 12, 8, 128}, {false, 16, 8, 128}};
  for (const auto &c : kCases) {
    const LdsPasses p = passes(c.read, c.bytes,
                               [&](int l) { return uint64_t(l) * (c.bytes == 12 ? 16 : c.bytes); });
    EXPECT_EQ(p.passes, c.passes) << c.read << c.bytes;
    EXPECT_EQ(p.ideal, c.passes) << c.read << c.bytes;
    EXPECT_EQ(p.pass_bytes, c.pass_bytes) << c.read << c.bytes;
  }
}

TEST(LdsConflicts, EqualWordsAreReadOnce) {
  for (const uint32_t bytes : {4u, 8u, 16u}) {
    const LdsPasses p = passes(true, bytes, [](int) { return uint64_t(1024); });
    EXPECT_EQ(p.passes, p.ideal) << bytes;
  }
}

// Two lanes conflict when they go together: the pairs that were measured.
TEST(LdsConflicts, LaneGroups) {
  const auto together = [](bool read, uint32_t bytes, int x, int y) {
    const uint64_t mask = uint64_t(1) << x | uint64_t(1) << y;
    return passes(
               read, bytes, [&](int l) { return l == x ? 0u : 1024u; }, mask)
               .ideal == 1;
  };
  EXPECT_TRUE(together(true, 16, 0, 12));
  EXPECT_TRUE(together(true, 16, 3, 27));
  EXPECT_TRUE(together(true, 16, 4, 31));
  EXPECT_TRUE(together(true, 16, 44, 56));
  EXPECT_FALSE(together(true, 16, 0, 4));
  EXPECT_FALSE(together(true, 16, 0, 32));
  EXPECT_TRUE(together(true, 12, 1, 20));
  EXPECT_TRUE(together(true, 12, 40, 63));
  EXPECT_FALSE(together(true, 12, 0, 12));
  EXPECT_TRUE(together(true, 8, 0, 31));
  EXPECT_FALSE(together(true, 8, 0, 32));
  EXPECT_TRUE(together(false, 8, 16, 31));
  EXPECT_FALSE(together(false, 8, 15, 16));
  // Every lane belongs to one group of each width.
  for (const bool read : {true, false})
    for (const uint32_t bytes : {4u, 8u, 12u, 16u})
      for (int lane = 0; lane < 64; ++lane)
        EXPECT_EQ(passes(
                      read, bytes, [](int) { return 0u; }, uint64_t(1) << lane)
                      .passes,
                  1)
            << read << bytes << lane;
}

// A row pitch that is a multiple of the banks makes lanes of a column collide; 16 bytes of padding
// part them.
TEST(LdsConflicts, RowPitch) {
  const auto rows = [](uint32_t pitch) {
    return passes(true, 16, [=](int l) { return uint64_t(l % 32 * pitch + l / 32 * 16); });
  };
  EXPECT_EQ(rows(256).passes, 64);
  EXPECT_EQ(rows(256 + 16).passes, 4);
  EXPECT_EQ(rows(256).ideal, 4);
}

TEST(LdsConflicts, PartOfTheLanes) {
  const auto linear = [](int l) { return uint64_t(l) * 16; };
  EXPECT_EQ(passes(true, 16, linear, 0).passes, 0);
  EXPECT_EQ(passes(true, 16, linear, 0xf).passes, 1);
  EXPECT_EQ(lds_copy_passes(16, ~uint64_t(0)).passes, 8);
  EXPECT_EQ(lds_copy_passes(4, ~uint64_t(0)).passes, 2);
  EXPECT_EQ(lds_copy_passes(16, 0xff).passes, 1);
}

}  // namespace
}  // namespace flydsl::emu::timing
