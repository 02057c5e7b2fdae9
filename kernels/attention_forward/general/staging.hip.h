// Bringing tiles of keys and values from global memory to LDS through registers, rows of any length
// and alignment, padded with zeros to the class's head dims.
//
// Four or eight neighbouring work-items carry one row, 64 or 128 bytes of it at once. Keys past the last one repeat
// it: their scores are masked, and memory past the tensor is never read.
#pragma once

#include "attention_forward/general/padded_tile.hip.h"
#include "attention_forward/general/partial_rows.hip.h"
#include "attention_forward/general/work.hip.h"
#include "common/lds.hip.h"

namespace flydsl::kernels {

template <class Element, int head_dim_qk, int head_dim_v, int keys>
struct GeneralStager {
  using Layout = PaddedTile<head_dim_qk, head_dim_v, keys>;
  static constexpr int kItemsOfRow = kWaves * kWaveLanes / keys, kElements = 8 * kItemsOfRow;
  static_assert(head_dim_qk % kElements == 0 && head_dim_v % kElements == 0,
                "a row is whole pieces of its work-items");
  const GeneralWork &work;
  i32 row, part;  // of the tile, of the row
  u32x4 k_held[head_dim_qk / kElements], v_held[head_dim_v / kElements];

  FLYDSL_DEVICE GeneralStager(const GeneralWork &work, u32 item)
      : work(work),
        row(static_cast<i32>(item / kItemsOfRow)),
        part(static_cast<i32>(item % kItemsOfRow)) {}

  // Starts fetching a tile.
  FLYDSL_DEVICE void begin(i32 tile) {
    begin_k(tile);
    begin_v(tile);
  }
  FLYDSL_DEVICE void write(lds_ptr<char> k_to, lds_ptr<char> v_to) {
    write_k(k_to);
    write_v(v_to);
  }

  FLYDSL_DEVICE void begin_k(i32 tile) {
    fetch(work.k_row(place(tile)), fresh_arguments()->head_dim_qk, k_held);
  }
  FLYDSL_DEVICE void begin_v(i32 tile) {
    fetch(work.v_row(place(tile)), fresh_arguments()->head_dim_v - work.column, v_held);
  }
  FLYDSL_DEVICE void write_k(lds_ptr<char> to) { write_rows<Layout::k_pitch>(k_held, to); }
  FLYDSL_DEVICE void write_v(lds_ptr<char> to) { write_rows<Layout::v_pitch>(v_held, to); }

 private:
  FLYDSL_DEVICE KeyPlace place(i32 tile) const {
    return work.place_of(work.real_key(tile * keys + row));
  }
  template <int blocks>
  FLYDSL_DEVICE void fetch(global_ptr<const char> from, i32 head_dim, u32x4 (&held)[blocks]) {
    const Format format = static_cast<Format>(fresh_arguments()->kv_format);
    const i32 first = static_cast<i32>(computed_here(static_cast<u32>(8 * part)));
#pragma unroll
    for (int i = 0; i < blocks; ++i) held[i] = load_stored(from, kElements * i + first, head_dim, format);
  }
  template <int pitch, int blocks>
  FLYDSL_DEVICE void write_rows(u32x4 (&held)[blocks], lds_ptr<char> to) {
    if (const Format format = static_cast<Format>(fresh_arguments()->kv_format);
        format != Format::wide) {
#pragma unroll
      for (u32x4 &piece : held) piece = widened<Element>(piece, format);
    }
#pragma unroll
    for (int i = 0; i < blocks; ++i) write_b128(to + row * pitch + 2 * kElements * i + 16 * part, held[i]);
  }
};

}  // namespace flydsl::kernels
