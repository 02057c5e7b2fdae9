// Elements, scales and layouts of OCP Microscaling Formats 1.0, from their definition.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "tools/verify/float8.h"

namespace flydsl::verify {

inline constexpr int64_t kMxBlock = 32;

inline bool is_packed(flydsl_aot_dtype dtype) {
  return dtype == FLYDSL_AOT_E2M1X2;
}

// e2m1: sign, two bits of exponent with bias 1, one of mantissa; no NaN, no infinity.
inline double e2m1_to_double(uint8_t code) {
  constexpr double kValues[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  return (code & 8 ? -1 : 1) * kValues[code & 7];
}
// The nearest, ties to even; too large ones become the largest.
inline uint8_t double_to_e2m1(double value) {
  const double magnitude = std::fabs(value);
  const double unit = magnitude < 2 ? 0.5 : magnitude < 4 ? 1 : 2;
  const double rounded = std::fmin(std::nearbyint(magnitude / unit) * unit, 6);
  uint8_t code = 0;
  while (e2m1_to_double(code) < rounded) ++code;
  return static_cast<uint8_t>(code | (std::signbit(value) ? 8 : 0));
}

inline double mx_decoded(flydsl_aot_dtype dtype, uint8_t code) {
  return is_packed(dtype) ? e2m1_to_double(code)
                          : static_cast<double>(float8_to_float(dtype, code));
}
inline uint8_t mx_encoded(flydsl_aot_dtype dtype, double value) {
  return is_packed(dtype) ? double_to_e2m1(value)
                          : float_to_float8(dtype, static_cast<float>(value));
}
inline double e8m0_to_double(uint8_t byte) {
  return byte == 255 ? NAN : std::ldexp(1.0, byte - 127);
}

// Codes of rows of even length to bytes, the first in the low half.
inline std::vector<uint8_t> packed_pairs(const std::vector<uint8_t> &codes) {
  std::vector<uint8_t> bytes(codes.size() / 2);
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<uint8_t>(codes[2 * i] | codes[2 * i + 1] << 4);
  return bytes;
}

// Place of (row, column) in scales shuffled in blocks of 32 rows and 8 columns, of rows of `padded_columns`: AITER's
// view(rows / 32, 2, 16, columns / 8, 2, 4).permute(0, 3, 5, 2, 4, 1).
inline int64_t shuffled_scale_place(int64_t row, int64_t column, int64_t padded_columns) {
  const int64_t block = row / 32 * (padded_columns / 8) + column / 8;
  const int64_t index[] = {column % 4, row % 16, column % 8 / 4, row % 32 / 16};
  constexpr int64_t kSizes[] = {4, 16, 2, 2};
  int64_t place = block;
  for (int axis = 0; axis < 4; ++axis) place = place * kSizes[axis] + index[axis];
  return place;
}

}  // namespace flydsl::verify
