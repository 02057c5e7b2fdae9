// What the tests of operators share: a library on a pretend device, with an archive of pretend kernels; launches are recorded, not
// computed. And what those with one kernel and no workspace do.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>

#include "flydsl_aot/flydsl_aot.hpp"
#include "test/src/archive/archive_fixture.h"
#include "test/src/device/fake_hip.h"

namespace flydsl::test {

// `kCall` and `kQuery`: the operator's members of flydsl_aot::Library.
template <class Params, class Kernarg, auto kCall, auto kQuery>
class OneKernelTest : public ::testing::Test {
 protected:
  virtual archive::ArchiveSpec spec() const = 0;

  void SetUp() override {
    fake_ = open_fake_hip(FAKE_HIP7);
    ASSERT_NE(fake_, nullptr);
    fake_->reset();
    write_bytes(archive_path_, build_or_die(spec()));
    auto options = flydsl_aot::open_options();
    options.device = FLYDSL_AOT_DEVICE_HIP;
    options.device_library = FAKE_HIP7;
    options.archive_path = archive_path_.c_str();
    const auto status = flydsl_aot::Library::open(options, &library_);
    ASSERT_TRUE(status.ok()) << status.message();
  }

  // The call's only kernel without the first letters of its name, as the query names it, too; "" if there is none.
  std::string kernel_of(const Params &params, const std::string &prefix = "") {
    const int before = fake_->launches;
    flydsl_aot_query_result result;
    const auto asked = (library_.*kQuery)(params, &result);
    EXPECT_TRUE(asked.ok()) << asked.message();
    EXPECT_EQ(result.workspace_bytes, 0u);
    const auto status = (library_.*kCall)(params, nullptr);
    EXPECT_TRUE(status.ok()) << status.message();
    if (fake_->launches == before) return result.kernel;
    EXPECT_EQ(fake_->launches, before + 1);
    EXPECT_EQ(std::string(result.kernel) + "_symbol", fake_->last_launch.symbol);
    return std::string(result.kernel).substr(prefix.size());
  }
  Kernarg kernarg() const {
    Kernarg result{};
    EXPECT_EQ(fake_->last_launch.kernarg_bytes, sizeof result);
    std::memcpy(&result, fake_->last_launch.kernarg, sizeof result);
    return result;
  }
  void expect_refused(Params params, const std::function<void(Params &)> &change,
                      flydsl_aot_status status, const std::string &message) {
    change(params);
    const int before = fake_->launches;
    const auto refused = (library_.*kCall)(params, nullptr);
    EXPECT_EQ(refused.code(), status) << message;
    EXPECT_NE(refused.message().find(message), std::string::npos) << refused.message();
    EXPECT_EQ(fake_->launches, before) << message;
    // A query looks at no pointer but for its alignment, and not at the workspace.
    if (status == FLYDSL_AOT_INVALID_POINTER || status == FLYDSL_AOT_INVALID_WORKSPACE) return;
    flydsl_aot_query_result result;
    EXPECT_EQ((library_.*kQuery)(params, &result).code(), status) << message;
    EXPECT_EQ(result.status, status) << message;
  }

  FakeHip *fake_ = nullptr;
  TempFolder folder_;
  std::string archive_path_ = folder_.file("flydsl_aot.gfx950.fda");
  flydsl_aot::Library library_;
};

}  // namespace flydsl::test
