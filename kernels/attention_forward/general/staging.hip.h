// Bringing tiles of keys and values from global memory to LDS through registers, rows of any length
// and alignment, padded with zeros to the class's head dims.
//
// Four neighbouring work-items carry one row, 64 bytes of it at once. Keys past the last one repeat
// it: their scores are masked, and memory past the tensor is never read.
#pragma once

#include "attention_forward/general/padded_tile.hip.h"
#include "attention_forward/general/partial_rows.hip.h"
#include "attention_forward/general/work.hip.h"
#include "common/lds.hip.h"

namespace flydsl::kernels {

template <class Element, int head_dim_qk, int head_dim_v>
struct GeneralStager {
  using Layout = PaddedTile<head_dim_qk, head_dim_v>;
  const GeneralWork &work;
  i32 row, part;  // of the tile, of the row
  u32x4 k_held[head_dim_qk / 32], v_held[head_dim_v / 32];

  FLYDSL_DEVICE GeneralStager(const GeneralWork &work, u32 item)
      : work(work), row(static_cast<i32>(item / 4)), part(static_cast<i32>(item % 4)) {}

  // Starts fetching a tile.
  FLYDSL_DEVICE void begin(i32 tile) {
    const KeyPlace place = work.place_of(work.real_key(tile * kKeysOfTile + row));
    const auto k = work.k_row(place), v = work.v_row(place);
    const Arguments args = fresh_arguments();
    const Format format = static_cast<Format>(args->kv_format);
    const i32 first = static_cast<i32>(computed_here(static_cast<u32>(8 * part)));
#pragma unroll
    for (int i = 0; i < head_dim_qk / 32; ++i)
      k_held[i] = load_stored(k, 32 * i + first, args->head_dim_qk, format);
#pragma unroll
    for (int i = 0; i < head_dim_v / 32; ++i)
      v_held[i] = load_stored(v, 32 * i + first, args->head_dim_v - work.column, format);
  }
  FLYDSL_DEVICE void write(lds_ptr<char> k_to, lds_ptr<char> v_to) {
    if (const Format format = static_cast<Format>(fresh_arguments()->kv_format);
        format != Format::wide) {
#pragma unroll
      for (u32x4 &held : k_held) held = widened<Element>(held, format);
#pragma unroll
      for (u32x4 &held : v_held) held = widened<Element>(held, format);
    }
#pragma unroll
    for (int i = 0; i < head_dim_qk / 32; ++i)
      write_b128(k_to + row * Layout::k_pitch + 64 * i + 16 * part, k_held[i]);
#pragma unroll
    for (int i = 0; i < head_dim_v / 32; ++i)
      write_b128(v_to + row * Layout::v_pitch + 64 * i + 16 * part, v_held[i]);
  }
};

}  // namespace flydsl::kernels
