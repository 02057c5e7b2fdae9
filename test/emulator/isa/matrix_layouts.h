// Register layouts of matrix instructions (test/data/isa) and small integers in the formats they take.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include "test/emulator/isa/lane_values.h"
#include "test/emulator/isa/small_formats.h"
#include "test/emulator/support/snippet.h"

namespace flydsl::emu::test {

struct Layout {
  std::string processor;
  int m = 0, n = 0, k = 0, blocks = 0;
  // Element held by (register, part of register, lane), in that order.
  std::map<std::string, std::vector<int>> of;
};

inline std::map<std::string, Layout> read_layouts() {
  std::map<std::string, Layout> layouts;
  std::ifstream file(FLYDSL_TEST_DATA "/isa/matrix_layouts.txt");
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string name, processor, matrix, word;
    words >> name >> processor >> matrix;
    Layout &l = layouts[name];
    l.processor = processor;
    words >> l.m >> l.n >> l.k >> l.blocks;
    std::vector<int> &list = l.of[matrix];
    while (words >> word) {
      if (word != "=") {
        list.push_back(std::stoi(word));
      } else {
        words >> word;
        list = layouts.at(word).of.at(matrix);
      }
    }
  }
  return layouts;
}

enum Format { kFloat, kHalf, kBrain, kDouble, kByte, kFp8, kBf8 };
// Of A (side 0) or B.
inline Format format_of(const std::string &name, int side) {
  if (name.ends_with("p8") || name.ends_with("f8"))
    return (side ? name.ends_with("bf8") : name[name.size() - 7] == 'b') ? kBf8 : kFp8;
  if (name.ends_with("bf16") || name.ends_with("bf16_1k")) return kBrain;
  if (name.ends_with("f16")) return kHalf;
  if (name.ends_with("f64")) return kDouble;
  return name.ends_with("i8") ? kByte : kFloat;
}
inline int bits(Format f) {
  return f == kFloat ? 32 : f == kDouble ? 64 : f == kHalf || f == kBrain ? 16 : 8;
}

// Writes small integer `x` as part `p` (in units of the format's size) of register file row `first`
// in `lane`, which held zeros there.
inline void put(Snippet &t, int first, int p, int lane, Format f, int x, bool fnuz) {
  if (f == kDouble) {
    const double d = x;
    uint64_t u;
    std::memcpy(&u, &d, 8);
    t.v(first + 2 * p, lane) = uint32_t(u);
    t.v(first + 2 * p + 1, lane) = uint32_t(u >> 32);
    return;
  }
  const uint32_t u = f == kFloat   ? bits_of(float(x))
                     : f == kHalf  ? nearest_small_float(x, 5)
                     : f == kBrain ? nearest_small_float(x, 8)
                     : f == kByte  ? uint32_t(x) & 0xff
                     : f == kFp8   ? (fnuz ? kE4M3Fnuz : kE4M3).nearest(x, false)
                                   : (fnuz ? kE5M2Fnuz : kE5M2).nearest(x, false);
  const int per_register = 32 / bits(f);
  t.v(first + p / per_register, lane) |= u << (p % per_register * bits(f));
}
inline double get(Snippet &t, int first, int r, int lane, Format f) {
  if (f == kByte) return int32_t(t.v(first + r, lane));
  if (f != kDouble) return double(t.vf(first + r, lane));
  const uint64_t u = t.v(first + 2 * r, lane) | uint64_t(t.v(first + 2 * r + 1, lane)) << 32;
  double d;
  std::memcpy(&d, &u, 8);
  return d;
}

inline std::string range(char file, int first, int count) {
  if (count == 1) return file + std::to_string(first);
  return std::string(1, file) + "[" + std::to_string(first) + ":" +
         std::to_string(first + count - 1) + "]";
}
inline int registers(size_t elements, Format f) {
  return std::max(1, int(elements) / 64 * bits(f) / 32);
}
inline std::string level_name(const testing::TestParamInfo<Level> &p) {
  return p.param == Level::kBase ? "base" : p.param == Level::kAvx2 ? "avx2" : "avx512";
}

}  // namespace flydsl::emu::test
