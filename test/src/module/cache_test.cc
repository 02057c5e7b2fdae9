#include "src/module/cache.h"

#include <barrier>
#include <thread>

#include "test/src/archive/archive_fixture.h"
#include "test/src/device/fake_hip.h"

namespace flydsl::test {
namespace {

constexpr module::KernargContract kContract = {77, 16};

class Cache : public ::testing::Test {
 protected:
  void SetUp() override {
    fake_ = open_fake_hip(FAKE_HIP7);
    ASSERT_NE(fake_, nullptr);
    fake_->reset();
    ASSERT_TRUE(device::Runtime::open(FLYDSL_AOT_DEVICE_HIP, FAKE_HIP7, &runtime_).ok());
    write_bytes(folder_.file("a.fda"), build_or_die(small_spec()));
    ASSERT_TRUE(archive::Archive::open(folder_.file("a.fda"), kAbiId, &archive_).ok());
    cache_ = std::make_unique<module::ModuleCache>(*runtime_, *archive_);
  }
  Status get(int device, uint32_t entry, void *stream = nullptr) {
    fake_->make_current(device);
    module::ModuleCache::Use use;
    const Status status = cache_->get(device, entry, kContract, stream, &use);
    function_ = use.function();
    return status;
  }
  FakeHip *fake_ = nullptr;
  TempFolder folder_;
  std::unique_ptr<device::Runtime> runtime_;
  std::unique_ptr<archive::Archive> archive_;
  std::unique_ptr<module::ModuleCache> cache_;
  device::HipFunction function_ = nullptr;
};

TEST_F(Cache, LoadsOncePerDeviceAndEntry) {
  ASSERT_TRUE(get(0, 1).ok());
  const void *first = function_;
  EXPECT_EQ(0, std::memcmp(fake_->last_image, fake_image(2).data(), 64));
  ASSERT_TRUE(get(0, 1).ok());
  EXPECT_EQ(function_, first);
  EXPECT_EQ(fake_->loads, 1);
  ASSERT_TRUE(get(1, 1).ok());
  EXPECT_NE(function_, first);
  ASSERT_TRUE(get(0, 2).ok());
  EXPECT_EQ(fake_->loads, 3);
  EXPECT_EQ(fake_->loads_on_device[1], 1);
  fake_->make_current(0);
  cache_.reset();
  EXPECT_EQ(fake_->unloads, 3);
  EXPECT_EQ(fake_->live_modules, 0);
  EXPECT_EQ(fake_->current_device(), 0);
}

TEST_F(Cache, ManyThreadsOneLoad) {
  constexpr int kThreads = 32;
  fake_->load_delay_us = 2000;
  std::barrier start(kThreads);
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      const int device = i % 2;
      fake_->make_current(device);
      start.arrive_and_wait();
      for (uint32_t entry = 0; entry < 3; ++entry) {
        module::ModuleCache::Use use;
        failures +=
            !cache_->get(device, (entry + i) % 3, kContract, nullptr, &use).ok() || !use.function();
      }
    });
  }
  for (auto &thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(fake_->loads, 6);  // 2 devices x 3 kernels
  EXPECT_EQ(fake_->loads_on_device[0], 3);
}

TEST_F(Cache, FailuresAreNotRemembered) {
  fake_->load_error = 2;
  EXPECT_EQ(get(0, 0).code(), FLYDSL_AOT_OUT_OF_DEVICE_MEMORY);
  fake_->load_error = 0;
  fake_->function_error = 500;
  const Status status = get(0, 0);
  EXPECT_EQ(status.code(), FLYDSL_AOT_KERNEL_LOAD_FAILED);
  EXPECT_NE(status.message().find("a_symbol"), std::string::npos) << status.message();
  EXPECT_EQ(fake_->live_modules, 0);  // the module without the function is gone again
  fake_->function_error = 0;
  EXPECT_TRUE(get(0, 0).ok());
  EXPECT_EQ(fake_->peek_at_last_error(), 0);
}

TEST_F(Cache, FirstUseInsideACapture) {
  void *capturing = fake_stream(0, true);
  const Status status = get(0, 0, capturing);
  EXPECT_EQ(status.code(), FLYDSL_AOT_CAPTURE_NEEDS_PREFETCH);
  EXPECT_NE(status.message().find("flydsl_aot_op_prefetch"), std::string::npos) << status.message();
  EXPECT_EQ(fake_->loads, 0);
  // Another stream is being captured, which only the load itself finds out.
  fake_->load_error = 900;
  const Status other = get(0, 0, fake_stream(0));
  EXPECT_EQ(other.code(), FLYDSL_AOT_CAPTURE_NEEDS_PREFETCH);
  EXPECT_NE(other.message().find("flydsl_aot_op_prefetch"), std::string::npos) << other.message();
  fake_->load_error = 0;
  ASSERT_TRUE(get(0, 0, fake_stream(0)).ok());
  EXPECT_TRUE(get(0, 0, capturing).ok());  // loaded now
}

TEST_F(Cache, EntriesThatDoNotFitTheCallOrTheDevice) {
  module::ModuleCache::Use use;
  for (const module::KernargContract contract :
       {module::KernargContract{78, 16}, module::KernargContract{77, 24}}) {
    const Status status = cache_->get(0, 0, contract, nullptr, &use);
    EXPECT_EQ(status.code(), FLYDSL_AOT_ARCHIVE_MISMATCH);
    EXPECT_NE(status.message().find("'a' takes arguments"), std::string::npos) << status.message();
  }
  std::strcpy(fake_->target_id[0], "gfx942:sramecc+:xnack-");
  std::unique_ptr<device::Runtime> other;
  ASSERT_TRUE(device::Runtime::open(FLYDSL_AOT_DEVICE_HIP, FAKE_HIP7, &other).ok());
  module::ModuleCache cache(*other, *archive_);
  const Status status = cache.get(0, 0, kContract, nullptr, &use);
  EXPECT_EQ(status.code(), FLYDSL_AOT_UNSUPPORTED_ARCH);
  EXPECT_NE(status.message().find("gfx942"), std::string::npos) << status.message();
  EXPECT_EQ(fake_->loads, 0);
}

// open_options::max_loaded_kernels.
class LimitedCache : public Cache {
 protected:
  void SetUp() override {
    Cache::SetUp();
    cache_ = std::make_unique<module::ModuleCache>(*runtime_, *archive_, 2);
  }
};

TEST_F(LimitedCache, UnloadsWhatWasNotUsedForTheLongestTime) {
  ASSERT_TRUE(get(0, 0).ok());
  ASSERT_TRUE(get(0, 1).ok());
  ASSERT_TRUE(get(0, 0).ok());
  ASSERT_TRUE(get(1, 2).ok());  // another device has a limit of its own
  EXPECT_EQ(fake_->unloads, 0);
  ASSERT_TRUE(get(0, 2).ok());  // in place of 1
  EXPECT_EQ(fake_->unloads, 1);
  EXPECT_EQ(fake_->live_modules, 3);
  const int loads = fake_->loads;
  ASSERT_TRUE(get(0, 0).ok());
  ASSERT_TRUE(get(0, 2).ok());
  EXPECT_EQ(fake_->loads, loads);
  ASSERT_TRUE(get(0, 1).ok());
  EXPECT_EQ(fake_->loads, loads + 1);
  fake_->make_current(0);
  cache_.reset();
  EXPECT_EQ(fake_->live_modules, 0);
}

TEST_F(LimitedCache, KernelsThatAreHeldOrInAGraphStay) {
  ASSERT_TRUE(get(0, 0).ok());
  ASSERT_TRUE(get(0, 0, fake_stream(0, true)).ok());  // captured
  module::ModuleCache::Use held;
  ASSERT_TRUE(cache_->get(0, 1, kContract, nullptr, &held).ok());
  ASSERT_TRUE(get(0, 2).ok());
  EXPECT_EQ(fake_->unloads, 0);  // three, with a limit of two
  fake_->captures_ended = true;
  ASSERT_TRUE(get(0, 2).ok());
  EXPECT_EQ(fake_->unloads, 0);
}

TEST_F(LimitedCache, ADeviceThatCannotBeWaitedForKeepsThem) {
  fake_->synchronize_error = 900;
  for (const uint32_t entry : {0u, 1u, 2u}) ASSERT_TRUE(get(0, entry).ok());
  EXPECT_EQ(fake_->unloads, 0);
  EXPECT_EQ(fake_->peek_at_last_error(), 0);
  fake_->synchronize_error = 0;
  fake_->make_current(0);
}

// To wait for the device would end the capture.
TEST_F(LimitedCache, NothingIsUnloadedAmidACapture) {
  cache_ = std::make_unique<module::ModuleCache>(*runtime_, *archive_, 1);
  ASSERT_TRUE(get(0, 0).ok());
  ASSERT_TRUE(get(0, 0, fake_stream(0, true)).ok());
  ASSERT_TRUE(get(0, 1, fake_stream(0)).ok());
  EXPECT_EQ(fake_->unloads, 0);
  fake_->captures_ended = true;
  ASSERT_TRUE(get(0, 2, fake_stream(0)).ok());
  EXPECT_EQ(fake_->unloads, 1) << "0 is in a graph";
}

// A capture of which the cache knows nothing is not ended by what it unloads.
TEST_F(LimitedCache, UnloadsInTheRelaxedMode) {
  for (const uint32_t entry : {0u, 1u, 2u}) ASSERT_TRUE(get(0, entry).ok());
  EXPECT_EQ(fake_->unloads, 1);
  fake_->make_current(0);
  cache_.reset();
  EXPECT_EQ(fake_->unloads, 3);
  EXPECT_EQ(fake_->strict_unloads, 0);
  EXPECT_EQ(fake_->capture_mode(), 0) << "the caller's mode";
}

// Threads that use more kernels than the limit: each function is that of a loaded module while it is held.
TEST_F(LimitedCache, ManyThreads) {
  cache_ = std::make_unique<module::ModuleCache>(*runtime_, *archive_, 1);
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      fake_->make_current(0);
      for (uint32_t turn = 0; turn < 300; ++turn) {
        module::ModuleCache::Use use;
        failures += !cache_->get(0, (turn * 7 + i) % 3, kContract, nullptr, &use).ok();
        size_t bytes = 0;
        void *extra[] = {reinterpret_cast<void *>(1), &bytes, reinterpret_cast<void *>(2), &bytes,
                         reinterpret_cast<void *>(3)};
        failures += runtime_->api().module_launch_kernel(use.function(), 1, 1, 1, 1, 1, 1, 0,
                                                         nullptr, nullptr, extra) != 0;
      }
    });
  }
  for (auto &thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_GT(fake_->unloads, 0);
  fake_->make_current(0);
  cache_.reset();
  EXPECT_EQ(fake_->live_modules, 0);
}

TEST_F(Cache, DamagedCodeObject) {
  const uint64_t offset = archive_->entries()[0].frame_offset;
  std::fstream file(folder_.file("a.fda"), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(offset + 9));
  file.put('\x7f').flush();
  EXPECT_EQ(get(0, 0).code(), FLYDSL_AOT_ARCHIVE_CORRUPT);
  EXPECT_EQ(fake_->loads, 0);
  EXPECT_TRUE(get(0, 1).ok());
}

}  // namespace
}  // namespace flydsl::test
