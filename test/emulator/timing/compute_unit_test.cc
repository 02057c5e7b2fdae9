// Micro-kernels of one unit at a time. Each answer follows by hand from the rules and constants of
// the model: 4-clock slots, passes, wait states.
#include "emulator/timing/compute_unit.h"

#include <gmock/gmock.h>

#include "test/emulator/timing/timing_launch.h"

namespace flydsl::emu::test {
namespace {

using timing::ComputeUnitResult;
using timing::Stall;

class ComputeUnit : public TimingLaunch {
 protected:
  // Clocks between the first instruction of `pair` and the second: what `pair` takes with `filler`
  // less than without is free.
  double stall(const std::string &code, Stall reason) {
    return model(code).stall_clocks[unsigned(reason)];
  }
};

const std::string kMfma = "v_mfma_f32_32x32x16_bf16 v[0:15], v[64:67], v[68:71], v[0:15]\n";
const std::string kValu = "v_add_f32 v80, v81, v82\n";
const std::string kPacked = "v_pk_mul_f32 v[80:81], v[82:83], v[84:85]\n";
const std::string kExp = "v_exp_f32 v90, v91\n";

// n instructions take n slots, and the last slot is the end of the program.
TEST_F(ComputeUnit, VectorInstructionsTakeASlotEach) {
  EXPECT_EQ(clocks(repeat(100, kValu)), 4 * 101);
  // Waves 0 to 3 are on SIMDs of their own, whose slots begin one clock apart; 4 to 7 share them.
  EXPECT_EQ(clocks(repeat(100, kValu), 4), 4 * 101 + 3);
  EXPECT_EQ(clocks(repeat(100, kValu), 8), 4 * 201 + 3);
  EXPECT_EQ(model(repeat(100, kValu), 8).vector_busy, 8 * 400);
}

TEST_F(ComputeUnit, CategoriesOfTwoWavesShareASlot) {
  const std::string scalar = "s_add_u32 s10, s11, s12\n";
  // Each wave alternates; two of them on a SIMD fill both categories of every slot.
  const double one = clocks(repeat(50, kValu + scalar));
  const double two = clocks(repeat(50, kValu + scalar), 5);
  EXPECT_EQ(one, 4 * 101);
  EXPECT_LE(two, one + 8);
  // Of one category they take turns.
  EXPECT_EQ(clocks(repeat(100, scalar), 5), 4 * 201);
}

TEST_F(ComputeUnit, IndependentMatrixInstructionsTakeTheirPasses) {
  const struct {
    const char *code;
    int passes;
  } kCases[] = {
      {"v_mfma_f32_32x32x16_bf16 v[@:+15], v[128:131], v[132:135], v[@:+15]\n", 8},
      {"v_mfma_f32_16x16x32_f16 v[@:+3], v[128:131], v[132:135], v[@:+3]\n", 4},
      {"v_mfma_f32_32x32x8_f16 v[@:+15], v[128:129], v[132:133], v[@:+15]\n", 8},
      {"v_mfma_f32_32x32x64_f8f6f4 v[@:+15], v[128:135], v[136:143], v[@:+15]\n", 16},
      {"v_mfma_f32_32x32x64_f8f6f4 v[@:+15], v[128:131], v[136:139], v[@:+15] cbsz:4 blgp:4\n", 8},
      {"v_mfma_f32_16x16x128_f8f6f4 v[@:+3], v[128:135], v[136:139], v[@:+3] blgp:4\n", 8},
      {"v_mfma_f64_16x16x4_f64 v[@:+7], v[128:129], v[130:131], v[@:+7]\n", 16},
      {"v_smfmac_f32_32x32x32_bf16 v[@:+15], v[128:131], v[132:139], v150\n", 8},
  };
  for (const auto &c : kCases) {
    const auto at = [&](int n) {
      std::string s = c.code;
      const int first = n % 4 * 16;
      for (size_t p; (p = s.find('@')) != std::string::npos;)
        s.replace(p, 1, std::to_string(first));
      for (size_t p; (p = s.find('+')) != std::string::npos;) {
        const size_t end = s.find(']', p);
        s.replace(p, end - p, std::to_string(first + std::stoi(s.substr(p + 1))));
      }
      return s;
    };
    EXPECT_EQ(cost(series(8, at), series(8, at)), 8 * 4 * c.passes) << c.code;
    // Two waves of a SIMD share its matrix unit.
    EXPECT_EQ(model(series(8, at), 5).matrix_busy, 5 * 8 * 4 * c.passes) << c.code;
    EXPECT_GE(clocks(series(8, at), 5), 15 * 4 * c.passes) << c.code;
  }
}

// CDNA3 ISA 4.5 and LLVM: C of the same registers is forwarded; A and B wait for passes + 4 wait
// states on gfx950.
TEST_F(ComputeUnit, DependentMatrixInstructions) {
  EXPECT_EQ(cost(kMfma, repeat(8, kMfma)), 8 * 32);
  const std::string through_a =
      "v_mfma_f32_32x32x16_bf16 v[0:15], v[16:19], v[68:71], v[32:47]\n"
      "v_mfma_f32_32x32x16_bf16 v[16:31], v[0:3], v[68:71], v[48:63]\n";
  EXPECT_EQ(cost(through_a, repeat(4, through_a)), 8 * 4 * (8 + 4 + 1));
  const std::string overlapping =
      "v_mfma_f32_16x16x32_bf16 v[0:3], v[64:67], v[68:71], v[4:7]\n"
      "v_mfma_f32_16x16x32_bf16 v[4:7], v[64:67], v[68:71], v[2:5]\n";
  EXPECT_GT(cost(overlapping, overlapping), 2 * 16);
  // Another instruction on the same registers (llvm#218363) waits as for other registers that overlap.
  const std::string mixed =
      "v_mfma_f32_16x16x32_f16 v[0:3], v[64:67], v[68:71], v[0:3]\n"
      "v_mfma_f32_16x16x16_f16 v[0:3], v[64:65], v[68:69], v[0:3]\n";
  EXPECT_EQ(cost(mixed, mixed), 2 * 4 * (4 + 2 + 1));
}

TEST_F(ComputeUnit, ReadersWaitForTheMatrixResult) {
  const struct {
    const char *code;
    int wait_states, port_slots;
  } kCases[] = {
      {"v_mfma_f32_16x16x32_bf16 v[0:3], v[64:67], v[68:71], v[0:3]\n", 8, 2},
      {"v_mfma_f32_32x32x16_bf16 v[0:15], v[64:67], v[68:71], v[0:15]\n", 12, 2},
      {"v_mfma_f32_32x32x64_f8f6f4 v[0:15], v[64:71], v[72:79], v[0:15]\n", 20, 3},
  };
  for (const auto &c : kCases) {
    // From the slot of the one to the slot of the other.
    const double between = 4 * (c.wait_states + 1);
    for (const char *reader :
         {"v_add_f32 v80, v0, v0\n", "v_mov_b32 v3, v100\n", "ds_write_b32 v100, v1\n"}) {
      const std::string address = "v_mov_b32 v100, 0\n";
      EXPECT_EQ(cost(address, c.code + std::string(reader)), between + 4) << c.code << reader;
      // What is in between is hidden.
      EXPECT_EQ(cost(address, c.code + std::string("s_nop 3\n") + reader), between + 4) << reader;
    }
    EXPECT_EQ(stall(c.code + std::string("v_add_f32 v80, v0, v0\n"), Stall::kMatrixResult),
              between - 4);
    EXPECT_EQ(clocks(c.code + std::string("v_add_f32 v80, v30, v31\n")), 4 * (c.port_slots + 2))
        << "independent";
  }
}

// llvm#233721: the next vector instruction issues 1 + widest source / 16 bytes slots later, so an
// MFMA of 8 passes with 16-byte sources hides 6.
TEST_F(ComputeUnit, VectorInstructionsUnderAnMfma) {
  for (int n = 0; n < 12; ++n)
    EXPECT_EQ(cost(kMfma, repeat(n, kValu) + kMfma), 4 * std::max(8, 2 + n)) << n;
  const std::string fp8 = "v_mfma_f32_32x32x64_f8f6f4 v[0:15], v[64:71], v[72:79], v[0:15]\n";
  for (int n = 10; n < 16; ++n)
    EXPECT_EQ(cost(fp8, repeat(n, "v_add_f32 v100, v81, v82\n") + fp8), 4 * std::max(16, 3 + n))
        << n;
  // Three transcendentals.
  for (int n = 0; n < 6; ++n)
    EXPECT_EQ(cost(kMfma, repeat(n, kExp) + kMfma), 4 * std::max(8, 2 + 2 * n)) << n;
}

TEST_F(ComputeUnit, PackedFp32AndDotWaitForTheMfma) {
  for (const char *code :
       {"v_pk_mul_f32 v[80:81], v[82:83], v[84:85]\n",
        "v_pk_add_f32 v[80:81], v[82:83], v[84:85]\n",
        "v_pk_fma_f32 v[80:81], v[82:83], v[84:85], v[86:87]\n",
        "v_pk_mov_b32 v[80:81], v[82:83], v[84:85]\n", "v_dot2_f32_f16 v80, v81, v82, v83\n"})
    for (int n = 1; n < 4; ++n)
      EXPECT_EQ(cost(kMfma, repeat(n, code) + kMfma), 4 * (8 + n)) << code << n;
  // Packed fp16 does not, and a packed instruction of another SIMD does not.
  EXPECT_EQ(cost(kMfma, "v_pk_mul_f16 v80, v81, v82\n" + kMfma), 32);
  EXPECT_EQ(cost("", repeat(8, kPacked)), 8 * 4);
}

TEST_F(ComputeUnit, TranscendentalRate) {
  EXPECT_EQ(cost(kExp, repeat(10, kExp)), 10 * constants_.transcendental_clocks);
  constants_.transcendental_clocks = 16;
  EXPECT_EQ(cost(kExp, repeat(10, kExp)), 160);
  EXPECT_EQ(cost(kExp, repeat(4, "v_rcp_f32 v80, v81\n")), 64);
  // One more slot until another kind of instruction may read it; a transcendental reads it at once.
  EXPECT_EQ(cost(kExp, "v_add_f32 v80, v90, v90\n"), cost(kExp, kValu) + 4);
  EXPECT_EQ(cost(kExp, "v_exp_f32 v80, v90\n"), 16);
}

TEST_F(ComputeUnit, DependentVectorAndScalarInstructions) {
  EXPECT_EQ(cost("", repeat(20, "v_add_f32 v80, v80, v80\n")), 80);
  EXPECT_EQ(cost("", repeat(20, "s_add_u32 s10, s10, s10\n")), 80);
  // Two wait states from a scalar register written by a vector instruction.
  const std::string compare = "v_cmp_lt_f32 vcc, v0, v1\n";
  EXPECT_EQ(clocks(compare + "v_cndmask_b32 v2, v3, v4, vcc\n"), 4 * 5);
  EXPECT_EQ(clocks(compare + "s_nop 1\nv_cndmask_b32 v2, v3, v4, vcc\n"), 4 * 5);
  EXPECT_EQ(clocks("v_readfirstlane_b32 s10, v0\ns_add_u32 s11, s10, s10\n"), 4 * 5);
  EXPECT_EQ(clocks("v_readfirstlane_b32 s10, v0\ns_add_u32 s11, s12, s12\n"), 4 * 3);
}

TEST_F(ComputeUnit, NopsAndSleep) {
  EXPECT_EQ(cost("", "s_nop 0\n"), 4);
  EXPECT_EQ(cost("", "s_nop 7\n"), 32);
  EXPECT_EQ(cost("", "s_sleep 2\n"), 128);
  EXPECT_EQ(stall("s_nop 7\n", Stall::kNop), 28);
  EXPECT_EQ(cost("", "s_setprio 1\n"), 4);
}

TEST_F(ComputeUnit, Branches) {
  const auto loop = [](int count, const std::string &body) {
    return "s_mov_b32 s10, " + std::to_string(count) + "\nl" + std::to_string(count) + ":\n" +
           body + "s_sub_u32 s10, s10, 1\ns_cmp_lg_u32 s10, 0\ns_cbranch_scc1 l" +
           std::to_string(count) + "\n";
  };
  // Two scalar instructions, the body and a taken branch.
  EXPECT_EQ(clocks(loop(20, kValu)) - clocks(loop(10, kValu)),
            10 * (12 + constants_.branch_taken_clocks));
  EXPECT_EQ(cost("", "s_branch t\nt:\n"), constants_.branch_not_taken_clocks) << "to the next";
  EXPECT_EQ(cost("", "s_branch t\ns_nop 0\nt:\n"), constants_.branch_taken_clocks);
}

TEST_F(ComputeUnit, InstructionsAreFetchedOnceAndAhead) {
  memory_.fetch_latency = 100;
  // 128-byte lines of 32 four-byte instructions: the next line is asked for with each.
  const double short_code = clocks(repeat(8, "v_mov_b32 v0, v1\n"));
  EXPECT_EQ(short_code, 4 * 9 + 100);
  const std::string line = repeat(32, "v_mov_b32 v0, v1\n");
  EXPECT_EQ(clocks(repeat(4, line)), 100 + 4 * 129);
  memory_.fetch_latency = 1000;
  // The second line is there with the first; each later one is asked for when its predecessor begins.
  EXPECT_EQ(clocks(repeat(4, line)), 1000 + 128 + 2 * 1000 + 128 + 4);
  EXPECT_GT(stall(repeat(4, line), Stall::kFetch), 2500);
  // A loop finds its code in the cache.
  const std::string loop = "s_mov_b32 s10, 50\nl:\n" + line +
                           "s_sub_u32 s10, s10, 1\ns_cmp_lg_u32 s10, 0\ns_cbranch_scc1 l\n";
  EXPECT_LT(clocks(loop), 50 * (128 + 8 + 16) + 2500);
  // Unless it is too large for it.
  constants_.icache_bytes = 256;
  const std::string large = "s_mov_b32 s10, 50\nl:\n" + repeat(8, line) +
                            "s_sub_u32 s10, s10, 1\ns_cmp_lg_u32 s10, 0\ns_cbranch_scc1 l\n";
  EXPECT_GT(clocks(large), 50 * 8 * 600);
}

TEST_F(ComputeUnit, PriorityDecidesBetweenWaves) {
  // Wave 4 shares SIMD 0 with wave 0; with its priority up it goes first.
  const std::string by_wave =
      "v_lshrrev_b32 v1, 6, v0\nv_readfirstlane_b32 s10, v1\ns_cmp_eq_u32 s10, 4\n"
      "s_cbranch_scc0 low\ns_setprio 3\ns_branch go\nlow:\ns_setprio 0\ns_nop 0\ngo:\n" +
      repeat(200, kValu) + "s_nop 0\n";
  const auto last_issue = [](const ComputeUnitResult &r, uint16_t wave) {
    double last = 0;
    for (const timing::TimelineEvent &e : r.timeline)
      if (e.wave == wave && e.category == uint8_t(timing::Category::kVector))
        last = std::max(last, e.begin);
    return last;
  };
  const ComputeUnitResult r = model(by_wave, 5);
  EXPECT_LT(last_issue(r, 4) + 600, last_issue(r, 0));
  std::string equal = by_wave;
  equal.replace(equal.find("s_setprio 3"), 11, "s_setprio 0");
  const ComputeUnitResult even = model(equal, 5);
  EXPECT_LT(last_issue(even, 0) + 600, last_issue(even, 4)) << "the older first";
}

TEST_F(ComputeUnit, BarrierWaitsForTheLast) {
  // Wave 1 arrives 400 clocks late.
  const std::string late =
      "v_lshrrev_b32 v1, 6, v0\nv_readfirstlane_b32 s10, v1\n"
      "s_cmp_eq_u32 s10, 1\ns_cbranch_scc0 here\n" +
      repeat(100, kValu) + "here:\n";
  const ComputeUnitResult r = model(late + "s_barrier\n", 4);
  const double barrier = r.stall_clocks[unsigned(Stall::kBarrier)];
  EXPECT_GT(barrier, 3 * 380);
  EXPECT_LT(barrier, 3 * 420 + 4 * 16);
  EXPECT_GE(r.clocks, clocks(late, 4) + constants_.barrier_clocks);
  // Barriers with nothing to wait for cost little each.
  const double each = cost("s_barrier\n", repeat(10, "s_barrier\n"), 4) / 10;
  EXPECT_GE(each, constants_.barrier_clocks);
  EXPECT_LE(each, constants_.barrier_clocks + 8);
}

// Two waves of a SIMD, one stage apart: while one runs its MFMAs, the other runs its vector
// instructions.
TEST_F(ComputeUnit, PingPongOverlapsMatrixAndVectorStages) {
  const auto step = [](const char *priority) {
    return std::string(priority) + repeat(8, kMfma) + "s_setprio 0\ns_barrier\n" +
           repeat(40, kValu) + "s_barrier\n";
  };
  const std::string apart =
      "v_lshrrev_b32 v1, 6, v0\nv_readfirstlane_b32 s10, v1\n"
      "s_cmp_ge_u32 s10, 4\ns_cbranch_scc0 go\ns_barrier\ngo:\n";
  const std::string even_out = "s_cmp_ge_u32 s10, 4\ns_cbranch_scc1 done\ns_barrier\ndone:\n";
  const int steps = 10;
  const auto per_step = [&](const std::string &code) { return clocks(code, 8) / steps; };
  // A stage is 256 clocks of MFMA, 40 vector instructions fit under it, and a step is two stages.
  EXPECT_NEAR(per_step(apart + repeat(steps, step("s_setprio 1\n")) + even_out), 2 * 256, 40);
  // Without priority, vector instructions of the older wave go before MFMAs of the younger.
  EXPECT_GT(per_step(apart + repeat(steps, step("")) + even_out), 2 * 256 + 100);
  // In step, both waves want the matrix unit, then both the vector unit.
  EXPECT_NEAR(per_step(repeat(steps, step("s_setprio 1\n"))), 2 * 256 + 2 * 160, 40);
}

TEST_F(ComputeUnit, EverySlotIsAccountedFor) {
  const std::string code =
      repeat(3, "v_mov_b32 v200, 0\ns_load_dword s10, s[0:1], 0x0\nds_read_b128 v[20:23], v200\n" +
                    kMfma + kExp + kPacked +
                    "v_add_f32 v30, v0, v1\ns_waitcnt lgkmcnt(0)\nv_cmp_lt_f32 vcc, v0, v1\n"
                    "v_cndmask_b32 v2, v3, v4, vcc\ns_barrier\ns_nop 3\n");
  for (int waves : {1, 4, 8}) {
    const ComputeUnitResult r = model(code, waves);
    double stalls = 0, by_op = 0;
    for (const double s : r.stall_clocks) stalls += s;
    uint64_t issued = 0;
    for (const timing::OpProfile &p : r.profile) {
      issued += p.issued;
      for (const double s : p.stall_clocks) by_op += s;
    }
    EXPECT_EQ(issued, r.wave_instructions);
    EXPECT_DOUBLE_EQ(by_op, stalls);
    EXPECT_DOUBLE_EQ(stalls + double(issued) * 4, r.wave_clocks) << waves;
    EXPECT_EQ(r.timeline.size(), issued);
  }
}

TEST_F(ComputeUnit, GroupsShareTheUnitAndEndOnTheirOwn) {
  const std::string code = repeat(100, kValu) + "s_barrier\n";
  const ComputeUnitResult r = model(code, 4, 2);
  ASSERT_EQ(r.group_end.size(), 2u);
  EXPECT_NEAR(r.clocks, 800, 40);
  EXPECT_LT(r.group_end[0], r.group_end[1]);
}

TEST_F(ComputeUnit, SuccessorsTakeThePlacesOfThoseThatEnded) {
  memory_.fetch_latency = 500;
  const auto traces = record(repeat(100, kValu) + "s_barrier\n", 4, 4);
  timing::ComputeUnitOptions options;
  options.successors = {&traces[1], &traces[2], &traces[3]};
  const auto run = [&] {
    return timing::simulate_compute_unit(*kernel_.program, {&traces[0]}, constants_, memory_,
                                         options);
  };
  const ComputeUnitResult one_by_one = run();
  ASSERT_EQ(one_by_one.group_end.size(), 4u);
  const double first = one_by_one.group_end[0], second = one_by_one.group_end[1] - first;
  // The first waits for its code, the others find it in the cache.
  EXPECT_GT(first, second + 500);
  EXPECT_EQ(one_by_one.group_end[3], first + 3 * second);
  EXPECT_EQ(one_by_one.vector_busy, 4 * 4 * 400);
  options.warm_code = true;
  EXPECT_LT(run().group_end[0], second + 4);
  constants_.icache_bytes = 256;
  EXPECT_EQ(run().group_end[0], first) << "code that does not fit is not there";
}

TEST_F(ComputeUnit, SuccessorsStartAsSoonAsOneHasEnded) {
  // Of two residents on the same SIMDs the older ends first; with successors the unit is never left
  // to one.
  const std::string code = repeat(50, kMfma + kValu + kValu);
  const auto traces = record(code, 4, 2);
  timing::ComputeUnitOptions options;
  const auto run = [&](int successors) {
    options.successors.assign(size_t(successors), &traces[0]);
    return timing::simulate_compute_unit(*kernel_.program, {&traces[0], &traces[1]}, constants_,
                                         memory_, options);
  };
  std::vector<double> ends = run(4).group_end;
  ASSERT_EQ(ends.size(), 6u);
  std::sort(ends.begin(), ends.end());
  EXPECT_LE(ends[0], run(0).clocks);
  // Two in steady state: the matrix unit is the limit.
  EXPECT_NEAR(ends[3] - ends[1], 2 * 50 * 32, 40);
}

}  // namespace
}  // namespace flydsl::emu::test
