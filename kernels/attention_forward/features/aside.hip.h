// Scalars that a loop does not need, or seldom: in the lanes of one vector register until they are asked for. There are not
// scalar registers enough for everything, and clang's own choice of what to spill is no better.
#pragma once

#include "common/lanes.hip.h"

namespace flydsl::kernels {

// As computed_here, of a value that all lanes share.
template <class Word>
FLYDSL_DEVICE Word scalar_here(Word value) {
  asm volatile("" : "+s"(value));
  return value;
}

class Aside {
 public:
  // The words of a structure, each the same in all lanes, from lane `at` on.
  template <int at, class Words>
  FLYDSL_DEVICE void put(const Words &from) {
    static_assert(at + words_of<Words> <= kWaveLanes, "one register");
    u32 words[words_of<Words>];
    __builtin_memcpy(words, &from, sizeof from);
#pragma unroll
    for (int i = 0; i < words_of<Words>; ++i) {
      // (clang 22.1 takes a vector register for a scalar operand where a floating-point value was computed in one.)
      const u32 word = uniform(computed_here(words[i]));
      // A scalar register that a vector instruction wrote is read by another two wait states later at the earliest.
      asm volatile("s_nop 1\n\tv_writelane_b32 %0, %1, %2" : "+v"(lanes_) : "s"(word), "n"(at + i));
    }
  }
  template <int at, class Words>
  FLYDSL_DEVICE Words get() const {
    u32 words[words_of<Words>];
    const u32 lanes = computed_here(lanes_);
#pragma unroll
    for (int i = 0; i < words_of<Words>; ++i) words[i] = __builtin_amdgcn_readlane(lanes, at + i);
    Words result;
    __builtin_memcpy(&result, words, sizeof result);
    return result;
  }
  template <class Words>
  static constexpr int words_of = sizeof(Words) / sizeof(u32);

 private:
  u32 lanes_ = 0;
};

}  // namespace flydsl::kernels
