#include "src/select/select.h"

#include "test/src/archive/archive_fixture.h"

namespace flydsl::test {
namespace {

using select::Problem;
using select::Refusal;

class Select : public ::testing::Test {
 protected:
  void SetUp() override {
    archive::ArchiveSpec spec = small_spec();
    spec.kernels.push_back(fake_kernel("x", 12, 4));
    spec.kernels.back().target_id = "gfx950:xnack+";
    spec.selection.push_back({"op", 12, {{"x", 2, 5, 10, 7, 9}}});
    write_bytes(folder_.file("a.fda"), build_or_die(spec));
    ASSERT_TRUE(archive::Archive::open(folder_.file("a.fda"), kAbiId, &archive_).ok());
  }
  std::string taken(const Problem &problem, const char *device = "gfx950:sramecc+:xnack-") {
    const auto entry = select::select(*archive_, problem, *archive::parse_target_id(device));
    return entry ? archive_->string(archive_->entries()[*entry].name) : "none";
  }
  std::string reason(const Problem &problem, const char *device = "gfx950:sramecc+:xnack-") {
    return select::why_none(*archive_, problem, *archive::parse_target_id(device));
  }
  TempFolder folder_;
  std::unique_ptr<archive::Archive> archive_;
};

TEST_F(Select, FirstThatFits) {
  EXPECT_EQ(taken({"op", 5, 16, 10, 10}), "b");
  EXPECT_EQ(taken({"op", 5, 4096, 10, 10}), "b");
  EXPECT_EQ(taken({"op", 5, 8, 10, 10}), "a");
  EXPECT_EQ(taken({"op", 5, 2, 1000, 1000}), "a");  // ranges are inclusive
  EXPECT_EQ(taken({"op", 5, 1, 10, 10}), "none");
  EXPECT_EQ(taken({"op", 5, 16, 1001, 10}), "none");
  EXPECT_EQ(taken({"op", 9, 2, 100, 0}), "c");
  EXPECT_EQ(taken({"op", 9, 2, 101, 0}), "none");
  EXPECT_EQ(taken({"op", 6, 16, 10, 10}), "none");
  EXPECT_EQ(taken({"po", 5, 16, 10, 10}), "none");
}

TEST_F(Select, KeysInTurn) {
  EXPECT_EQ(taken({"op", 9, 2, 100, 0, {5}, 1}),
            "c");  // the first key's come first, whatever else fits
  EXPECT_EQ(taken({"op", 9, 2, 101, 0, {5}, 1}), "a");   // too many rows for c
  EXPECT_EQ(taken({"op", 9, 16, 101, 0, {5}, 1}), "b");  // best of the second key
  EXPECT_EQ(taken({"op", 6, 16, 10, 10, {5}, 1}), "b");  // no kernel has the first
  EXPECT_EQ(taken({"op", 6, 16, 10, 10, {5}, 0}), "none");
  EXPECT_EQ(taken({"op", 9, 2, 1001, 0, {5}, 1}), "none");
  EXPECT_EQ(taken({"op", 9, 2, 101, 0, {6}, 1}), "none");
  EXPECT_EQ(taken({"op", 98, 16, 101, 0, {9, 5}, 2}), "b");
  EXPECT_EQ(taken({"op", 98, 16, 100, 0, {9, 5}, 2}), "c");
  const std::string none = reason({"op", 9, 2, 1001, 0, {5}, 1});
  EXPECT_NE(none.find("none of 3 candidates fits; c: takes Sq from 0 to 100"), std::string::npos)
      << none;
  EXPECT_NE(none.find("; a: takes Sq from 0 to 1000"), std::string::npos) << none;
  EXPECT_NE(reason({"op", 98, 2, 1, 1, {99}, 1}).find("0x0000000000000062 or 0x0000000000000063"),
            std::string::npos);
}

TEST_F(Select, TargetFeatures) {
  const Problem problem = {"op", 12, 2, 7, 8};
  EXPECT_EQ(taken(problem), "none");
  EXPECT_EQ(taken(problem, "gfx950:sramecc+:xnack+"), "x");
  EXPECT_EQ(taken(problem, "gfx942:xnack+"), "none");
}

TEST_F(Select, ReasonsNameLimitAndValue) {
  EXPECT_NE(reason({"op", 5, 1, 10, 10}).find("multiples of 16 bytes; these are multiples of 1"),
            std::string::npos);
  EXPECT_NE(reason({"op", 12, 2, 4, 8}).find("Sq from 5 to 10; it is 4"), std::string::npos);
  EXPECT_NE(reason({"op", 12, 2, 5, 10}).find("Sk from 7 to 9; it is 10"), std::string::npos);
  EXPECT_NE(reason({"op", 12, 2, 5, 8}).find("needs xnack on"), std::string::npos);
  EXPECT_NE(reason({"op", 99, 2, 5, 8}).find("0x0000000000000063"), std::string::npos);
}

}  // namespace
}  // namespace flydsl::test
