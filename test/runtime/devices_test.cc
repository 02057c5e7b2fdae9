// Three emulated devices, of two architectures (FLYDSL_EMU_ARCH of the test's environment: gfx950,gfx950,gfx942): the stream's device
// wins over the current one, each device has modules of its own, and a handle says which devices it is not for.
#include <optional>

#include "flydsl_aot_generated/abi.h"
#include "test/src/archive/archive_fixture.h"
#include "test/support/between_handle.h"
#include "test/support/client_stream.h"
#include "test/support/operator_problems.h"

namespace flydsl::test {
namespace {

// A stream of one device; the current device is as before.
class StreamOf {
 public:
  explicit StreamOf(int device) {
    int current = 0;
    EXPECT_HIP(hipSuccess, hipGetDevice(&current));
    EXPECT_HIP(hipSuccess, hipSetDevice(device));
    stream_.emplace();
    EXPECT_HIP(hipSuccess, hipSetDevice(current));
  }
  operator hipStream_t() const { return *stream_; }

 private:
  std::optional<Stream> stream_;
};

class Devices : public BetweenTest, public ::testing::WithParamInterface<ProblemLine> {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(BetweenTest::SetUp());
    memory_.open({"emulator", "", ""});
    ASSERT_EQ(memory_.info().device_count, 3u);
  }
  int current() const {
    int device = -1;
    EXPECT_HIP(hipSuccess, hipGetDevice(&device));
    return device;
  }

  tools::LibraryHandle memory_;
};

TEST_P(Devices, TheStreamsDeviceWins) {
  DeviceProblem problem(memory_, GetParam());
  ASSERT_EQ(problem.launch(memory_.get()), FLYDSL_AOT_OK) << flydsl_aot_last_error();
  const auto right = problem.results();
  const Handle handle = open_between();
  between_->reset();
  const StreamOf first(0), second(1), third(2);
  ASSERT_EQ(problem.prefetch(handle.get()), FLYDSL_AOT_OK) << flydsl_aot_last_error();
  const int kernels = between_->calls[kModuleLoadData];
  for (const int current_device : {0, 1, 2}) {
    SCOPED_TRACE(current_device);
    EXPECT_HIP(hipSuccess, hipSetDevice(current_device));
    for (const hipStream_t stream :
         {static_cast<hipStream_t>(first), static_cast<hipStream_t>(second)}) {
      EXPECT_HIP(hipSuccess, hipSetDevice(0));
      problem.poison();
      EXPECT_HIP(hipSuccess, hipSetDevice(current_device));
      ASSERT_EQ(problem.launch(handle.get(), stream), FLYDSL_AOT_OK) << flydsl_aot_last_error();
      EXPECT_EQ(current(), current_device);
      EXPECT_HIP(hipSuccess, hipStreamSynchronize(stream));
      EXPECT_EQ(problem.results(), right);
    }
    problem.poison();
    EXPECT_EQ(problem.launch(handle.get(), third), FLYDSL_AOT_UNSUPPORTED_ARCH);
    EXPECT_NE(std::string(flydsl_aot_last_error()).find("device 2 is gfx942"), std::string::npos)
        << flydsl_aot_last_error();
    EXPECT_EQ(current(), current_device);
    EXPECT_TRUE(problem.outputs_are_poison());
  }
  // Once on each of the two devices.
  EXPECT_EQ(between_->calls[kModuleLoadData], 2 * kernels);
  // Null stream, prefetch and query are of the current device, 2.
  for (const flydsl_aot_status status :
       {problem.launch(handle.get()), problem.prefetch(handle.get()),
        problem.query(handle.get())}) {
    EXPECT_EQ(status, FLYDSL_AOT_UNSUPPORTED_ARCH);
  }
  EXPECT_HIP(hipSuccess, hipSetDevice(0));
}

INSTANTIATE_TEST_SUITE_P(Operators, Devices, ::testing::ValuesIn(operator_problems()),
                         [](const auto &info) { return std::string(info.param.name); });

// A kernel that the archive has not is compiled once, and is a module of each device.
TEST(CompiledKernels, AreModulesOfEachDevice) {
  HipBetween *between = open_hip_between(HIP_BETWEEN, FLYDSL_EMULATOR_LIBRARY);
  ASSERT_NE(between, nullptr);
  EXPECT_HIP(hipSuccess, hipSetDevice(0));
  const TempFolder folder;
  archive::ArchiveSpec nothing;
  nothing.arch = "gfx950";
  nothing.abi_id = FLYDSL_AOT_GENERATED_ABI_ID;
  write_bytes(folder.file("flydsl_aot.gfx950.fda"), build_or_die(nothing));
  const ScopedEnv archives("FLYDSL_AOT_ARCHIVE_PATH", folder.path().c_str());
  const ScopedEnv jit("FLYDSL_AOT_JIT", "on");
  const ScopedEnv compiler("FLYDSL_AOT_HIPRTC_LIBRARY", FLYDSL_EMULATOR_LIBRARY);
  const ScopedEnv kept("FLYDSL_AOT_JIT_CACHE_DIR", folder.file("jit").c_str());
  tools::LibraryHandle memory;
  memory.open({"emulator", "", ""});
  DeviceProblem problem(memory, {"", "rms_norm", {"x=30x500", "weight=500"}, {"rstd"}, 1});
  ASSERT_EQ(problem.launch(memory.get()), FLYDSL_AOT_OK) << flydsl_aot_last_error();
  const auto right = problem.results();
  const Handle handle = open_between();
  between->reset();
  const StreamOf first(0), second(1), third(2);
  for (const hipStream_t stream :
       {static_cast<hipStream_t>(second), static_cast<hipStream_t>(first),
        static_cast<hipStream_t>(second)}) {
    problem.poison();
    ASSERT_EQ(problem.launch(handle.get(), stream), FLYDSL_AOT_OK) << flydsl_aot_last_error();
    EXPECT_HIP(hipSuccess, hipStreamSynchronize(stream));
    EXPECT_EQ(problem.results(), right);
  }
  EXPECT_EQ(between->calls[kModuleLoadData], 2);
  EXPECT_EQ(problem.launch(handle.get(), third), FLYDSL_AOT_UNSUPPORTED_ARCH);
}

TEST(OtherArchitecture, HasNoArchiveHere) {
  ASSERT_NE(open_hip_between(HIP_BETWEEN, FLYDSL_EMULATOR_LIBRARY), nullptr);
  EXPECT_HIP(hipSuccess, hipSetDevice(2));
  flydsl_aot_open_options options{};
  options.struct_size = sizeof options;
  options.device = FLYDSL_AOT_DEVICE_HIP;
  options.device_library = HIP_BETWEEN;
  const TempFolder folder;
  options.archive_path = folder.path().c_str();
  flydsl_aot_handle *handle = nullptr;
  EXPECT_EQ(flydsl_aot_open(&options, &handle), FLYDSL_AOT_ARCHIVE_NOT_FOUND);
  EXPECT_NE(std::string(flydsl_aot_last_error()).find(folder.file("flydsl_aot.gfx942.fda")),
            std::string::npos)
      << flydsl_aot_last_error();
  EXPECT_HIP(hipSuccess, hipSetDevice(0));
}

}  // namespace
}  // namespace flydsl::test
