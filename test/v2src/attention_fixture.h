// An opened library on a pretend device, with an archive of every attention_forward instance, and a
// valid problem to start from. The code objects are pretend too: launches are recorded, not
// computed.
#pragma once

#include "flydsl_aot/flydsl_aot.hpp"
#include "flydsl_aot_generated/attention_forward_kernarg.h"
#include "test/src/device/fake_hip.h"
#include "test/v2src/attention_fixture_archive.h"

namespace flydsl::test {

// Addresses are never followed, so they are plain numbers: far apart, aligned to 4096 bytes.
inline void *address(uint64_t number) {
  return reinterpret_cast<void *>(number);
}
constexpr uint64_t kQ = 0x100000000, kK = 0x200000000, kV = 0x300000000, kOut = 0x400000000,
                   kLse = 0x500000000;

// bf16, B 2, Hq 6, Hkv 2, Sq 300, Sk 500, D 64, no mask, with lse.
inline flydsl_aot_attention_forward_params valid_params() {
  auto params = flydsl_aot::attention_forward_params();
  params.scale = 0.125f;
  params.q = flydsl_aot::tensor(address(kQ), FLYDSL_AOT_BF16, {2, 6, 300, 64});
  params.k = flydsl_aot::tensor(address(kK), FLYDSL_AOT_BF16, {2, 2, 500, 64});
  params.v = flydsl_aot::tensor(address(kV), FLYDSL_AOT_BF16, {2, 2, 500, 64});
  params.out = flydsl_aot::tensor(address(kOut), FLYDSL_AOT_BF16, {2, 6, 300, 64});
  params.lse = flydsl_aot::tensor(address(kLse), FLYDSL_AOT_FP32, {2, 6, 300});
  return params;
}

class AttentionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fake_ = open_fake_hip(FAKE_HIP7);
    ASSERT_NE(fake_, nullptr);
    fake_->reset();
    write_bytes(archive_path_, build_or_die(attention_spec()));
    auto options = flydsl_aot::open_options();
    options.device = FLYDSL_AOT_DEVICE_HIP;
    options.device_library = FAKE_HIP7;
    options.archive_path = archive_path_.c_str();
    const auto status = flydsl_aot::Library::open(options, &library_);
    ASSERT_TRUE(status.ok()) << status.message();
  }

  flydsl_aot::Library open_without_device() {
    auto options = flydsl_aot::open_options();
    options.device = FLYDSL_AOT_DEVICE_NONE;
    options.arch = "gfx950";
    options.archive_path = archive_path_.c_str();
    flydsl_aot::Library library;
    const auto status = flydsl_aot::Library::open(options, &library);
    EXPECT_TRUE(status.ok()) << status.message();
    return library;
  }

  // Launches and gives the kernel arguments that arrived.
  flydsl_aot_attention_forward_kernarg launch(const flydsl_aot_attention_forward_params &params,
                                              void *stream = nullptr) {
    flydsl_aot_attention_forward_kernarg kernarg{};
    const int before = fake_->launches;
    const auto status = library_.attention_forward(params, stream);
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(fake_->launches, before + 1);
    EXPECT_EQ(fake_->last_launch.kernarg_bytes, sizeof kernarg);
    std::memcpy(&kernarg, fake_->last_launch.kernarg, sizeof kernarg);
    return kernarg;
  }
  std::string launched() const { return fake_->last_launch.symbol; }

  FakeHip *fake_ = nullptr;
  TempFolder folder_;
  std::string archive_path_ = folder_.file("flydsl_aot.gfx950.fda");
  flydsl_aot::Library library_;
};

}  // namespace flydsl::test
