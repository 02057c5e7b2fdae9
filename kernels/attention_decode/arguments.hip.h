// The kernel arguments where they are, in constant memory: a part that needs some reads them anew
// through fresh_arguments(), so that none has to be kept in registers from the start of the kernel.
#pragma once

#include "common/lanes.hip.h"
#include "flydsl_aot_generated/attention_decode_kernarg.h"

namespace flydsl::kernels {

using Arguments = const __attribute__((address_space(4))) flydsl_aot_attention_decode_kernarg *;

// Loads through the result are not moved to before this point. (The assembly takes the builtin's
// value itself: a copy in a variable would lie in scratch memory without optimisation.)
FLYDSL_DEVICE Arguments fresh_arguments() {
  Arguments args;
  asm volatile("" : "=s"(args) : "0"(__builtin_amdgcn_kernarg_segment_ptr()));
  return args;
}

// Brings all of them to the cache at once, so that the parts do not wait for one line after the other.
FLYDSL_DEVICE void fetch_arguments() {
  constexpr u32 kLine = 16, kLast = sizeof(flydsl_aot_attention_decode_kernarg) / 4 - 1;  // words
  static_assert(kLast >= 7 * kLine && kLast < 8 * kLine, "eight lines are fetched");
  const auto words = (const __attribute__((address_space(4))) u32 *)fresh_arguments();
  asm volatile("" ::"s"(words[0]), "s"(words[kLine]), "s"(words[2 * kLine]), "s"(words[3 * kLine]),
               "s"(words[4 * kLine]), "s"(words[5 * kLine]), "s"(words[6 * kLine]),
               "s"(words[kLast]));
}

}  // namespace flydsl::kernels
