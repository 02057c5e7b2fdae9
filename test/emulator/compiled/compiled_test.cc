// What clang makes of ordinary source at each optimisation level, against the host's own results.
#include <gtest/gtest.h>

#include "test/emulator/compiled/programs.h"
#include "test/emulator/hip/hip_library.h"
#include "test/emulator/isa/lane_values.h"

namespace flydsl::emu::test {
namespace {

using programs::i32;
using programs::u32;
using programs::u64;

constexpr u32 kGroups = 3, kBlock = 128, kItems = kGroups * kBlock;

std::vector<u32> inputs() {
  Random random(2024);
  std::vector<u32> in(kItems * 8);
  for (u32 &x : in) {
    x = random.next();
    // Small and extreme values often.
    if (x % 5 == 0) x = x >> 27;
    if (x % 7 == 0) x = 0u - (x >> 29);
  }
  return in;
}

class Compiled : public testing::TestWithParam<int> {
 protected:
  std::vector<u32> in_ = inputs();
  std::vector<u64> run(const char *name, const std::vector<u64> &before) {
    const char *arch = std::getenv("FLYDSL_EMU_ARCH");
    TestModule module(std::string("compiled_") + (arch ? arch : "gfx950") + "_O" +
                      std::to_string(GetParam()) + ".co");
    DeviceArray<u32> in(in_);
    DeviceArray<u64> out(before);
    void *in_pointer = in.get(), *out_pointer = out.get();
    void *arguments[] = {&in_pointer, &out_pointer};
    EXPECT_EQ(hipSuccess, hip().hipModuleLaunchKernel(module.function(name), kGroups, 1, 1, kBlock,
                                                      1, 1, 0, nullptr, arguments, nullptr))
        << hip().flydsl_emu_last_error();
    EXPECT_EQ(hipSuccess, hip().hipDeviceSynchronize()) << hip().flydsl_emu_last_error();
    return out.values();
  }
};

#define COMPARE(name)                                                                    \
  TEST_P(Compiled, name) {                                                               \
    const std::vector<u64> out = run(#name, std::vector<u64>(kItems));                   \
    for (u32 id = 0; id < kItems; ++id)                                                  \
      ASSERT_EQ(out[id], programs::name(id, in_.data() + id * 8)) << "work-item " << id; \
  }
EACH_PROGRAM(COMPARE)

TEST_P(Compiled, atomics) {
  std::vector<u64> expected(8);
  expected[7] = ~u64(0);
  const std::vector<u64> out = run("atomics", expected);
  u64 sum = 0, exclusive = 0, sevens = 0;
  u32 most = 0, all = ~0u;
  i32 least = 0;
  float narrow = 0;
  double wide = 0;
  for (u32 id = 0; id < kItems; ++id) {
    const u32 x = in_[id * 8];
    sum += x;
    exclusive ^= u64(x) << 13;
    most = std::max(most, x);
    least = std::min(least, i32(x));
    narrow += float(x & 255);
    wide += double(x & 1023);
    sevens += x & 7;
    all &= x | 0xffff0000u;
  }
  EXPECT_EQ(out[0], sum);
  EXPECT_EQ(out[1], exclusive);
  EXPECT_EQ(out[2], most);
  EXPECT_EQ(i32(out[3]), least);
  EXPECT_EQ(out[4], programs::bits_of(narrow));
  EXPECT_EQ(out[5], programs::bits_of(wide));
  EXPECT_EQ(out[6], sevens);
  EXPECT_EQ(out[7], u64(0xffffffff) << 32 | all);
}

TEST_P(Compiled, together) {
  const std::vector<u64> out = run("together", std::vector<u64>(kItems));
  for (u32 group = 0; group < kGroups; ++group) {
    u64 sum = 0, histogram[16] = {};
    for (u32 i = 0; i < kBlock; ++i) {
      const u32 x = in_[(group * kBlock + i) * 8];
      sum += x;
      ++histogram[x & 15];
    }
    for (u32 i = 0; i < kBlock; ++i)
      ASSERT_EQ(out[group * kBlock + i], sum ^ histogram[i & 15] << 48) << group << " " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, Compiled, testing::Range(0, 4),
                         [](const auto &p) { return std::string(1, 'O') += std::to_string(p.param); });

}  // namespace
}  // namespace flydsl::emu::test
