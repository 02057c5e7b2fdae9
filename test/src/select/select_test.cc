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
  Status make_policy(const select::NameList &force, const select::NameList &backends) {
    policy_ = {};
    return select::make_policy(*archive_, force, backends, &policy_);
  }
  std::string taken(const Problem &problem, const char *device = "gfx950:sramecc+:xnack-") {
    const auto target = archive::parse_target_id(device);
    const auto choice = select::select({*archive_, *target, policy_}, problem);
    return choice ? archive_->string(archive_->entries()[choice->entry].name) : "none";
  }
  std::string reason(const Problem &problem, const char *device = "gfx950:sramecc+:xnack-") {
    const auto target = archive::parse_target_id(device);
    return select::why_none({*archive_, *target, policy_}, problem);
  }
  TempFolder folder_;
  std::unique_ptr<archive::Archive> archive_;
  select::Policy policy_;
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
  EXPECT_NE(none.find("none of 3 candidates fits; c: takes rows from 0 to 100"), std::string::npos)
      << none;
  EXPECT_NE(none.find("; a: takes rows from 0 to 1000"), std::string::npos) << none;
  EXPECT_NE(reason({"op", 98, 2, 1, 1, {99}, 1}).find("0x0000000000000062 or 0x0000000000000063"),
            std::string::npos);
}

// The rows of tuned_spec(): "a" for few rows, "b" for many.
TEST_F(Select, TunedRows) {
  write_bytes(folder_.file("t.fda"), build_or_die(tuned_spec()));
  ASSERT_TRUE(archive::Archive::open(folder_.file("t.fda"), kAbiId, &archive_).ok());
  EXPECT_EQ(taken({"op", 5, 16, 64, 100}), "a");  // not the first that fits
  EXPECT_EQ(taken({"op", 5, 16, 900, 100}), "b");
  EXPECT_EQ(taken({"op", 5, 2, 900, 100}), "a");  // the row's kernel does not fit
  EXPECT_EQ(taken({"op", 5, 16, 1001, 100}), "none");
  // Another key's rows, and rows of a key that is none of the problem's.
  EXPECT_EQ(taken({"op", 9, 16, 64, 100, {5}, 1}), "c");
  Problem problem = {"op", 9, 16, 64, 100, {5}, 1};
  problem.tuning_key = 5;
  EXPECT_EQ(taken(problem), "a");
  problem = {"op", 9, 16, 64, 100};
  problem.tuning_key = 5;
  EXPECT_EQ(taken(problem), "c");
  problem.yields = true;
  EXPECT_EQ(taken(problem), "none");
  problem.align_bytes = 1;  // of a kernel that does not fit nothing is made
  EXPECT_EQ(reason(problem).find("none of 1 candidates fits; c: needs"), 0u) << reason(problem);
  // A row of which the first that fits was the fastest.
  archive::ArchiveSpec spec = tuned_spec();
  spec.tuning[0].rows[0].kernel.clear();
  write_bytes(folder_.file("f.fda"), build_or_die(spec));
  ASSERT_TRUE(archive::Archive::open(folder_.file("f.fda"), kAbiId, &archive_).ok());
  EXPECT_EQ(taken({"op", 5, 16, 64, 100}), "b");
  ASSERT_TRUE(archive::Archive::open(folder_.file("t.fda"), kAbiId, &archive_).ok());
  // What is forced, or not allowed, comes before rows.
  ASSERT_TRUE(make_policy({"o", "b"}, {"o", nullptr}).ok());
  EXPECT_EQ(taken({"op", 5, 16, 64, 100}), "b");
  policy_ = {};
  const auto target = archive::parse_target_id("gfx950");
  const auto choice = select::select({*archive_, *target, policy_}, {"op", 5, 16, 64, 100});
  ASSERT_TRUE(choice && choice->row);
  EXPECT_EQ(select::describe(*archive_, *choice->row),
            "rows=64 keys=100 parallel=8 alignment=16 compute_units=256 a 1.500 us (model:x)");
  EXPECT_EQ(select::select({*archive_, *target, policy_}, {"op", 5, 2, 900, 100})->row, nullptr);
}

TEST_F(Select, BackendsThatAreNotAllowed) {
  ASSERT_TRUE(make_policy({"o", nullptr}, {"o", "aiter,triton"}).ok());
  EXPECT_EQ(taken({"op", 5, 16, 10, 10}), "none");
  EXPECT_NE(reason({"op", 5, 16, 10, 10}).find("b: backend 'native' is not among those allowed"),
            std::string::npos);
  // Of kernels before and after the one that a call is known by it says nothing.
  Problem not_main = {"op", 5, 16, 10, 10};
  not_main.main = false;
  EXPECT_EQ(taken(not_main), "b");
  // What a kernel cannot do is said first.
  EXPECT_NE(reason({"op", 5, 8, 10, 10}).find("b: needs base addresses"), std::string::npos);
  ASSERT_TRUE(make_policy({"o", ""}, {"o", "aiter,native"}).ok());
  EXPECT_EQ(taken({"op", 5, 16, 10, 10}), "b");
}

TEST_F(Select, ForcedKernels) {
  ASSERT_TRUE(make_policy({"o", "a"}, {"o", nullptr}).ok());
  EXPECT_EQ(taken({"op", 5, 16, 10, 10}), "a");
  EXPECT_NE(reason({"op", 5, 1, 10, 10}).find("a: needs base addresses"), std::string::npos);
  EXPECT_EQ(taken({"op", 9, 2, 100, 0, {5}, 1}), "a");  // of any key of the problem
  EXPECT_EQ(taken({"op", 9, 2, 100, 0}), "none");       // a is no candidate of key 9
  EXPECT_NE(reason({"op", 9, 2, 100, 0}).find("c: forced is 'a'"), std::string::npos);
  EXPECT_EQ(taken({"op", 9, 2, 100, 0, {}, 0, false}), "c");  // a further kernel of a call
  EXPECT_EQ(taken({"op", 5, 16, 10, 10, {}, 0, false}), "a");
  ASSERT_TRUE(make_policy({"o", "c,a"}, {"o", nullptr}).ok());
  EXPECT_EQ(taken({"op", 5, 16, 10, 10}), "a");
  EXPECT_EQ(taken({"op", 9, 2, 100, 0}), "c");
}

TEST_F(Select, BadPolicies) {
  for (const char *names : {"d", "a,,b", ",", "a,", "aa", "a b", "A"}) {
    const Status status = make_policy({"option x", names}, {"o", nullptr});
    EXPECT_EQ(status.code(), FLYDSL_AOT_INVALID_ARGUMENT) << names;
    EXPECT_EQ(status.message().find(std::string("option x is '") + names + "'; allowed: names"), 0u)
        << status.message();
  }
  for (const char *names : {"natve", "native,", "NATIVE", "native, aiter"}) {
    const Status status = make_policy({"o", nullptr}, {"option y", names});
    EXPECT_EQ(status.code(), FLYDSL_AOT_INVALID_ARGUMENT) << names;
    EXPECT_NE(status.message().find("allowed: some of native, aiter, triton, flydsl"),
              std::string::npos);
  }
}

TEST_F(Select, NamesThatAreNearlyRight) {
  archive::ArchiveSpec spec = small_spec();
  for (const char *name : {"forward_d64_direct", "forward_d64_general", "forward_d128_direct", "rms_norm"})
    spec.kernels.push_back(fake_kernel(name, 20, 5));
  write_bytes(folder_.file("b.fda"), build_or_die(spec));
  ASSERT_TRUE(archive::Archive::open(folder_.file("b.fda"), kAbiId, &archive_).ok());
  const struct {
    const char *names, *message;
  } rows[] = {
      {"forward_d64_drect", "o is 'forward_d64_drect'; allowed: names of kernels of '%' (flydsl-aot archive list), "
                            "with commas; nearest: 'forward_d64_direct', 'forward_d128_direct'"},
      // Parts of names come first; three at most, and none that is unlike.
      {"d128", "o is 'd128'; allowed: names of kernels of '%' (flydsl-aot archive list), with commas; nearest: "
               "'forward_d128_direct'"},
      {"rms_norm,rmsnorm", "o is 'rms_norm,rmsnorm'; 'rmsnorm' is none; allowed: names of kernels of '%' (flydsl-aot "
                           "archive list), with commas; nearest: 'rms_norm'"},
      {"nothing_like_it", "o is 'nothing_like_it'; allowed: names of kernels of '%' (flydsl-aot archive list), with commas"},
  };
  for (const auto &[names, message] : rows) {
    std::string expected = message;
    expected.replace(expected.find('%'), 1, archive_->path());
    EXPECT_EQ(make_policy({"o", names}, {"o", nullptr}).message(), expected);
  }
  EXPECT_EQ(make_policy({"o", std::string(5000, 'x').c_str()}, {"o", nullptr}).message().find("nearest"),
            std::string::npos);
  EXPECT_EQ(make_policy({"o", nullptr}, {"y", "native,cuda"}).message(),
            "y is 'native,cuda'; 'cuda' is none; allowed: some of native, aiter, triton, flydsl, jit, with commas");
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
  EXPECT_NE(reason({"op", 12, 2, 4, 8}).find("rows from 5 to 10; these are 4"), std::string::npos);
  EXPECT_NE(reason({"op", 12, 2, 5, 10}).find("keys from 7 to 9; these are 10"), std::string::npos);
  EXPECT_NE(reason({"op", 12, 2, 5, 8}).find("needs xnack on"), std::string::npos);
  EXPECT_NE(reason({"op", 99, 2, 5, 8}).find("0x0000000000000063"), std::string::npos);
}

}  // namespace
}  // namespace flydsl::test
