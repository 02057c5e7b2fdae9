// D tile = A B of few rows and columns, where memory decides rather than matrix instructions: two work-groups a compute unit, whose copies
// are under way while the other one multiplies. Four waves 2 x 2, sums in hidden accumulation registers.
//
// Slabs of 128 bytes of K go round in `stages` of LDS:
//
//   the slab has landed | barrier | its fragments are read | barrier | copies of the slab `stages` further, to its place | products
//
// What is loaded and multiplied is said by Products: Plain16 for operands of 16 bits, MxProducts of scaled_gemm/.
#pragma once

#include "common/matmul/main_loop.hip.h"

namespace flydsl::kernels::matmul {

// Products of 16-bit elements, which load nothing else. `a`, `b`: fragments of a block each, by steps.
template <class Element>
struct Plain16 {
  static constexpr i32 kSlabK = kSlabKBytes / 2;
  template <class Slab>
  static FLYDSL_DEVICE u32 address(int n, u32 first, u32 lane) {
    return Slab::address(n, first, lane);
  }
  // Loads that are younger than the copies of a slab, but for those of other copies.
  static constexpr int younger_loads(int) { return 0; }
  FLYDSL_DEVICE void begin(u32) {}
  FLYDSL_DEVICE void begin_slab(auto) {}
  FLYDSL_DEVICE void load(auto) {}
  FLYDSL_DEVICE void arrange(auto) {}
  static constexpr int kSteps = 4;
  template <int step, int block_a, int block_b, int first>
  FLYDSL_DEVICE void multiply(auto, const u32x4 (&a)[4], const u32x4 (&b)[4]) const {
    matmul::multiply<Element, first>(a[step], b[step]);
  }
};

template <class Products, Order a_order, Order b_order, int rows_a, int rows_b, int stages>
struct RingLoop {
  static_assert(stages == 2 || stages == 3, "waits are counted for these");
  using SlabA = Slab<a_order, rows_a>;
  using SlabB = Slab<b_order, rows_b>;
  static constexpr i32 kSlabK = Products::kSlabK;
  static constexpr int kStageBytes = SlabA::kBytes + SlabB::kBytes;
  static constexpr int kCopies = SlabA::kCopies + SlabB::kCopies;
  static constexpr u32 kHalfOfSums = 16 * 4 * (rows_b / 2);  // bytes of LDS: 16 rows of a wave
  static constexpr int kLdsBytes = stages * kStageBytes;
  static_assert(kLdsBytes >= 2 * static_cast<int>(kHalfOfSums) * kWaves);
  static constexpr int kSums = 16 * SlabA::kBlocks * SlabB::kBlocks;  // registers
  static constexpr int kStepsBefore = Products::kSteps / 2;           // the second barrier

  u32 wave, lane;
  u32 lds;               // address of kLdsBytes of LDS
  u32 lines_a, lines_b;  // of those that this wave copies in stage 0
  Source<SlabA> from_a;
  Source<SlabB> from_b;
  u32 a_first[4], b_first[4];  // addresses of fragments in stage 0
  u32 stage;                   // bytes from stage 0
  i32 slabs;                   // that are to do, with this one
  u32x4 a[SlabA::kBlocks][4], b[SlabB::kBlocks][4];
  Products products;

  FLYDSL_DEVICE RingLoop(lds_ptr<char> memory, u32 wave, u32 lane)
      : wave(wave),
        lane(lane),
        lds(uniform((u32)(__UINTPTR_TYPE__)memory)),
        lines_a(uniform(lds + wave * (SlabA::kCopies * 1024))),
        lines_b(uniform(lds + SlabA::kBytes + wave * (SlabB::kCopies * 1024))) {
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      a_first[n] = lds + Products::template address<SlabA>(n, wave / 2 * (rows_a / 2), lane);
      b_first[n] =
          lds + SlabA::kBytes + Products::template address<SlabB>(n, wave % 2 * (rows_b / 2), lane);
    }
  }

  FLYDSL_DEVICE void read_fragments(u32 from) {
    u32 at_a[4], at_b[4];
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      at_a[n] = a_first[n] + from;
      at_b[n] = b_first[n] + from;
    }
    slot();
    each<4>([&](auto number) {
      constexpr int n = decltype(number)::value;
      each<SlabA::kBlocks>([&](auto block) {
        a[decltype(block)::value][n] =
            SlabA::template read<decltype(block)::value, n>(at_a, Number<0>{});
      });
      each<SlabB::kBlocks>([&](auto block) {
        b[decltype(block)::value][n] =
            SlabB::template read<decltype(block)::value, n>(at_b, Number<0>{});
      });
    });
  }
  // Reads in flight that are younger than those that products of a step need.
  static constexpr int younger_reads(int step) {
    return (SlabA::kBlocks * SlabA::kReads + SlabB::kBlocks * SlabB::kReads) * 4 /
           Products::kSteps * (Products::kSteps - 1 - step);
  }
  template <int parity, int step>
  FLYDSL_DEVICE void multiply_step() {
    each<SlabA::kBlocks * SlabB::kBlocks>([&](auto number) {
      constexpr int n = decltype(number)::value;
      constexpr int block_a = n / SlabB::kBlocks, block_b = n % SlabB::kBlocks;
      products.template multiply<step, block_a, block_b, 16 * n>(Number<parity>{}, a[block_a],
                                                                 b[block_b]);
    });
    keep_hidden<kSums>();
    slot();
  }

  template <int parity>
  FLYDSL_DEVICE void slab() {
    wait_for_younger_copies<(stages - 1) * kCopies + Products::younger_loads(parity)>();
    slot();
    barrier();
    slot();
    read_fragments(stage);
    slot();
    products.arrange(Number<parity>{});
    const u64 copies = all_if_more_than<stages>(slabs);
    slot();
    // Some products, while the other reads are under way.
    each<kStepsBefore>([&](auto step) {
      wait_for_reads<younger_reads(decltype(step)::value)>();
      slot();
      multiply_step<parity, decltype(step)::value>();
    });
    wait_for_reads<0>();
    slot();
    barrier();
    slot();
    products.load(Number<parity>{});
    slot();
    each<SlabA::kCopies>(
        [&](auto n) { from_a.template copy<decltype(n)::value>(lines_a + stage, copies); });
    each<SlabB::kCopies>(
        [&](auto n) { from_b.template copy<decltype(n)::value>(lines_b + stage, copies); });
    from_a.go_on();
    from_b.go_on();
    slot();
    each<Products::kSteps - kStepsBefore>(
        [&](auto step) { multiply_step<parity, kStepsBefore + decltype(step)::value>(); });
    stage = stage == (stages - 1) * kStageBytes ? 0 : stage + kStageBytes;
    asm volatile("" : "+s"(stage));
  }

  // Starts the copies of the first of `slabs`, and clears the sums. products has begun.
  FLYDSL_DEVICE void begin(const Operand &operand_a, const Operand &operand_b, i32 all_slabs) {
    slabs = all_slabs;
    if (FLYDSL_LIKELY(slabs > 0)) {
      from_a.begin(operand_a, slabs, wave, lane);
      from_b.begin(operand_b, slabs, wave, lane);
      slot();
      products.begin(lane);
      each<stages>([&](auto number) {
        constexpr int s = decltype(number)::value;
        products.begin_slab(Number<s>{});
        from_a.copy_all(lines_a + s * kStageBytes);
        from_b.copy_all(lines_b + s * kStageBytes);
        from_a.go_on();
        from_b.go_on();
      });
    }
    clear_sums<kSums>();
  }

  // The sums of whole slabs, after begin(). No copy is in flight afterwards, and this wave may use its free_a() and free_b().
  FLYDSL_DEVICE void run() {
    if (FLYDSL_UNLIKELY(slabs == 0)) return;
    from_a.settle();
    from_b.settle();
    slabs = static_cast<i32>(uniform(static_cast<u32>(slabs)));
    stage = 0;
#pragma unroll 1
    for (;;) {
      slab<0>();
      if (--slabs == 0) break;
      slab<1>();
      if (--slabs == 0) break;
    }
    asm volatile("s_waitcnt vmcnt(0) lgkmcnt(0)" : "+s"(wave), "+v"(lane) : : "memory");
    slot();
    barrier();
  }
  // The last k of a tile of 16-bit elements.
  FLYDSL_DEVICE void add_rest(Operand operand_a, Operand operand_b, i32 length) {
    const i32 whole = length / kSlabK, left = length - whole * kSlabK;
    if (FLYDSL_LIKELY(left == 0)) return;
    operand_a.first += whole * SlabA::advance(operand_a);
    operand_b.first += whole * SlabB::advance(operand_b);
    fill<SlabA>(operand_a, lines_a, wave, lane, 2 * left);
    fill<SlabB>(operand_b, lines_b, wave, lane, 2 * left);
    barrier();
    read_fragments(0);
    wait_for_reads<0>();
    slot();
    each<Products::kSteps>([&](auto step) { multiply_step<0, decltype(step)::value>(); });
    barrier();
  }
  FLYDSL_DEVICE u32 free_a() const {
    return lds + wave * (2 * kHalfOfSums);
  }
  FLYDSL_DEVICE u32 free_b() const {
    return free_a() + kHalfOfSums;
  }
};

}  // namespace flydsl::kernels::matmul
