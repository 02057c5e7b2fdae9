#include "emulator/timing/lds_conflicts.h"

#include <algorithm>
#include <bit>

namespace flydsl::emu::timing {
namespace {

// Which lanes go together, by the width of a lane's access, and how many banks they see. Measured on
// an MI350X by the HipKittens authors (analysis/paper_experiments/phases in their repository) for reads of 8, 12 and
// 16 bytes and writes of 8. The others follow them: reads of 4 bytes and less use all 64 banks at once,
// writes move 128 bytes a pass.
struct Grouping {
  uint32_t banks;
  int groups;
  uint64_t first[4];  // lanes of the groups of the first half, the second half follows; 0: all
};

constexpr uint64_t lanes(int first, int last) {
  return (~uint64_t(0) >> (63 - last)) & (~uint64_t(0) << first);
}

constexpr Grouping kRead4 = {64, 1, {~uint64_t(0)}};
constexpr Grouping kRead8 = {64, 2, {lanes(0, 31)}};
constexpr Grouping kRead12 = {32,
                              8,
                              {lanes(0, 3) | lanes(20, 23), lanes(4, 7) | lanes(16, 19),
                               lanes(8, 11) | lanes(28, 31), lanes(12, 15) | lanes(24, 27)}};
constexpr Grouping kRead16 = {
    64,
    4,
    {lanes(0, 3) | lanes(12, 15) | lanes(20, 27), lanes(4, 11) | lanes(16, 19) | lanes(28, 31)}};
constexpr Grouping kWrite4 = {32, 2, {lanes(0, 31)}};
constexpr Grouping kWrite8 = {32, 4, {lanes(0, 15), lanes(16, 31)}};
constexpr Grouping kWrite16 = {32, 8, {lanes(0, 7), lanes(8, 15), lanes(16, 23), lanes(24, 31)}};

const Grouping &grouping(bool read, uint32_t bytes) {
  if (bytes <= 4) return read ? kRead4 : kWrite4;
  if (bytes <= 8) return read ? kRead8 : kWrite8;
  if (bytes <= 12) return read ? kRead12 : kWrite16;
  return read ? kRead16 : kWrite16;
}

// Whether no two lanes of `mask` want a word of the same bank: most code, and quick to see.
bool all_apart(uint32_t banks, uint32_t bytes, uint64_t mask, const uint64_t *address) {
  uint64_t taken = 0;
  for (uint64_t left = mask; left; left &= left - 1) {
    const uint64_t at = address[std::countr_zero(left)], words = (at % 4 + bytes + 3) / 4;
    uint64_t wanted = std::rotl((uint64_t(1) << words) - 1, int(at / 4 % 64));
    if (banks == 32) wanted = (wanted | wanted >> 32) & 0xffffffff;
    if (taken & wanted) return false;
    taken |= wanted;
  }
  return true;
}

// Most different words that lanes of `mask` want of one bank.
uint16_t passes_of(uint32_t banks, uint32_t bytes, uint64_t mask, const uint64_t *address) {
  if (all_apart(banks, bytes, mask, address)) return 1;
  // Lists of the words of each bank, in the order of the lanes.
  uint64_t words[256];
  uint8_t next[256], head[64] = {}, count[64] = {};  // list entries from 1 on; 0: none
  uint32_t used = 0;
  uint8_t most = 0;
  for (uint64_t left = mask; left; left &= left - 1) {
    const uint64_t at = address[std::countr_zero(left)];
    for (uint64_t word = at / 4; word <= (at + bytes - 1) / 4; ++word) {
      const uint32_t bank = uint32_t(word % banks);
      uint8_t entry = head[bank];
      while (entry && words[entry - 1] != word) entry = next[entry - 1];
      if (entry) continue;
      words[used] = word;
      next[used] = head[bank];
      head[bank] = uint8_t(++used);
      most = std::max(most, ++count[bank]);
    }
  }
  return most;
}

}  // namespace

LdsPasses lds_passes(bool read, uint32_t bytes, uint64_t mask, const uint64_t *address) {
  const Grouping &g = grouping(read, bytes);
  LdsPasses result;
  result.pass_bytes = uint16_t(g.banks * 4);
  const int in_half = std::max(g.groups / 2, 1);
  for (int n = 0; n < g.groups; ++n) {
    const uint64_t group = mask & (g.first[n % in_half] << (n < in_half ? 0 : 32));
    if (!group) continue;
    ++result.ideal;
    result.passes = uint16_t(result.passes + passes_of(g.banks, bytes, group, address));
  }
  return result;
}

LdsPasses lds_copy_passes(uint32_t bytes, uint64_t mask) {
  constexpr uint32_t kPassBytes = 128;
  const uint32_t moved = bytes * uint32_t(std::popcount(mask));
  const auto passes = uint16_t((moved + kPassBytes - 1) / kPassBytes);
  return {passes, passes, kPassBytes};
}

}  // namespace flydsl::emu::timing
