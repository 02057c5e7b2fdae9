#include "emulator/timing/constants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <set>

namespace flydsl::emu::timing {
namespace {

using testing::HasSubstr;

class ConstantsFile : public testing::Test {
 protected:
  std::string path_ = testing::TempDir() + "timing_constants_" +
                      testing::UnitTest::GetInstance()->current_test_info()->name();
  std::string error_;

  void TearDown() override { std::remove(path_.c_str()); }
  Constants read(const std::string &text) {
    std::ofstream(path_) << text;
    error_.clear();
    return constants_with_changes(path_.c_str(), &error_);
  }
};

TEST(Constants, EachHasAValueAUnitAndASource) {
  std::set<std::string> names;
  for (size_t n = 0; n < kConstantRowCount; ++n) {
    const ConstantRow &row = kConstantRows[n];
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_STRNE(row.unit, "") << row.name;
    EXPECT_STRNE(row.source, "") << row.name;
    EXPECT_EQ(Constants().*row.member, row.value) << row.name;
  }
}

TEST(Constants, TheHashFollowsEachValue) {
  const std::string original = constants_hash(Constants());
  EXPECT_EQ(original.size(), 16u);
  std::set<std::string> hashes = {original};
  for (size_t n = 0; n < kConstantRowCount; ++n) {
    Constants changed;
    changed.*kConstantRows[n].member += 0.5;
    EXPECT_TRUE(hashes.insert(constants_hash(changed)).second) << kConstantRows[n].name;
  }
  EXPECT_EQ(constants_hash(Constants()), original);
}

TEST_F(ConstantsFile, ChangesTheNamedOnes) {
  const Constants c = read("# a comment\n\nlds_latency 77 # and why\n  lds_bytes_per_clock\t256\n");
  EXPECT_EQ(error_, "");
  EXPECT_EQ(c.lds_latency, 77);
  EXPECT_EQ(c.lds_bytes_per_clock, 256);
  EXPECT_EQ(c.valu_clocks, Constants().valu_clocks);
}

TEST_F(ConstantsFile, TimesMayBeZero) {
  const Constants c = read("hbm_latency 0\nlaunch_overhead_seconds 0\natomic_factor 0\n");
  EXPECT_EQ(error_, "");
  EXPECT_EQ(c.hbm_latency + c.launch_overhead_seconds + c.atomic_factor, 0);
}

TEST_F(ConstantsFile, RefusesWhatItDoesNotUnderstand) {
  const struct {
    const char *text, *says;
  } kBad[] = {{"lds_latency 10\nno_such_thing 1\n", ":2: 'no_such_thing' is no constant"},
              {"lds_latency\n", "'lds_latency' is not a name and a value"},
              {"lds_latency 1 2\n", "is not a name and a value"},
              {"lds_latency 1x\n", "'1x' is no value for lds_latency"},
              {"lds_latency nan\n", "'nan' is no value"},
              {"lds_latency -1\n", "'-1' is no value"},
              {"vm_limit 0\n", "'0' is no value for vm_limit: 1.26 to 3150 is"},
              {"hbm_bytes_per_second 1e-300\n", "'1e-300' is no value"},
              {"icache_bytes 1e300\n", "'1e300' is no value"},
              {"hbm_latency 1e9\n", "'1e9' is no value for hbm_latency: 0 or 18 to 45000 is"}};
  for (const auto &bad : kBad) {
    const Constants c = read(bad.text);
    EXPECT_THAT(error_, HasSubstr(bad.says));
    EXPECT_THAT(error_, HasSubstr(path_));
    EXPECT_EQ(constants_hash(c), constants_hash(Constants())) << bad.text;
  }
  constants_with_changes("/no/such/file", &error_);
  EXPECT_THAT(error_, HasSubstr("/no/such/file: No such file"));
  error_.clear();
  constants_with_changes(testing::TempDir().c_str(), &error_);
  EXPECT_THAT(error_, HasSubstr("Is a directory"));
  error_.clear();
  constants_with_changes(nullptr, &error_);
  constants_with_changes("", &error_);
  EXPECT_EQ(error_, "");
}

}  // namespace
}  // namespace flydsl::emu::timing
