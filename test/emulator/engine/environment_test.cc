// Misspelt values and names of environment variables: one line each on stderr, or an error of the
// launch.
#include "emulator/engine/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <regex>
#include <set>

#include "emulator/engine/options.h"
#include "emulator/engine/pool.h"
#include "emulator/isa/table.h"

namespace flydsl::emu {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string stderr_of(const std::function<void()> &call) {
  testing::internal::CaptureStderr();
  call();
  return testing::internal::GetCapturedStderr();
}

TEST(Environment, Threads) {
  setenv("FLYDSL_EMU_THREADS", "two", 1);
  EXPECT_EQ(stderr_of([] { EXPECT_EQ(thread_count(3), 3u); }),
            "flydsl_emu: FLYDSL_EMU_THREADS is \"two\", allowed are 1 to 1024; it is ignored\n");
  EXPECT_EQ(stderr_of([] { EXPECT_EQ(thread_count(3), 3u); }), "") << "once";
  setenv("FLYDSL_EMU_THREADS", "7", 1);
  EXPECT_EQ(thread_count(3), 7u);
  unsetenv("FLYDSL_EMU_THREADS");
}

TEST(Environment, VectorInstructions) {
  setenv("FLYDSL_EMU_ISA", "avx-512", 1);
  EXPECT_THAT(stderr_of([] { EXPECT_TRUE(level_supported(host_level())); }),
              AllOf(HasSubstr("FLYDSL_EMU_ISA is \"avx-512\", allowed are "),
                    HasSubstr("on this processor; it is ignored\n")));
  unsetenv("FLYDSL_EMU_ISA");
}

TEST(Environment, Flags) {
  constexpr char kName[] = "FLYDSL_EMU_CHECKS_WARN";
  for (const bool otherwise : {false, true}) {
    unsetenv(kName);
    EXPECT_EQ(flag_variable(kName, otherwise), otherwise);
    setenv(kName, "", 1);
    EXPECT_EQ(flag_variable(kName, otherwise), otherwise);
    setenv(kName, "1", 1);
    EXPECT_TRUE(flag_variable(kName, otherwise));
    setenv(kName, "0", 1);
    EXPECT_FALSE(flag_variable(kName, otherwise));
  }
  setenv(kName, "yes", 1);
  EXPECT_EQ(stderr_of([] { EXPECT_FALSE(run_options({}).warn); }),
            "flydsl_emu: FLYDSL_EMU_CHECKS_WARN is \"yes\", allowed are 0 and 1; it is ignored\n");
  unsetenv(kName);
}

TEST(Environment, WhatDecidesALaunchFailsIt) {
  for (const char *name : {"FLYDSL_EMU_INSTRUCTION_LIMIT", "FLYDSL_EMU_TIMEOUT_S",
                           "FLYDSL_EMU_MEMORY", "FLYDSL_EMU_CHECKS"}) {
    setenv(name, "1e", 1);
    EXPECT_THAT(run_options({}).error, AllOf(HasSubstr(name), HasSubstr("\"1e\""))) << name;
    unsetenv(name);
  }
  EXPECT_EQ(run_options({}).error, "");
}

TEST(Environment, NamesThatDoNotExist) {
  setenv("FLYDSL_EMU_CHECK", "all", 1);
  setenv("FLYDSL_EMU_DEVICES", "1", 1);
  EXPECT_EQ(stderr_of(complain_of_unknown_variables),
            "flydsl_emu: FLYDSL_EMU_CHECK is no variable of the emulator; it is ignored\n");
  EXPECT_EQ(stderr_of(complain_of_unknown_variables), "") << "once";
  unsetenv("FLYDSL_EMU_CHECK");
  unsetenv("FLYDSL_EMU_DEVICES");
}

// A row of the README's table is a variable that is known.
TEST(Environment, DocumentedVariablesAreKnown) {
  std::ifstream file(FLYDSL_AOT_TEST_README);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::set<std::string> known;
  for (const char *const *name = kVariables; *name; ++name) known.insert(*name);
  const std::regex row("\n\\| `(FLYDSL_EMU_[A-Z_]+)");
  size_t rows = 0;
  for (std::sregex_iterator match(text.begin(), text.end(), row), end; match != end;
       ++match, ++rows)
    EXPECT_EQ(known.count((*match)[1]), 1u) << (*match)[1];
  EXPECT_GT(rows, 15u);
}

}  // namespace
}  // namespace flydsl::emu
