// Run-time compilation behind the C ABI: allowed or not, what query, explain and rows of calls say of it, its failures.
#include <filesystem>

#include "test/src/jit/fake_hiprtc.h"
#include "test/v2src/attention_fixture.h"

namespace flydsl::test {
namespace {

using Params = flydsl_aot_attention_forward_params;

Params head_dim(int64_t head_dim_qk, int64_t head_dim_v) {
  Params params = valid_params();
  params.q.sizes[3] = params.k.sizes[3] = head_dim_qk;
  params.v.sizes[3] = params.out.sizes[3] = head_dim_v;
  for (flydsl_aot_tensor *tensor : {&params.q, &params.k, &params.v, &params.out})
    *tensor = flydsl_aot::tensor(
        tensor->data, tensor->dtype,
        {tensor->sizes[0], tensor->sizes[1], tensor->sizes[2], tensor->sizes[3]});
  return params;
}

class JitTest : public AttentionTest {
 protected:
  void SetUp() override {
    AttentionTest::SetUp();
    hiprtc_ = open_fake_hiprtc(FAKE_HIPRTC);
    ASSERT_NE(hiprtc_, nullptr);
    hiprtc_->reset();
    allow(FLYDSL_AOT_JIT_ON);
  }
  flydsl_aot_open_options options(flydsl_aot_jit jit) const {
    auto options = flydsl_aot::open_options();
    options.device = FLYDSL_AOT_DEVICE_HIP;
    options.device_library = FAKE_HIP7;
    options.archive_path = archive_path_.c_str();
    options.jit = jit;
    return options;
  }
  void allow(flydsl_aot_jit jit) {
    const auto status = flydsl_aot::Library::open(options(jit), &library_);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  flydsl_aot_query_result query(const Params &params) {
    flydsl_aot_query_result result{};
    result.struct_size = sizeof result;
    EXPECT_EQ(flydsl_aot_attention_forward_query(library_.get(), &params, &result), result.status);
    return result;
  }
  std::string explain(const Params &params) {
    std::string lines;
    flydsl_aot_attention_forward_explain(
        library_.get(), &params,
        [](void *user, const flydsl_aot_candidate *candidate) {
          *static_cast<std::string *>(user) += std::string(candidate->taken ? "taken " : "") +
                                               candidate->kernel + " (" + candidate->backend +
                                               "): " + candidate->reason + "\n";
        },
        &lines);
    return lines;
  }
  flydsl_aot_status call(const Params &params, void *stream = nullptr) {
    return flydsl_aot_attention_forward(library_.get(), &params, stream);
  }
  std::string message() const { return flydsl_aot_last_error(); }

  ScopedEnv cache_{"FLYDSL_AOT_JIT_CACHE_DIR", folder_.file("cache").c_str()};
  ScopedEnv hiprtc_library_{"FLYDSL_AOT_HIPRTC_LIBRARY", FAKE_HIPRTC};
  ScopedEnv jit_{"FLYDSL_AOT_JIT", nullptr};
  FakeHiprtc *hiprtc_ = nullptr;
};

constexpr const char *kKernel = "attention_forward_bf16_d640x512_general_m128n64";

TEST_F(JitTest, OffUnlessAllowed) {
  const Params params = head_dim(600, 500);
  for (const auto &[jit, environment, on] :
       {std::tuple{FLYDSL_AOT_JIT_DEFAULT, (const char *)nullptr, false},
        {FLYDSL_AOT_JIT_DEFAULT, "", false},
        {FLYDSL_AOT_JIT_DEFAULT, "off", false},
        {FLYDSL_AOT_JIT_DEFAULT, "on", true},
        {FLYDSL_AOT_JIT_OFF, "on", false},
        {FLYDSL_AOT_JIT_ON, "off", true}}) {
    const ScopedEnv env("FLYDSL_AOT_JIT", environment);
    allow(static_cast<flydsl_aot_jit>(jit));
    EXPECT_EQ(call(params), on ? FLYDSL_AOT_OK : FLYDSL_AOT_UNSUPPORTED_HEAD_DIM)
        << jit << " " << (environment ? environment : "-");
    EXPECT_EQ(message().find("640/512"), std::string::npos)
        << "not offered where it is not allowed";
  }
  EXPECT_EQ(hiprtc_->compilations, 1);  // and kept
  const ScopedEnv env("FLYDSL_AOT_JIT", "yes");
  flydsl_aot::Library library;
  const auto status = flydsl_aot::Library::open(options(FLYDSL_AOT_JIT_DEFAULT), &library);
  EXPECT_EQ(status.code(), FLYDSL_AOT_INVALID_ARGUMENT);
  EXPECT_NE(status.message().find("FLYDSL_AOT_JIT is 'yes'; allowed: on, off"), std::string::npos)
      << status.message();
}

TEST_F(JitTest, WhatTheArchiveHasIsNotCompiled) {
  EXPECT_EQ(call(valid_params()), FLYDSL_AOT_OK);
  EXPECT_EQ(launched(), "attention_forward_bf16_d64_none_direct_symbol");
  EXPECT_STREQ(query(valid_params()).reason, "");
  EXPECT_EQ(hiprtc_->compilations, 0);
  flydsl_aot_info info;
  ASSERT_TRUE(library_.info(&info).ok());
  EXPECT_EQ(info.kernel_count, attention_spec().kernels.size());
}

TEST_F(JitTest, QueryAndExplainSayThatItWouldBeCompiled) {
  const Params params = head_dim(600, 500);
  const flydsl_aot_query_result result = query(params);
  EXPECT_EQ(result.status, FLYDSL_AOT_OK);
  EXPECT_STREQ(result.kernel, kKernel);
  EXPECT_STREQ(result.backend, "jit");
  EXPECT_STREQ(result.reason, "not in the archive: would be compiled at its first use");
  EXPECT_EQ(explain(params),
            std::string("taken ") + kKernel +
                " (jit): not in the archive: would be compiled at its first use\n");
  EXPECT_EQ(hiprtc_->compilations, 0);
  EXPECT_EQ(query(head_dim(769, 512)).status, FLYDSL_AOT_UNSUPPORTED_HEAD_DIM);
  EXPECT_NE(message().find("576/512, 640/512, 768/512, 768/768"), std::string::npos) << message();
}

TEST_F(JitTest, TheCallCompilesOnceAndLaunches) {
  const Params params = head_dim(640, 512);
  const int before = fake_->launches;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(call(params), FLYDSL_AOT_OK) << message();
  EXPECT_EQ(fake_->launches, before + 3);
  EXPECT_EQ(hiprtc_->compilations, 1);
  EXPECT_EQ(launched(), kKernel);
  EXPECT_EQ(fake_->last_launch.grid[0], 3u * 2 * 6);  // 300 rows by 128
  EXPECT_EQ(fake_->last_launch.block[0], 256u);
  EXPECT_EQ(fake_->last_launch.kernarg_bytes, sizeof(flydsl_aot_attention_forward_kernarg));
  EXPECT_EQ(0, std::memcmp(fake_->last_image, "\177ELF of ", 8));
  allow(FLYDSL_AOT_JIT_ON);
  EXPECT_EQ(call(params), FLYDSL_AOT_OK);
  EXPECT_EQ(hiprtc_->compilations, 1);
}

TEST_F(JitTest, NotWhileItsStreamIsCaptured) {
  const Params params = head_dim(640, 512);
  EXPECT_EQ(call(params, fake_stream(0, true)), FLYDSL_AOT_CAPTURE_NEEDS_PREFETCH);
  EXPECT_EQ(hiprtc_->compilations, 0);
  EXPECT_EQ(flydsl_aot_attention_forward_prefetch(library_.get(), &params), FLYDSL_AOT_OK);
  EXPECT_EQ(hiprtc_->compilations, 1);
  EXPECT_EQ(call(params, fake_stream(0, true)), FLYDSL_AOT_OK);
}

TEST_F(JitTest, TheRowOfACallNamesIt) {
  const std::string rows = folder_.file("calls.csv");
  const ScopedEnv verbose("FLYDSL_AOT_VERBOSE", rows.c_str());
  allow(FLYDSL_AOT_JIT_ON);
  EXPECT_EQ(call(head_dim(640, 512)), FLYDSL_AOT_OK);
  std::ifstream stream(rows);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  EXPECT_NE(text.find(std::string(",") + kKernel + ",jit," + archive_path_ + ",compiled,"),
            std::string::npos)
      << text;
}

TEST_F(JitTest, WithoutHiprtc) {
  const ScopedEnv missing("FLYDSL_AOT_HIPRTC_LIBRARY", "/nonexistent.so");
  const Params params = head_dim(640, 512);
  const int before = fake_->launches;
  EXPECT_EQ(call(params), FLYDSL_AOT_COMPILER_NOT_FOUND);
  for (const char *part : {kKernel, "cannot be compiled: no usable hipRTC", "/nonexistent.so"})
    EXPECT_NE(message().find(part), std::string::npos) << message();
  EXPECT_EQ(query(params).status, FLYDSL_AOT_COMPILER_NOT_FOUND);
  EXPECT_EQ(flydsl_aot_attention_forward_prefetch(library_.get(), &params),
            FLYDSL_AOT_COMPILER_NOT_FOUND);
  EXPECT_EQ(fake_->launches, before);
  EXPECT_EQ(call(valid_params()), FLYDSL_AOT_OK);  // what the archive has needs none
  library_ = {};
  auto without = options(FLYDSL_AOT_JIT_ON);
  without.device = FLYDSL_AOT_DEVICE_NONE;
  without.arch = "gfx950";
  ASSERT_TRUE(flydsl_aot::Library::open(without, &library_).ok());
  EXPECT_EQ(query(params).status, FLYDSL_AOT_OK);  // of a machine that may have it
}

TEST_F(JitTest, FailedCompilationsLaunchNothing) {
  const Params params = head_dim(640, 512);
  const int before = fake_->launches;
  hiprtc_->compile_error = 6;
  EXPECT_EQ(call(params), FLYDSL_AOT_COMPILE_FAILED);
  EXPECT_NE(message().find(kKernel), std::string::npos) << message();
  EXPECT_EQ(fake_->launches, before);
  hiprtc_->compile_error = 0;
  EXPECT_EQ(call(params), FLYDSL_AOT_OK);
}

TEST_F(JitTest, BackendsAndForcedKernels) {
  auto only = options(FLYDSL_AOT_JIT_ON);
  only.backends = "native";
  ASSERT_TRUE(flydsl_aot::Library::open(only, &library_).ok());
  EXPECT_EQ(call(head_dim(640, 512)), FLYDSL_AOT_NO_KERNEL);
  EXPECT_NE(message().find("backend 'jit' is not among those allowed"), std::string::npos)
      << message();
  only.backends = nullptr;
  only.force_kernel = "attention_forward_bf16_d64_general_m128n64";
  ASSERT_TRUE(flydsl_aot::Library::open(only, &library_).ok());
  EXPECT_EQ(call(valid_params()), FLYDSL_AOT_OK);
  EXPECT_EQ(launched(), only.force_kernel);
  only.jit = FLYDSL_AOT_JIT_OFF;
  EXPECT_EQ(flydsl_aot::Library::open(only, &library_).code(), FLYDSL_AOT_INVALID_ARGUMENT);
}

TEST_F(JitTest, AnArchitectureWithoutImages) {
  library_ = {};
  std::strcpy(fake_->target_id[0], "gfx942:sramecc+:xnack-");
  flydsl_aot::Library library;
  // The archive that was named is of another architecture; one that is not there stays an error.
  EXPECT_EQ(flydsl_aot::Library::open(options(FLYDSL_AOT_JIT_OFF), &library).code(),
            FLYDSL_AOT_UNSUPPORTED_ARCH);
  auto absent = options(FLYDSL_AOT_JIT_ON);
  absent.archive_path = "/nonexistent";
  EXPECT_EQ(flydsl_aot::Library::open(absent, &library).code(), FLYDSL_AOT_ARCHIVE_NOT_FOUND);
  const auto status = flydsl_aot::Library::open(options(FLYDSL_AOT_JIT_ON), &library);
  ASSERT_TRUE(status.ok()) << status.message();
  flydsl_aot_info info;
  ASSERT_TRUE(library.info(&info).ok());
  EXPECT_STREQ(info.archive_path, "");
  EXPECT_STREQ(info.arch, "gfx942");
  EXPECT_EQ(info.kernel_count, 0u);
  auto norm = flydsl_aot_rms_norm_params{};
  norm.struct_size = sizeof norm;
  norm.eps = 1e-6f;
  norm.x = flydsl_aot::tensor(address(kQ), FLYDSL_AOT_FP32, {64, 1024});
  norm.out = flydsl_aot::tensor(address(kOut), FLYDSL_AOT_FP32, {64, 1024});
  EXPECT_EQ(flydsl_aot_rms_norm(library.get(), &norm, nullptr), FLYDSL_AOT_OK) << message();
  EXPECT_EQ(launched().substr(0, 14), "rms_norm_fp32_");
  EXPECT_NE(std::string(hiprtc_->options).find("--offload-arch=gfx942"), std::string::npos);
  // Attention is written for gfx950.
  const Params params = valid_params();
  EXPECT_EQ(flydsl_aot_attention_forward(library.get(), &params, nullptr), FLYDSL_AOT_NO_KERNEL);
  EXPECT_NE(message().find("the library lists no kernel of attention_forward"), std::string::npos)
      << message();
  // One whose kernels nobody ran.
  std::strcpy(fake_->target_id[0], "gfx1100");
  ASSERT_TRUE(flydsl_aot::Library::open(options(FLYDSL_AOT_JIT_ON), &library).ok());
  EXPECT_EQ(flydsl_aot_rms_norm(library.get(), &norm, nullptr), FLYDSL_AOT_NEVER_EXECUTED);
  EXPECT_NE(message().find("FLYDSL_AOT_ENABLE_EXPERIMENTAL=1"), std::string::npos) << message();
  {
    const ScopedEnv allowed("FLYDSL_AOT_ENABLE_EXPERIMENTAL", "1");
    ASSERT_TRUE(flydsl_aot::Library::open(options(FLYDSL_AOT_JIT_ON), &library).ok());
  }
  EXPECT_EQ(flydsl_aot_rms_norm(library.get(), &norm, nullptr), FLYDSL_AOT_OK) << message();
  EXPECT_NE(std::string(hiprtc_->options).find("--offload-arch=gfx1100"), std::string::npos);
  // An architecture that nothing is written for.
  std::strcpy(fake_->target_id[0], "gfx803");
  EXPECT_EQ(flydsl_aot::Library::open(options(FLYDSL_AOT_JIT_ON), &library).code(),
            FLYDSL_AOT_UNSUPPORTED_ARCH);
}

}  // namespace
}  // namespace flydsl::test
