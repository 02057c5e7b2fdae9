// D tile = A B of 256 rows and columns, MX operands: the schedule of common/matmul/main_loop.hip.h for matrix
// instructions with scales. Slabs, LDS, the order of quadrants, reads and copies are the same; K has whole slabs. Scales:
//
//   quadrant     0                       1     2 and 3
//   scales       loads of slab + 2             those of slab + 1 arranged      e2m1: a slab is 256 k, 8 blocks
//                loads of two slabs + 2        those of two slabs + 1          bytes: 128 k; in the second slab of two
//
// An instruction multiplies 64 k, which here are two blocks of 32 that need not be neighbours: which chunk of 16 bytes of a line of LDS
// a lane reads is chosen so that its scale is one of the four that it has (block_scales.hip.h).
#pragma once

#include "common/matmul/accumulators.hip.h"
#include "common/matmul/operand.hip.h"
#include "scaled_gemm/block_scales.hip.h"
#include "scaled_gemm/formats.hip.h"

namespace flydsl::kernels::scaled_gemm {

using matmul::each;

FLYDSL_DEVICE void slot() {
  __builtin_amdgcn_sched_barrier(0);
}
// Waits until at most `younger` LDS reads, or loads and copies, are in flight.
template <int younger>
FLYDSL_DEVICE void wait_for_reads() {
  __builtin_amdgcn_s_waitcnt(0xc07f | (younger < 15 ? younger : 15) << 8);
}
template <int younger>
FLYDSL_DEVICE void wait_for_loads() {
  __builtin_amdgcn_s_waitcnt(0x0f70 | younger % 16 | younger / 16 << 14);
}

using Slab = matmul::Slab<matmul::Order::k, 256>;
constexpr int kStagesA = 3, kStagesB = 2;

// The copies of one operand's slabs, one after the other; the last one again and again once all are there.
struct SlabSource {
  global_ptr<const char> next;
  i32 left;  // slabs after `next`
  u32 offset[Slab::kCopies];

  FLYDSL_DEVICE void begin(const matmul::Operand &from, i32 slabs, u32 wave, u32 lane) {
    next = from.first;
    left = slabs - 1;
    settle();
#pragma unroll
    for (int n = 0; n < Slab::kCopies; ++n)
      offset[n] = Slab::offset(from, wave * Slab::kCopies + n, lane);
  }
  // Into scalar registers, wherever clang has computed them.
  FLYDSL_DEVICE void settle() {
    next = in_scalar(next);
    left = static_cast<i32>(in_scalar(static_cast<u32>(left)));
  }
  // 1024 bytes to LDS, from an offset for each lane. (m0 need not be named: clang reserves it, and sets it where it uses it.)
  template <int n>
  FLYDSL_DEVICE void copy(u32 to) const {
    asm volatile("s_add_u32 m0, %0, %1\n\ts_nop 0\n\tglobal_load_lds_dwordx4 %2, %3" ::"s"(to),
                 "n"(1024 * n), "v"(offset[n]), "s"(next)
                 : "scc", "memory");
  }
  FLYDSL_DEVICE void copy_all(u32 to) const {
    each<Slab::kCopies>([&](auto n) { copy<decltype(n)::value>(to); });
  }
  // Done here, not where the next copy is.
  FLYDSL_DEVICE void go_on() {
    next += left > 0 ? matmul::kSlabKBytes : 0;
    --left;
    asm volatile("" : "+s"(next), "+s"(left));
  }
};

template <int format_a, int format_b, bool shuffled>
struct MxLoop {
  static constexpr bool kPacked = is_packed(format_a);
  static_assert(kPacked == is_packed(format_b));
  static constexpr i32 kSlabK = kPacked ? 256 : 128;
  static constexpr int kFirstB = kStagesA * Slab::kBytes;
  static constexpr int kLdsBytes = kFirstB + kStagesB * Slab::kBytes;
  static constexpr int kSums = 256;

  u32 wave, lane;
  u32 lds;               // address of kLdsBytes of LDS
  u32 lines_a, lines_b;  // of those that this wave copies in stage 0
  SlabSource from_a, from_b;
  ScaleSource<shuffled> scales_a, scales_b;
  u32 a_first[4], a_now[4],
      a_next[4];  // addresses of fragments: in stage 0, of this slab, of the next one
  u32 b_first[4];
  u32 stage_now, stage_next;  // bytes from stage 0
  u32x4 a[2][8], b[2][8];     // halves of 64 rows: fragment 2 step + block of 32
  typename LoadedScales<shuffled>::type loaded[2][kFragments];  // under way; bytes: loaded[0] only
  u32 scales[2][kFragments];  // of slabs by parity; bytes: of these two slabs, of the next two
  u32 selector;

  FLYDSL_DEVICE MxLoop(lds_ptr<char> memory, u32 wave, u32 lane)
      : wave(wave),
        lane(lane),
        lds(uniform((u32)(__UINTPTR_TYPE__)memory)),
        lines_a(uniform(lds + wave * (Slab::kCopies * 1024))),
        lines_b(uniform(lds + kFirstB + wave * (Slab::kCopies * 1024))),
        selector(scale_selector<shuffled>(lane)) {
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      a_first[n] = lds + address(n, wave / 2 * 128);
      b_first[n] = lds + kFirstB + address(n, wave % 2 * 128);
    }
  }
  // Where the fragments of rows `first` .. of read `n` of four lie. Of e2m1 read n is of instruction n: block 4 (n / 2) + 2 g + n % 2.
  // Of bytes reads 2 t and 2 t + 1 are of instruction t: halves g of blocks t and 2 + t, where the instruction looks for the scales of
  // block 2 g + t.
  FLYDSL_DEVICE u32 address(int n, u32 first) const {
    const u32 row = lane % 32, g = lane / 32, half = static_cast<u32>(n) / 2,
              odd = static_cast<u32>(n) % 2;
    const u32 chunk = kPacked ? 4 * half + 2 * g + odd : 2 * half + 4 * odd + g;
    return (first + row) * 128 + 16 * Slab::moved(row, chunk);
  }

  static FLYDSL_DEVICE u32 after(u32 stage) {
    return stage == (kStagesA - 1) * Slab::kBytes ? 0 : stage + Slab::kBytes;
  }
  template <int half, int r>
  FLYDSL_DEVICE void read_a(const u32 (&address)[4]) {
    a[half][r] = Slab::template read<2 * half + r % 2, r / 2>(address, matmul::Number<0>{});
  }
  template <int half, int r, int stage>
  FLYDSL_DEVICE void read_b() {
    b[half][r] = Slab::template read<2 * half + r % 2, r / 2>(
        b_first, matmul::Number<stage * Slab::kBytes>{});
  }

  // A quadrant has 16 places for matrix instructions; those of bytes take two. What stands behind one is in its gap.
  static constexpr int kMeet = 14;  // of quadrant 1
  static constexpr int gap_of_read(int quadrant, int r) {
    return quadrant == 1 ? r : 2 * r;
  }
  static constexpr int gap_of_copy(int n) {
    return n < 7 ? 2 * n + 1 : 14;
  }
  static constexpr int reads_before(int quadrant, int m) {
    int count = 0;
    for (int r = 0; r < 8; ++r) count += gap_of_read(quadrant, r) < m;
    return count;
  }
  static constexpr bool has_product(int m) {
    return kPacked || m % 2 == 0;
  }
  static constexpr bool needs_reads(int m) {
    return m % (kPacked ? 4 : 8) == 0;
  }
  // Reads in flight that are younger than those that the product at m needs of the quadrant before.
  static constexpr int younger_reads(int quadrant, int m) {
    return reads_before(quadrant, m) + 8 - (kPacked ? 2 * (m / 4 + 1) : 4 * (m / 8 + 1));
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
    constexpr int step = number / 4, block_a = number / 2 % 2, block_b = number % 2;
    constexpr int of_a = 2 * half_a + block_a, of_b = 2 * half_b + block_b;
    constexpr int first = 16 * (4 * of_a + of_b), last = first + 15;
    constexpr int byte = kPacked ? step : 2 * parity + step;
    const u32 scale_a = scales[kPacked ? parity : 0][of_a],
              scale_b = scales[kPacked ? parity : 0][4 + of_b];
#define FLYDSL_SCALED_PRODUCT(operand_b, operand_a)                                           \
  asm volatile(                                                                               \
      "v_mfma_scale_f32_32x32x64_f8f6f4 a[%0:%1], %2, %3, a[%0:%1], %4, %5 op_sel:[%6,%6,0] " \
      "op_sel_hi:[%7,%7,0] cbsz:%8 blgp:%9" ::"n"(first),                                     \
      "n"(last), "v"(operand_b), "v"(operand_a), "v"(scale_b), "v"(scale_a), "n"(byte % 2),   \
      "n"(byte / 2), "n"(format_b), "n"(format_a))
    if constexpr (kPacked) {
      FLYDSL_SCALED_PRODUCT(b[half_b][2 * step + block_b], a[half_a][2 * step + block_a]);
    } else if constexpr (has_product(m)) {
      const auto whole = [](u32x4 low, u32x4 high) FLYDSL_INLINED {
        return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
      };
      FLYDSL_SCALED_PRODUCT(
          whole(b[half_b][4 * step + block_b], b[half_b][4 * step + 2 + block_b]),
          whole(a[half_a][4 * step + block_a], a[half_a][4 * step + 2 + block_a]));
    }
#undef FLYDSL_SCALED_PRODUCT
  }

  template <int fragment>
  FLYDSL_DEVICE auto load_fragment_scales() const {
    if constexpr (fragment < 4)
      return load_scales<shuffled>(scales_a.next, scales_a.offset[fragment]);
    else
      return load_scales<shuffled>(scales_b.next, scales_b.offset[fragment % 4]);
  }
  // Quadrants 2 and 3 arrange four fragments each, last those that the next slab needs last: in gaps 4 n, 4 n + 2 and 4 n + 3.
  template <int quadrant, int parity, int m>
  FLYDSL_DEVICE void arrange_scales() {
    constexpr int kOrder[] = {0, 1, 4, 5, 6, 7, 2, 3};
    constexpr int fragment = kOrder[4 * (quadrant - 2) + m / 4];
    if constexpr (m % 4 != 1)
      arrange<m % 4 == 0 ? 0 : m % 4 - 1>(loaded[kPacked ? 1 - parity : 0][fragment],
                                          scales[kPacked ? 1 - parity : 1][fragment], selector);
  }

  template <int quadrant, int parity, int m>
  FLYDSL_DEVICE void gap() {
    each<8>([&](auto read) {
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
    if constexpr (quadrant == 0 && m % 2 == 1 && loads_scales(parity))
      loaded[kPacked ? parity : 0][m / 2] = load_fragment_scales<m / 2>();
    if constexpr (quadrant >= 2 && arranges_scales(parity)) arrange_scales<quadrant, parity, m>();
    if constexpr (quadrant == 1 && m == 9) from_a.go_on();
    if constexpr (quadrant == 1 && m == 11) from_b.go_on();
    if constexpr (quadrant == 1 && m == 12 && loads_scales(parity)) scales_a.go_on();
    if constexpr (quadrant == 1 && m == 13 && loads_scales(parity)) scales_b.go_on();
    if constexpr (quadrant == 0 && m == 14) {
      stage_next = after(stage_now);
      asm volatile("" : "+s"(stage_next));
    }
    each<4>([&](auto number) {
      constexpr int n = decltype(number)::value;
      if constexpr (quadrant == 1 && m == 8 + n) a_next[n] = a_first[n] + stage_next;
    });
    each<8>([&](auto copy) {
      constexpr int n = decltype(copy)::value;
      if constexpr (gap_of_copy(n) != m) return;
      if constexpr (quadrant == 2) from_b.template copy<n>(lines_b + parity * Slab::kBytes);
      if constexpr (quadrant == 3) from_a.template copy<n>(lines_a + stage_now);
    });
  }

  template <int quadrant, int parity>
  FLYDSL_DEVICE void multiply_quadrant() {
    each<16>([&](auto number) {
      constexpr int m = decltype(number)::value;
      slot();
      // Those of quadrant 1 were waited for before the barrier.
      if constexpr (needs_reads(m) && quadrant != 2) wait_for_reads<younger_reads(quadrant, m)>();
      if constexpr (quadrant == 1 && m == kMeet) {
        wait_for_reads<0>();
        wait_for_loads<Slab::kCopies + (loads_scales(parity) ? kFragments : 0)>();
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
    stage_now = stage_next;
#pragma unroll
    for (int n = 0; n < 4; ++n) a_now[n] = a_next[n];
    if constexpr (!kPacked && parity == 1)
#pragma unroll
      for (int n = 0; n < kFragments; ++n) scales[0][n] = scales[1][n];
  }

  // Starts the copies of the first slabs, from 1 up, and clears the sums. scales_a and scales_b have begun.
  FLYDSL_DEVICE void begin(const matmul::Operand &operand_a, const matmul::Operand &operand_b,
                           i32 slabs) {
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
    from_a.copy_all(lines_a + Slab::kBytes);
    from_a.go_on();
    from_b.copy_all(lines_b + Slab::kBytes);
    from_a.copy_all(lines_a + 2 * Slab::kBytes);
    matmul::clear_sums<kSums>();
  }

  // The sums of the tile, after begin(). All waves have done with LDS afterwards.
  FLYDSL_DEVICE void run(i32 slabs) {
    from_a.settle();
    from_b.settle();
    scales_a.settle();
    scales_b.settle();
    stage_now = 0;
#pragma unroll
    for (int n = 0; n < 4; ++n) a_now[n] = a_first[n];
    wait_for_loads<3 * Slab::kCopies>();
    slot();
    each<3>([&](auto step) {
      each<kFragments>([&](auto n) {
        constexpr int f = decltype(n)::value;
        arrange<decltype(step)::value>(loaded[0][f], scales[0][f], selector);
      });
    });
    barrier();
    each<8>([&](auto r) { read_a<0, decltype(r)::value>(a_now); });
    each<8>([&](auto r) { read_b<0, decltype(r)::value, 0>(); });
    wait_for_reads<8>();
#pragma unroll 1
    for (;;) {
      slab<0>();
      if (--slabs == 0) break;
      slab<1>();
      if (--slabs == 0) break;
    }
    wait_for_reads<0>();
    wait_for_copies();
    slot();
    barrier();
  }
};

}  // namespace flydsl::kernels::scaled_gemm
