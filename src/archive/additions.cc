// Kernels of the index that are in no file.
#include <algorithm>
#include <cstring>
#include <tuple>

#include "src/archive/reader.h"

namespace flydsl::archive {

std::unique_ptr<Archive> Archive::without_file(const std::string &arch, bool executed) {
  std::unique_ptr<Archive> archive(new Archive({}, -1));
  std::memcpy(archive->header_.arch, arch.data(),
              std::min(arch.size(), sizeof archive->header_.arch - 1));
  archive->header_.flags = executed ? 0 : kNeverExecuted;
  archive->strings_.push_back('\0');
  return archive;
}

void Archive::add(std::span<const Addition> additions) {
  const auto in_strings = [&](std::string_view text) {
    const auto offset = static_cast<uint32_t>(strings_.size());
    strings_.insert(strings_.end(), text.begin(), text.end());
    strings_.push_back('\0');
    return offset;
  };
  const auto has_name = [&](std::string_view name) {
    const auto end = entries_.begin() + file_entries();
    const auto at = std::lower_bound(
        entries_.begin(), end, name,
        [&](const Entry &entry, std::string_view n) { return string(entry.name) < n; });
    return at != end && string(at->name) == name;
  };
  std::vector<const Addition *> sorted;
  for (const Addition &addition : additions)
    if (!has_name(addition.name)) sorted.push_back(&addition);
  const auto key = [](const Addition &addition) {
    return std::tie(addition.op, addition.entry.functional_key);
  };
  // Stable, since they lie one after another.
  std::sort(sorted.begin(), sorted.end(), [&](const Addition *a, const Addition *b) {
    return key(*a) != key(*b) ? key(*a) < key(*b) : a < b;
  });
  const Addition *before = nullptr;
  for (const Addition *addition : sorted) {
    Entry entry = addition->entry;
    entry.name = in_strings(addition->name);
    entry.op = in_strings(addition->op);
    entry.backend = in_strings(addition->backend);
    entry.target_id = in_strings(addition->target_id);
    entry.symbol = in_strings(addition->symbol);
    Candidate candidate = addition->fits;
    candidate.entry = static_cast<uint32_t>(entries_.size());
    if (!before || key(*before) != key(*addition)) {
      added_.push_back(
          {entry.functional_key, entry.op, static_cast<uint32_t>(candidates_.size()), 0, {}});
    }
    ++added_.back().candidate_count;
    entries_.push_back(entry);
    candidates_.push_back(candidate);
    targets_.push_back(parse_target_id(std::string(addition->target_id)).value_or(TargetId{}));
    before = addition;
  }
}

std::span<const Candidate> Archive::find_added(std::string_view op, uint64_t functional_key) const {
  const auto at = std::lower_bound(added_.begin(), added_.end(), functional_key,
                                   [&](const Slot &slot, uint64_t key) {
                                     const int order = op.compare(string(slot.op));
                                     return order > 0 || (order == 0 && slot.functional_key < key);
                                   });
  if (at == added_.end() || at->functional_key != functional_key || op != string(at->op)) return {};
  return std::span(candidates_).subspan(at->first_candidate, at->candidate_count);
}

}  // namespace flydsl::archive
