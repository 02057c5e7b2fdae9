// Sorting a few in place: std::stable_sort allocates, and calls must not.
#pragma once

#include <algorithm>

namespace flydsl {

// Equal ones stay in their order.
template <class Iterator, class Before>
void insertion_sort(Iterator begin, Iterator end, Before before) {
  for (Iterator at = begin; at != end; ++at)
    std::rotate(std::upper_bound(begin, at, *at, before), at, at + 1);
}

}  // namespace flydsl
