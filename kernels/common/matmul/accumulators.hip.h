// Sums of a wave's part of a tile in accumulation registers that are named, so that the compiler's vector registers are for
// fragments and addresses. clang 22 moves values between the two files in such loops when it may choose; here matrix
// instructions are inline assembly on a[N:M].
//
//   a[16 (blocks of columns m + n) ..]    rows 32 m .. of the part, columns 32 n ..: lane l has row l % 32, register i
//                                         column 8 (i / 4) + 4 (l / 32) + i % 4
//
// The compiler does not know of hazards around them: a result may be read after wait_for_products(), and an operand must have
// been written 2 wait states before.
#pragma once

#include "common/elements.hip.h"

namespace flydsl::kernels::matmul {

// The compiler keeps nothing in these registers across this.
#define FLYDSL_SUMS_32                                                                           \
  "a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8", "a9", "a10", "a11", "a12", "a13", "a14", \
      "a15", "a16", "a17", "a18", "a19", "a20", "a21", "a22", "a23", "a24", "a25", "a26", "a27", \
      "a28", "a29", "a30", "a31"
#define FLYDSL_SUMS_64                                                                           \
  FLYDSL_SUMS_32, "a32", "a33", "a34", "a35", "a36", "a37", "a38", "a39", "a40", "a41", "a42",   \
      "a43", "a44", "a45", "a46", "a47", "a48", "a49", "a50", "a51", "a52", "a53", "a54", "a55", \
      "a56", "a57", "a58", "a59", "a60", "a61", "a62", "a63"
#define FLYDSL_SUMS_128                                                                           \
  FLYDSL_SUMS_64, "a64", "a65", "a66", "a67", "a68", "a69", "a70", "a71", "a72", "a73", "a74",    \
      "a75", "a76", "a77", "a78", "a79", "a80", "a81", "a82", "a83", "a84", "a85", "a86", "a87",  \
      "a88", "a89", "a90", "a91", "a92", "a93", "a94", "a95", "a96", "a97", "a98", "a99", "a100", \
      "a101", "a102", "a103", "a104", "a105", "a106", "a107", "a108", "a109", "a110", "a111",     \
      "a112", "a113", "a114", "a115", "a116", "a117", "a118", "a119", "a120", "a121", "a122",     \
      "a123", "a124", "a125", "a126", "a127"
#define FLYDSL_SUMS_256                                                                            \
  FLYDSL_SUMS_128, "a128", "a129", "a130", "a131", "a132", "a133", "a134", "a135", "a136", "a137", \
      "a138", "a139", "a140", "a141", "a142", "a143", "a144", "a145", "a146", "a147", "a148",      \
      "a149", "a150", "a151", "a152", "a153", "a154", "a155", "a156", "a157", "a158", "a159",      \
      "a160", "a161", "a162", "a163", "a164", "a165", "a166", "a167", "a168", "a169", "a170",      \
      "a171", "a172", "a173", "a174", "a175", "a176", "a177", "a178", "a179", "a180", "a181",      \
      "a182", "a183", "a184", "a185", "a186", "a187", "a188", "a189", "a190", "a191", "a192",      \
      "a193", "a194", "a195", "a196", "a197", "a198", "a199", "a200", "a201", "a202", "a203",      \
      "a204", "a205", "a206", "a207", "a208", "a209", "a210", "a211", "a212", "a213", "a214",      \
      "a215", "a216", "a217", "a218", "a219", "a220", "a221", "a222", "a223", "a224", "a225",      \
      "a226", "a227", "a228", "a229", "a230", "a231", "a232", "a233", "a234", "a235", "a236",      \
      "a237", "a238", "a239", "a240", "a241", "a242", "a243", "a244", "a245", "a246", "a247",      \
      "a248", "a249", "a250", "a251", "a252", "a253", "a254", "a255"
template <int count>
FLYDSL_DEVICE void keep_hidden() {
  static_assert(count == 32 || count == 64 || count == 128 || count == 256);
  if constexpr (count == 32) asm volatile("" ::: FLYDSL_SUMS_32);
  if constexpr (count == 64) asm volatile("" ::: FLYDSL_SUMS_64);
  if constexpr (count == 128) asm volatile("" ::: FLYDSL_SUMS_128);
  if constexpr (count == 256) asm volatile("" ::: FLYDSL_SUMS_256);
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

// Vector instructions may read results, or write sources, of matrix instructions after this.
FLYDSL_DEVICE void wait_for_products() {
  asm volatile("s_nop 15\n\ts_nop 3");
}

// By matrix instructions: they are less code than a write for each, and code is not in a cache when a kernel begins.
template <int first>
FLYDSL_DEVICE void clear_block(u32x4 zero) {
  asm volatile("v_mfma_f32_32x32x16_bf16 a[%0:%1], %2, %2, 0" ::"n"(first), "n"(first + 15),
               "v"(zero));
}
template <int count>
FLYDSL_DEVICE void clear_sums() {
  u32x4 zero = {0, 0, 0, 0};
  asm volatile("s_nop 1" : "+v"(zero));
  each<count / 16>([&](auto i) { clear_block<16 * decltype(i)::value>(zero); });
  keep_hidden<count>();
}

// Four registers of every lane to LDS.
template <int number>
FLYDSL_DEVICE void write_sums(u32 to, auto offset) {
  asm volatile("ds_write_b128 %0, a[%1:%2] offset:%3" ::"v"(to), "n"(number), "n"(number + 3),
               "n"(decltype(offset)::value)
               : "memory");
}

// Elements of operands. Numbers as in the instruction's formats.
struct e4m3 {
  static constexpr int format = 0;
};
struct e5m2 {
  static constexpr int format = 1;
};
template <class Element>
constexpr int kBytesOf = __is_same(Element, e4m3) || __is_same(Element, e5m2) ? 1 : 2;

// D += A B of 32 rows, 32 columns and 32 bytes of K. Columns are the instruction's rows: so a lane's registers lie in one row of D.
template <class Element, int first>
FLYDSL_DEVICE void multiply(u32x4 a, u32x4 b) {
  constexpr int last = first + 15;
  if constexpr (__is_same(Element, bf16)) {
    asm volatile("v_mfma_f32_32x32x16_bf16 a[%0:%1], %2, %3, a[%0:%1]" ::"n"(first), "n"(last),
                 "v"(b), "v"(a));
  } else {
    asm volatile("v_mfma_f32_32x32x16_f16 a[%0:%1], %2, %3, a[%0:%1]" ::"n"(first), "n"(last),
                 "v"(b), "v"(a));
  }
}
// The same of 64 bytes: fragments of two steps.
template <class ElementA, class ElementB, int first>
FLYDSL_DEVICE void multiply(u32x4 a0, u32x4 a1, u32x4 b0, u32x4 b1) {
  constexpr int last = first + 15;
  const auto a = __builtin_shufflevector(a0, a1, 0, 1, 2, 3, 4, 5, 6, 7);
  const auto b = __builtin_shufflevector(b0, b1, 0, 1, 2, 3, 4, 5, 6, 7);
  asm volatile("v_mfma_f32_32x32x64_f8f6f4 a[%0:%1], %2, %3, a[%0:%1] cbsz:%4 blgp:%5" ::"n"(first),
               "n"(last), "v"(b), "v"(a), "n"(ElementB::format), "n"(ElementA::format));
}

}  // namespace flydsl::kernels::matmul
