// Micro-kernels of LDS, memory, counters, and the properties that hold for any code. Each answer
// follows by hand from the constants and the fixed latencies of the test's memory.
#include <gmock/gmock.h>

#include <random>

#include "test/emulator/timing/timing_launch.h"

namespace flydsl::emu::test {
namespace {

using timing::ComputeUnitResult;
using timing::GroupTrace;
using timing::Stall;

class MemoryTiming : public TimingLaunch {
 protected:
  void SetUp() override {
    constants_.lds_bytes_per_clock = 128;
    constants_.lds_latency = 64;
  }
};

// v200: 16 bytes a lane, side by side.
const std::string kLinear = "v_and_b32 v200, 63, v0\nv_lshlrev_b32 v200, 4, v200\n";
const std::string kRead = "ds_read_b128 v[4:7], v200\n";
const std::string kWait = "s_waitcnt lgkmcnt(0)\n";
const std::string kPointer = "s_load_dwordx2 s[8:9], s[0:1], 0x0\ns_waitcnt lgkmcnt(0)\n" + kLinear;
const std::string kLoad = "global_load_dwordx4 v[4:7], v200, s[8:9]\n";

// 1024 bytes at 128 a clock, the latency, and the slots of read and wait.
TEST_F(MemoryTiming, LdsLatency) {
  EXPECT_EQ(cost(kLinear, kRead + kWait), 8 + 64 + 4);
  // Of one after the other, in a chain.
  EXPECT_EQ(cost(kLinear, repeat(10, kRead + kWait)), 10 * (8 + 64 + 4));
  EXPECT_EQ(model(kLinear + kRead + kWait).stall_clocks[unsigned(Stall::kLds)], 8 + 64 - 4);
  // Overlapping, the bandwidth counts: 8 clocks each.
  EXPECT_EQ(cost(kLinear, repeat(10, kRead) + kWait), 10 * 8 + 64 + 4);
  constants_.lds_bytes_per_clock = 256;
  EXPECT_EQ(cost(kLinear, repeat(10, kRead) + kWait), 10 * 4 + 64 + 4);
  // Writes go at 128 bytes a clock all the same.
  EXPECT_EQ(cost(kLinear, repeat(10, "ds_write_b128 v200, v[4:7]\n") + kWait), 10 * 8 + 64 + 4);
}

TEST_F(MemoryTiming, BankConflictLadder) {
  for (int shift = 2; shift <= 8; ++shift) {
    const std::string address =
        "v_and_b32 v200, 63, v0\nv_lshlrev_b32 v200, " + std::to_string(shift) + ", v200\n";
    const int passes = 1 << (shift - 2);
    EXPECT_EQ(cost(address, repeat(12, "ds_read_b32 v4, v200\n") + kWait) -
                  cost(address, repeat(4, "ds_read_b32 v4, v200\n") + kWait),
              8 * std::max(4, passes * 2))
        << passes;
  }
}

TEST_F(MemoryTiming, TheSimdsShareTheLds) {
  // Waves on four SIMDs: their reads add up.
  const double one = cost(kLinear, repeat(12, kRead) + kWait);
  const double four = cost(kLinear, repeat(12, kRead) + kWait, 4);
  EXPECT_EQ(one, 12 * 8 + 64 + 4);
  EXPECT_NEAR(four, 4 * 12 * 8 + 64 + 4, 8);
  EXPECT_EQ(model(kLinear + repeat(12, kRead) + kWait, 4).lds_busy, 4 * 12 * 8);
}

// However full the queue, no SIMD gets ahead of the others.
TEST_F(MemoryTiming, TheSimdsTakeTurnsAtTheLds) {
  constants_.lgkm_limit = 1000;
  for (const double queue : {1, 2, 4, 8}) {
    constants_.lds_queue_instructions = queue;
    const ComputeUnitResult r = model(kLinear + repeat(40, kRead), 4);
    double last[4] = {};
    for (const timing::TimelineEvent &e : r.timeline)
      if (e.category == uint8_t(timing::Category::kLds)) last[e.wave] = e.begin;
    EXPECT_LE(*std::max_element(last, last + 4) - *std::min_element(last, last + 4), 4 * 8)
        << queue;
  }
}

TEST_F(MemoryTiming, TheLdsQueueIsBounded) {
  constants_.lds_queue_instructions = 2;
  const ComputeUnitResult r = model(kLinear + repeat(12, kRead) + kWait);
  EXPECT_GT(r.stall_clocks[unsigned(Stall::kLdsQueue)], 6 * 4);
  constants_.lds_queue_instructions = 100;
  constants_.lgkm_limit = 100;
  EXPECT_EQ(model(kLinear + repeat(12, kRead) + kWait).stall_clocks[unsigned(Stall::kLdsQueue)], 0);
  // The counter of a wave is another bound: with 3 in flight at most, a latency passes every 3.
  constants_.lgkm_limit = 3;
  EXPECT_GT(cost(kLinear, repeat(12, kRead) + kWait), 4 * (64 + 8));
}

TEST_F(MemoryTiming, WaitsOverlap) {
  // Sent after 4 clocks of addresses.
  EXPECT_EQ(cost(kPointer, kLoad + "s_waitcnt vmcnt(0)\n"), 504 + 4);
  EXPECT_EQ(cost(kPointer, repeat(5, kLoad + "s_waitcnt vmcnt(0)\n")), 5 * (504 + 4));
  EXPECT_EQ(cost(kPointer, repeat(5, kLoad) + "s_waitcnt vmcnt(0)\n"), 4 * 4 + 504 + 4);
  // vmcnt(4) waits for the first of five only.
  EXPECT_EQ(cost(kPointer, repeat(5, kLoad) + "s_waitcnt vmcnt(4)\n"), 504 + 4);
  EXPECT_EQ(cost(kPointer, repeat(5, kLoad) + "s_waitcnt vmcnt(5)\n"), 6 * 4);
  // Work between load and wait is free.
  EXPECT_EQ(
      cost(kPointer, kLoad + repeat(100, "v_add_f32 v80, v81, v82\n") + "s_waitcnt vmcnt(0)\n"),
      504 + 4);
  const ComputeUnitResult r = model(kPointer + kLoad + "s_waitcnt vmcnt(0)\n");
  EXPECT_EQ(r.stall_clocks[unsigned(Stall::kVectorMemory)], 500);
  EXPECT_EQ(r.stall_clocks[unsigned(Stall::kScalarMemory)], 200 - 4);
}

TEST_F(MemoryTiming, ResultsComeInOrder) {
  // The second load is quicker than the first and still comes after it.
  class Uneven : public FixedLatency {
   public:
    double vector(double clock, const timing::RequestOrigin &origin, const timing::MemoryUse &,
                  const uint64_t *) override {
      return clock + (origin.memory_index == 1 ? 1000 : 100);
    }
  };
  const auto traces = record(kPointer + kLoad + kLoad + "s_waitcnt vmcnt(0)\n");
  Uneven memory;
  const double both =
      timing::simulate_compute_unit(*kernel_.program, {&traces[0]}, constants_, memory).clocks;
  const auto first = record(kPointer + kLoad + kLoad + "s_waitcnt vmcnt(1)\n");
  EXPECT_EQ(timing::simulate_compute_unit(*kernel_.program, {&first[0]}, constants_, memory).clocks,
            both);
}

TEST_F(MemoryTiming, TheCounterOfVectorMemoryIsBounded) {
  constants_.vm_limit = 4;
  // Four at a time.
  EXPECT_GE(cost(kPointer, repeat(12, kLoad) + "s_waitcnt vmcnt(0)\n"), 3 * 504);
  EXPECT_GT(model(kPointer + repeat(12, kLoad)).stall_clocks[unsigned(Stall::kMemoryQueue)], 900);
}

TEST_F(MemoryTiming, AddressesOfTheComputeUnit) {
  // 16 lanes a clock, for the waves of all SIMDs together.
  const std::string code = kPointer + repeat(20, kLoad);
  model(code, 4);
  EXPECT_EQ(memory_.requests.size(), 80u);
  EXPECT_NEAR(memory_.requests.back() - memory_.requests.front(), 79 * 4, 16);
  // Stores send their data as well, 64 bytes a clock.
  model(kPointer + repeat(20, "global_store_dwordx4 v200, v[4:7], s[8:9]\n"));
  EXPECT_NEAR(memory_.requests.back() - memory_.requests.front(), 19 * 16, 16);
}

TEST_F(MemoryTiming, CopiesToLdsTakeItsBandwidth) {
  const std::string setup = kPointer + "s_mov_b32 m0, 0\ns_nop 0\n";
  const std::string copy = "global_load_lds_dwordx4 v200, s[8:9]\n";
  // The data comes after 504 clocks and is written in 8.
  EXPECT_EQ(cost(setup, copy + "s_waitcnt vmcnt(0)\n"), 504 + 8 + 4);
  EXPECT_EQ(model(setup + repeat(10, copy) + "s_waitcnt vmcnt(0)\n").lds_busy, 10 * 8);
  // Ten copies arrive 4 clocks apart; the LDS writes them one after the other.
  EXPECT_EQ(cost(setup, repeat(10, copy) + "s_waitcnt vmcnt(0)\n"), 504 + 10 * 8 + 4);
  // A read that is issued while they are written waits behind those that have arrived.
  const std::string then_read = repeat(10, copy) + "s_waitcnt vmcnt(9)\n" + kRead + kWait;
  EXPECT_GT(cost(setup, then_read), 504 + 8 + 8 + 64 + 16);
  // vmcnt counts the write, not the arrival.
  EXPECT_EQ(cost(setup, repeat(10, copy) + "s_waitcnt vmcnt(8)\n"), 504 + 2 * 8 + 4);
}

// Data that comes between two clocks, at any part of a slot.
TEST_F(MemoryTiming, CopiesMayArriveBetweenClocks) {
  const auto traces = record(kPointer +
                             "s_mov_b32 m0, 0\ns_nop 0\n"
                             "global_load_lds_dwordx4 v200, s[8:9]\ns_waitcnt vmcnt(0)\n");
  memory_.vector_latency = 500;
  const double whole = simulate(traces).clocks;
  for (int eighths = 1; eighths < 32; ++eighths) {
    memory_.vector_latency = 500 + eighths / 8.0;
    EXPECT_EQ(simulate(traces).clocks, whole + 4 * ((eighths + 31) / 32)) << eighths;
  }
}

TEST_F(MemoryTiming, FlatLanesInLds) {
  const std::string flat = "s_mov_b64 s[12:13], src_shared_base\nv_mov_b32 v201, s13\n" + kLinear;
  const double r = cost(flat, "flat_load_dword v4, v[200:201]\ns_waitcnt vmcnt(0) lgkmcnt(0)\n");
  EXPECT_GT(r, 500);
}

// Straight-line code of everything, from a seed.
std::string random_code(uint32_t seed, int length) {
  std::mt19937 random(seed);
  const char *const kPool[] = {
      "v_add_f32 v80, v81, v82\n",
      "v_add_f32 v80, v0, v16\n",
      "v_exp_f32 v90, v80\n",
      "v_mul_f32 v91, v90, v90\n",
      "v_pk_mul_f32 v[80:81], v[82:83], v[84:85]\n",
      "v_mfma_f32_32x32x16_bf16 v[0:15], v[64:67], v[68:71], v[0:15]\n",
      "v_mfma_f32_16x16x32_bf16 v[16:19], v[64:67], v[68:71], v[16:19]\n",
      "ds_read_b128 v[104:107], v200\n",
      "ds_write_b64 v200, v[80:81]\n",
      "global_load_dwordx4 v[108:111], v200, s[8:9]\n",
      "global_store_dword v200, v80, s[8:9]\n",
      "s_load_dword s14, s[0:1], 0x0\n",
      "s_waitcnt lgkmcnt(0)\n",
      "s_waitcnt vmcnt(2)\n",
      "s_add_u32 s10, s11, s12\n",
      "v_cmp_lt_f32 vcc, v0, v1\n",
      "v_cndmask_b32 v92, v93, v94, vcc\n",
      "s_nop 2\n",
  };
  std::string code;
  for (int n = 0; n < length; ++n) code += kPool[random() % std::size(kPool)];
  return code;
}

// Without one of its instructions, code never takes longer. (Of one wave: several may get into each
// other's way, like tasks on several machines.)
TEST_F(MemoryTiming, RemovingWorkNeverCosts) {
  const char *const given = getenv("FLYDSL_TEST_SEED");
  const uint32_t seed = given ? uint32_t(atoi(given)) : 7;
  printf("seed %u\n", seed);
  for (uint32_t round = 0; round < 8; ++round) {
    const auto traces = record(kPointer + random_code(seed + round, 120));
    const double whole = simulate(traces).clocks;
    const timing::WaveTrace &wave = traces[0].waves[0];
    for (size_t gone = 4; gone + 1 < wave.steps.size(); ++gone) {
      std::vector<GroupTrace> less = traces;
      timing::WaveTrace &w = less[0].waves[0];
      w.steps.erase(w.steps.begin() + long(gone));
      for (size_t m = 0; m < w.memory.size(); ++m)
        if (w.memory[m].step == gone) {
          w.memory.erase(w.memory.begin() + long(m));
          break;
        }
      EXPECT_LE(simulate(less).clocks, whole)
          << "seed " << seed + round << " without "
          << kernel_.program->text_of(wave.steps[gone] & ~timing::kNoLanes) << " at " << gone;
    }
  }
}

// Nor do constants that make a unit faster.
TEST_F(MemoryTiming, FasterUnitsNeverCost) {
  for (uint32_t seed = 1; seed <= 4; ++seed) {
    const auto traces = record(kPointer + random_code(seed, 300));
    const double before = simulate(traces).clocks;
    for (double timing::Constants::*member :
         {&timing::Constants::lds_latency, &timing::Constants::transcendental_clocks,
          &timing::Constants::valu_scalar_latency,
          &timing::Constants::transcendental_extra_latency}) {
      const double value = constants_.*member;
      constants_.*member = value / 2;
      EXPECT_LE(simulate(traces).clocks, before) << seed;
      constants_.*member = value;
    }
    memory_.vector_latency /= 2;
    EXPECT_LE(simulate(traces).clocks, before) << seed;
    memory_.vector_latency *= 2;
  }
}

TEST_F(MemoryTiming, EqualRunsAreEqual) {
  const std::string code = kPointer + random_code(3, 400) + "s_barrier\n" + random_code(4, 400);
  const auto traces = record(code, 8, 2);
  const ComputeUnitResult a = simulate(traces), b = simulate(traces);
  EXPECT_EQ(a.clocks, b.clocks);
  EXPECT_EQ(a.wave_clocks, b.wave_clocks);
  ASSERT_EQ(a.timeline.size(), b.timeline.size());
  for (size_t n = 0; n < a.timeline.size(); ++n) {
    EXPECT_EQ(a.timeline[n].begin, b.timeline[n].begin);
    EXPECT_EQ(a.timeline[n].op, b.timeline[n].op);
    EXPECT_EQ(a.timeline[n].wave, b.timeline[n].wave);
  }
  // Recorded again, by more threads, they are the same too.
  EXPECT_EQ(simulate(record(code, 8, 2)).clocks, a.clocks);
}

}  // namespace
}  // namespace flydsl::emu::test
