// Units of .debug_info that LLVM's reader must not see.
#include "emulator/loader/entry_bounds.h"

#include <gtest/gtest.h>

namespace flydsl::emu {
namespace {

using Bytes = std::vector<uint8_t>;

// 1: a root of one attribute of `form`; 2: a block with children; 3: one without.
Bytes abbreviations(uint8_t form, uint8_t attribute = 0x03) {
  return {1, 0x11, 1, attribute, form, 0, 0, 2, 0x0b, 1, 0, 0, 3, 0x0b, 0, 0, 0, 0};
}

// A DWARF 4 unit with these entries; its length may be made wrong.
Bytes unit(const Bytes &entries, int more_bytes = 0) {
  const auto length = uint32_t(7 + int(entries.size()) + more_bytes);
  Bytes whole = {
      uint8_t(length), uint8_t(length >> 8), uint8_t(length >> 16), 0, 4, 0, 0, 0, 0, 0, 8};
  for (const uint8_t byte : entries) whole.push_back(byte);
  return whole;
}

constexpr uint8_t kString = 0x08, kBlock = 0x09, kBlock4 = 0x04, kExpression = 0x18;

TEST(EntryBounds, TreesInTheirUnits) {
  EXPECT_TRUE(entries_are_bounded({}, {}));
  EXPECT_TRUE(entries_are_bounded(unit({1, 'a', 0, 2, 3, 0, 3, 0}), abbreviations(kString)));
  EXPECT_TRUE(entries_are_bounded(unit({1, 2, 7, 7, 3, 0}), abbreviations(kBlock)));
  EXPECT_TRUE(entries_are_bounded(unit({1, 'a', 0, 0, 0xff, 0xff}), abbreviations(kString)))
      << "padding behind the tree";
}

// Added to an offset it would lead to before the section.
TEST(EntryBounds, LengthsThatPassTheUnit) {
  EXPECT_FALSE(
      entries_are_bounded(unit({1, 0xf0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0}),
                          abbreviations(kBlock)));
  EXPECT_FALSE(
      entries_are_bounded(unit({1, 0xf0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0}),
                          abbreviations(kExpression)));
  EXPECT_FALSE(entries_are_bounded(unit({1, 0xff, 0xff, 0xff, 0xff, 0}), abbreviations(kBlock4)));
  EXPECT_FALSE(entries_are_bounded(unit({1, 'a'}), abbreviations(kString))) << "no zero";
  EXPECT_FALSE(entries_are_bounded(unit({1, 'a', 0, 0}, 1), abbreviations(kString)));
}

TEST(EntryBounds, WhatIsNotKnown) {
  EXPECT_FALSE(entries_are_bounded(unit({9, 0}), abbreviations(kString))) << "code";
  EXPECT_FALSE(entries_are_bounded(unit({1, 0, 0}), abbreviations(0x16))) << "DW_FORM_indirect";
  EXPECT_FALSE(entries_are_bounded(unit({1, 0, 0}), abbreviations(0x7e))) << "form";
  EXPECT_FALSE(entries_are_bounded(unit({1, 'a', 0, 0}), abbreviations(kString, 0x76)))
      << "DW_AT_dwo_name: a file to open";
  Bytes twice = abbreviations(kString);
  twice[7] = 1;
  EXPECT_FALSE(entries_are_bounded(unit({1, 'a', 0, 0}), twice)) << "a code of two meanings";
  Bytes other = unit({1, 'a', 0, 0});
  other[6] = 0x40;
  EXPECT_FALSE(entries_are_bounded(other, abbreviations(kString))) << "no such table";
  other = unit({1, 'a', 0, 0});
  other[4] = 6;
  EXPECT_FALSE(entries_are_bounded(other, abbreviations(kString))) << "version";
  const Bytes cut = abbreviations(kString);
  for (size_t bytes = 0; bytes < cut.size(); ++bytes)
    EXPECT_FALSE(
        entries_are_bounded(unit({1, 'a', 0, 0}), {cut.begin(), cut.begin() + long(bytes)}))
        << bytes;
}

TEST(EntryBounds, DeepTrees) {
  const auto nested = [](size_t depth) {
    Bytes entries = {1, 'a', 0};
    for (size_t i = 0; i < depth; ++i) entries.push_back(2);
    for (size_t i = 0; i <= depth; ++i) entries.push_back(0);
    return entries_are_bounded(unit(entries), abbreviations(kString));
  };
  EXPECT_TRUE(nested(100));
  EXPECT_FALSE(nested(2000));
}

}  // namespace
}  // namespace flydsl::emu
