// Where a problem lies among tuned ones: docs/archive-format.md, "Tuning".
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "src/archive/format.h"

namespace flydsl::archive {

struct TuningPoint {
  uint64_t rows = 0, keys = 0;
  uint64_t parallel =
      1;  // what there is of it to spread over compute units: batch x heads, or columns
  uint64_t align_bytes = 1;
};

using TuningCoordinates = std::array<uint8_t, kTuningAxes>;

constexpr uint32_t kTuningComputeUnits = 256;  // `parallel` is scaled to a device of as many
constexpr uint64_t kMaxTuningAlignment = 256;

// Half octaves: 2 log2(n), rounded to the nearest whole number; 0 for 0.
constexpr uint8_t half_octaves(uint64_t n) {
  if (n == 0) return 0;
  const int octave = std::bit_width(n) - 1;
  // The nine leading bits. 2^(1/4) and 2^(3/4) in them are 304.4 and 430.5.
  const uint64_t leading = octave >= 8 ? n >> (octave - 8) : n << (8 - octave);
  return static_cast<uint8_t>(2 * octave + (leading > 304) + (leading > 430));
}

constexpr TuningCoordinates tuning_coordinates(const TuningPoint &point, uint32_t compute_units) {
  // Above 2^54 all is alike; the product below stays inside 64 bits.
  const uint64_t parallel =
      point.parallel < (uint64_t{1} << 54) ? point.parallel : uint64_t{1} << 54;
  const uint64_t scaled = parallel * kTuningComputeUnits / compute_units;
  const uint64_t align =
      point.align_bytes < kMaxTuningAlignment ? point.align_bytes : kMaxTuningAlignment;
  return {half_octaves(point.rows), half_octaves(point.keys), half_octaves(scaled),
          half_octaves(align)};
}

}  // namespace flydsl::archive
