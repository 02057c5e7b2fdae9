// A pretend device (one_kernel_fixture.h) with an archive of every attention_forward instance, and a valid problem to start from.
#pragma once

#include "flydsl_aot_generated/attention_forward_kernarg.h"
#include "test/v2src/attention_fixture_archive.h"
#include "test/v2src/one_kernel_fixture.h"

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

class AttentionTest
    : public OneKernelTest<
          flydsl_aot_attention_forward_params, flydsl_aot_attention_forward_kernarg,
          &flydsl_aot::Library::attention_forward, &flydsl_aot::Library::attention_forward_query> {
 protected:
  archive::ArchiveSpec spec() const override { return attention_spec(); }

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
    const int before = fake_->launches;
    const auto status = library_.attention_forward(params, stream);
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(fake_->launches, before + 1);
    return kernarg();
  }
  std::string launched() const { return fake_->last_launch.symbol; }
};

}  // namespace flydsl::test
