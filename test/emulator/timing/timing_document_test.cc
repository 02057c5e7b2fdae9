// docs/timing-model.md, and whatever other document quotes the constants' hash, speaks of the constants that are built.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "emulator/timing/constants.h"

namespace flydsl::emu::test {
namespace {

// "constants `0123456789abcdef`" in a document's text.
std::vector<std::string> quoted_hashes(const std::filesystem::path &path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  const std::string content = text.str();
  const std::regex pattern("constants `([0-9a-f]{16})`");
  std::vector<std::string> hashes;
  for (std::sregex_iterator match(content.begin(), content.end(), pattern), end; match != end;
       ++match)
    hashes.push_back((*match)[1]);
  return hashes;
}

TEST(TimingDocument, QuotesTheHashOfTheConstants) {
  const std::string hash = timing::constants_hash(timing::Constants());
  const std::filesystem::path root = FLYDSL_AOT_SOURCE_DIR;
  EXPECT_THAT(quoted_hashes(root / "docs/timing-model.md"), testing::Contains(hash))
      << "run the calibration again, see the document";
  for (const auto &entry : std::filesystem::recursive_directory_iterator(root / "docs")) {
    if (!entry.is_regular_file()) continue;
    EXPECT_THAT(quoted_hashes(entry.path()), testing::Each(hash)) << entry.path();
  }
  for (const char *table : {"attention_forward.md", "attention_decode.md"}) {
    EXPECT_THAT(quoted_hashes(root / "docs/benchmarks" / table), testing::Contains(hash))
        << "run test/emulator/peers/benchmark_table.py, see the document";
  }
}

}  // namespace
}  // namespace flydsl::emu::test
