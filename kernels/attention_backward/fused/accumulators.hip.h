// dK^T and dV^T of a wave in accumulation registers that are named, so that the compiler's 256 vector registers are all for
// fragments, scores and their derivatives (pipelined/accumulators.hip.h of attention_forward says more).
//
//   a[16 (2 block + keys) ..]          dV^T, head-dim elements 32 block .., keys 32 keys ..
//   a[128 + 16 (2 block + keys) ..]    dK^T, the same
//   a[64 ..], a[96 ..]                 of head dim 64: keys and values, 4 registers for step 16 .. and block of keys
//
// The compiler does not know of hazards around matrix instructions that are inline assembly: a vector instruction may read a
// result 12 wait states later, and an operand must have been written 2 before.
#pragma once

#include "common/elements.hip.h"

namespace flydsl::kernels::fused {

// The compiler keeps nothing in these registers across this.
#define FLYDSL_ALL_ACCUMULATORS                                                                  \
  "a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8", "a9", "a10", "a11", "a12", "a13", "a14", \
      "a15", "a16", "a17", "a18", "a19", "a20", "a21", "a22", "a23", "a24", "a25", "a26", "a27", \
      "a28", "a29", "a30", "a31", "a32", "a33", "a34", "a35", "a36", "a37", "a38", "a39", "a40", \
      "a41", "a42", "a43", "a44", "a45", "a46", "a47", "a48", "a49", "a50", "a51", "a52", "a53", \
      "a54", "a55", "a56", "a57", "a58", "a59", "a60", "a61", "a62", "a63", "a64", "a65", "a66", \
      "a67", "a68", "a69", "a70", "a71", "a72", "a73", "a74", "a75", "a76", "a77", "a78", "a79", \
      "a80", "a81", "a82", "a83", "a84", "a85", "a86", "a87", "a88", "a89", "a90", "a91", "a92", \
      "a93", "a94", "a95", "a96", "a97", "a98", "a99", "a100", "a101", "a102", "a103", "a104",   \
      "a105", "a106", "a107", "a108", "a109", "a110", "a111", "a112", "a113", "a114", "a115",    \
      "a116", "a117", "a118", "a119", "a120", "a121", "a122", "a123", "a124", "a125", "a126",    \
      "a127", "a128", "a129", "a130", "a131", "a132", "a133", "a134", "a135", "a136", "a137",    \
      "a138", "a139", "a140", "a141", "a142", "a143", "a144", "a145", "a146", "a147", "a148",    \
      "a149", "a150", "a151", "a152", "a153", "a154", "a155", "a156", "a157", "a158", "a159",    \
      "a160", "a161", "a162", "a163", "a164", "a165", "a166", "a167", "a168", "a169", "a170",    \
      "a171", "a172", "a173", "a174", "a175", "a176", "a177", "a178", "a179", "a180", "a181",    \
      "a182", "a183", "a184", "a185", "a186", "a187", "a188", "a189", "a190", "a191", "a192",    \
      "a193", "a194", "a195", "a196", "a197", "a198", "a199", "a200", "a201", "a202", "a203",    \
      "a204", "a205", "a206", "a207", "a208", "a209", "a210", "a211", "a212", "a213", "a214",    \
      "a215", "a216", "a217", "a218", "a219", "a220", "a221", "a222", "a223", "a224", "a225",    \
      "a226", "a227", "a228", "a229", "a230", "a231", "a232", "a233", "a234", "a235", "a236",    \
      "a237", "a238", "a239", "a240", "a241", "a242", "a243", "a244", "a245", "a246", "a247",    \
      "a248", "a249", "a250", "a251", "a252", "a253", "a254", "a255"
FLYDSL_DEVICE void keep_hidden() {
  asm volatile("" ::: FLYDSL_ALL_ACCUMULATORS);
}

enum class Sum { dv, dk };
constexpr int register_of(Sum sum, int block, int keys) {
  return 128 * static_cast<int>(sum) + 16 * (2 * block + keys);
}

// Of head dim 64: operand n = 2 step + block of keys.
enum class Operand { key, value };
constexpr int register_of(Operand operand, int n) {
  return 64 + 32 * static_cast<int>(operand) + 4 * n;
}

// Vector instructions may read results, or write sources, of matrix instructions after this.
FLYDSL_DEVICE void wait_for_products() {
  asm volatile("s_nop 15\n\ts_nop 3");
}

template <int number>
FLYDSL_DEVICE float read_hidden() {
  float value;
  asm volatile("v_accvgpr_read_b32 %0, a[%1]" : "=v"(value) : "n"(number));
  return value;
}
template <int first>
FLYDSL_DEVICE void write_hidden(u32x4 value) {
  asm volatile(
      "v_accvgpr_write_b32 a[%0], %4\n\tv_accvgpr_write_b32 a[%1], %5\n\t"
      "v_accvgpr_write_b32 a[%2], %6\n\tv_accvgpr_write_b32 a[%3], %7" ::"n"(first),
      "n"(first + 1), "n"(first + 2), "n"(first + 3), "v"(value[0]), "v"(value[1]), "v"(value[2]),
      "v"(value[3]));
}
template <int number>
FLYDSL_DEVICE void clear_hidden() {
  asm volatile("v_accvgpr_write_b32 a[%0], 0" ::"n"(number));
}

// The sum at a[first ..] += a b.
template <class Element, int first>
FLYDSL_DEVICE void add_product(u32x4 a, u32x4 b) {
  if constexpr (__is_same(Element, bf16)) {
    asm volatile("v_mfma_f32_32x32x16_bf16 a[%0:%1], %2, %3, a[%0:%1]" ::"n"(first),
                 "n"(first + 15), "v"(a), "v"(b));
  } else {
    asm volatile("v_mfma_f32_32x32x16_f16 a[%0:%1], %2, %3, a[%0:%1]" ::"n"(first), "n"(first + 15),
                 "v"(a), "v"(b));
  }
}
// The same with the operand b in a[b ..].
template <class Element, int b>
FLYDSL_DEVICE void add_product_of_hidden(f32x16 &c, u32x4 a) {
  if constexpr (__is_same(Element, bf16)) {
    asm volatile("v_mfma_f32_32x32x16_bf16 %0, %1, a[%2:%3], %0"
                 : "+v"(c)
                 : "v"(a), "n"(b), "n"(b + 3));
  } else {
    asm volatile("v_mfma_f32_32x32x16_f16 %0, %1, a[%2:%3], %0"
                 : "+v"(c)
                 : "v"(a), "n"(b), "n"(b + 3));
  }
}
template <class Element, int b>
FLYDSL_DEVICE void product_of_hidden_plus(f32x16 &d, u32x4 a, f32x16 c) {
  if constexpr (__is_same(Element, bf16)) {
    asm volatile("v_mfma_f32_32x32x16_bf16 %0, %1, a[%2:%3], %4"
                 : "=&v"(d)
                 : "v"(a), "n"(b), "n"(b + 3), "v"(c));
  } else {
    asm volatile("v_mfma_f32_32x32x16_f16 %0, %1, a[%2:%3], %4"
                 : "=&v"(d)
                 : "v"(a), "n"(b), "n"(b + 3), "v"(c));
  }
}
// c += a b.
template <class Element>
FLYDSL_DEVICE void add_product(f32x16 &c, u32x4 a, u32x4 b) {
  if constexpr (__is_same(Element, bf16)) {
    asm volatile("v_mfma_f32_32x32x16_bf16 %0, %1, %2, %0" : "+v"(c) : "v"(a), "v"(b));
  } else {
    asm volatile("v_mfma_f32_32x32x16_f16 %0, %1, %2, %0" : "+v"(c) : "v"(a), "v"(b));
  }
}
// d = a b + c.
template <class Element>
FLYDSL_DEVICE void product_plus(f32x16 &d, u32x4 a, u32x4 b, f32x16 c) {
  if constexpr (__is_same(Element, bf16)) {
    asm volatile("v_mfma_f32_32x32x16_bf16 %0, %1, %2, %3" : "=&v"(d) : "v"(a), "v"(b), "v"(c));
  } else {
    asm volatile("v_mfma_f32_32x32x16_f16 %0, %1, %2, %3" : "=&v"(d) : "v"(a), "v"(b), "v"(c));
  }
}
// d = a b.
template <class Element>
FLYDSL_DEVICE void product(f32x16 &d, u32x4 a, u32x4 b) {
  if constexpr (__is_same(Element, bf16)) {
    asm volatile("v_mfma_f32_32x32x16_bf16 %0, %1, %2, 0" : "=&v"(d) : "v"(a), "v"(b));
  } else {
    asm volatile("v_mfma_f32_32x32x16_f16 %0, %1, %2, 0" : "=&v"(d) : "v"(a), "v"(b));
  }
}

// body(Number<0>{}), body(Number<1>{}), ...: indices that are constants, as the assembly needs them.
template <int n>
struct Number {
  static constexpr int value = n;
};
template <int count, int next = 0, class Body>
FLYDSL_DEVICE void each(Body body) {
  if constexpr (next < count) {
    body(Number<next>{});
    each<count, next + 1>(body);
  }
}

}  // namespace flydsl::kernels::fused
