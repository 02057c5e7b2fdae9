// Copies of tiles from global memory to LDS, two steps ahead. Before gfx950 they pass registers: copied is then what is computed next.
//
// A lane looks up one key of what its wave fetches in the next two steps; the copies' lanes take the
// offsets from it. Keys past the segment's last one that any query sees repeat it: their scores are masked
// or not computed, and what no query sees is never read. Chunks past the end of a row, where its head dim is
// less than the instance's, repeat its last one: queries are 0 there, and outputs are not stored.
#pragma once

#include "attention_decode/places.hip.h"
#include "attention_decode/shape.hip.h"
#include "common/lds.hip.h"

namespace flydsl::kernels {

// Waits until at most `left` of this wave's latest copies are on their way.
template <int left>
FLYDSL_DEVICE void wait_for_copies_but() {
  static_assert(left < 64, "vmcnt has six bits");
  asm volatile("s_waitcnt vmcnt(%0)" ::"n"(left) : "memory");
}
// Waits until what this wave wrote to LDS is there.
FLYDSL_DEVICE void wait_for_writes() {
  asm volatile("s_waitcnt lgkmcnt(0)" ::: "memory");
}
// Waits until what this wave read from LDS has arrived, so that it may be overwritten.
FLYDSL_DEVICE void wait_for_reads() {
  asm volatile("s_waitcnt lgkmcnt(0)" ::: "memory");
}

template <class S>
struct Stager {
  u32 batch, kv_head, lane;
  u32 carried, part;   // this wave's part of one of the step's tiles
  i32 begin, last;     // keys that any query sees; Segment ends `last` with its tiles
  RowOffsets offsets;  // of this lane's key of the two steps whose copies come next
  i32 next_block;      // of this lane's key of the two steps after those
  global_ptr<const char> k, v;
  u32 last_k_chunk, last_v_chunk;  // of a row

  FLYDSL_DEVICE Stager(u32 batch, u32 kv_head, const Sequence &sequence, u32 lane, u32 wave,
                       Arguments args)
      : batch(batch),
        kv_head(kv_head),
        lane(lane),
        carried(wave / S::parts),
        part(wave % S::parts),
        begin(sequence.begin()),
        last(sequence.last()) {
    k = (global_ptr<const char>)args->k;
    v = (global_ptr<const char>)args->v;
    last_k_chunk = args->head_dim_qk * S::element_bytes / 16 - 1;
    last_v_chunk = args->head_dim_v * S::element_bytes / 16 - 1;
  }

  // This lane's key of the steps that begin with tile `tile`: lanes below 32 have the first step's.
  FLYDSL_DEVICE i32 key(u32 tile) const {
    const u32 of_lane = tile + carried + lane / kKeysOfTile * S::tiles;
    return smaller(begin + static_cast<i32>(of_lane * kKeysOfTile + lane % kKeysOfTile), last);
  }
  // The next copies are those of the two steps from `tile` on; they were looked up, and those after them
  // are now.
  FLYDSL_DEVICE void advance(u32 tile, Arguments args) {
    offsets = offsets_of(next_block, kv_head, key(tile), args);
    // Before the next number is on its way, so that it gets the same register: to move it to another
    // would be to wait for it, and for all copies before it.
    asm volatile("" : "+v"(offsets.k), "+v"(offsets.v));
    next_block = block_of(batch, key(tile + 2 * S::tiles), next_block, args);
  }
  FLYDSL_DEVICE void start(u32 tile, Arguments args) {
    next_block = block_of(batch, key(tile), static_cast<i32>(batch), args);
    advance(tile, args);
  }

  template <class Layout>
  FLYDSL_DEVICE void copy(global_ptr<const char> from, i64 offset, u32 last_chunk, u32 odd,
                          lds_ptr<char> to) const {
    constexpr int kCopies = Layout::copies / S::parts;
    // As many at once as registers hold.
    constexpr int kAtOnce = kCopies <= 18 ? kCopies : 12;
    static_assert(kCopies % kAtOnce == 0, "all are copied");
    const u64 bits = static_cast<u64>(offset);
    // Worked out here, or those of all copies would be kept, too. The same in all lanes, and the assembly takes the
    // builtin's value itself: a variable would lie in scratch memory without optimisation.
    u32 place_of_part;
    asm volatile("" : "=s"(place_of_part)
                 : "0"(__builtin_amdgcn_readfirstlane(carried * Layout::bytes +
                                                      (kGfx950 ? part * kCopies * 1024 : 0))));
    to += place_of_part;
#pragma unroll 1
    for (int begin = 0; begin < kCopies; begin += kAtOnce) {
      // Chunk of the tile. Worked out here, or patterns of all copies would be kept in registers; and not
      // before the copies above, see below.
      u32 first = (part * kCopies + begin) * kWaveLanes + lane;
      asm volatile("" : "+v"(first)::"memory");
      u32x2 row_offsets[kAtOnce];
#pragma unroll
      for (int copy = 0; copy < kAtOnce; ++copy) {
        const u32 source = kKeysOfTile * odd + (first + kWaveLanes * copy) / Layout::chunks_of_row;
        row_offsets[copy] = u32x2{from_lane(static_cast<u32>(bits), source),
                                  from_lane(static_cast<u32>(bits >> 32), source)};
      }
      // All of them before the first copy: clang 22 counts copies to LDS among the operations that lgkmcnt
      // counts, which they are not, and would wait too little for what comes from other lanes.
#pragma unroll
      for (u32x2 &row_offset : row_offsets) asm volatile("" : "+v"(row_offset)::"memory");
      u32x4 held[kAtOnce];
#pragma unroll
      for (int copy = 0; copy < kAtOnce; ++copy) {
        const u32 chunk = first + kWaveLanes * copy, row = chunk / Layout::chunks_of_row;
        const u32 place = chunk % Layout::chunks_of_row, stored = place ^ Layout::permutation(row);
        const auto source = from + bits_as<u64>(row_offsets[copy]) +
                            (stored < last_chunk ? stored : last_chunk) * 16;
        if constexpr (kGfx950)
          copy_b128(to + 1024 * (begin + copy), source);
        else
          held[copy] = *(global_ptr<const u32x4>)source;
      }
      if constexpr (!kGfx950) {
#pragma unroll
        for (int copy = 0; copy < kAtOnce; ++copy) {
          const u32 chunk = first + kWaveLanes * copy;
          write_b128(to + Layout::chunk_byte(chunk / Layout::chunks_of_row,
                                             chunk % Layout::chunks_of_row),
                     held[copy]);
        }
      }
    }
  }
  // `odd`: of the second of the two steps.
  FLYDSL_DEVICE void copy_keys(u32 odd, lds_ptr<char> to) const {
    copy<typename S::Keys>(k, offsets.k, last_k_chunk, odd, to);
  }
  FLYDSL_DEVICE void copy_values(u32 odd, lds_ptr<char> to) const {
    if constexpr (!S::shared) copy<typename S::Values>(v, offsets.v, last_v_chunk, odd, to);
  }
};

}  // namespace flydsl::kernels
