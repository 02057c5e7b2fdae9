// What an instance of the pass over the keys is compiled for.
#pragma once

#include "attention_decode/tile_layout.hip.h"
#include "common/float8.hip.h"

namespace flydsl::kernels {

// Products are of type `Element_`; keys and values are stored so, or in 8 bits (`format_`). A work-group of
// `waves_` waves takes `tiles_` tiles of keys at once, of which each wave fetches a part; a wave's rows
// are `row_blocks_` blocks of 16. `shared_`: values are the first elements of the keys, so that there
// is nothing to fetch for them.
template <class Element_, Format format_, int head_dim_qk_, int head_dim_v_, int row_blocks_,
          int waves_, int tiles_, bool shared_>
struct Shape {
  using Element = Element_;
  static constexpr Format format = format_;
  static constexpr int element_bytes = format == Format::wide ? 2 : 1;
  static constexpr int head_dim_qk = head_dim_qk_, head_dim_v = head_dim_v_;
  static constexpr int row_blocks = row_blocks_, waves = waves_, tiles = tiles_;
  static constexpr bool shared = shared_;
  static constexpr int score_steps = head_dim_qk / 32, value_blocks = head_dim_v / 16;
  static constexpr u32 rows_of_wave = 16 * row_blocks;

  using Keys = TileLayout<head_dim_qk * element_bytes, element_bytes>;
  using Values = TileLayout<(shared ? head_dim_qk : head_dim_v) * element_bytes, element_bytes>;
  // Waves that fetch one tile, and the copies of each.
  static constexpr int parts = waves / tiles;
  static_assert(waves % tiles == 0 && Keys::copies % parts == 0 && Values::copies % parts == 0,
                "waves fetch equal parts");
  static constexpr int k_copies = Keys::copies / parts;
  static constexpr int v_copies = shared ? 0 : Values::copies / parts;
};

}  // namespace flydsl::kernels
