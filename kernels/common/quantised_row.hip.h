// 8-bit results with a scale for each row, or for each 32 neighbours of one.
#pragma once

#include "common/quantise.hip.h"
#include "common/row_tile.hip.h"
#include "common/threads.hip.h"

namespace flydsl::kernels {

constexpr u32 kScaleBlock = 32;

// What results are multiplied by; a NaN: they all become NaN.
struct Scale {
  float value = 0, reciprocal = 0;
};

// `largest` and the magnitudes of a vector; those past `count` do not count.
template <class Tile>
FLYDSL_DEVICE u32 largest_magnitude(u32 largest, u32 rank, u32 v, u32 count,
                                    const typename Tile::Floats &values) {
#pragma unroll
  for (u32 i = 0; i < Tile::kOfVector; ++i) {
    const u32 magnitude = Tile::inside(rank, v, i, count) ? magnitude_bits(values[i]) : 0;
    largest = largest > magnitude ? largest : magnitude;
  }
  return largest;
}

FLYDSL_DEVICE Scale token_scale(u32 largest, Byte format) {
  if (largest >= kInfinityBits) return {__builtin_nanf(""), __builtin_nanf("")};
  const float value = scale_of(bits_as<float>(largest), format);
  return {value, 1.0f / value};
}

template <class Tile>
FLYDSL_DEVICE void store_scaled(global_ptr<char> out, u32 rank, u32 v, u32 count,
                                const typename Tile::Floats &values, Scale scale, Byte format) {
  u8 bytes[Tile::kOfVector];
  const bool nan = scale.value != scale.value;
#pragma unroll
  for (u32 i = 0; i < Tile::kOfVector; i += 2) {
    to_bytes(values[i] * scale.reciprocal, values[i + 1] * scale.reciprocal, format, bytes[i],
             bytes[i + 1]);
    if (nan) bytes[i] = bytes[i + 1] = kNanByte;
  }
  Tile::store_bytes(out, rank, v, count, bytes);
}

// Element i of the vector has the scale of block (first + its index) / 32; tiles begin with a block.
template <class Tile>
FLYDSL_DEVICE void store_block_scaled(global_ptr<u8> scales, i64 scale_stride, global_ptr<char> out,
                                      u32 rank, u32 v, u32 first, u32 count,
                                      const typename Tile::Floats &values, Byte format) {
  constexpr u32 kOfVector = Tile::kOfVector;
  static_assert(Tile::kTeam >= kScaleBlock / (Tile::kWide ? kOfVector : 1),
                "a block is in one wave");
  u8 bytes[kOfVector];
  const auto with_scale = [&](u32 largest, u32 i, u32 elements) FLYDSL_INLINED {
    const bool nan = largest >= kInfinityBits;
    const u32 scale = nan ? kNanScale : e8m0_of(bits_as<float>(largest), format);
    const float reciprocal = reciprocal_of_e8m0(nan ? 127 : scale);
    const u32 index = Tile::index(rank, v, i);
    if (index % kScaleBlock == 0 && index < count)
      scales[static_cast<i64>((first + index) / kScaleBlock) * scale_stride] =
          static_cast<u8>(scale);
    for (u32 j = i; j < i + elements; j += 2) {
      const float second = elements > 1 ? values[j + 1] * reciprocal : 0.0f;
      u8 second_byte;
      to_bytes(values[j] * reciprocal, second, format, bytes[j], second_byte);
      if (elements > 1) bytes[j + 1] = nan ? kNanByte : second_byte;
      if (nan) bytes[j] = kNanByte;
    }
  };
  if constexpr (Tile::kWide) {
    u32 largest = largest_magnitude<Tile>(0, rank, v, count, values);
#pragma unroll
    for (u32 mask = 1; mask < kScaleBlock / kOfVector; mask *= 2) {
      const u32 other = lane_xor_bits(largest, mask);
      largest = largest > other ? largest : other;
    }
    with_scale(largest, 0, kOfVector);
  } else {
#pragma unroll
    for (u32 i = 0; i < kOfVector; ++i) {
      u32 largest = Tile::inside(rank, v, i, count) ? magnitude_bits(values[i]) : 0;
#pragma unroll
      for (u32 mask = 1; mask < kScaleBlock; mask *= 2) {
        const u32 other = lane_xor_bits(largest, mask);
        largest = largest > other ? largest : other;
      }
      with_scale(largest, i, 1);
    }
  }
  Tile::store_bytes(out, rank, v, count, bytes);
}

}  // namespace flydsl::kernels
