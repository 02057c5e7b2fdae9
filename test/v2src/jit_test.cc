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

using BackwardParams = flydsl_aot_attention_backward_params;
using DecodeParams = flydsl_aot_attention_decode_params;

// Tensors far apart from each other.
class Tensors {
 public:
  flydsl_aot_tensor operator()(const std::vector<int64_t> &sizes,
                               flydsl_aot_dtype dtype = FLYDSL_AOT_BF16) {
    return flydsl_aot::tensor(next(), dtype, sizes);
  }
  void *next() { return address(++number_ << 32); }

 private:
  uint64_t number_ = 16;
};

// All of dq, dk, dv.
BackwardParams backward(int64_t head_dim_qk, int64_t head_dim_v) {
  Tensors tensor;
  auto params = flydsl_aot::attention_backward_params();
  params.scale = 0.125f;
  for (flydsl_aot_tensor *one : {&params.q, &params.dq}) *one = tensor({2, 6, 300, head_dim_qk});
  for (flydsl_aot_tensor *one : {&params.k, &params.dk}) *one = tensor({2, 2, 500, head_dim_qk});
  for (flydsl_aot_tensor *one : {&params.v, &params.dv}) *one = tensor({2, 2, 500, head_dim_v});
  for (flydsl_aot_tensor *one : {&params.out, &params.dout}) *one = tensor({2, 6, 300, head_dim_v});
  params.lse = tensor({2, 6, 300}, FLYDSL_AOT_FP32);
  params.workspace = tensor.next();
  params.workspace_bytes = uint64_t{1} << 30;
  return params;
}

DecodeParams decode(flydsl_aot_dtype stored, int64_t head_dim_qk, int64_t head_dim_v) {
  Tensors tensor;
  auto params = flydsl_aot::attention_decode_params();
  params.scale = 0.125f;
  params.q = tensor({2, 8, 1, head_dim_qk});
  params.k = tensor({2, 2, 5000, head_dim_qk}, stored);
  params.v = tensor({2, 2, 5000, head_dim_v}, stored);
  params.out = tensor({2, 8, 1, head_dim_v});
  params.workspace = tensor.next();
  params.workspace_bytes = uint64_t{1} << 30;
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
  template <class OfOperator>
  std::string explain(const OfOperator &params,
                      flydsl_aot_status (*explain_operator)(flydsl_aot_handle *, const OfOperator *,
                                                            flydsl_aot_candidate_callback,
                                                            void *)) {
    std::string lines;
    explain_operator(
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

constexpr const char *kHint = "kernels can be compiled where FLYDSL_AOT_JIT=on allows it";
constexpr const char *kWould = " (jit): not in the archive: would be compiled at its first use\n";
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
    if (on) continue;
    EXPECT_EQ(message().find("640/512"), std::string::npos)
        << "not offered where it is not allowed";
    EXPECT_NE(message().find(kHint), std::string::npos) << message();
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
  EXPECT_EQ(explain(params, flydsl_aot_attention_forward_explain),
            std::string("taken ") + kKernel + kWould);
  EXPECT_EQ(hiprtc_->compilations, 0);
  EXPECT_EQ(query(head_dim(769, 512)).status, FLYDSL_AOT_UNSUPPORTED_HEAD_DIM);
  EXPECT_EQ(message().find(kHint), std::string::npos) << message();
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

// The names of the last launches, in order.
std::vector<std::string> last_launches(const FakeHip &fake, int count) {
  std::vector<std::string> names;
  for (int i = fake.launches - count; i < fake.launches; ++i)
    names.push_back(fake.recent[i % 8].symbol);
  return names;
}

TEST_F(JitTest, GradientsCompileEveryPassBeforeTheyLaunchOne) {
  const BackwardParams params = backward(600, 500);
  const std::string name = "attention_backward_bf16_d640x512_";
  flydsl_aot_query_result result{};
  result.struct_size = sizeof result;
  EXPECT_EQ(flydsl_aot_attention_backward_query(library_.get(), &params, &result), FLYDSL_AOT_OK);
  EXPECT_EQ(result.kernel, name + "keys_general_m32n32");
  EXPECT_STREQ(result.backend, "jit");
  const std::vector<std::string> passes = {"attention_backward_bf16_prepare",
                                           name + "keys_general_m32n32",
                                           name + "queries_general_m32n32"};
  std::string explained;
  for (const std::string &pass : passes) explained += "taken " + pass + kWould;
  EXPECT_EQ(explain(params, flydsl_aot_attention_backward_explain), explained);
  EXPECT_EQ(hiprtc_->compilations, 0);
  const int before = fake_->launches;
  hiprtc_->compile_error = 6;
  hiprtc_->compiles_before_error = 2;
  EXPECT_EQ(flydsl_aot_attention_backward(library_.get(), &params, nullptr),
            FLYDSL_AOT_COMPILE_FAILED);
  EXPECT_NE(message().find("'" + name + "queries_general_m32n32'"), std::string::npos) << message();
  EXPECT_EQ(fake_->launches, before);
  hiprtc_->compile_error = 0;
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(flydsl_aot_attention_backward(library_.get(), &params, nullptr), FLYDSL_AOT_OK)
        << message();
  EXPECT_EQ(hiprtc_->compilations, 4);  // three, of which one failed at first
  EXPECT_EQ(fake_->launches, before + 6);
  EXPECT_EQ(last_launches(*fake_, 3), passes);
  EXPECT_EQ(fake_->last_launch.grid[0], 10u * 2 * 6);  // 300 rows by 32
  allow(FLYDSL_AOT_JIT_OFF);
  EXPECT_EQ(flydsl_aot_attention_backward(library_.get(), &params, nullptr),
            FLYDSL_AOT_UNSUPPORTED_HEAD_DIM);
  EXPECT_NE(message().find(std::string("576/512") + "; " + kHint), std::string::npos) << message();
}

TEST_F(JitTest, DecodeOfFurtherHeadDims) {
  const struct {
    flydsl_aot_dtype stored;
    int64_t head_dim_qk, head_dim_v;
    const char *kernel;
  } cases[] = {{FLYDSL_AOT_BF16, 640, 512, "d768x512_m64n32"},
               {FLYDSL_AOT_E5M2, 256, 256, "d256_e5m2_m16n32"},
               {FLYDSL_AOT_E4M3, 512, 512, "d576x512_e4m3_m16n32"}};
  for (const auto &one : cases) {
    const DecodeParams params = decode(one.stored, one.head_dim_qk, one.head_dim_v);
    allow(FLYDSL_AOT_JIT_OFF);
    EXPECT_EQ(flydsl_aot_attention_decode(library_.get(), &params, nullptr),
              FLYDSL_AOT_UNSUPPORTED_HEAD_DIM);
    EXPECT_NE(message().find(kHint), std::string::npos) << message();
    allow(FLYDSL_AOT_JIT_ON);
    EXPECT_EQ(flydsl_aot_attention_decode(library_.get(), &params, nullptr), FLYDSL_AOT_OK)
        << message();
    const std::vector<std::string> passes = {std::string("attention_decode_bf16_") + one.kernel,
                                             one.head_dim_v > 256
                                                 ? "attention_decode_bf16_reduce_d512"
                                                 : "attention_decode_bf16_reduce_d256"};
    EXPECT_EQ(last_launches(*fake_, 2), passes);
  }
  const DecodeParams wide = decode(FLYDSL_AOT_BF16, 776, 512);
  EXPECT_EQ(flydsl_aot_attention_decode(library_.get(), &wide, nullptr),
            FLYDSL_AOT_UNSUPPORTED_HEAD_DIM);
  EXPECT_EQ(message().find(kHint), std::string::npos) << message();
  EXPECT_NE(message().find("768/512"), std::string::npos) << message();
}

// 8-bit values apart from the keys have a kernel at these head dims only if it is compiled; those that are part of them may have
// one in an archive.
TEST_F(JitTest, DecodeQueriesWithoutPointers) {
  const auto ask = [&](const DecodeParams &params) {
    flydsl_aot_query_result result{};
    result.struct_size = sizeof result;
    EXPECT_EQ(flydsl_aot_attention_decode_query(library_.get(), &params, &result), FLYDSL_AOT_OK)
        << message();
    return result;
  };
  const DecodeParams apart = decode(FLYDSL_AOT_E4M3, 512, 512);
  DecodeParams either = apart, shared = apart;
  either.k.data = either.v.data = nullptr;
  shared.v.data = shared.k.data;
  EXPECT_STREQ(ask(apart).kernel, "attention_decode_bf16_d576x512_e4m3_m16n32");
  EXPECT_STREQ(ask(shared).kernel, "attention_decode_bf16_d576x512_e4m3_shared_m16n32");
  EXPECT_STREQ(ask(either).kernel, ask(shared).kernel);
  EXPECT_EQ(ask(either).workspace_bytes,
            std::max(ask(apart).workspace_bytes, ask(shared).workspace_bytes));
}

TEST_F(JitTest, ProductsCompileEveryPassBeforeTheyLaunchOne) {
  auto gemm = flydsl_aot::gemm_params();  // so few tiles that parts of K share them
  gemm.a = flydsl_aot::tensor(address(kQ), FLYDSL_AOT_BF16, {16, 65536});
  gemm.b = flydsl_aot::tensor(address(kK), FLYDSL_AOT_BF16, {65536, 128});
  gemm.d = flydsl_aot::tensor(address(kOut), FLYDSL_AOT_BF16, {16, 128});
  gemm.workspace = address(kLse);
  gemm.workspace_bytes = uint64_t{1} << 30;
  const int before = fake_->launches;
  hiprtc_->compile_error = 6;
  hiprtc_->compiles_before_error = 1;
  EXPECT_EQ(library_.gemm(gemm, nullptr).code(), FLYDSL_AOT_COMPILE_FAILED);
  EXPECT_NE(message().find("'gemm_second_pass'"), std::string::npos) << message();
  EXPECT_EQ(fake_->launches, before);
  hiprtc_->compile_error = 0;
  EXPECT_TRUE(library_.gemm(gemm, nullptr).ok()) << message();
  EXPECT_EQ(hiprtc_->compilations, 3);  // two, of which one failed at first
  EXPECT_EQ(fake_->launches, before + 2);
  EXPECT_EQ(last_launches(*fake_, 2),
            (std::vector<std::string>{"gemm_bf16_general_m128n128", "gemm_second_pass"}));
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
  // The archive that was named is of another architecture, or the folder empty; one that is not there stays an error.
  std::filesystem::create_directory(folder_.file("empty"));
  for (const auto &[path, off] : {std::pair{archive_path_, FLYDSL_AOT_UNSUPPORTED_ARCH},
                                  {folder_.file("empty"), FLYDSL_AOT_ARCHIVE_NOT_FOUND}}) {
    auto one = options(FLYDSL_AOT_JIT_OFF);
    one.archive_path = path.c_str();
    EXPECT_EQ(flydsl_aot::Library::open(one, &library).code(), off) << path;
    EXPECT_NE(message().find(kHint), std::string::npos) << message();
    one.jit = FLYDSL_AOT_JIT_ON;
    EXPECT_TRUE(flydsl_aot::Library::open(one, &library).ok()) << message();
  }
  auto absent = options(FLYDSL_AOT_JIT_ON);
  absent.archive_path = "/nonexistent";
  EXPECT_EQ(flydsl_aot::Library::open(absent, &library).code(), FLYDSL_AOT_ARCHIVE_NOT_FOUND);
  EXPECT_EQ(message().find(kHint), std::string::npos) << message();
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
  // Attention, but not of head dims whose tiles are too large for its LDS.
  const Params params = valid_params(), wide = head_dim(640, 512), wider = head_dim(641, 512);
  for (const Params *fits : {&params, &wide})
    EXPECT_EQ(flydsl_aot_attention_forward(library.get(), fits, nullptr), FLYDSL_AOT_OK)
        << message();
  EXPECT_EQ(launched(), "attention_forward_bf16_d640x512_general_m128n32");
  EXPECT_EQ(flydsl_aot_attention_forward(library.get(), &wider, nullptr), FLYDSL_AOT_NO_KERNEL);
  EXPECT_NE(message().find("the library lists no kernel of attention_forward"), std::string::npos)
      << message();
  const BackwardParams gradients = backward(640, 512);
  EXPECT_EQ(flydsl_aot_attention_backward(library.get(), &gradients, nullptr), FLYDSL_AOT_OK)
      << message();
  const DecodeParams few = decode(FLYDSL_AOT_E5M2, 256, 256);
  EXPECT_EQ(flydsl_aot_attention_decode(library.get(), &few, nullptr), FLYDSL_AOT_OK) << message();
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
  EXPECT_EQ(flydsl_aot_attention_forward(library.get(), &params, nullptr), FLYDSL_AOT_OK)
      << message();
  EXPECT_EQ(launched().substr(0, 36), "attention_forward_bf16_d64_portable_");
  // Decode and gradients of attention have no kernels without its matrix instructions.
  EXPECT_EQ(flydsl_aot_attention_decode(library.get(), &few, nullptr), FLYDSL_AOT_NO_KERNEL);
  // An architecture that nothing is written for.
  std::strcpy(fake_->target_id[0], "gfx803");
  EXPECT_EQ(flydsl_aot::Library::open(options(FLYDSL_AOT_JIT_ON), &library).code(),
            FLYDSL_AOT_UNSUPPORTED_ARCH);
}

}  // namespace
}  // namespace flydsl::test
