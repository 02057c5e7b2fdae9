#include "tools/attention_sequences.h"

#include <algorithm>

namespace flydsl::tools {

size_t Lengths::told() const {
  return std::max(starts.empty() ? size_t{0} : starts.size() - 1, used.size());
}

int64_t Lengths::of(size_t sequence) const {
  int64_t length = std::max<int64_t>(longest, 0);
  if (sequence + 1 < starts.size())
    length = std::clamp<int64_t>(starts[sequence + 1] - starts[sequence], 0, length);
  return sequence < used.size() ? std::clamp<int64_t>(used[sequence], 0, length) : length;
}

int64_t longest_of(const std::vector<int64_t> &starts) {
  int64_t longest = 0;
  for (size_t b = 1; b < starts.size(); ++b) longest = std::max(longest, starts[b] - starts[b - 1]);
  return longest;
}

std::vector<Sequences> sequences_of(int64_t batches, const Lengths &rows, const Lengths &keys) {
  const size_t told = std::max(rows.told(), keys.told());
  if (told == 0) return {{batches, rows.longest, keys.longest}};
  std::vector<Sequences> all;
  for (size_t b = 0; b < told; ++b) all.push_back({1, rows.of(b), keys.of(b)});
  return all;
}

double visible_pairs(const flydsl_aot_mask &mask, const std::vector<Sequences> &sequences) {
  double pairs = 0;
  for (const auto &[count, rows, keys] : sequences)
    pairs += static_cast<double>(count) * visible_pairs(mask, rows, keys);
  return pairs;
}

const uint64_t *number_at(const flydsl_aot_tensor &tensor, uint64_t without_data) {
  if (!tensor.rank) return nullptr;
  return tensor.data ? static_cast<const uint64_t *>(tensor.data)
                     : reinterpret_cast<const uint64_t *>(without_data);
}

}  // namespace flydsl::tools
