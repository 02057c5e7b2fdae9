#include "emulator/memory/address_space.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace flydsl::emu {
namespace {

AddressSpace &space() {
  return AddressSpace::instance();
}

uint64_t address_of(const void *pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

bool is_poisoned(const void *memory, size_t bytes) {
  const auto *p = static_cast<const unsigned char *>(memory);
  for (size_t i = 0; i < bytes; ++i) {
    if (p[i] != 0xAB) return false;
  }
  return true;
}

TEST(AddressSpace, FreshMemoryIsPoisonedAndAligned) {
  for (const size_t bytes :
       {size_t{1}, size_t{255}, size_t{256}, size_t{16384}, size_t{16385}, size_t{1} << 20}) {
    void *memory = space().allocate(bytes, "test");
    ASSERT_NE(memory, nullptr) << bytes;
    EXPECT_EQ(address_of(memory) % 256, 0u) << bytes;
    EXPECT_TRUE(is_poisoned(memory, bytes)) << bytes;
    std::memset(memory, 0, bytes);
    EXPECT_TRUE(space().release(memory)) << bytes;
    void *again = space().allocate(bytes, "test");
    EXPECT_TRUE(is_poisoned(again, bytes)) << "reused memory, " << bytes;
    EXPECT_TRUE(space().release(again));
  }
}

TEST(AddressSpace, RegionsAreExact) {
  for (const size_t bytes : {size_t{100}, size_t{100000}}) {
    void *memory = space().allocate(bytes, "test region");
    const auto snapshot = space().snapshot();
    const uint64_t begin = address_of(memory);
    const Region *region = snapshot->find(begin);
    ASSERT_NE(region, nullptr);
    EXPECT_EQ(region->begin, begin);
    EXPECT_EQ(region->end, begin + bytes);
    EXPECT_TRUE(region->writable);
    EXPECT_STREQ(region->what, "test region");
    EXPECT_EQ(snapshot->find(begin + bytes - 1), region);
    EXPECT_EQ(snapshot->find(begin + bytes), nullptr);
    EXPECT_EQ(snapshot->find(begin - 1), nullptr);
    EXPECT_EQ(snapshot->nearest(begin + bytes), region);
    EXPECT_EQ(snapshot->nearest(begin - 1), region);
    EXPECT_TRUE(space().release(memory));
    EXPECT_EQ(snapshot->find(begin), region) << "a snapshot does not change";
    EXPECT_EQ(space().snapshot()->find(begin), nullptr);
  }
}

TEST(AddressSpace, NearestOfNothingIsNull) {
  EXPECT_EQ(RegionSnapshot({}).nearest(1), nullptr);
  EXPECT_EQ(RegionSnapshot({}).find(1), nullptr);
}

TEST(AddressSpace, NearestPicksTheCloserSide) {
  const RegionSnapshot snapshot({{100, 200, true, "low"}, {300, 400, true, "high"}});
  EXPECT_STREQ(snapshot.nearest(0)->what, "low");
  EXPECT_STREQ(snapshot.nearest(150)->what, "low");
  EXPECT_STREQ(snapshot.nearest(220)->what, "low");
  EXPECT_STREQ(snapshot.nearest(290)->what, "high");
  EXPECT_STREQ(snapshot.nearest(1000)->what, "high");
}

TEST(AddressSpace, ReleaseRefusesWhatItDidNotHandOut) {
  char local = 0;
  EXPECT_FALSE(space().release(&local));
  EXPECT_FALSE(space().release(nullptr));
  for (const size_t bytes : {size_t{1000}, size_t{100000}}) {
    char *memory = static_cast<char *>(space().allocate(bytes, "test"));
    EXPECT_FALSE(space().release(memory + 256));
    EXPECT_TRUE(space().release(memory));
    EXPECT_FALSE(space().release(memory)) << "twice";
  }
}

TEST(AddressSpace, RemembersForeignMemory) {
  alignas(8) static char foreign[64];
  space().remember(foreign, sizeof foreign, false, "foreign");
  const Region *region = space().snapshot()->find(address_of(foreign) + 63);
  ASSERT_NE(region, nullptr);
  EXPECT_FALSE(region->writable);
  EXPECT_FALSE(space().release(foreign)) << "not an allocation";
  space().forget(foreign);
  EXPECT_EQ(space().snapshot()->find(address_of(foreign)), nullptr);
  void *memory = space().allocate(100, "test");
  space().forget(memory);
  EXPECT_NE(space().snapshot()->find(address_of(memory)), nullptr) << "forget() is not release()";
  EXPECT_TRUE(space().release(memory));
}

TEST(AddressSpace, CountsLiveBytes) {
  const size_t before = space().live_bytes();
  void *small = space().allocate(1000, "test");
  void *large = space().allocate(1000000, "test");
  EXPECT_EQ(space().live_bytes(), before + 1001000);
  space().release(small);
  space().release(large);
  EXPECT_EQ(space().live_bytes(), before);
}

TEST(AddressSpace, TakesMoreThanTheHostHasWhenTouchedSparsely) {
  const size_t bytes = size_t{200} << 30;
  char *memory = static_cast<char *>(space().allocate(bytes, "test"));
  ASSERT_NE(memory, nullptr);
  EXPECT_TRUE(is_poisoned(memory, size_t{1} << 20));
  EXPECT_TRUE(is_poisoned(memory + bytes - (size_t{1} << 20), size_t{1} << 20));
  EXPECT_EQ(memory[bytes / 2], 0) << "the middle is not poisoned";
  EXPECT_TRUE(space().release(memory));
}

TEST(AddressSpace, ImpossibleSizesAreOutOfMemory) {
  EXPECT_EQ(space().allocate(size_t{1} << 60, "test"), nullptr);
  EXPECT_EQ(space().allocate(SIZE_MAX, "test"), nullptr);
  EXPECT_EQ(space().allocate(0, "test"), nullptr);
}

TEST(AddressSpaceDeathTest, GuardPagesCatchTheHost) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  char *memory = static_cast<char *>(space().allocate(1 << 20, "test"));
  EXPECT_DEATH(reinterpret_cast<volatile char *>(memory)[1 << 20] = 1, "");
  EXPECT_DEATH(reinterpret_cast<volatile char *>(memory)[-1] = 1, "");
  EXPECT_TRUE(space().release(memory));
}

TEST(AddressSpace, ManySmallBlocksNeverOverlap) {
  constexpr uint64_t kSeed = 20250101;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937_64 random(kSeed);
  std::vector<std::pair<char *, size_t>> live;
  for (int step = 0; step < 20000; ++step) {
    if (live.size() < 3000 && random() % 3 != 0) {
      const size_t bytes = 1 + random() % 5000;
      char *memory = static_cast<char *>(space().allocate(bytes, "test"));
      ASSERT_NE(memory, nullptr);
      live.emplace_back(memory, bytes);
    } else if (!live.empty()) {
      std::swap(live[random() % live.size()], live.back());
      ASSERT_TRUE(space().release(live.back().first));
      live.pop_back();
    }
  }
  std::sort(live.begin(), live.end());
  for (size_t i = 0; i + 1 < live.size(); ++i)
    EXPECT_LE(live[i].first + live[i].second + 256, live[i + 1].first)
        << "at least a red zone apart";
  for (const auto &[memory, bytes] : live) EXPECT_TRUE(space().release(memory));
}

TEST(AddressSpace, ThreadsMayAllocateAtOnce) {
  const size_t before = space().live_bytes();
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([t] {
      std::mt19937_64 random(t);
      for (int i = 0; i < 300; ++i) {
        const size_t bytes = 1 + random() % 40000;
        char *memory = static_cast<char *>(space().allocate(bytes, "test"));
        std::memset(memory, t, bytes);
        const auto snapshot = space().snapshot();
        EXPECT_NE(snapshot->find(address_of(memory)), nullptr);
        EXPECT_EQ(memory[bytes - 1], t);
        EXPECT_TRUE(space().release(memory));
      }
    });
  }
  for (std::thread &thread : threads) thread.join();
  EXPECT_EQ(space().live_bytes(), before);
}

}  // namespace
}  // namespace flydsl::emu
