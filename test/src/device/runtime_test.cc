// Finding a HIP runtime and the shims of its versions, against pretend runtimes.
#include "src/device/runtime.h"

#include "test/src/archive/archive_fixture.h"
#include "test/src/device/fake_hip.h"

namespace flydsl::test {
namespace {

using device::Runtime;

Status open_hip(const char *path, std::unique_ptr<Runtime> *runtime) {
  return Runtime::open(FLYDSL_AOT_DEVICE_HIP, path, runtime);
}

struct Version {
  const char *path;
  int major;
  const char *device_name;
};
const Version kVersions[] = {
    {FAKE_HIP5, 5, "Fake 5"}, {FAKE_HIP6, 6, "Fake 600"}, {FAKE_HIP7, 7, "Fake 600"}};

TEST(Device, EveryKnownMajorVersion) {
  for (const Version &version : kVersions) {
    FakeHip *fake = open_fake_hip(version.path);
    ASSERT_NE(fake, nullptr) << version.path;
    fake->reset();
    fake->compute_units = 304;
    std::strcpy(fake->target_id[1], "gfx942:sramecc+:xnack-");
    std::unique_ptr<Runtime> runtime;
    const Status status = open_hip(version.path, &runtime);
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_EQ(runtime->devices().size(), 2u);
    EXPECT_EQ(runtime->devices()[0].name, version.device_name);
    EXPECT_EQ(runtime->devices()[0].target_id, "gfx950:sramecc+:xnack-");
    EXPECT_EQ(runtime->devices()[0].compute_units, 304u);
    EXPECT_EQ(runtime->devices()[1].target_id, "gfx942:sramecc+:xnack-");
    EXPECT_EQ(runtime->api().runtime_version, fake->runtime_version);
    EXPECT_EQ(runtime->api().library_path, version.path);
    // The stream's device where it can be asked, else the current one.
    int device = -1;
    ASSERT_TRUE(runtime->stream_device(fake_stream(1), &device).ok());
    EXPECT_EQ(device, version.major == 5 ? 0 : 1);
    fake->make_current(1);
    for (const uintptr_t special : {0, 1, 2}) {
      ASSERT_TRUE(runtime->stream_device(reinterpret_cast<void *>(special), &device).ok());
      EXPECT_EQ(device, 1);
    }
  }
}

TEST(Device, UnknownVersionsAreRefused) {
  FakeHip *fake = open_fake_hip(FAKE_HIP8);
  fake->reset();
  for (const int version : {80000000, 40300000, 0, -1, 2000000000}) {
    fake->runtime_version = version;
    std::unique_ptr<Runtime> runtime;
    const Status status = open_hip(FAKE_HIP8, &runtime);
    EXPECT_EQ(status.code(), FLYDSL_AOT_DEVICE_LIBRARY_NOT_FOUND);
    EXPECT_NE(status.message().find("this library knows HIP 5, 6 and 7"), std::string::npos)
        << status.message();
  }
  // Says 6 but has no R0600: refused rather than read with another layout.
  fake = open_fake_hip(FAKE_HIP5);
  fake->reset();
  fake->runtime_version = 60200000;
  std::unique_ptr<Runtime> runtime;
  const Status status = open_hip(FAKE_HIP5, &runtime);
  EXPECT_EQ(status.code(), FLYDSL_AOT_DEVICE_LIBRARY_NOT_FOUND);
  EXPECT_NE(status.message().find("hipGetDevicePropertiesR0600"), std::string::npos)
      << status.message();
}

TEST(Device, UnusableLibrariesGiveReasons) {
  TempFolder folder;
  write_bytes(folder.file("text.so"), {'h', 'e', 'l', 'l', 'o'});
  struct Row {
    std::string path;
    const char *reason;
  };
  const Row rows[] = {{folder.file("absent.so"), "cannot open shared object file"},
                      {folder.file("text.so"), "file too short"},
                      {folder.path(), "cannot read file data"},
                      {"libm.so.6", "lacks the HIP function(s) hipRuntimeGetVersion"},
                      {FAKE_HIP_INCOMPLETE_PATH, "lacks the HIP function(s) hipModuleLoadData"}};
  for (const Row &row : rows) {
    std::unique_ptr<Runtime> runtime;
    for (const bool by_environment : {false, true}) {
      const ScopedEnv env("FLYDSL_AOT_HIP_LIBRARY", by_environment ? row.path.c_str() : nullptr);
      const Status status = open_hip(by_environment ? nullptr : row.path.c_str(), &runtime);
      EXPECT_EQ(status.code(), FLYDSL_AOT_DEVICE_LIBRARY_NOT_FOUND);
      EXPECT_NE(status.message().find(row.path), std::string::npos) << status.message();
      EXPECT_NE(status.message().find(row.reason), std::string::npos) << status.message();
      EXPECT_NE(status.message().find(by_environment ? "FLYDSL_AOT_HIP_LIBRARY"
                                                     : "option device_library"),
                std::string::npos)
          << status.message();
      EXPECT_EQ(runtime, nullptr);
    }
  }
}

TEST(Device, EmulatorByEnvironmentAndAbsence) {
  std::unique_ptr<Runtime> runtime;
  {
    open_fake_hip(FAKE_HIP7)->reset();
    const ScopedEnv env("FLYDSL_AOT_EMULATOR_LIBRARY", FAKE_HIP7);
    const ScopedEnv not_this("FLYDSL_AOT_HIP_LIBRARY", "/nonexistent");
    ASSERT_TRUE(Runtime::open(FLYDSL_AOT_DEVICE_EMULATOR, nullptr, &runtime).ok());
  }
  const ScopedEnv env("FLYDSL_AOT_EMULATOR_LIBRARY", "/nonexistent/emulator.so");
  const Status status = Runtime::open(FLYDSL_AOT_DEVICE_EMULATOR, nullptr, &runtime);
  EXPECT_EQ(status.code(), FLYDSL_AOT_DEVICE_LIBRARY_NOT_FOUND);
  EXPECT_NE(status.message().find("/nonexistent/emulator.so"), std::string::npos);
}

TEST(Device, NoDeviceAndErrorsAtOpen) {
  FakeHip *fake = open_fake_hip(FAKE_HIP6);
  std::unique_ptr<Runtime> runtime;
  const auto expect = [&](flydsl_aot_status code, const char *part) {
    const Status status = open_hip(FAKE_HIP6, &runtime);
    EXPECT_EQ(status.code(), code) << status.message();
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
    EXPECT_EQ(fake->peek_at_last_error(), 0);
    fake->reset();
  };
  fake->reset();
  fake->device_count = 0;
  expect(FLYDSL_AOT_NO_DEVICE, "no usable device");
  fake->count_error = 100;
  expect(FLYDSL_AOT_NO_DEVICE, "hipGetDeviceCount failed: HIP error 100");
  fake->version_error = 100;
  expect(FLYDSL_AOT_NO_DEVICE, "hipRuntimeGetVersion");
  fake->version_error = 999;
  expect(FLYDSL_AOT_DEVICE_ERROR, "999");
  fake->properties_error = 101;
  expect(FLYDSL_AOT_DEVICE_ERROR,
         "hipGetDevicePropertiesR0600 failed: HIP error 101 (hipErrorFake: fake failure)");
}

TEST(Device, FailuresClearTheStickyError) {
  FakeHip *fake = open_fake_hip(FAKE_HIP7);
  fake->reset();
  std::unique_ptr<Runtime> runtime;
  ASSERT_TRUE(open_hip(FAKE_HIP7, &runtime).ok());
  fake->launch_error = 719;
  fake->malloc_error = 2;
  fake->memcpy_error = 1;
  fake->synchronize_error = 719;
  fake->load_error = 209;
  fake->capture_error = 900;
  fake->stream_device_error = 709;
  void *p = nullptr;
  int device = 0;
  bool capturing = false;
  struct Row {
    Status status;
    flydsl_aot_status code;
    const char *part;
  };
  const Row rows[] = {
      {runtime->malloc(1000, &p), FLYDSL_AOT_OUT_OF_DEVICE_MEMORY,
       "1000 bytes: hipMalloc failed: HIP error 2"},
      {runtime->upload(&device, &device, 4), FLYDSL_AOT_DEVICE_ERROR, "hipMemcpy (host to device)"},
      {runtime->download(&device, &device, 4), FLYDSL_AOT_DEVICE_ERROR,
       "hipMemcpy (device to host)"},
      {runtime->synchronize(), FLYDSL_AOT_DEVICE_LOST,
       "hipDeviceSynchronize failed: HIP error 719 (hipErrorLaunchFailure: unspecified launch "
       "failure)"},
      {runtime->load_module("image", &p), FLYDSL_AOT_KERNEL_LOAD_FAILED,
       "hipModuleLoadData failed: HIP error 209"},
      {runtime->stream_capturing(fake_stream(0), &capturing), FLYDSL_AOT_DEVICE_ERROR,
       "hipStreamIsCapturing"},
      {runtime->stream_device(fake_stream(0), &device), FLYDSL_AOT_DEVICE_ERROR,
       "hipStreamGetDevice"},
  };
  for (const Row &row : rows) {
    EXPECT_EQ(row.status.code(), row.code) << row.part;
    EXPECT_NE(row.status.message().find(row.part), std::string::npos) << row.status.message();
  }
  EXPECT_EQ(fake->peek_at_last_error(), 0);
  fake->load_error = 900;
  EXPECT_EQ(runtime->load_module("image", &p).code(), FLYDSL_AOT_CAPTURE_NEEDS_PREFETCH);
  EXPECT_EQ(fake->peek_at_last_error(), 0);
}

TEST(Device, TheEmulatorExplainsItself) {
  FakeHip *fake = open_fake_hip(FAKE_HIP_EMULATOR_PATH);
  fake->reset();
  std::unique_ptr<Runtime> runtime;
  ASSERT_TRUE(open_hip(FAKE_HIP_EMULATOR_PATH, &runtime).ok());
  EXPECT_TRUE(runtime->api().emulator());
  fake->synchronize_error = 719;
  EXPECT_NE(runtime->synchronize().message().find("lane 5 read out of bounds"), std::string::npos);
  fake->synchronize_error = 1;
  EXPECT_NE(runtime->synchronize().message().find("the argument was wrong"), std::string::npos);
}

TEST(Device, ScopeRestoresTheCallersDevice) {
  FakeHip *fake = open_fake_hip(FAKE_HIP7);
  fake->reset();
  std::unique_ptr<Runtime> runtime;
  ASSERT_TRUE(open_hip(FAKE_HIP7, &runtime).ok());
  {
    device::DeviceScope scope(*runtime);
    ASSERT_TRUE(scope.enter(1).ok());
    EXPECT_EQ(fake->current_device(), 1);
  }
  EXPECT_EQ(fake->current_device(), 0);
  {
    device::DeviceScope scope(*runtime);
    fake->set_device_error = 101;
    EXPECT_EQ(scope.enter(1).code(), FLYDSL_AOT_DEVICE_ERROR);
  }
  EXPECT_EQ(fake->current_device(), 0);
  EXPECT_EQ(fake->peek_at_last_error(), 0);
}

// A runtime that the process loaded itself, and locally, is found by its name and used. In a
// process of its own, since a library once loaded stays.
TEST(DeviceDeathTest, AnAlreadyLoadedRuntimeIsUsed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  TempFolder folder;
  const std::string path = folder.file("libamdhip64.so.6");
  std::filesystem::copy_file(FAKE_HIP6, path);
  EXPECT_EXIT(
      {
        unsetenv("FLYDSL_AOT_HIP_LIBRARY");
        FakeHip *fake = open_fake_hip(path.c_str());
        fake->compute_units = 4711;
        std::unique_ptr<Runtime> runtime;
        const Status status = open_hip(nullptr, &runtime);
        const bool used = status.ok() && runtime->devices()[0].compute_units == 4711 &&
                          runtime->api().library_path.find("libamdhip64.so.6") != std::string::npos;
        std::fprintf(stderr, "%s\n", status.message().c_str());
        std::_Exit(used ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace flydsl::test
