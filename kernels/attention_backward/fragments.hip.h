// Operands are read from LDS a few products before they are needed (attention_forward/fragments.hip.h says why).
#pragma once

#include "attention_forward/fragments.hip.h"
#include "common/vectors.hip.h"

namespace flydsl::kernels {

// A number that is known to the compiler before anything is unrolled: loops as long as those here are not always unrolled
// in time for arrays that they index to become registers.
template <int number>
struct Index {
  static constexpr int value = number;
  FLYDSL_DEVICE constexpr operator int() const { return number; }
};
template <class Int, Int... numbers>
struct Indices {};

// use(Index<n>, fragment(Index<n>)) for n < count, each fragment read `most_ahead` products before its use, or all.
template <int count, int most_ahead, class Fragment, class Use>
FLYDSL_DEVICE void each_fragment(const Fragment &fragment, const Use &use) {
  constexpr int ahead = most_ahead < count ? most_ahead : count;
  u32x4 held[ahead + 1];
  const auto read_all = [&]<int... n>(Indices<int, n...>) FLYDSL_INLINED {
    ((held[n] = fragment(Index<n>())), ...);
  };
  const auto step = [&]<int n>(Index<n>) FLYDSL_INLINED {
    if constexpr (n + ahead < count) held[(n + ahead) % (ahead + 1)] = fragment(Index<n + ahead>());
    fragment_slot();
    use(Index<n>(), held[n % (ahead + 1)]);
    fragment_slot();
  };
  const auto step_all = [&]<int... n>(Indices<int, n...>) FLYDSL_INLINED {
    (step(Index<n>()), ...);
  };
  read_all(__make_integer_seq<Indices, int, ahead>());
  step_all(__make_integer_seq<Indices, int, count>());
}

}  // namespace flydsl::kernels
