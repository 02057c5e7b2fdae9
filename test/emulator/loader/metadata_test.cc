#include "emulator/loader/metadata.h"

#include <gtest/gtest.h>

#include <random>

#include "emulator/loader/msgpack_tree.h"

namespace flydsl::emu {
namespace {

// MessagePack by hand: fixstr 0xa0+n, fixmap 0x80+n, fixarray 0x90+n, positive fixint.
std::string text(const std::string &s) {
  return static_cast<char>(0xa0 + s.size()) + s;
}
std::string map(int fields) {
  return std::string(1, static_cast<char>(0x80 + fields));
}
std::string array(int elements) {
  return std::string(1, static_cast<char>(0x90 + elements));
}
std::string number(int n) {
  return std::string(1, static_cast<char>(n));
}

std::string kernel_document(const std::string &argument) {
  return map(1) + text("amdhsa.kernels") + array(1) + map(4) + text(".name") + text("k") +
         text(".symbol") + text("k.kd") + text(".kernarg_segment_size") + std::string("\x10", 1) +
         text(".args") + array(1) + argument;
}

TEST(Metadata, ReadsKernelsAndArguments) {
  const std::string document =
      kernel_document(map(3) + text(".offset") + number(8) + text(".size") + number(4) +
                      text(".value_kind") + text("by_value"));
  CodeObjectMetadata metadata;
  std::string error;
  ASSERT_TRUE(parse_metadata(document.data(), document.size(), &metadata, &error)) << error;
  ASSERT_EQ(metadata.kernels.size(), 1u);
  const KernelMetadata &kernel = metadata.kernels[0];
  EXPECT_EQ(kernel.name, "k");
  EXPECT_EQ(kernel.symbol, "k.kd");
  EXPECT_EQ(kernel.kernarg_bytes, 16u);
  ASSERT_EQ(kernel.arguments.size(), 1u);
  EXPECT_EQ(kernel.arguments[0].offset_bytes, 8u);
  EXPECT_EQ(kernel.arguments[0].size_bytes, 4u);
  EXPECT_FALSE(kernel.arguments[0].hidden());
  for (size_t bytes = 0; bytes < document.size(); ++bytes) {
    CodeObjectMetadata cut;
    EXPECT_FALSE(parse_metadata(document.data(), bytes, &cut, &error)) << "prefix of " << bytes;
  }
}

TEST(Metadata, RefusesArgumentsOutsideOfTheSegment) {
  const std::string document =
      kernel_document(map(3) + text(".offset") + number(12) + text(".size") + number(8) +
                      text(".value_kind") + text("by_value"));
  CodeObjectMetadata metadata;
  std::string error;
  EXPECT_FALSE(parse_metadata(document.data(), document.size(), &metadata, &error));
  EXPECT_NE(error.find("16 bytes"), std::string::npos) << error;
}

TEST(Metadata, RefusesMissingFieldsAndOtherTypes) {
  CodeObjectMetadata metadata;
  std::string error;
  for (const std::string &document :
       {kernel_document(map(0)), kernel_document(map(1) + text(".value_kind") + number(1)),
        kernel_document(map(2) + text(".value_kind") + text("by_value") + text(".size") +
                        number(4)),
        array(0), number(1), std::string()}) {
    EXPECT_FALSE(parse_metadata(document.data(), document.size(), &metadata, &error));
    EXPECT_NE(error, "");
  }
}

TEST(Metadata, MapsAsKeysAreSkipped) {
  std::string error;
  const std::string document =
      map(3) + map(0) + number(1) + map(0) + number(2) + text("a") + number(3);
  const auto root = parse_msgpack(document.data(), document.size(), &error);
  ASSERT_TRUE(root) << error;
  ASSERT_NE(root->field("a"), nullptr);
  EXPECT_EQ(root->field("a")->number, 3u);
  EXPECT_EQ(root->elements.size(), 1u);
}

TEST(Metadata, DepthIsBounded) {
  const std::string document(100000,
                             static_cast<char>(0x91));  // arrays of one array of one array ...
  std::string error;
  EXPECT_FALSE(parse_msgpack(document.data(), document.size(), &error));
  EXPECT_NE(error.find("deep"), std::string::npos) << error;
}

TEST(Metadata, RandomBytesAreNeverFatal) {
  constexpr uint64_t kSeed = 7;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937_64 random(kSeed);
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string document(random() % 64, 0);
    for (char &c : document) c = static_cast<char>(random());
    std::string error;
    const bool ok = parse_msgpack(document.data(), document.size(), &error).has_value();
    EXPECT_TRUE(ok || !error.empty());
    accepted += ok;
  }
  EXPECT_GT(accepted, 0) << "single numbers are documents";
}

}  // namespace
}  // namespace flydsl::emu
