// The lines that a set-associative cache holds, least recently used first out.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace flydsl::emu::timing {

class CacheTags {
 public:
  CacheTags(double bytes, double ways, double line_bytes)
      : ways_(uint32_t(std::max(ways, 1.0))),
        sets_(uint32_t(std::max(bytes / line_bytes / ways_, 1.0))),
        tags_(size_t(sets_) * ways_, kEmpty),
        used_(tags_.size()),
        lines_(tags_.size()) {}

  // Of the access that finds or brings in a line.
  struct Found {
    bool hit = false;
    uint64_t filled = 0;   // `now` of the access that brought the line in
    bool dirtied = false;  // a write that made a clean line dirty
  };
  Found access(uint64_t line, uint64_t now, bool write = false) {
    const size_t first = size_t(set_of(line)) * ways_;
    const auto tags = tags_.begin() + std::ptrdiff_t(first);
    size_t at = first + size_t(std::find(tags, tags + ways_, line) - tags);
    if (at != first + ways_) {
      const Found found = {true, lines_[at].filled, write && !lines_[at].dirty};
      used_[at] = ++clock_;
      lines_[at].dirty |= write;
      return found;
    }
    const auto used = used_.begin() + std::ptrdiff_t(first);
    at = first + size_t(std::min_element(used, used + ways_) - used);
    tags_[at] = line;
    used_[at] = ++clock_;
    lines_[at] = {now, write};
    return {false, now, write};
  }

 private:
  static constexpr uint64_t kEmpty = UINT64_MAX;
  struct Line {
    uint64_t filled = 0;
    bool dirty = false;
  };
  // Upper bits are mixed in, as memory channels are chosen: a power-of-two pitch does not end up in
  // one set.
  uint32_t set_of(uint64_t line) const {
    return uint32_t((line ^ line >> 11 ^ line >> 23) % sets_);
  }

  uint32_t ways_, sets_;
  uint64_t clock_ = 0;
  // Apart, since each access looks through the tags of a set and few look further.
  std::vector<uint64_t> tags_, used_;  // used 0: empty
  std::vector<Line> lines_;
};

}  // namespace flydsl::emu::timing
