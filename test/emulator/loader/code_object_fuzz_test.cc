// Property: whatever happens to the bytes of a code object, loading ends with an object or a
// reason, and afterwards no region is left behind. Run under the sanitize preset this also shows
// that nothing outside of the bytes is read.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>

#include "emulator/loader/code_object.h"
#include "emulator/memory/address_space.h"
#include "llvm/BinaryFormat/ELF.h"
#include "test/emulator/loader/test_objects.h"

namespace flydsl::emu {
namespace {

using test::read_image;

class Loader {
 public:
  Loader() {
    std::string error;
    EXPECT_TRUE(parse_target_id("gfx950:sramecc+:xnack-", &device_, &error)) << error;
  }
  // Loads from a heap copy of exactly that size, so that a sanitizer sees reads past its end.
  bool load(const char *data, size_t bytes) {
    const std::unique_ptr<char[]> copy(new char[bytes]);
    std::memcpy(copy.get(), data, bytes);
    const LoadResult result = load_code_object(copy.get(), bytes, device_);
    const bool ok = result.status == LoadStatus::kOk;
    EXPECT_EQ(ok, result.object != nullptr);
    EXPECT_EQ(ok, result.error.empty()) << result.error;
    return ok;
  }

 private:
  TargetId device_;
};

// The first byte after everything that the program headers name.
size_t loaded_end(const std::vector<char> &object) {
  using namespace llvm::ELF;
  Elf64_Ehdr header;
  std::memcpy(&header, object.data(), sizeof header);
  uint64_t end = 0;
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, object.data() + header.e_phoff + i * sizeof segment, sizeof segment);
    if (segment.p_type == PT_LOAD) end = std::max(end, segment.p_offset + segment.p_filesz);
  }
  return end;
}

TEST(CodeObjectFuzz, EveryPrefix) {
  const std::vector<char> good = read_image("gfx950_v5.co");
  const size_t needed = loaded_end(good);
  ASSERT_GT(needed, 1000u);
  ASSERT_LT(needed, good.size());
  Loader loader;
  for (size_t bytes = 0; bytes < needed; ++bytes)
    ASSERT_FALSE(loader.load(good.data(), bytes))
        << "a prefix of " << bytes << " bytes lacks part of a segment";
  // Section headers and the static symbol table follow, which loading does not need.
  for (size_t bytes = needed; bytes <= good.size(); bytes += 1 + (good.size() - needed) / 16)
    EXPECT_TRUE(loader.load(good.data(), bytes)) << bytes;
}

TEST(CodeObjectFuzz, EveryPrefixOfABundle) {
  const std::vector<char> good = read_image("bundle.hipfb");
  Loader loader;
  size_t accepted = 0;
  for (size_t bytes = 0; bytes < good.size(); bytes += bytes < 512 ? 1 : 61)
    accepted += loader.load(good.data(), bytes);
  EXPECT_EQ(accepted, 0u) << "an entry that passes the end makes the bundle damaged";
  EXPECT_TRUE(loader.load(good.data(), good.size()));
}

struct FlipRange {
  const char *name;
  const char *object;
  double begin, end;  // of the file, as a share
  int rounds;
};

class CodeObjectFlips : public testing::TestWithParam<FlipRange> {};

TEST_P(CodeObjectFlips, NeverFatal) {
  constexpr uint64_t kSeed = 20250707;
  const FlipRange &range = GetParam();
  RecordProperty("seed", std::to_string(kSeed));
  std::printf("seed %llu\n", static_cast<unsigned long long>(kSeed));
  std::mt19937_64 random(kSeed);
  const std::vector<char> good = read_image(range.object);
  const auto first = static_cast<size_t>(range.begin * static_cast<double>(good.size()));
  const auto last = static_cast<size_t>(range.end * static_cast<double>(good.size()));
  const size_t live_before = AddressSpace::instance().live_bytes();
  Loader loader;
  int accepted = 0;
  for (int round = 0; round < range.rounds; ++round) {
    std::vector<char> bad = good;
    const int flips = 1 + static_cast<int>(random() % 4);
    for (int i = 0; i < flips; ++i) {
      char &byte = bad[first + random() % (last - first)];
      // A flipped bit, or one of the values that sizes and offsets break at.
      constexpr char kValues[] = {0, 1, 0x7f, static_cast<char>(0x80), static_cast<char>(0xff)};
      byte = random() % 2 == 0 ? static_cast<char>(byte ^ (1 << random() % 8))
                               : kValues[random() % sizeof kValues];
    }
    accepted += loader.load(bad.data(), bad.size());
  }
  std::printf("%d of %d accepted\n", accepted, range.rounds);
  EXPECT_LT(accepted, range.rounds) << "some damage must be noticed";
  EXPECT_EQ(AddressSpace::instance().live_bytes(), live_before);
}

// Headers and tables at the front of the file decide most, so they get most of the rounds.
INSTANTIATE_TEST_SUITE_P(, CodeObjectFlips,
                         testing::Values(FlipRange{"headers", "gfx950_v5.co", 0, 0.04, 3000},
                                         FlipRange{"notes_and_tables", "gfx950_v5.co", 0.03, 0.45,
                                                   4000},
                                         FlipRange{"dynamic", "gfx950_v5.co", 0.62, 0.64, 3000},
                                         FlipRange{"anywhere", "gfx950_v5.co", 0, 1, 1000},
                                         FlipRange{"bundle", "bundle.hipfb", 0, 0.02, 3000}),
                         [](const auto &info) { return std::string(info.param.name); });

TEST(CodeObjectFuzz, GarbageBehindEachMagic) {
  constexpr uint64_t kSeed = 99;
  std::printf("seed %llu\n", static_cast<unsigned long long>(kSeed));
  std::mt19937_64 random(kSeed);
  Loader loader;
  for (int round = 0; round < 4000; ++round) {
    std::string bytes = round % 2 == 0
                            ? std::string(
                                  "\x7f"
                                  "ELF\2\1\1\x40\3",
                                  9)
                            : std::string("__CLANG_OFFLOAD_BUNDLE__\1\0\0\0\0\0\0\0", 32);
    const size_t garbage = random() % 300;
    for (size_t i = 0; i < garbage; ++i)
      bytes.push_back(static_cast<char>(random() % 3 == 0 ? random() : 0));
    EXPECT_FALSE(loader.load(bytes.data(), bytes.size()));
  }
}

}  // namespace
}  // namespace flydsl::emu
