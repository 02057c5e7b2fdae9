// O^T and Q^T of a wave in accumulation registers that are named, so that the compiler's 256 vector
// registers are all for scores, weights and fragments. clang 22 moves values between the two files
// in such loops when it may choose; here matrix instructions are inline assembly on a[N:M].
//
//   a[16 (4 half + block) ..]            O^T, columns of rows 32 half .., head-dim elements 32 block ..
//   a[128 + 4 (steps half + step) ..]    Q^T, elements 16 step .., of steps = D / 16
//
// The compiler does not know of hazards around them: a result may be read 5 matrix instructions after
// it at the earliest, or after wait_for_products().
#pragma once

#include "common/elements.hip.h"

namespace flydsl::kernels::pipelined {

// The compiler keeps nothing in these registers across this.
#define FLYDSL_HIDDEN_REGISTERS                                                                  \
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
      "a215", "a216", "a217", "a218", "a219", "a220", "a221", "a222", "a223"
FLYDSL_DEVICE void keep_hidden() {
  asm volatile("" ::: FLYDSL_HIDDEN_REGISTERS);
}

constexpr int o_register(int half, int block) {
  return 16 * (4 * half + block);
}
template <int steps>
constexpr int q_register(int half, int step) {
  return 128 + 4 * (steps * half + step);
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
template <int number>
FLYDSL_DEVICE void write_hidden(u32 value) {
  asm volatile("v_accvgpr_write_b32 a[%0], %1" ::"n"(number), "v"(value));
}

// 16 bytes a lane into registers number .. number + 3; counts as a memory load (vmcnt).
template <int number, int byte>
FLYDSL_DEVICE void load_hidden(global_ptr<const char> from) {
  asm volatile("global_load_dwordx4 a[%0:%1], %2, off offset:%3" ::"n"(number), "n"(number + 3),
               "v"(from), "n"(byte));
}

// O^T += V^T P^T.
template <class Element, int half, int block>
FLYDSL_DEVICE void add_to_o(u32x4 v, u32x4 p) {
  constexpr int first = o_register(half, block), last = first + 15;
  if constexpr (__is_same(Element, bf16)) {
    asm volatile("v_mfma_f32_32x32x16_bf16 a[%0:%1], %2, %3, a[%0:%1]" ::"n"(first), "n"(last),
                 "v"(v), "v"(p));
  } else {
    asm volatile("v_mfma_f32_32x32x16_f16 a[%0:%1], %2, %3, a[%0:%1]" ::"n"(first), "n"(last),
                 "v"(v), "v"(p));
  }
}

// S^T = K Q^T, or += for steps after the first.
template <class Element, int steps, int half, int step>
FLYDSL_DEVICE void score(u32x4 k, f32x16 &s) {
  constexpr int first = q_register<steps>(half, step), last = first + 3;
  if constexpr (__is_same(Element, bf16)) {
    if constexpr (step == 0) {
      asm volatile("v_mfma_f32_32x32x16_bf16 %0, %1, a[%2:%3], 0"
                   : "=&v"(s)
                   : "v"(k), "n"(first), "n"(last));
    } else {
      asm volatile("v_mfma_f32_32x32x16_bf16 %0, %1, a[%2:%3], %0"
                   : "+v"(s)
                   : "v"(k), "n"(first), "n"(last));
    }
  } else {
    if constexpr (step == 0) {
      asm volatile("v_mfma_f32_32x32x16_f16 %0, %1, a[%2:%3], 0"
                   : "=&v"(s)
                   : "v"(k), "n"(first), "n"(last));
    } else {
      asm volatile("v_mfma_f32_32x32x16_f16 %0, %1, a[%2:%3], %0"
                   : "+v"(s)
                   : "v"(k), "n"(first), "n"(last));
    }
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

template <int half>
FLYDSL_DEVICE void scale_o(float factor) {
  each<64>([&](auto i) {
    constexpr int number = o_register(half, 0) + decltype(i)::value;
    write_hidden<number>(bits_as<u32>(read_hidden<number>() * factor));
  });
}

}  // namespace flydsl::kernels::pipelined
