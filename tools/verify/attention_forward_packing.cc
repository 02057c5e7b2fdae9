#include "tools/verify/attention_forward_packing.h"

#include <algorithm>
#include <numeric>

#include "tools/verify/random.h"

namespace flydsl::verify {

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

Paging paging_of(const std::vector<int64_t> &lengths, int64_t positions, int64_t block_size,
                 uint64_t seed) {
  Paging paging;
  paging.block_size = block_size;
  paging.blocks_of_sequence = (positions + block_size - 1) / block_size + 2;
  const auto blocks_for = [&](int64_t length) { return (length + block_size - 1) / block_size; };
  paging.blocks = 3;
  for (const int64_t length : lengths) paging.blocks += blocks_for(length);
  std::vector<int32_t> order(static_cast<size_t>(paging.blocks));
  std::iota(order.begin(), order.end(), 0);
  Random random(seed);
  for (int64_t i = paging.blocks - 1; i > 0; --i)
    std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(random.below(i + 1))]);
  size_t next = 0;
  for (const int64_t length : lengths) {
    for (int64_t n = 0; n < paging.blocks_of_sequence; ++n)
      paging.block_table.push_back(n < blocks_for(length) ? order[next++] : n % 2 ? -1 : INT32_MAX);
  }
  return paging;
}

}  // namespace flydsl::verify
