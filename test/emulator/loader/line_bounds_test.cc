// A line table whose header promises entries without bytes is refused before LLVM would make them.
#include "emulator/loader/line_bounds.h"

#include <gtest/gtest.h>

namespace flydsl::emu {
namespace {

using Bytes = std::vector<uint8_t>;

void append(Bytes &to, const Bytes &from) {
  for (const uint8_t byte : from) to.push_back(byte);
}

// A DWARF 5 line table header; `directories` and `files` are format and entries of the two lists.
Bytes unit(const Bytes &directories, const Bytes &files, const Bytes &program = {}) {
  Bytes header = {4, 1, 1, 0xfb, 14, 1};  // opcode_base 1
  append(header, directories);
  append(header, files);
  Bytes body = {5, 0, 8, 0, uint8_t(header.size()), 0, 0, 0};
  append(body, header);
  append(body, program);
  Bytes whole = {uint8_t(body.size()), 0, 0, 0};
  append(whole, body);
  return whole;
}

const Bytes kOneName = {1, 1, 0x08, 1, 'a', 0};  // DW_LNCT_path, DW_FORM_string
const Bytes kNone = {0, 0};

TEST(LineBounds, EntriesWithBytes) {
  EXPECT_TRUE(line_tables_are_bounded({}));
  EXPECT_TRUE(line_tables_are_bounded(unit(kOneName, kOneName)));
  EXPECT_TRUE(line_tables_are_bounded(unit(kNone, kNone)));
  Bytes two = unit(kOneName, kOneName);
  append(two, unit(kNone, kOneName));
  EXPECT_TRUE(line_tables_are_bounded(two));
  const Bytes md5 = {2, 1, 0x1f, 5, 0x1e, 1, 0, 0, 0, 0, 0, 0, 0,
                     0, 0, 0,    0, 0,    0, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_TRUE(line_tables_are_bounded(unit(kNone, md5)));
}

TEST(LineBounds, EntriesWithoutBytes) {
  const Bytes no_fields = {0, 0xff, 0xff, 0xff, 0xff, 0x0f};
  const Bytes flags = {1, 1, 0x19, 0xff, 0xff, 0xff, 0xff, 0x0f};  // DW_FORM_flag_present
  const Bytes constants = {1, 1, 0x21, 9};                         // implicit_const
  for (const auto &list : {no_fields, flags, constants}) {
    EXPECT_FALSE(line_tables_are_bounded(unit(list, kNone)));
    EXPECT_FALSE(line_tables_are_bounded(unit(kNone, list)));
  }
}

TEST(LineBounds, EveryPrefixEndsEarly) {
  const Bytes good = unit(kOneName, kOneName);
  for (size_t bytes = 1; bytes < good.size(); ++bytes)
    EXPECT_FALSE(line_tables_are_bounded({good.begin(), good.begin() + long(bytes)})) << bytes;
}

TEST(LineBounds, OpcodesPastTheUnit) {
  EXPECT_TRUE(line_tables_are_bounded(unit(kOneName, kOneName, {0, 1, 1, 20})));  // end_sequence
  EXPECT_FALSE(line_tables_are_bounded(unit(kOneName, kOneName, {0, 3, 1, 20})));
  // A length that would lead backwards.
  EXPECT_FALSE(line_tables_are_bounded(
      unit(kOneName, kOneName, {0, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})));
}

TEST(LineBounds, CountsPastTheUnit) {
  Bytes many = kOneName;
  many[3] = 100;
  EXPECT_FALSE(line_tables_are_bounded(unit(many, kNone)));
  // An endless number.
  EXPECT_FALSE(line_tables_are_bounded(unit({0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80}, {})));
}

}  // namespace
}  // namespace flydsl::emu
