// Kernels that are compiled at run time: every function of hipRTC fails in turn, and so does the load of what it made, for every operator
// that can be compiled for an architecture without an archive. On runtimes that compute nothing.
#include <algorithm>

#include "flydsl_aot_generated/abi.h"
#include "test/src/archive/archive_fixture.h"
#include "test/src/device/fake_hip.h"
#include "test/src/jit/fake_hiprtc.h"
#include "test/support/operator_problems.h"

namespace flydsl::test {
namespace {

using Handle = std::unique_ptr<flydsl_aot_handle, decltype(&flydsl_aot_close)>;

class JitFailures : public ::testing::TestWithParam<ProblemLine> {
 protected:
  void SetUp() override {
    hip_ = open_fake_hip(FAKE_HIP7);
    hiprtc_ = open_fake_hiprtc(FAKE_HIPRTC);
    ASSERT_TRUE(hip_ && hiprtc_);
    hip_->reset();
    hiprtc_->reset();
    memory_.open({"hip", "", ""});
    problem_ = std::make_unique<DeviceProblem>(memory_, GetParam());
    archive::ArchiveSpec spec;
    spec.arch = "gfx950";
    spec.abi_id = FLYDSL_AOT_GENERATED_ABI_ID;
    spec.library_version = FLYDSL_AOT_VERSION;
    write_bytes(folder_.file("flydsl_aot.gfx950.fda"), build_or_die(spec));
    for (auto &id : hip_->target_id) std::strcpy(id, "gfx942:sramecc+:xnack-");
  }
  void TearDown() override {
    if (hip_) hip_->reset();
  }

  Handle open() const {
    flydsl_aot_open_options options{};
    options.struct_size = sizeof options;
    options.device = FLYDSL_AOT_DEVICE_HIP;
    options.device_library = FAKE_HIP7;
    options.archive_path = folder_.path().c_str();  // of another architecture
    options.jit = FLYDSL_AOT_JIT_ON;
    flydsl_aot_handle *handle = nullptr;
    EXPECT_EQ(flydsl_aot_open(&options, &handle), FLYDSL_AOT_OK) << flydsl_aot_last_error();
    return Handle(handle, flydsl_aot_close);
  }
  bool compiles() const {
    const Handle handle = open();
    return problem_->query(handle.get()) == FLYDSL_AOT_OK;
  }

  // The first fails so, and what is asked for then, without anything that fails, is done.
  void expect_told(flydsl_aot_handle *handle, flydsl_aot_status expected, const std::string &part) {
    const int before = hip_->launches;
    EXPECT_EQ(problem_->launch(handle), expected) << flydsl_aot_last_error();
    const std::string message = flydsl_aot_last_error();
    EXPECT_NE(message.find(part), std::string::npos) << message;
    EXPECT_EQ(message.find(std::string("flydsl_aot_") + GetParam().op), 0u) << message;
    EXPECT_EQ(hip_->launches, before);
    EXPECT_EQ(hip_->peek_at_last_error(), 0);
    EXPECT_EQ(hiprtc_->live_programs, 0);
    EXPECT_TRUE(problem_->outputs_are_poison());
  }
  // Always by the same launches, which need not be those of another architecture.
  void expect_works(flydsl_aot_handle *handle) {
    const int before = hip_->launches;
    EXPECT_EQ(problem_->launch(handle), FLYDSL_AOT_OK) << flydsl_aot_last_error();
    const int made = hip_->launches - before;
    if (launches_ == 0) launches_ = made;
    EXPECT_GT(made, 0);
    EXPECT_EQ(made, launches_);
  }

  TempFolder folder_;
  ScopedEnv hip_library_{"FLYDSL_AOT_HIP_LIBRARY", FAKE_HIP7};
  ScopedEnv hiprtc_library_{"FLYDSL_AOT_HIPRTC_LIBRARY", FAKE_HIPRTC};
  ScopedEnv cache_{"FLYDSL_AOT_JIT_CACHE_BYTES", "0"};
  FakeHip *hip_ = nullptr;
  FakeHiprtc *hiprtc_ = nullptr;
  tools::LibraryHandle memory_;
  std::unique_ptr<DeviceProblem> problem_;
  int launches_ = 0;  // of the first call
};

TEST_P(JitFailures, OfEveryFunctionAreTold) {
  if (!compiles()) GTEST_SKIP() << "is not compiled at run time: " << flydsl_aot_last_error();
  hiprtc_->reset();
  expect_works(open().get());
  int made[kHiprtcCalls];
  std::copy_n(hiprtc_->calls, kHiprtcCalls, made);
  for (int call = 0; call < kHiprtcCalls; ++call) {
    EXPECT_GT(made[call], 0) << kHiprtcNames[call];
    for (int number = 1; number <= made[call]; ++number) {
      SCOPED_TRACE(std::string(kHiprtcNames[call]) + " number " + std::to_string(number));
      const Handle handle = open();
      hiprtc_->reset();
      hiprtc_->failing = call;
      hiprtc_->nth = number;
      hiprtc_->code = 6;
      expect_told(handle.get(), FLYDSL_AOT_COMPILE_FAILED, kHiprtcNames[call]);
      expect_works(handle.get());
    }
  }
}

TEST_P(JitFailures, WithoutHiprtcAndWithoutAKernelThatLoads) {
  if (!compiles()) GTEST_SKIP() << "is not compiled at run time: " << flydsl_aot_last_error();
  const Handle handle = open();
  {
    const ScopedEnv missing("FLYDSL_AOT_HIPRTC_LIBRARY", "/nonexistent/libhiprtc.so");
    expect_told(handle.get(), FLYDSL_AOT_COMPILER_NOT_FOUND, "/nonexistent/libhiprtc.so");
  }
  for (const auto &[code, status] : {std::pair{209, FLYDSL_AOT_KERNEL_LOAD_FAILED},
                                     {2, FLYDSL_AOT_OUT_OF_DEVICE_MEMORY},
                                     {719, FLYDSL_AOT_DEVICE_LOST}}) {
    hip_->load_error = code;
    expect_told(handle.get(), status,
                "hipModuleLoadData failed: HIP error " + std::to_string(code));
    hip_->load_error = 0;
    hip_->function_error = code;
    expect_told(handle.get(), status,
                "hipModuleGetFunction failed: HIP error " + std::to_string(code));
    hip_->function_error = 0;
  }
  expect_works(handle.get());
  hip_->launch_error = 719;
  expect_told(handle.get(), FLYDSL_AOT_DEVICE_LOST, "hipModuleLaunchKernel failed: HIP error 719");
  hip_->launch_error = 0;
  expect_works(handle.get());
}

INSTANTIATE_TEST_SUITE_P(Operators, JitFailures, ::testing::ValuesIn(operator_problems()),
                         [](const auto &info) { return std::string(info.param.name); });

}  // namespace
}  // namespace flydsl::test
