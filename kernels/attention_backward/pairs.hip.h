// Pairs of a query row and a key, as they lie in the lanes of a 32x32 product whose columns are the own rows and whose
// rows the others: lane l owns column l % 32, element i is the other row 8 (i / 4) + 4 (l / 32) + i % 4.
#pragma once

#include "attention_backward/work.hip.h"

namespace flydsl::kernels {

constexpr int other_of_element(int i) {
  return 8 * (i / 4) + i % 4;
}

template <Pass pass>
struct TilePairs {
  static constexpr int count = 16;
  static constexpr bool rows_in_lane = pass == Pass::keys;  // element i: a row, or a key
  i32 own, first_other;                                     // of the lane
  FLYDSL_DEVICE i32 row(int i) const {
    return pass == Pass::keys ? first_other + other_of_element(i) : own;
  }
  FLYDSL_DEVICE i32 key(int i) const {
    return pass == Pass::keys ? own : first_other + other_of_element(i);
  }
};

struct OnePair {
  static constexpr int count = 1;
  i32 only_row, only_key;
  FLYDSL_DEVICE i32 row(int) const { return only_row; }
  FLYDSL_DEVICE i32 key(int) const { return only_key; }
};

}  // namespace flydsl::kernels
