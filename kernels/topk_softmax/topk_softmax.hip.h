// The K best of short rows and their softmax. Entry: topk_softmax(). The definition is include/flydsl_aot/topk_softmax.h.
//
// A team of threads of one wave has a row in registers and takes out the best K times; lane i of it keeps the i-th.
#pragma once

#include "common/arguments.hip.h"
#include "common/math.hip.h"
#include "common/row_place.hip.h"
#include "common/team.hip.h"
#include "flydsl_aot_generated/topk_softmax_kernarg.h"
#include "topk/tile.hip.h"

namespace flydsl::kernels {

using TopkSoftmaxArguments = ArgumentsOf<flydsl_aot_topk_softmax_kernarg>;

// An element's order and its index in one number: larger is better, none equals another, 0 is none. (N is at most 512.)
template <class Element>
struct RankedKey {
  using Key = u64;
  static FLYDSL_DEVICE Key of(u32 order, u32 index) {
    return u64{order} << 32 | static_cast<u32>(~index);
  }
  static FLYDSL_DEVICE u32 order(Key key) { return static_cast<u32>(key >> 32); }
  static FLYDSL_DEVICE u32 index(Key key) { return ~static_cast<u32>(key); }
  static FLYDSL_DEVICE Key of_lane(Key key, u32 mask) {
    return u64{lane_xor_bits(static_cast<u32>(key >> 32), mask)} << 32 |
           lane_xor_bits(static_cast<u32>(key), mask);
  }
};
template <class Element>
requires(kRealBytes<Element> == 2) struct RankedKey<Element> {
  using Key = u32;
  static FLYDSL_DEVICE Key of(u32 order, u32 index) { return order << 16 | (0xffff - index); }
  static FLYDSL_DEVICE u32 order(Key key) { return key >> 16; }
  static FLYDSL_DEVICE u32 index(Key key) { return 0xffff - (key & 0xffff); }
  static FLYDSL_DEVICE Key of_lane(Key key, u32 mask) { return lane_xor_bits(key, mask); }
};

template <class Element, u32 kThreads, class Tile>
class TopkSoftmax {
 public:
  static constexpr u32 kTeam = Tile::kTeam, kElements = kElementsOf<Tile>;
  static_assert(kTeam <= kWaveSize);
  using Ranked = RankedKey<Element>;
  using Key = typename Ranked::Key;

  FLYDSL_DEVICE void compute(TopkSoftmaxArguments args, u64 row, bool real) {
    const u32 rank = opaque(thread_index()) %
                     kTeam;  // or what follows from it would be kept round the rows' loop
    const RowPlace place = place_of_row(row, args->rows, args->rows_inner);
    const u32 length = args->length, k = args->k;
    Tile tile;
    tile.load((global_ptr<const char>)args->x + place.at(args->x_stride_o, args->x_stride_i), rank,
              length);
    const u32 inside = elements_inside(tile, rank, length);
    Key keys[kElements];
#pragma unroll
    for (u32 e = 0; e < kElements; ++e) {
      const Key key = Ranked::of(order_of<Element>(bits_in(tile, e)), index_in(tile, rank, e));
      keys[e] = inside >> e & 1 ? key : 0;
    }
    Key mine = 0;
    float largest = 0, sum = 0;
    for (u32 turn = 0; turn < k; ++turn) {
      Key best = 0;
#pragma unroll
      for (u32 e = 0; e < kElements; ++e) best = best > keys[e] ? best : keys[e];
#pragma unroll
      for (u32 mask = 1; mask < kTeam; mask *= 2) {
        const Key other = Ranked::of_lane(best, mask);
        best = best > other ? best : other;
      }
#pragma unroll
      for (u32 e = 0; e < kElements; ++e) keys[e] = keys[e] == best ? 0 : keys[e];
      const float number = number_of(best);
      if (turn == 0) largest = number;
      sum += exponential(number, largest);
      if (rank == turn) mine = best;
    }
    if (!args->chosen_only) {
      sum = 0;
#pragma unroll
      for (u32 e = 0; e < kElements; ++e) {
        const float share = exponential(number_in(tile, e, 0), largest);
        sum += inside >> e & 1 ? share : 0.0f;
      }
      sum = team_.sum(sum);
    }
    if (rank >= k || !real) return;
    const float weight = exponential(number_of(mine), largest) / sum;
    const auto to = (global_ptr<char>)args->weights +
                    place.at(args->weights_stride_o, args->weights_stride_i) +
                    rank * args->weights_stride_k;
    if (args->weights_are_fp32)
      store_real<fp32>(to, weight);
    else
      store_real<Element>(to, weight);
    const auto at = (global_ptr<char>)args->indices +
                    place.at(args->indices_stride_o, args->indices_stride_i) +
                    rank * args->indices_stride_k;
    if (args->wide_indices)
      *(global_ptr<u64>)at = Ranked::index(mine);
    else
      *(global_ptr<u32>)at = Ranked::index(mine);
  }

 private:
  static FLYDSL_DEVICE float exponential(float number, float largest) {
    return exp2((number - largest) * kLog2E);
  }
  static FLYDSL_DEVICE float number_of(Key key) {
    constexpr u32 kNan = kRealBytes<Element> == 2 ? 0xffff : 0xffffffff;
    const u32 order = Ranked::order(key);
    return order == kNan ? __builtin_nanf("") : Screen<Element>::least_of(order, 0);
  }

  Team<kThreads, kTeam> team_;
};

template <class Element, u32 kThreads, class Tile>
FLYDSL_DEVICE void topk_softmax(const flydsl_aot_topk_softmax_kernarg &args) {
  constexpr u32 kTeams = kThreads / Tile::kTeam;
  TopkSoftmax<Element, kThreads, Tile> rows;
  for (u64 tile = group_index(); tile < args.tiles; tile += args.groups) {
    const TopkSoftmaxArguments here = arguments_here(args);
    const u64 number = tile * kTeams + thread_index() / Tile::kTeam;
    const bool real = number < here->rows;
    rows.compute(here, real ? number : here->rows - 1, real);
  }
}

}  // namespace flydsl::kernels
