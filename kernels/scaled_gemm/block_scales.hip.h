// Scales of a wave's fragments on their way from memory to the registers that matrix instructions take them from: two slabs ahead,
// without LDS. Shuffled scales (include/flydsl_aot/scaled_gemm.h) have the 8 blocks of K of 32 rows in 256 bytes, in the order
// that makes them one load: lane l finds in byte 2 h + i of its word block l / 16 + 4 h of row l % 16 + 16 i. Instructions of 32
// rows want lane l to have those of row l % 32 alone; with g = l / 32 it gets four:
//
//   byte    0      1          2      3
//   block   2 g    2 g + 1    2 g + 4    2 g + 5
#pragma once

#include "common/lanes.hip.h"
#include "common/matmul/accumulators.hip.h"

namespace flydsl::kernels::scaled_gemm {

// Fragments of 32 rows: 4 of A, then 4 of B.
constexpr int kFragments = 8;

// Not there before a wait for memory.
FLYDSL_DEVICE u32 load_scales(global_ptr<const char> base, u32 offset) {
  u32 word;
  asm volatile("global_load_dword %0, %1, %2" : "=v"(word) : "v"(offset), "s"(base));
  return word;
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

// The scales of one operand's part, those of slab after slab; the last ones again and again once all are there.
struct ScaleSource {
  global_ptr<const char> next;
  i32 left;  // loads after `next`
  u32 offset[4];

  // Of rows `first` .. of a matrix whose scales, in rows of `columns`, begin at `matrix`, and of which `rows` exist.
  FLYDSL_DEVICE void begin(global_ptr<const char> matrix, u32 columns, u32 first, u32 rows,
                           i32 loads, u32 lane) {
    const u32 last = (rows - 1) / 32, begin = first / 32 < last ? first / 32 : last;
    next = matrix + u64{begin} * 32 * columns;
    left = loads - 1;
    settle();
#pragma unroll
    for (u32 n = 0; n < 4; ++n)
      offset[n] = (begin + n < last ? n : last - begin) * 32 * columns + 4 * lane;
  }
  // Into scalar registers, wherever clang has computed them.
  FLYDSL_DEVICE void settle() {
    next = in_scalar(next);
    left = static_cast<i32>(in_scalar(static_cast<u32>(left)));
  }
  FLYDSL_DEVICE void go_on() {
    next += left > 0 ? 256 : 0;
    --left;
    asm volatile("" : "+s"(next), "+s"(left));
  }
};

// What chooses a lane's bytes from two words.
FLYDSL_DEVICE u32 scale_selector(u32 lane) {
  return 0x06020400u + lane / 16 % 2 * 0x01010101u;
}
// A loaded word to the lane's four scales, in three steps with other instructions between them: an instruction that swaps
// lanes may not follow at once one that wrote its operand, nor a matrix instruction the last step.
template <int step>
FLYDSL_DEVICE void arrange(u32 &word, u32 &other, u32 selector) {
  if constexpr (step == 0) asm volatile("v_mov_b32 %0, %1" : "=v"(other) : "v"(word));
  // Groups of 16 lanes: word has those of 0, 0, 2, 2 then, other those of 1, 1, 3, 3.
  if constexpr (step == 1) asm volatile("v_permlane16_swap_b32 %0, %1" : "+v"(word), "+v"(other));
  if constexpr (step == 2)
    asm volatile("v_perm_b32 %0, %0, %1, %2" : "+v"(other) : "v"(word), "v"(selector));
}

}  // namespace flydsl::kernels::scaled_gemm
