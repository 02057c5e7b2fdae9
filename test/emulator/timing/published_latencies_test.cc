// Loops that others timed on an MI350X with s_memtime: facebookexperimental/triton,
// third_party/tlx/tools/microbench/amd_latency.py, results in AMDLatencyModel.cpp of July 2026 (ticks
// of 2.183 GHz, 2.2 GHz clock). The loops here are what Triton compiles such code to: unrolled by 8, four waves
// on the four SIMDs.
#include <gmock/gmock.h>

#include "test/emulator/timing/timing_launch.h"

namespace flydsl::emu::test {
namespace {

class PublishedLatencies : public TimingLaunch {
 protected:
  static constexpr double kClocksPerTick = 2.2 / 2.183;

  // Clocks of an iteration, past the first ones.
  double iteration(const std::string &setup, const std::string &head, const std::string &tail) {
    const auto loop = [&](int count) {
      return clocks(setup + "s_movk_i32 s10, " + std::to_string(8 * count) + "\nl:\n" + head +
                        "s_add_i32 s10, s10, -8\ns_cmp_lg_u32 s10, 0\n" + tail +
                        "s_cbranch_scc1 l\n",
                    4);
    };
    return (loop(24) - loop(8)) / 16;
  }
};

TEST_F(PublishedLatencies, DependentMatrixInstructions) {
  const std::string mfma = "v_mfma_f32_16x16x32_f16 v[0:3], v[12:15], v[8:11], v[0:3]\n";
  EXPECT_NEAR(iteration("", "s_waitcnt lgkmcnt(0)\ns_nop 0\n" + mfma, repeat(7, mfma)) / 8,
              18.25 * kClocksPerTick, 0.5);
}

TEST_F(PublishedLatencies, IndependentMatrixInstructions) {
  const auto mfma = [](int n) {
    const int c = n % 4 * 4;
    return "v_mfma_f32_16x16x32_f16 v[" + std::to_string(c) + ":" + std::to_string(c + 3) +
           "], v[34:37], v[18:21], v[" + std::to_string(c) + ":" + std::to_string(c + 3) + "]\n";
  };
  EXPECT_NEAR(
      iteration("", "s_nop 1\n" + mfma(0), series(31, [&](int n) { return mfma(n + 1); })) / 32,
      16.62 * kClocksPerTick, 0.5);
}

TEST_F(PublishedLatencies, DependentVectorInstructions) {
  const std::string fma = "v_fma_f32 v1, s1, v1, v2\n";
  EXPECT_NEAR(iteration("", repeat(7, fma), fma) / 8, 8.30 * kClocksPerTick, 0.5);
}

// A chain of indices through a table in LDS: address, read, wait.
TEST_F(PublishedLatencies, DependentLdsReads) {
  const std::string gather = "v_lshlrev_b32 v1, 2, v1\nds_read_b32 v1, v1\ns_waitcnt lgkmcnt(0)\n";
  // All indices are 0.
  const std::string setup =
      "v_mov_b32 v1, 0\nds_write_b32 v1, v1\ns_waitcnt lgkmcnt(0)\ns_barrier\n";
  EXPECT_NEAR(iteration(setup, repeat(8, gather), "") / 8, 68.16 * kClocksPerTick, 4);
}

}  // namespace
}  // namespace flydsl::emu::test
