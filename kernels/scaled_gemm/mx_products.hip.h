// Products with scales on hidden sums, and what a small tile's loop (common/matmul/ring_loop.hip.h) loads for them: scales of 256 k at a
// time, which are one slab of e2m1 or two of bytes.
#pragma once

#include "common/matmul/operand.hip.h"
#include "scaled_gemm/block_scales.hip.h"
#include "scaled_gemm/formats.hip.h"

namespace flydsl::kernels::scaled_gemm {

// Where the fragments of rows `first` .. of read `n` of four lie in a slab. Of e2m1 read n is of instruction n: block 4 (n / 2) + 2 g + n % 2.
// Of bytes reads 2 t and 2 t + 1 are of instruction t: halves g of blocks t and 2 + t, where the instruction looks for the scales of
// block 2 g + t.
template <bool packed>
FLYDSL_DEVICE u32 fragment_address(int n, u32 first, u32 lane) {
  const u32 row = lane % 32, g = lane / 32, half = static_cast<u32>(n) / 2,
            odd = static_cast<u32>(n) % 2;
  const u32 chunk = packed ? 4 * half + 2 * g + odd : 2 * half + 4 * odd + g;
  return (first + row) * 128 + 16 * matmul::Slab<matmul::Order::k, 256>::moved(row, chunk);
}

// a[first ..] += A B of 32 rows, 32 columns and 64 k; the scales are byte `byte` of theirs. Columns are the instruction's rows.
template <int format_a, int format_b, int byte, int first>
FLYDSL_DEVICE void add_scaled_product(auto of_a, auto of_b, u32 scale_a, u32 scale_b) {
  asm volatile(
      "v_mfma_scale_f32_32x32x64_f8f6f4 a[%0:%1], %2, %3, a[%0:%1], %4, %5 op_sel:[%6,%6,0] "
      "op_sel_hi:[%7,%7,0] cbsz:%8 blgp:%9" ::"n"(first),
      "n"(first + 15), "v"(of_b), "v"(of_a), "v"(scale_b), "v"(scale_a), "n"(byte % 2),
      "n"(byte / 2), "n"(format_b), "n"(format_a));
}
// Fragments of bytes are those of two reads.
FLYDSL_DEVICE auto both_reads(u32x4 low, u32x4 high) {
  return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
}

template <int format_a, int format_b, bool shuffled, int blocks_a, int blocks_b>
struct MxProducts {
  static constexpr bool kPacked = is_packed(format_a);
  static_assert(kPacked == is_packed(format_b));
  static constexpr i32 kSlabK = kPacked ? 256 : 128;
  static constexpr int kFragments = blocks_a + blocks_b;  // A's first

  ScaleSource<shuffled, blocks_a> scales_a;
  ScaleSource<shuffled, blocks_b> scales_b;
  // Under way; of e2m1 those of slabs by parity.
  typename LoadedScales<shuffled>::type loaded[kPacked ? 2 : 1][kFragments];
  u32 scales[kFragments];
  u32 selector;

  template <class Slab>
  static FLYDSL_DEVICE u32 address(int n, u32 first, u32 lane) {
    return fragment_address<kPacked>(n, first, lane);
  }

  // Scales of e2m1 are loaded two slabs ahead, those of bytes in every other slab for the two that come next: before the copies
  // that are issued there, and after those of a slab that is waited for at the one that follows.
  static constexpr bool loads(int parity) { return kPacked || parity == 0; }
  static constexpr int younger_loads(int parity) { return kPacked || parity == 1 ? kFragments : 0; }
  template <int set>
  FLYDSL_DEVICE void load_set() {
    each_fragment([&](auto number) {
      constexpr int n = decltype(number)::value;
      if constexpr (n < blocks_a)
        loaded[set][n] = load_scales<shuffled>(scales_a.next, scales_a.offset[n]);
      else
        loaded[set][n] = load_scales<shuffled>(scales_b.next, scales_b.offset[n - blocks_a]);
    });
    scales_a.go_on();
    scales_b.go_on();
  }
  FLYDSL_DEVICE void begin(u32 lane) {
    selector = scale_selector<shuffled>(lane);
    scales_a.settle();
    scales_b.settle();
    // What is computed above may use any register, also one that is loaded into, as half of a pair that does not matter.
    matmul::slot();
  }
  template <int slab>
  FLYDSL_DEVICE void begin_slab(matmul::Number<slab>) {
    if constexpr (slab < (kPacked ? 2 : 1)) load_set<slab>();
  }
  template <int parity>
  FLYDSL_DEVICE void load(matmul::Number<parity>) {
    if constexpr (loads(parity)) load_set<kPacked ? parity : 0>();
  }
  template <int parity>
  FLYDSL_DEVICE void arrange(matmul::Number<parity>) {
    if constexpr (loads(parity)) {
      matmul::each<3>([&](auto step) {
        each_fragment([&](auto n) {
          constexpr int f = decltype(n)::value;
          scaled_gemm::arrange<decltype(step)::value>(loaded[kPacked ? parity : 0][f], scales[f],
                                                      selector);
        });
      });
    }
  }
  static constexpr int kSteps = kPacked ? 4 : 2;
  template <int step, int block_a, int block_b, int first, int parity>
  FLYDSL_DEVICE void multiply(matmul::Number<parity>, const u32x4 (&a)[4],
                              const u32x4 (&b)[4]) const {
    const u32 scale_a = scales[block_a], scale_b = scales[blocks_a + block_b];
    if constexpr (kPacked)
      add_scaled_product<format_a, format_b, step, first>(a[step], b[step], scale_a, scale_b);
    else
      add_scaled_product<format_a, format_b, 2 * parity + step, first>(
          both_reads(a[2 * step], a[2 * step + 1]), both_reads(b[2 * step], b[2 * step + 1]),
          scale_a, scale_b);
  }

 private:
  static FLYDSL_DEVICE void each_fragment(auto body) { matmul::each<kFragments>(body); }
};

}  // namespace flydsl::kernels::scaled_gemm
