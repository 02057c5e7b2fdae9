// D tile = A B of 256 rows and 256 or 128 columns, MX operands: the schedule of common/matmul/main_loop.hip.h for matrix
// instructions with scales. Slabs, LDS, the order of quadrants, reads and copies are the same; K has whole slabs. Scales:
//
//   quadrant     0                       1     2 and 3
//   scales       loads of slab + 2             those of slab + 1 arranged      e2m1: a slab is 256 k, 8 blocks
//                loads of two slabs + 2        those of two slabs + 1          bytes: 128 k; in the second slab of two
//
// An instruction multiplies 64 k, which here are two blocks of 32 that need not be neighbours: which chunk of 16 bytes of a line of LDS
// a lane reads is chosen so that its scale is one of the four that it has (block_scales.hip.h).
#pragma once

#include "common/matmul/main_loop.hip.h"
#include "scaled_gemm/mx_products.hip.h"

namespace flydsl::kernels::scaled_gemm {

using matmul::each;
using matmul::kStagesA;
using matmul::kStagesB;
using matmul::slot;
using matmul::wait_for_reads;

template <int format_a, int format_b, bool shuffled, int rows_b>
struct MxLoop {
  static constexpr bool kPacked = is_packed(format_a);
  static_assert(kPacked == is_packed(format_b));
  static constexpr i32 kSlabK = kPacked ? 256 : 128;
  using SlabA = matmul::Slab<matmul::Order::k, 256>;
  using SlabB = matmul::Slab<matmul::Order::k, rows_b>;
  static constexpr int kFirstB = kStagesA * SlabA::kBytes;
  static constexpr int kLdsBytes = kFirstB + kStagesB * SlabB::kBytes;
  static constexpr int kHalfA = SlabA::kBlocks / 2, kHalfB = SlabB::kBlocks / 2;  // blocks
  static constexpr int kFragments = SlabA::kBlocks + SlabB::kBlocks;              // A's first
  static constexpr int kSums = 16 * SlabA::kBlocks * SlabB::kBlocks;              // registers

  u32 wave, lane;
  u32 lds;               // address of kLdsBytes of LDS
  u32 lines_a, lines_b;  // of those that this wave copies in stage 0
  matmul::Source<SlabA> from_a;
  matmul::Source<SlabB> from_b;
  ScaleSource<shuffled, SlabA::kBlocks> scales_a;
  ScaleSource<shuffled, SlabB::kBlocks> scales_b;
  u32 a_first[4], a_now[4],
      a_next[4];  // addresses of fragments: in stage 0, of this slab, of the next one
  u32 b_first[4];
  u32 stage_now, stage_next;                 // bytes from stage 0
  u32x4 a[2][4 * kHalfA], b[2][4 * kHalfB];  // halves: fragment blocks * step + block
  typename LoadedScales<shuffled>::type loaded[2][kFragments];  // under way; bytes: loaded[0] only
  u32 scales[2][kFragments];  // of slabs by parity; bytes: of these two slabs, of the next two
  u32 selector;
  i32 slabs;               // that are to do, with this one
  u64 copies_a, copies_b;  // 0: the slab copies nothing
  u32 free_a,
      free_b;  // after run(): LDS of SlabA::kBytes / 4 and SlabB::kBytes / 4 that this wave may use

  FLYDSL_DEVICE MxLoop(lds_ptr<char> memory, u32 wave, u32 lane)
      : wave(wave),
        lane(lane),
        lds(uniform((u32)(__UINTPTR_TYPE__)memory)),
        lines_a(uniform(lds + wave * (SlabA::kCopies * 1024))),
        lines_b(uniform(lds + kFirstB + wave * (SlabB::kCopies * 1024))),
        selector(scale_selector<shuffled>(lane)) {
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      a_first[n] = lds + fragment_address<kPacked>(n, wave / 2 * 128, lane);
      b_first[n] = lds + kFirstB + fragment_address<kPacked>(n, wave % 2 * (rows_b / 2), lane);
    }
  }
  static FLYDSL_DEVICE u32 after(u32 stage) {
    return stage == (kStagesA - 1) * SlabA::kBytes ? 0 : stage + SlabA::kBytes;
  }
  template <int half, int r>
  FLYDSL_DEVICE void read_a(const u32 (&address)[4]) {
    a[half][r] =
        SlabA::template read<kHalfA * half + r % kHalfA, r / kHalfA>(address, matmul::Number<0>{});
  }
  template <int half, int r, int stage>
  FLYDSL_DEVICE void read_b() {
    b[half][r] = SlabB::template read<kHalfB * half + r % kHalfB, r / kHalfB>(
        b_first, matmul::Number<stage * SlabB::kBytes>{});
  }

  // A quadrant has places for matrix instructions; those of bytes take two. What stands behind one is in its gap.
  static constexpr int kOfStep = kHalfA * kHalfB, kPlaces = 4 * kOfStep;
  static constexpr int kMeet = kPlaces - 2;  // of quadrant 1
  static constexpr int reads_of(int quadrant) {
    return 4 * (quadrant == 1 || quadrant == 2 ? kHalfA : kHalfB);
  }
  // In quadrant 1 they are done by its end.
  static constexpr int gap_of_read(int quadrant, int r) {
    return r * kPlaces / (quadrant == 1 ? 2 : 1) / reads_of(quadrant);
  }
  static constexpr int gap_of_copy(int n, int count) {
    const int gap = n * kPlaces / count + (kPlaces > count ? 1 : 0);
    return gap < kPlaces - 2 ? gap : kPlaces - 2;
  }
  static constexpr int gap_of_load(int fragment) {
    return fragment * kPlaces / kFragments + (kPlaces >= 2 * kFragments ? 1 : 0);
  }
  static constexpr int reads_before(int quadrant, int m) {
    int count = 0;
    for (int r = 0; r < reads_of(quadrant); ++r) count += gap_of_read(quadrant, r) < m;
    return count;
  }
  static constexpr bool has_product(int m) {
    return kPacked || m % 2 == 0;
  }
  static constexpr bool needs_reads(int m) {
    return m % (kPacked ? kOfStep : 2 * kOfStep) == 0;
  }
  // Reads in flight that are younger than those that the product at m needs of the quadrant before.
  static constexpr int younger_reads(int quadrant, int m) {
    const int before = reads_of((quadrant + 3) % 4);
    const int needed =
        kPacked ? before / 4 * (m / kOfStep + 1) : before / 2 * (m / (2 * kOfStep) + 1);
    return reads_before(quadrant, m) + before - needed;
  }
  // Of bytes, every other slab.
  static constexpr bool loads_scales(int parity) {
    return kPacked || parity == 0;
  }
  static constexpr bool arranges_scales(int parity) {
    return kPacked || parity == 1;
  }

  template <int quadrant, int parity, int m>
  FLYDSL_DEVICE void product() {
    constexpr int half_a = quadrant / 2,
                  half_b = quadrant == 0 || quadrant == 3 ? parity : 1 - parity;
    constexpr int number = kPacked ? m : m / 2;
    constexpr int step = number / kOfStep, block_a = number % kOfStep / kHalfB,
                  block_b = number % kHalfB;
    constexpr int of_a = kHalfA * half_a + block_a, of_b = kHalfB * half_b + block_b;
    constexpr int first = 16 * (SlabB::kBlocks * of_a + of_b);
    constexpr int byte = kPacked ? step : 2 * parity + step;
    const u32 scale_a = scales[kPacked ? parity : 0][of_a],
              scale_b = scales[kPacked ? parity : 0][SlabA::kBlocks + of_b];
    if constexpr (kPacked) {
      add_scaled_product<format_a, format_b, byte, first>(
          a[half_a][kHalfA * step + block_a], b[half_b][kHalfB * step + block_b], scale_a, scale_b);
    } else if constexpr (has_product(m)) {
      add_scaled_product<format_a, format_b, byte, first>(
          both_reads(a[half_a][2 * kHalfA * step + block_a],
                     a[half_a][2 * kHalfA * step + kHalfA + block_a]),
          both_reads(b[half_b][2 * kHalfB * step + block_b],
                     b[half_b][2 * kHalfB * step + kHalfB + block_b]),
          scale_a, scale_b);
    }
  }

  template <int fragment>
  FLYDSL_DEVICE auto load_fragment_scales() const {
    constexpr int blocks = SlabA::kBlocks;
    if constexpr (fragment < blocks)
      return load_scales<shuffled>(scales_a.next, scales_a.offset[fragment]);
    else
      return load_scales<shuffled>(scales_b.next, scales_b.offset[fragment - blocks]);
  }
  // Quadrants 2 and 3 arrange half of the fragments each, last those that the next slab needs last, in three steps: between the first
  // two is a matrix instruction.
  template <int quadrant, int parity, int m>
  FLYDSL_DEVICE void arrange_scales() {
    constexpr int kOf256[] = {0, 1, 4, 5, 6, 7, 2, 3}, kOf128[] = {0, 1, 4, 5, 2, 3};
    constexpr int kGapsOfStep[] = {0, 2, 3};
    each<kFragments / 2>([&](auto number) FLYDSL_INLINED {
      constexpr int n = decltype(number)::value, at = kFragments / 2 * (quadrant - 2) + n;
      constexpr int fragment = rows_b == 256 ? kOf256[at % 8] : kOf128[at % 6];
      each<3>([&](auto of) FLYDSL_INLINED {
        constexpr int step = decltype(of)::value;
        if constexpr (m == kPlaces / 4 * n + kGapsOfStep[step])
          arrange<step>(loaded[kPacked ? 1 - parity : 0][fragment],
                        scales[kPacked ? 1 - parity : 1][fragment], selector);
      });
    });
  }

  template <int quadrant, int parity, int m>
  FLYDSL_DEVICE void gap() {
    each<reads_of(quadrant)>([&](auto read) {
      constexpr int r = decltype(read)::value;
      if constexpr (gap_of_read(quadrant, r) == m) {
        if constexpr (quadrant == 0) read_b<1 - parity, r, parity>();
        if constexpr (quadrant == 1) read_a<1, r>(a_now);
        if constexpr (quadrant == 2) read_a<0, r>(a_next);
        if constexpr (quadrant == 3) read_b<1 - parity, r, 1 - parity>();
      }
    });
    slot();
    if constexpr (quadrant == 1 && m == kMeet) barrier();
    each<kFragments>([&](auto number) {
      constexpr int n = decltype(number)::value;
      if constexpr (quadrant == 0 && gap_of_load(n) == m && loads_scales(parity))
        loaded[kPacked ? parity : 0][n] = load_fragment_scales<n>();
    });
    if constexpr (quadrant >= 2 && arranges_scales(parity)) arrange_scales<quadrant, parity, m>();
    // Where there is room. Copies of slabs that do not exist are left out.
    const auto at = [](int sixteenth) { return m == sixteenth * kPlaces / 16; };
    if constexpr (quadrant == 1 && at(9)) from_a.go_on();
    if constexpr (quadrant == 1 && at(11)) from_b.go_on();
    if constexpr (quadrant == 1 && at(2)) copies_b = matmul::all_if_more_than<2>(slabs);
    if constexpr (quadrant == 1 && at(4)) copies_a = matmul::all_if_more_than<3>(slabs);
    if constexpr (quadrant == 1 && at(12) && loads_scales(parity)) scales_a.go_on();
    if constexpr (quadrant == 1 && at(13) && loads_scales(parity)) scales_b.go_on();
    if constexpr (quadrant == 0 && at(14)) {
      stage_next = after(stage_now);
      asm volatile("" : "+s"(stage_next));
    }
    each<4>([&](auto number) {
      constexpr int n = decltype(number)::value;
      if constexpr (quadrant == 1 && m == (8 + n) * kPlaces / 16)
        a_next[n] = a_first[n] + stage_next;
    });
    each<SlabB::kCopies>([&](auto copy) {
      constexpr int n = decltype(copy)::value;
      if constexpr (quadrant == 2 && gap_of_copy(n, SlabB::kCopies) == m)
        from_b.template copy<n>(lines_b + parity * SlabB::kBytes, copies_b);
    });
    each<SlabA::kCopies>([&](auto copy) {
      constexpr int n = decltype(copy)::value;
      if constexpr (quadrant == 3 && gap_of_copy(n, SlabA::kCopies) == m)
        from_a.template copy<n>(lines_a + stage_now, copies_a);
    });
  }

  template <int quadrant, int parity>
  FLYDSL_DEVICE void multiply_quadrant() {
    each<kPlaces>([&](auto number) {
      constexpr int m = decltype(number)::value;
      slot();
      // Those of quadrant 1 were waited for before the barrier.
      if constexpr (needs_reads(m) && quadrant != 2) wait_for_reads<younger_reads(quadrant, m)>();
      if constexpr (quadrant == 1 && m == kMeet) {
        wait_for_reads<0>();
        matmul::wait_for_younger_copies<SlabA::kCopies + (loads_scales(parity) ? kFragments : 0)>();
      }
      slot();
      product<quadrant, parity, m>();
      slot();
      gap<quadrant, parity, m>();
    });
    matmul::keep_hidden<kSums>();
    slot();
  }

  template <int parity>
  FLYDSL_DEVICE void slab() {
    multiply_quadrant<0, parity>();
    multiply_quadrant<1, parity>();
    multiply_quadrant<2, parity>();
    multiply_quadrant<3, parity>();
    free_a = lines_a + stage_now;
    stage_now = stage_next;
#pragma unroll
    for (int n = 0; n < 4; ++n) a_now[n] = a_next[n];
    if constexpr (!kPacked && parity == 1)
#pragma unroll
      for (int n = 0; n < kFragments; ++n) scales[0][n] = scales[1][n];
  }

  // Starts the copies of the first of `slabs`, from 1 up, and clears the sums. scales_a and scales_b have begun.
  FLYDSL_DEVICE void begin(const matmul::Operand &operand_a, const matmul::Operand &operand_b) {
    from_a.begin(operand_a, slabs, wave, lane);
    from_b.begin(operand_b, slabs, wave, lane);
    // What is computed above may use any register, also one that is loaded into below, as half of a pair that does not matter.
    slot();
    each<kFragments>([&](auto n) {
      loaded[0][decltype(n)::value] = load_fragment_scales<decltype(n)::value>();
    });
    scales_a.go_on();
    scales_b.go_on();
    if constexpr (kPacked) {
      each<kFragments>([&](auto n) {
        loaded[1][decltype(n)::value] = load_fragment_scales<decltype(n)::value>();
      });
      scales_a.go_on();
      scales_b.go_on();
    }
    from_a.copy_all(lines_a);
    from_a.go_on();
    from_b.copy_all(lines_b);
    from_b.go_on();
    from_a.copy_all(lines_a + SlabA::kBytes);
    from_a.go_on();
    from_b.copy_all(lines_b + SlabB::kBytes);
    from_a.copy_all(lines_a + 2 * SlabA::kBytes);
    matmul::clear_sums<kSums>();
  }

  // The sums of the tile, after begin().
  FLYDSL_DEVICE void run() {
    slabs = static_cast<i32>(in_scalar(static_cast<u32>(slabs)));
    from_a.settle();
    from_b.settle();
    scales_a.settle();
    scales_b.settle();
    stage_now = 0;
#pragma unroll
    for (int n = 0; n < 4; ++n) a_now[n] = a_first[n];
    matmul::wait_for_younger_copies<2 * SlabA::kCopies + SlabB::kCopies>();
    slot();
    each<3>([&](auto step) {
      each<kFragments>([&](auto n) {
        constexpr int f = decltype(n)::value;
        arrange<decltype(step)::value>(loaded[0][f], scales[0][f], selector);
      });
    });
    barrier();
    each<4 * kHalfA>([&](auto r) { read_a<0, decltype(r)::value>(a_now); });
    each<4 * kHalfB>([&](auto r) { read_b<0, decltype(r)::value, 0>(); });
    wait_for_reads<4 * kHalfB>();
#pragma unroll 1
    for (;;) {
      slab<0>();
      free_b = lines_b;
      if (--slabs == 0) break;
      slab<1>();
      free_b = lines_b + SlabB::kBytes;
      if (--slabs == 0) break;
    }
    // Reads and loads of what does not exist land in registers, too: nothing that stores compute may come before this.
    asm volatile("s_waitcnt vmcnt(0) lgkmcnt(0)"
                 : "+s"(free_a), "+s"(free_b), "+s"(wave), "+v"(lane)
                 :
                 : "memory");
    slot();
  }
};

}  // namespace flydsl::kernels::scaled_gemm
