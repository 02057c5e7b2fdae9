// Copies of tiles from global memory to LDS, two tiles ahead.
//
// A lane looks up one key of the next two tiles; the copies' lanes take the offsets from it. Keys past
// the last one that any query sees repeat it: their scores are masked, and what no query sees is
// never read.
#pragma once

#include "attention_decode/places.hip.h"
#include "attention_decode/tile_layout.hip.h"
#include "common/lds.hip.h"

namespace flydsl::kernels {

// Waits until at most `left` of this wave's latest copies are on their way.
template <int left>
FLYDSL_DEVICE void wait_for_copies_but() {
  static_assert(left < 64, "vmcnt has six bits");
  asm volatile("s_waitcnt vmcnt(%0)" ::"n"(left) : "memory");
}
// Waits until what this wave read from LDS has arrived, so that it may be overwritten.
FLYDSL_DEVICE void wait_for_reads() {
  asm volatile("s_waitcnt lgkmcnt(0)" ::: "memory");
}

template <int head_dim_qk, int head_dim_v>
struct Stager {
  using Keys = TileLayout<head_dim_qk>;
  using Values = TileLayout<head_dim_v>;
  u32 batch, kv_head, lane;
  i32 begin, last;     // keys that any query sees
  RowOffsets offsets;  // of this lane's key of the two tiles whose copies come next
  i32 next_block;      // of this lane's key of the two tiles after those

  FLYDSL_DEVICE Stager(u32 batch, u32 kv_head, const Sequence &sequence, u32 lane)
      : batch(batch),
        kv_head(kv_head),
        lane(lane),
        begin(sequence.begin()),
        last(sequence.last()) {}

  // This lane's key of tiles `tile` and `tile + 1`.
  FLYDSL_DEVICE i32 key(u32 tile) const {
    return smaller(begin + static_cast<i32>(tile) * kKeysOfTile + static_cast<i32>(lane), last);
  }
  // The next copies are those of tiles `tile` and `tile + 1`; they were looked up, and those after them
  // are now.
  FLYDSL_DEVICE void advance(u32 tile) {
    offsets = offsets_of(next_block, kv_head, key(tile));
    // Before the next number is on its way, so that it gets the same register: to move it to another
    // would be to wait for it, and for all copies before it.
    asm volatile("" : "+v"(offsets.k), "+v"(offsets.v));
    next_block = block_of(batch, key(tile + 2), next_block);
  }
  FLYDSL_DEVICE void start(u32 tile) {
    next_block = block_of(batch, key(tile), static_cast<i32>(batch));
    advance(tile);
  }

  template <class Layout, class Permutation>
  FLYDSL_DEVICE void copy(global_ptr<const char> from, i64 offset, u32 odd, lds_ptr<char> to,
                          Permutation permutation) const {
    const u64 bits = static_cast<u64>(offset);
    u32x2 row_offsets[Layout::copies];
#pragma unroll
    for (int copy = 0; copy < Layout::copies; ++copy) {
      const u32 source = 32 * odd + (64 * copy + lane) / Layout::chunks_of_row;
      row_offsets[copy] = u32x2{from_lane(static_cast<u32>(bits), source),
                                from_lane(static_cast<u32>(bits >> 32), source)};
    }
    // All of them before the first copy: clang 22 counts copies to LDS among the operations that lgkmcnt
    // counts, which they are not, and would wait too little for what comes from other lanes.
#pragma unroll
    for (u32x2 &row_offset : row_offsets) asm volatile("" : "+v"(row_offset)::"memory");
#pragma unroll
    for (int copy = 0; copy < Layout::copies; ++copy) {
      const u32 chunk = 64 * copy + lane, row = chunk / Layout::chunks_of_row;
      copy_b128(to + 1024 * copy, from + bits_as<u64>(row_offsets[copy]) +
                                      ((chunk % Layout::chunks_of_row) ^ permutation(row)) * 16);
    }
  }
  // `odd`: the second of the two tiles.
  FLYDSL_DEVICE void copy_keys(u32 odd, lds_ptr<char> to) const {
    copy<Keys>((global_ptr<const char>)fresh_arguments()->k, offsets.k, odd, to,
               [](u32 row) { return Keys::key_permutation(row); });
  }
  FLYDSL_DEVICE void copy_values(u32 odd, lds_ptr<char> to) const {
    copy<Values>((global_ptr<const char>)fresh_arguments()->v, offsets.v, odd, to,
                 [](u32 row) { return Values::value_permutation(row); });
  }
};

}  // namespace flydsl::kernels
