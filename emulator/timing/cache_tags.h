// The lines that a set-associative cache holds, least recently used first out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace flydsl::emu::timing {

class CacheTags {
 public:
  CacheTags(double bytes, double ways, double line_bytes)
      : ways_(uint32_t(std::max(ways, 1.0))),
        sets_(uint32_t(std::max(bytes / line_bytes / ways_, 1.0))),
        lines_(size_t(sets_) * ways_) {}

  // Of the access that finds or brings in a line.
  struct Found {
    bool hit = false;
    uint64_t filled = 0;   // `now` of the access that brought the line in
    bool dirtied = false;  // a write that made a clean line dirty
  };
  Found access(uint64_t line, uint64_t now, bool write = false) {
    Line *const set = &lines_[size_t(set_of(line)) * ways_];
    for (uint32_t way = 0; way < ways_; ++way)
      if (set[way].used != 0 && set[way].line == line) {
        const Found found = {true, set[way].filled, write && !set[way].dirty};
        set[way].used = ++clock_;
        set[way].dirty |= write;
        return found;
      }
    Line *const oldest = std::min_element(
        set, set + ways_, [](const Line &a, const Line &b) { return a.used < b.used; });
    *oldest = {line, ++clock_, now, write};
    return {false, now, write};
  }

 private:
  struct Line {
    uint64_t line = 0;
    uint64_t used = 0;  // 0: empty
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
  std::vector<Line> lines_;
};

}  // namespace flydsl::emu::timing
