#include "test/support/attention_forward_packing.h"

#include <algorithm>

namespace flydsl::test {

Packing packing_of(const std::vector<int64_t> &lengths, bool gaps) {
  Packing packing;
  packing.total = 3;
  for (const int64_t length : lengths) {
    packing.starts.push_back(static_cast<int32_t>(packing.total));
    packing.lengths.push_back(static_cast<int32_t>(length));
    const int64_t room = length + (gaps ? 5 : 0);
    packing.total += room;
    packing.longest = std::max(packing.longest, room);
  }
  packing.starts.push_back(static_cast<int32_t>(packing.total));
  packing.total += 2;
  return packing;
}

}  // namespace flydsl::test
