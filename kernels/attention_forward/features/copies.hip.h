// Copies of K and V tiles to LDS in ColumnTile's places, rows dense or paged, one tile ahead.
//
// Entries of the block table are read one tile ahead of the copies that need them, each lane those of
// the rows that it copies. In blocks of at least a tile all lanes have the same: its address is then scalar.
#pragma once

#include "attention_forward/column_staging.hip.h"
#include "attention_forward/features/aside.hip.h"
#include "attention_forward/general/work.hip.h"

namespace flydsl::kernels {

constexpr u32 kTileShift = 6;
static_assert(kKeysOfTile == 1 << kTileShift, "keys of a tile");

template <bool paged>
struct BlockTable {
  global_ptr<const i32> entries;  // of the sequence
  u32 shift;
  i32 last_block;
  i32 seq_k;

  FLYDSL_DEVICE explicit BlockTable(const GeneralWork &work) : seq_k(work.seq_k) {
    if (!paged) return;
    const Arguments args = fresh_arguments();
    entries = (global_ptr<const i32>)args->block_table + work.batch * args->block_table_stride_b;
    shift = args->block_shift;
    last_block = args->last_block;
  }
  FLYDSL_DEVICE i32 rows_of_block() const { return paged ? i32{1} << shift : 0; }
  FLYDSL_DEVICE i32 key_of(i32 tile, i32 row) const {
    return smaller(tile * kKeysOfTile + row, seq_k - 1);
  }
  FLYDSL_DEVICE i32 entry_of(i32 tile, i32 row) const { return entries[key_of(tile, row) >> shift]; }
  FLYDSL_DEVICE u32 block_of(i32 entry) const {
    const i32 not_below = entry < 0 ? 0 : entry;
    return static_cast<u32>(smaller(not_below, last_block));
  }
};

// Bytes from row to row, from block to block.
struct FeatureStrides {
  i64 row, block;
};

// One tensor; the lane copies a part of one row of each block of 32 columns.
template <int blocks>
struct FeatureSource {
  // The lane's part: dense, of the tile that is copied next; paged, of its row in block 0.
  global_ptr<const char> at;
  FeatureStrides strides;
  i32 row;        // of the tile
  i32 back;       // in the last block: from a column past the head dim to a real one
  i32 entry = 0;  // of the block table, for the next tile

  FLYDSL_DEVICE FeatureSource(global_ptr<const char> first, i64 stride_s, i64 stride_b, i32 head_dim,
                              LinePart part, i32 first_row)
      : strides{2 * stride_s, 2 * stride_b},
        row(part.row),
        back(smaller(0, 2 * head_dim - 16 - 64 * (blocks - 1) - part.byte)) {
    at = first + (static_cast<i64>(first_row) * strides.row + part.byte);
  }

  template <int block = 0>
  FLYDSL_DEVICE void copy(global_ptr<const char> from, lds_ptr<char> to) const {
    DirectCopy{to}.operator()<block>(block == blocks - 1 ? from + back : from);
    if constexpr (block < blocks - 1) copy<block + 1>(from, to);
  }
};

template <int head_dim_qk, int head_dim_v, bool paged>
struct FeatureCopies {
  using Layout = ColumnTile<head_dim_qk, head_dim_v>;
  static constexpr int kStridesOfK = 0, kStridesOfV = Aside::words_of<FeatureStrides>;
  u32 wave;
  BlockTable<paged> table;
  Aside aside;  // paged: the strides
  FeatureSource<Layout::k_blocks> k;
  FeatureSource<Layout::v_blocks> v;

  FLYDSL_DEVICE FeatureCopies(const GeneralWork &work, u32 wave, u32 lane, i32 first_tile)
      : wave(wave),
        table(work),
        k(work.k_row(first_row(work)), fresh_arguments()->k_stride_s, fresh_arguments()->k_stride_b,
          fresh_arguments()->head_dim_qk, Layout::k_part(wave, lane),
          row_of(first_tile, Layout::k_part(wave, lane).row)),
        v(work.v_row(first_row(work)), fresh_arguments()->v_stride_s, fresh_arguments()->v_stride_b,
          fresh_arguments()->head_dim_v, Layout::v_part(wave, lane),
          row_of(first_tile, Layout::v_part(wave, lane).row)) {
    if (!paged) return;
    aside.template put<kStridesOfK>(k.strides);
    aside.template put<kStridesOfV>(v.strides);
  }

  // Before the first begin().
  FLYDSL_DEVICE void look_up(i32 tile) {
    if (!paged) return;
    k.entry = table.entry_of(tile, k.row);
    v.entry = table.entry_of(tile, v.row);
  }
  // Tiles come in order; `tiles`: how many there are.
  FLYDSL_DEVICE void begin(i32 tile, i32 tiles, lds_ptr<char> k_to, lds_ptr<char> v_to) {
    const u32 line_byte = scalar_here(wave) * 1024;  // else each copy's place would be kept
    k.copy(from<kStridesOfK>(tile, k), k_to + line_byte);
    v.copy(from<kStridesOfV>(tile, v), v_to + line_byte);
    if (tile + 1 < tiles) look_up(tile + 1);
  }

 private:
  // The first row of the head's keys; paged: of block 0.
  static FLYDSL_DEVICE KeyPlace first_row(const GeneralWork &work) {
    if (paged) return {0, 0};
    return {work.batch, work.first_k};
  }
  FLYDSL_DEVICE i32 row_of(i32 first_tile, i32 row) const {
    return paged ? row & (table.rows_of_block() - 1) : first_tile * kKeysOfTile + row;
  }
  template <int strides_aside, class Source>
  FLYDSL_DEVICE global_ptr<const char> from(i32 tile, Source &source) {
    const i32 key = tile * kKeysOfTile + source.row;
    const bool partial = (tile + 1) * kKeysOfTile > table.seq_k;
    if constexpr (!paged) {
      global_ptr<const char> from = source.at;
      source.at += kKeysOfTile * source.strides.row;
      if (FLYDSL_UNLIKELY(partial)) from += (smaller(key, table.seq_k - 1) - key) * source.strides.row;
      return from;
    } else {
      const FeatureStrides strides = aside.template get<strides_aside, FeatureStrides>();
      const i32 row_mask = table.rows_of_block() - 1;
      const u32 block = table.block_of(source.entry);
      if (FLYDSL_UNLIKELY(partial)) {
        const i32 row = smaller(key, table.seq_k - 1) & row_mask;
        return source.at + i64{block} * strides.block +
               (row - (source.row & row_mask)) * strides.row;
      }
      if (table.shift < kTileShift) return source.at + i64{block} * strides.block;
      const i64 first_row = tile * kKeysOfTile & row_mask;
      return source.at + (i64{uniform(block)} * strides.block +
                          first_row * strides.row);
    }
  }
};

}  // namespace flydsl::kernels
