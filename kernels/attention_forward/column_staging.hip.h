// Bringing tiles of keys and values from global memory to LDS, one tile ahead, in ColumnTile's places.
//
// Use, for each tile: begin(next tile) before computing on the current one, finish() after it,
// landed() before the barrier that publishes the tile. Rows past the end repeat the last row: their
// scores are masked, and memory past the tensor is never read. Likewise columns past the head dim,
// of which a class has fewer than 32, repeat the last 8: those of K meet zeros in Q, those of V make
// outputs that are not stored.
//
// Each of 4 waves carries line `wave` of every block of K and V. Of 8 waves, the first 4 carry K and the
// others V.
#pragma once

#include "attention_forward/column_tile.hip.h"
#include "attention_forward/problem.hip.h"
#include "common/memory.hip.h"

namespace flydsl::kernels {

enum class Staging { direct, staged };

// What a wave carries of one tensor: a line of each block. `few_registers`: what a lane can compute again
// is not kept.
template <int blocks, bool few_registers>
struct ColumnSource {
  global_ptr<const char> base;  // row 0
  i64 row_bytes;
  u64 lane_offset;  // of this lane's part of the first block
  i32 head_dim;
  i32 back;         // of this lane in the last block: from a column past the head dim to a real one
  u64 tile_offset;  // of the next tile, if it is full; the same in all lanes

  FLYDSL_DEVICE ColumnSource(global_ptr<const char> tensor, i64 row_bytes, i32 head_dim,
                             LinePart part, i32 first_tile)
      : base(tensor), row_bytes(row_bytes), head_dim(head_dim), back(back_of(part)) {
    lane_offset = static_cast<u64>(part.row * row_bytes + part.byte);
    tile_offset = static_cast<u64>(first_tile) * (kKeysOfTile * static_cast<u64>(row_bytes));
  }

  // Calls use(block, from) for each block of the tile; the lane's 16 bytes are at from + 64 block.
  // `full`: all 64 rows exist; tiles come in order.
  template <class Part, class Use>
  FLYDSL_DEVICE void each_block(i32 tile, i32 seq_k, Part part_of_lane, Use use) {
    global_ptr<const char> from = base + lane_offset + tile_offset;
    if (FLYDSL_UNLIKELY((tile + 1) * kKeysOfTile > seq_k)) {
      const LinePart part = part_of_lane();
      from = base + smaller(tile * kKeysOfTile + part.row, seq_k - 1) * row_bytes + part.byte;
    }
    each_block_from<0>(from, few_registers ? back_of(part_of_lane()) : back, use);
    tile_offset += kKeysOfTile * row_bytes;
  }

 private:
  FLYDSL_DEVICE i32 back_of(LinePart part) const {
    return smaller(0, 2 * head_dim - 16 - 64 * (blocks - 1) - part.byte);
  }
  template <int block, class Use>
  FLYDSL_DEVICE void each_block_from(global_ptr<const char> from, i32 back, Use use) const {
    if constexpr (block == blocks - 1) {
      use.template operator()<block>(from + back);
    } else {
      use.template operator()<block>(from);
      each_block_from<block + 1>(from, back, use);
    }
  }
};

// Copies to LDS that pass no register; needs 16-byte aligned rows.
struct DirectCopy {
  lds_ptr<char> to;  // line of the first block
  template <int block>
  FLYDSL_DEVICE void operator()(global_ptr<const char> from) const {
    // The instruction's offset counts on both sides.
    copy_b128<64 * block>(to + (4096 - 64) * block, from);
  }
};
struct Load {
  u32x4 *held;
  template <int block>
  FLYDSL_DEVICE void operator()(global_ptr<const char> from) const {
    held[block] = load_16_bytes(from + 64 * block);
  }
};

// Both tensors, for each of 4 waves.
template <int head_dim_qk, int head_dim_v>
struct ColumnSources {
  using Layout = ColumnTile<head_dim_qk, head_dim_v>;
  u32 wave, lane;
  ColumnSource<Layout::k_blocks, false> k;
  ColumnSource<Layout::v_blocks, false> v;

  template <Mask mask>
  FLYDSL_DEVICE ColumnSources(const Problem<mask> &work, u32 wave, u32 lane)
      : wave(wave),
        lane(lane),
        k(work.k_row(0), 2 * fresh_arguments()->k_stride_s, fresh_arguments()->head_dim_qk,
          Layout::k_part(wave, lane), work.first_tile()),
        v(work.v_row(0), 2 * fresh_arguments()->v_stride_s, fresh_arguments()->head_dim_v,
          Layout::v_part(wave, lane), work.first_tile()) {}

  template <class Use>
  FLYDSL_DEVICE void each_k_block(i32 tile, i32 seq_k, Use use) {
    k.each_block(
        tile, seq_k, [&] { return Layout::k_part(wave, computed_here(lane)); }, use);
  }
  template <class Use>
  FLYDSL_DEVICE void each_v_block(i32 tile, i32 seq_k, Use use) {
    v.each_block(
        tile, seq_k, [&] { return Layout::v_part(wave, computed_here(lane)); }, use);
  }
};

template <int head_dim_qk, int head_dim_v, Staging staging, int waves>
struct ColumnStager;

template <int head_dim_qk, int head_dim_v>
struct ColumnStager<head_dim_qk, head_dim_v, Staging::direct, 4> {
  ColumnSources<head_dim_qk, head_dim_v> sources;
  u32 line_byte;
  i32 seq_k;

  template <Mask mask>
  FLYDSL_DEVICE ColumnStager(const Problem<mask> &work, u32 wave, u32 lane)
      : sources(work, wave, lane), line_byte(wave * 1024), seq_k(work.seq_k) {}

  FLYDSL_DEVICE void begin(i32 tile, lds_ptr<char> k_to, lds_ptr<char> v_to) {
    begin_k(tile, k_to);
    begin_v(tile, v_to);
  }
  // Either of them alone, each in order.
  FLYDSL_DEVICE void begin_k(i32 tile, lds_ptr<char> to) {
    sources.each_k_block(tile, seq_k, DirectCopy{to + line_byte});
  }
  FLYDSL_DEVICE void begin_v(i32 tile, lds_ptr<char> to) {
    sources.each_v_block(tile, seq_k, DirectCopy{to + line_byte});
  }
  FLYDSL_DEVICE void finish(lds_ptr<char>, lds_ptr<char>) {}
  FLYDSL_DEVICE void landed() { wait_for_copies(); }
};

template <int head_dim>
struct ColumnStager<head_dim, head_dim, Staging::direct, 8> {
  using Layout = ColumnTile<head_dim, head_dim>;
  bool carries_v;
  u32 line, lane;
  ColumnSource<Layout::k_blocks, true> source;
  i32 seq_k;

  template <Mask mask>
  FLYDSL_DEVICE ColumnStager(const Problem<mask> &work, u32 wave, u32 lane)
      : carries_v(wave >= 4),
        line(wave % 4),
        lane(lane),
        source(carries_v ? work.v_row(0) : work.k_row(0),
               2 * (carries_v ? fresh_arguments()->v_stride_s : fresh_arguments()->k_stride_s),
               carries_v ? fresh_arguments()->head_dim_v : fresh_arguments()->head_dim_qk, part(),
               work.first_tile()),
        seq_k(work.seq_k) {}

  FLYDSL_DEVICE void begin(i32 tile, lds_ptr<char> k_to, lds_ptr<char> v_to) {
    source.each_block(
        tile, seq_k, [&] { return part(); }, DirectCopy{(carries_v ? v_to : k_to) + line * 1024});
  }
  FLYDSL_DEVICE void finish(lds_ptr<char>, lds_ptr<char>) {}
  FLYDSL_DEVICE void landed() { wait_for_copies(); }

 private:
  // Computed anew for each tile: registers are scarce where 8 waves are needed.
  FLYDSL_DEVICE LinePart part() const {
    const u32 l = computed_here(lane);
    return carries_v ? Layout::v_part(line, l) : Layout::k_part(line, l);
  }
};

// Through registers, for rows of any alignment.
template <int head_dim_qk, int head_dim_v>
struct ColumnStager<head_dim_qk, head_dim_v, Staging::staged, 4> {
  using Layout = ColumnTile<head_dim_qk, head_dim_v>;
  ColumnSources<head_dim_qk, head_dim_v> sources;
  u32 lane_byte;
  i32 seq_k;
  u32x4 k_held[Layout::k_blocks], v_held[Layout::v_blocks];

  template <Mask mask>
  FLYDSL_DEVICE ColumnStager(const Problem<mask> &work, u32 wave, u32 lane)
      : sources(work, wave, lane), lane_byte(wave * 1024 + lane * 16), seq_k(work.seq_k) {}

  FLYDSL_DEVICE void begin(i32 tile, lds_ptr<char>, lds_ptr<char>) {
    sources.each_k_block(tile, seq_k, Load{k_held});
    sources.each_v_block(tile, seq_k, Load{v_held});
  }
  FLYDSL_DEVICE void finish(lds_ptr<char> k_to, lds_ptr<char> v_to) {
#pragma unroll
    for (int block = 0; block < Layout::k_blocks; ++block)
      write_b128(k_to + lane_byte + block * Layout::block_bytes, k_held[block]);
#pragma unroll
    for (int block = 0; block < Layout::v_blocks; ++block)
      write_b128(v_to + lane_byte + block * Layout::block_bytes, v_held[block]);
  }
  FLYDSL_DEVICE void landed() {}
};

}  // namespace flydsl::kernels
