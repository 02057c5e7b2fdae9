// Where common/norm_row has a row, and what each thread keeps in LDS and registers for all rows of a work-group.
#pragma once

#include "common/keywords.hip.h"
#include "common/vectors.hip.h"

namespace flydsl::kernels {

// Where a row is while it is needed.
enum class RowIn { registers, lds, memory };

// Weights and biases of the row's own type are read once for all rows of a work-group, where there is room for them; each thread
// reads back its own. Else weights are on their way before they are needed.
template <bool kCentred, u32 kThreads, class Tile, RowIn kIn, bool kQuantised>
struct NormRoom {
  static constexpr bool kHeld = kIn == RowIn::lds;
  static constexpr u32 kOperands = kCentred ? 2 : 1;

  // (LDS over 1,024 threads, which 4 waves on each SIMD are, bounds what each may keep.)
#if defined(__gfx950__) || defined(__NVPTX__)
  static constexpr u32 kMostKept = 131072, kMostOfThread = 160;
#else
  static constexpr u32 kMostKept = 32768, kMostOfThread = 64;
#endif
  static constexpr bool kKeeps = (kCentred || kThreads == 1024) && kIn == RowIn::registers &&
                                 !kQuantised && kOperands * Tile::kVectors * 16 <= kMostOfThread &&
                                 kOperands * Tile::kVectors * kThreads * 16 <= kMostKept;

  // Beside a row in LDS: AMD GPUs have registers for them, and wait for memory in order, so that what is not kept would come behind
  // the next row. sm_90 has 14 times 16 bytes for each of 1,024 threads.
#if defined(__NVPTX__)
  static constexpr u32 kRoom = (14 - Tile::kVectors) / kOperands;
  static constexpr u32 kBesideRow = kHeld ? (kRoom < Tile::kVectors ? kRoom : Tile::kVectors) : 0;
  static constexpr bool kInRegisters = kHeld && !kCentred;
#else
  static constexpr u32 kBesideRow = 0;
  static constexpr bool kInRegisters = kHeld;
#endif

  static constexpr u32 kKept = kKeeps ? Tile::kVectors : kBesideRow;  // vectors of each in LDS
  static constexpr u32 kInAll = (kHeld ? Tile::kVectors : 0) + kOperands * kKept;
};

}  // namespace flydsl::kernels
