// Opening, information, device helpers, archives through the C ABI; loading and unloading the
// library itself.
#include <sys/wait.h>

#include <thread>

#include "test/v2src/attention_fixture.h"

namespace flydsl::test {
namespace {

class LibraryTest : public AttentionTest {
 protected:
  flydsl_aot_status open(const std::function<void(flydsl_aot_open_options &)> &edit) {
    auto options = flydsl_aot::open_options();
    options.device = FLYDSL_AOT_DEVICE_HIP;
    options.device_library = FAKE_HIP7;
    options.archive_path = archive_path_.c_str();
    edit(options);
    flydsl_aot_handle *handle = reinterpret_cast<flydsl_aot_handle *>(1);
    const flydsl_aot_status status = flydsl_aot_open(&options, &handle);
    EXPECT_EQ(handle != nullptr, status == FLYDSL_AOT_OK);
    flydsl_aot_close(handle);
    return status;
  }
  std::string message() const { return flydsl_aot_last_error(); }
};

TEST_F(LibraryTest, Info) {
  flydsl_aot_info info;
  ASSERT_TRUE(library_.info(&info).ok());
  EXPECT_EQ(info.device, FLYDSL_AOT_DEVICE_HIP);
  EXPECT_STREQ(info.device_library, FAKE_HIP7);
  EXPECT_STREQ(info.device_name, "Fake 600");
  EXPECT_STREQ(info.arch, "gfx950");
  EXPECT_STREQ(info.target_id, "gfx950:sramecc+:xnack-");
  EXPECT_EQ(info.archive_path, archive_path_);
  EXPECT_EQ(info.runtime_version, 70200007u);
  EXPECT_EQ(info.compute_units, 256u);
  EXPECT_EQ(info.kernel_count, attention_spec().kernels.size());
  EXPECT_EQ(info.device_count, 2u);
  const auto without = open_without_device();
  ASSERT_TRUE(without.info(&info).ok());
  EXPECT_EQ(info.device, FLYDSL_AOT_DEVICE_NONE);
  EXPECT_STREQ(info.device_library, "");
  EXPECT_EQ(info.device_count, 0u);
  EXPECT_EQ(flydsl_aot_get_info(nullptr, &info), FLYDSL_AOT_INVALID_ARGUMENT);
  EXPECT_EQ(flydsl_aot_get_info(library_.get(), nullptr), FLYDSL_AOT_INVALID_ARGUMENT);
  info.struct_size = 8;
  EXPECT_EQ(flydsl_aot_get_info(library_.get(), &info), FLYDSL_AOT_INVALID_STRUCT_SIZE);
  EXPECT_EQ(flydsl_aot_version(), static_cast<uint32_t>(FLYDSL_AOT_VERSION));
}

TEST_F(LibraryTest, TheEmulatorOpenedAsHipSaysSo) {
  open_fake_hip(FAKE_HIP_EMULATOR_PATH)->reset();
  auto options = flydsl_aot::open_options();
  options.device = FLYDSL_AOT_DEVICE_HIP;
  options.device_library = FAKE_HIP_EMULATOR_PATH;
  options.archive_path = archive_path_.c_str();
  flydsl_aot::Library library;
  ASSERT_TRUE(flydsl_aot::Library::open(options, &library).ok());
  flydsl_aot_info info;
  ASSERT_TRUE(library.info(&info).ok());
  EXPECT_EQ(info.device, FLYDSL_AOT_DEVICE_EMULATOR);
}

TEST_F(LibraryTest, OpenRefusals) {
  EXPECT_EQ(flydsl_aot_open(nullptr, nullptr), FLYDSL_AOT_INVALID_ARGUMENT);
  EXPECT_EQ(open([](auto &o) { o.struct_size = 4; }), FLYDSL_AOT_INVALID_STRUCT_SIZE);
  // The struct's first version.
  EXPECT_EQ(
      open([](auto &o) { o.struct_size = offsetof(flydsl_aot_open_options, max_loaded_kernels); }),
      FLYDSL_AOT_OK);
  EXPECT_EQ(open([](auto &o) { o.jit = 3; }), FLYDSL_AOT_INVALID_ARGUMENT);
  EXPECT_NE(message().find("open_options.jit is 3; allowed: DEFAULT (0), OFF (1), ON (2)"),
            std::string::npos)
      << message();
  EXPECT_EQ(open([](auto &o) { o.device = 9; }), FLYDSL_AOT_INVALID_ARGUMENT);
  EXPECT_NE(message().find("flydsl_aot_open: open_options.device is 9"), std::string::npos)
      << message();
  EXPECT_EQ(open([](auto &o) { o.device = FLYDSL_AOT_DEVICE_NONE; }), FLYDSL_AOT_INVALID_ARGUMENT);
  for (const char *arch : {"", "compute_90", "../etc", "gfx950:", "GFX950"}) {
    EXPECT_EQ(open([&](auto &o) { o.device = FLYDSL_AOT_DEVICE_NONE, o.arch = arch; }),
              FLYDSL_AOT_INVALID_ARGUMENT);
  }
  EXPECT_EQ(open([](auto &o) { o.arch = "gfx950"; }), FLYDSL_AOT_OK);
  EXPECT_EQ(open([](auto &o) { o.arch = "gfx950:xnack-"; }), FLYDSL_AOT_OK);
  EXPECT_EQ(open([](auto &o) { o.arch = "gfx942"; }), FLYDSL_AOT_UNSUPPORTED_ARCH);
  EXPECT_NE(message().find("gfx942"), std::string::npos) << message();
  EXPECT_EQ(open([](auto &o) { o.arch = "gfx950:xnack+"; }), FLYDSL_AOT_UNSUPPORTED_ARCH);
  EXPECT_EQ(open([](auto &o) { o.archive_path = "/nonexistent"; }), FLYDSL_AOT_ARCHIVE_NOT_FOUND);
  EXPECT_EQ(open([](auto &o) { o.device_library = "/nonexistent"; }),
            FLYDSL_AOT_DEVICE_LIBRARY_NOT_FOUND);
  EXPECT_EQ(open([](auto &o) { o.device = FLYDSL_AOT_DEVICE_NONE, o.arch = "gfx942"; }),
            FLYDSL_AOT_UNSUPPORTED_ARCH);
  archive::ArchiveSpec spec = attention_spec();
  spec.abi_id ^= 1;
  write_bytes(archive_path_, build_or_die(spec));
  EXPECT_EQ(open([](auto &) {}), FLYDSL_AOT_ARCHIVE_MISMATCH);
  std::strcpy(fake_->target_id[0], "not a gpu");
  EXPECT_EQ(open([](auto &) {}), FLYDSL_AOT_UNSUPPORTED_ARCH);
  fake_->device_count = 0;
  EXPECT_EQ(open([](auto &) {}), FLYDSL_AOT_NO_DEVICE);
}

TEST_F(LibraryTest, DeviceKindFromTheEnvironment) {
  const auto by_default = [](auto &o) { o.device = FLYDSL_AOT_DEVICE_DEFAULT, o.arch = "gfx950"; };
  for (const char *value : {"hip", "emulator", "none", ""}) {
    const ScopedEnv env("FLYDSL_AOT_DEVICE", value);
    EXPECT_EQ(open(by_default), FLYDSL_AOT_OK) << value;
  }
  const ScopedEnv env("FLYDSL_AOT_DEVICE", "cuda");
  EXPECT_EQ(open(by_default), FLYDSL_AOT_INVALID_ARGUMENT);
  EXPECT_NE(message().find("'cuda'; allowed: hip, emulator, none"), std::string::npos) << message();
}

TEST_F(LibraryTest, ADeviceOfAnotherArchitecture) {
  std::strcpy(fake_->target_id[1], "gfx942:sramecc+:xnack-");
  auto options = flydsl_aot::open_options();
  options.device_library = FAKE_HIP7;
  options.device = FLYDSL_AOT_DEVICE_HIP;
  options.archive_path = archive_path_.c_str();
  flydsl_aot::Library library;
  ASSERT_TRUE(flydsl_aot::Library::open(options, &library).ok());
  EXPECT_TRUE(library.attention_forward(valid_params(), fake_stream(0)).ok());
  const auto status = library.attention_forward(valid_params(), fake_stream(1));
  EXPECT_EQ(status.code(), FLYDSL_AOT_UNSUPPORTED_ARCH);
  EXPECT_NE(status.message().find("device 1 is gfx942"), std::string::npos) << status.message();
  EXPECT_EQ(fake_->current_device(), 0);
}

TEST_F(LibraryTest, KernelsThatWereNeverExecuted) {
  archive::ArchiveSpec spec = attention_spec();
  spec.executed = false;
  write_bytes(archive_path_, build_or_die(spec));
  auto options = flydsl_aot::open_options();
  options.device_library = FAKE_HIP7;
  options.device = FLYDSL_AOT_DEVICE_HIP;
  options.archive_path = archive_path_.c_str();
  const auto call = [&](flydsl_aot::Status *prefetched, flydsl_aot::Status *queried) {
    flydsl_aot::Library library;
    EXPECT_TRUE(flydsl_aot::Library::open(options, &library).ok());
    flydsl_aot_query_result result{};
    result.struct_size = sizeof result;
    *queried = library.attention_forward_query(valid_params(), &result);
    *prefetched = library.attention_forward_prefetch(valid_params());
    return library.attention_forward(valid_params(), fake_stream(0));
  };
  flydsl_aot::Status prefetched, queried;
  for (const char *value : {"", "0"}) {
    const ScopedEnv env("FLYDSL_AOT_ENABLE_EXPERIMENTAL", value);
    const flydsl_aot::Status called = call(&prefetched, &queried);
    for (const flydsl_aot::Status &status : {called, prefetched, queried}) {
      EXPECT_EQ(status.code(), FLYDSL_AOT_NEVER_EXECUTED) << value;
      EXPECT_NE(status.message().find("FLYDSL_AOT_ENABLE_EXPERIMENTAL=1"), std::string::npos)
          << status.message();
    }
    EXPECT_EQ(fake_->launches, 0);
  }
  {
    const ScopedEnv env("FLYDSL_AOT_ENABLE_EXPERIMENTAL", "1");
    EXPECT_TRUE(call(&prefetched, &queried).ok());
    EXPECT_TRUE(prefetched.ok());
    EXPECT_TRUE(queried.ok());
  }
  const ScopedEnv env("FLYDSL_AOT_ENABLE_EXPERIMENTAL", "yes");
  EXPECT_EQ(open([](auto &) {}), FLYDSL_AOT_INVALID_ARGUMENT);
  EXPECT_NE(message().find("'yes'; allowed: 0, 1"), std::string::npos) << message();
}

TEST_F(LibraryTest, DeviceHelpers) {
  flydsl_aot::DeviceBuffer buffer;
  ASSERT_TRUE(flydsl_aot::DeviceBuffer::allocate(library_, 64, &buffer).ok());
  char in[64], out[64] = {};
  std::memset(in, 7, sizeof in);
  EXPECT_TRUE(buffer.upload(in).ok());
  EXPECT_TRUE(buffer.download(out).ok());
  EXPECT_EQ(0, std::memcmp(in, out, sizeof in));
  buffer = {};
  EXPECT_EQ(fake_->allocations, 0);
  void *pointer = in;
  EXPECT_EQ(flydsl_aot_device_malloc(library_.get(), 0, &pointer), FLYDSL_AOT_OK);
  EXPECT_EQ(pointer, nullptr);
  EXPECT_EQ(flydsl_aot_device_malloc(library_.get(), 1, nullptr), FLYDSL_AOT_INVALID_ARGUMENT);
  EXPECT_EQ(flydsl_aot_device_free(library_.get(), nullptr), FLYDSL_AOT_OK);
  EXPECT_EQ(flydsl_aot_device_upload(library_.get(), nullptr, in, 1), FLYDSL_AOT_INVALID_ARGUMENT);
  EXPECT_EQ(flydsl_aot_device_download(library_.get(), out, nullptr, 1),
            FLYDSL_AOT_INVALID_ARGUMENT);
  EXPECT_EQ(flydsl_aot_device_upload(library_.get(), nullptr, nullptr, 0), FLYDSL_AOT_OK);
  fake_->malloc_error = 2;
  EXPECT_EQ(flydsl_aot_device_malloc(library_.get(), 1, &pointer), FLYDSL_AOT_OUT_OF_DEVICE_MEMORY);
  fake_->synchronize_error = 719;
  EXPECT_EQ(flydsl_aot_device_synchronize(library_.get()), FLYDSL_AOT_DEVICE_LOST);
  // HIP's functions for memory in a stream's order are not there.
  pointer = in;
  EXPECT_EQ(flydsl_aot_device_malloc_async(library_.get(), 1, nullptr, &pointer),
            FLYDSL_AOT_UNSUPPORTED_FEATURE);
  EXPECT_EQ(pointer, nullptr);
  EXPECT_EQ(flydsl_aot_device_malloc_async(library_.get(), 0, nullptr, &pointer), FLYDSL_AOT_OK);
  EXPECT_EQ(flydsl_aot_device_malloc_async(library_.get(), 1, nullptr, nullptr),
            FLYDSL_AOT_INVALID_ARGUMENT);
  EXPECT_EQ(flydsl_aot_device_free_async(library_.get(), nullptr, nullptr), FLYDSL_AOT_OK);
  flydsl_aot_stream_info info{};
  EXPECT_EQ(flydsl_aot_device_stream_info(library_.get(), nullptr, &info),
            FLYDSL_AOT_INVALID_STRUCT_SIZE);
  info.struct_size = sizeof info;
  ASSERT_EQ(flydsl_aot_device_stream_info(library_.get(), nullptr, &info), FLYDSL_AOT_OK);
  EXPECT_EQ(info.device, 0);
  EXPECT_STREQ(info.target_id, "gfx950:sramecc+:xnack-");
  EXPECT_TRUE(info.compute_units == 256 && info.served == 1 && info.capturing == 0);
  const auto without = open_without_device();
  EXPECT_EQ(flydsl_aot_device_malloc(without.get(), 1, &pointer), FLYDSL_AOT_NO_DEVICE);
  EXPECT_EQ(flydsl_aot_device_synchronize(nullptr), FLYDSL_AOT_INVALID_ARGUMENT);
}

TEST_F(LibraryTest, Archives) {
  flydsl_aot_archive *archive = nullptr;
  ASSERT_EQ(flydsl_aot_archive_open(archive_path_.c_str(), &archive), FLYDSL_AOT_OK);
  ASSERT_EQ(flydsl_aot_archive_count(archive), attention_spec().kernels.size());
  EXPECT_STREQ(flydsl_aot_archive_arch(archive), "gfx950");
  flydsl_aot_archive_entry entry{};
  entry.struct_size = sizeof entry;
  ASSERT_EQ(flydsl_aot_archive_get(archive, 0, &entry), FLYDSL_AOT_OK);
  EXPECT_STREQ(entry.name, "attention_forward_bf16_d128_causal_direct");
  EXPECT_STREQ(entry.grid_rule, "linear_tiles");
  EXPECT_EQ(entry.block[0], 256u);
  EXPECT_EQ(entry.image_bytes, 3000u);
  std::vector<unsigned char> image(3000);
  EXPECT_EQ(flydsl_aot_archive_read(archive, 0, image.data(), 2999), FLYDSL_AOT_INVALID_ARGUMENT);
  EXPECT_EQ(flydsl_aot_archive_read(archive, 0, image.data(), 3000), FLYDSL_AOT_OK);
  EXPECT_EQ(0, std::memcmp(image.data(), "\177ELF", 4));
  EXPECT_EQ(flydsl_aot_archive_read(archive, 0, nullptr, 0), FLYDSL_AOT_OK);
  EXPECT_EQ(flydsl_aot_archive_get(archive, flydsl_aot_archive_count(archive), &entry),
            FLYDSL_AOT_INVALID_ARGUMENT);
  EXPECT_EQ(flydsl_aot_archive_read(archive, flydsl_aot_archive_count(archive), nullptr, 0),
            FLYDSL_AOT_INVALID_ARGUMENT);
  entry.struct_size = 0;
  EXPECT_EQ(flydsl_aot_archive_get(archive, 0, &entry), FLYDSL_AOT_INVALID_STRUCT_SIZE);
  flydsl_aot_archive_close(archive);
  flydsl_aot_archive_close(nullptr);
  EXPECT_EQ(flydsl_aot_archive_count(nullptr), 0u);
  EXPECT_STREQ(flydsl_aot_archive_arch(nullptr), "");
  EXPECT_EQ(flydsl_aot_archive_open(nullptr, &archive), FLYDSL_AOT_INVALID_ARGUMENT);
  EXPECT_EQ(flydsl_aot_archive_open("/nonexistent", &archive), FLYDSL_AOT_ARCHIVE_NOT_FOUND);
  EXPECT_EQ(archive, nullptr);
  EXPECT_EQ(flydsl_aot_archive_get(nullptr, 0, &entry), FLYDSL_AOT_INVALID_ARGUMENT);
}

TEST(Types, NamesAndSizes) {
  EXPECT_STREQ(flydsl_aot_dtype_name(FLYDSL_AOT_BF16), "bf16");
  EXPECT_STREQ(flydsl_aot_dtype_name(FLYDSL_AOT_E4M3_FNUZ), "e4m3_fnuz");
  EXPECT_STREQ(flydsl_aot_dtype_name(0), "invalid");
  EXPECT_STREQ(flydsl_aot_dtype_name(-1), "invalid");
  EXPECT_EQ(flydsl_aot_dtype_bytes(FLYDSL_AOT_FP64), 8u);
  EXPECT_EQ(flydsl_aot_dtype_bytes(FLYDSL_AOT_E2M1X2), 1u);
  EXPECT_EQ(flydsl_aot_dtype_bytes(1234), 0u);
}

// In a child whose parent had opened a device nothing reaches the runtime again: every function says so, and the parent goes on.
// Without a device the library works in it.
TEST_F(LibraryTest, ForkAfterUse) {
  ASSERT_TRUE(library_.attention_forward(valid_params(), nullptr).ok());
  const int launches = fake_->launches, unloads = fake_->unloads;
  const pid_t child = fork();
  if (child == 0) {
    int wrong = 0;
    const auto expect = [&](bool right, const char *what) {
      if (!right) std::fprintf(stderr, "in the child: %s: %s\n", what, flydsl_aot_last_error());
      wrong += !right;
    };
    const auto params = valid_params();
    const auto is_told = [&](flydsl_aot_status status, const char *what) {
      expect(
          status == FLYDSL_AOT_PROCESS_FORKED &&
              std::strstr(flydsl_aot_last_error(), "forked after its parent had opened a device"),
          what);
    };
    flydsl_aot_query_result result;
    result.struct_size = sizeof result;
    void *pointer = nullptr;
    is_told(flydsl_aot_attention_forward(library_.get(), &params, nullptr), "call");
    is_told(flydsl_aot_attention_forward_prefetch(library_.get(), &params), "prefetch");
    is_told(flydsl_aot_attention_forward_query(library_.get(), &params, &result), "query");
    is_told(flydsl_aot_device_malloc(library_.get(), 8, &pointer), "malloc");
    is_told(flydsl_aot_device_synchronize(library_.get()), "synchronize");
    flydsl_aot_handle *handle = nullptr;
    auto options = flydsl_aot::open_options();
    options.device = FLYDSL_AOT_DEVICE_HIP;
    options.device_library = FAKE_HIP7;
    options.archive_path = archive_path_.c_str();
    is_told(flydsl_aot_open(&options, &handle), "open");
    library_ = {};
    expect(fake_->unloads == unloads && fake_->launches == launches, "the runtime was called");
    const flydsl_aot::Library library = open_without_device();
    expect(library.attention_forward_query(params, &result).ok(), "query without a device");
    std::_Exit(wrong);
  }
  int state = 0;
  ASSERT_EQ(waitpid(child, &state, 0), child);
  EXPECT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == 0);
  EXPECT_TRUE(library_.attention_forward(valid_params(), nullptr).ok());
}

// A process that had opened none, though the library itself was loaded and used.
TEST(LibraryDeathTest, ForkBeforeUse) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        TempFolder folder;
        const std::string path = folder.file("flydsl_aot.gfx950.fda");
        write_bytes(path, build_or_die(attention_spec()));
        auto options = flydsl_aot::open_options();
        options.device = FLYDSL_AOT_DEVICE_NONE;
        options.arch = "gfx950";
        options.archive_path = path.c_str();
        flydsl_aot::Library without;
        if (!flydsl_aot::Library::open(options, &without).ok()) std::_Exit(1);
        const pid_t child = fork();
        if (child == 0) {
          FakeHip *fake = open_fake_hip(FAKE_HIP7);
          fake->reset();
          options.device = FLYDSL_AOT_DEVICE_HIP;
          options.device_library = FAKE_HIP7;
          flydsl_aot::Library library;
          const bool works = flydsl_aot::Library::open(options, &library).ok() &&
                             library.attention_forward(valid_params(), nullptr).ok();
          std::_Exit(works && fake->launches == 1 ? 0 : 2);
        }
        int state = 0;
        waitpid(child, &state, 0);
        std::_Exit(WIFEXITED(state) ? WEXITSTATUS(state) : 3);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace flydsl::test
