// Scales of a wave's fragments on their way from memory to the registers that matrix instructions take them from: two slabs ahead,
// without LDS. A load is of 8 blocks of K, 256 k. Instructions of 32 rows want lane l to have scales of row l % 32; with g = l / 32 it
// gets four:
//
//   byte    0      1          2          3
//   block   2 g    2 g + 1    2 g + 4    2 g + 5
//
// Plain scales of a row lie next to each other: a lane loads all 8 and chooses. Shuffled ones (include/flydsl_aot/scaled_gemm.h) are the
// 8 blocks of 32 rows in 256 bytes, in an order that makes them one load for instructions of 16 rows: lane l finds in byte 2 h + i of its word
// block l / 16 + 4 h of row l % 16 + 16 i.
#pragma once

#include "common/lanes.hip.h"
#include "common/matmul/accumulators.hip.h"

namespace flydsl::kernels::scaled_gemm {

// What a lane loads for a fragment.
template <bool shuffled>
struct LoadedScales;
template <>
struct LoadedScales<true> {
  using type = u32;
};
template <>
struct LoadedScales<false> {
  using type = u32x2;
};

// Not there before a wait for memory.
template <bool shuffled>
FLYDSL_DEVICE auto load_scales(global_ptr<const char> base, u32 offset) {
  typename LoadedScales<shuffled>::type words;
  if constexpr (shuffled)
    asm volatile("global_load_dword %0, %1, %2" : "=v"(words) : "v"(offset), "s"(base));
  else
    asm volatile("global_load_dwordx2 %0, %1, %2" : "=v"(words) : "v"(offset), "s"(base));
  return words;
}

// A value that all lanes share. (clang 22 drops the builtin where it knows that, even if the value is in a vector register, and then
// has no way to hand it to assembly.)
FLYDSL_DEVICE u32 in_scalar(u32 value) {
  u32 result;
  asm volatile("s_nop 0\n\tv_readfirstlane_b32 %0, %1" : "=s"(result) : "v"(value));
  return result;
}
FLYDSL_DEVICE global_ptr<const char> in_scalar(global_ptr<const char> pointer) {
  const u64 address = (u64)pointer;
  return (global_ptr<const char>)(in_scalar(static_cast<u32>(address)) |
                                  static_cast<u64>(in_scalar(static_cast<u32>(address >> 32)))
                                      << 32);
}

// The scales of one operand's part, those of 256 k after the other; the last ones again and again once all are there.
template <bool shuffled, int blocks>
struct ScaleSource {
  global_ptr<const char> next;
  i32 left;            // loads after `next`
  u32 offset[blocks];  // of 32 rows each

  // Of rows `first` .. of a matrix whose scales begin at `matrix` and are `row_bytes` from row to row (shuffled: all of a row), and of which
  // `rows` exist.
  FLYDSL_DEVICE void begin(global_ptr<const char> matrix, u32 row_bytes, u32 first, u32 rows,
                           i32 loads, u32 lane) {
    const u32 last = rows - 1;
    const u32 begin = (first < last ? first : last) / 32 * 32;
    next = matrix + u64{begin} * row_bytes;
    left = loads - 1;
    settle();
#pragma unroll
    for (u32 n = 0; n < blocks; ++n) {
      const u32 row = 32 * n + (shuffled ? 0 : lane % 32), most = last - begin;
      const u32 at = row < most ? row : most;
      offset[n] = shuffled ? at / 32 * 32 * row_bytes + 4 * lane : at * row_bytes;
    }
  }
  // Into scalar registers, wherever clang has computed them.
  FLYDSL_DEVICE void settle() {
    next = in_scalar(next);
    left = static_cast<i32>(in_scalar(static_cast<u32>(left)));
  }
  FLYDSL_DEVICE void go_on() {
    next += left > 0 ? (shuffled ? 256 : 8) : 0;
    --left;
    asm volatile("" : "+s"(next), "+s"(left));
  }
};

// What chooses a lane's bytes from two words.
template <bool shuffled>
FLYDSL_DEVICE u32 scale_selector(u32 lane) {
  return shuffled ? 0x06020400u + lane / 16 % 2 * 0x01010101u
                  : 0x05040100u + lane / 32 * 0x02020202u;
}
// What was loaded to the lane's four scales, in three steps with other instructions between them: an instruction that swaps
// lanes may not follow at once one that wrote its operand, nor a matrix instruction the last step.
template <int step>
FLYDSL_DEVICE void arrange(u32 &word, u32 &scales, u32 selector) {
  if constexpr (step == 0) asm volatile("v_mov_b32 %0, %1" : "=v"(scales) : "v"(word));
  // Groups of 16 lanes: word has those of 0, 0, 2, 2 then, scales those of 1, 1, 3, 3.
  if constexpr (step == 1) asm volatile("v_permlane16_swap_b32 %0, %1" : "+v"(word), "+v"(scales));
  if constexpr (step == 2)
    asm volatile("v_perm_b32 %0, %0, %1, %2" : "+v"(scales) : "v"(word), "v"(selector));
}
template <int step>
FLYDSL_DEVICE void arrange(u32x2 &words, u32 &scales, u32 selector) {
  if constexpr (step == 2)
    asm volatile("v_perm_b32 %0, %1, %2, %3"
                 : "=v"(scales)
                 : "v"(words[1]), "v"(words[0]), "v"(selector));
}

}  // namespace flydsl::kernels::scaled_gemm
