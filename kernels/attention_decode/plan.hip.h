// Who computes what. Where lengths are known to the device only, every work-group works the same plan out;
// where all sequences are equally long the host has done so (EqualPlan).
//
// A tile is 32 neighbouring keys that a sequence sees; a unit is one tile of one pair (key head and
// tile of query rows). Units are numbered sequence by sequence, in it pair by pair, in it tile by
// tile. The workers, a wave each, take equal and contiguous shares of them. The part of a share that
// belongs to one pair is a segment; it leaves a partial result in slot worker + pair, which no other
// segment has, since from one segment to the next the worker or the pair grows. Units of the longest
// lengths fit 32 bits; the host sees to it.
#pragma once

#include "attention_decode/arguments.hip.h"

namespace flydsl::kernels {

constexpr i32 kKeysOfTile = 32;

FLYDSL_DEVICE i32 smaller(i32 a, i32 b) {
  return a < b ? a : b;
}
FLYDSL_DEVICE i32 clamped(i32 value, i32 low, i32 high) {
  return value < low ? low : value > high ? high : value;
}

// Which keys of a sequence its queries see. Lengths and bounds are below 2^30, sums of three fit.
struct Sequence {
  i32 keys;
  i32 low, high;  // query i sees the keys from i + low to i + high that exist
  i32 diagonal;   // query i sits at key i + diagonal
  i32 seq_q;

  FLYDSL_DEVICE Sequence() = default;
  FLYDSL_DEVICE explicit Sequence(i32 keys) : keys(keys) {
    const Arguments args = fresh_arguments();
    seq_q = args->seq_q;
    diagonal = args->bottom_right ? keys - seq_q : 0;
    const i32 left = args->window_left, right = args->window_right;
    low = left < 0 ? -seq_q : clamped(diagonal - left, -seq_q, keys);
    high = right < 0 ? keys : clamped(diagonal + right, -seq_q, keys);
  }
  FLYDSL_DEVICE i32 first_key(i32 query) const { return query + low < 0 ? 0 : query + low; }
  FLYDSL_DEVICE i32 last_key(i32 query) const { return smaller(query + high, keys - 1); }
  // Of any query.
  FLYDSL_DEVICE i32 begin() const { return first_key(0); }
  FLYDSL_DEVICE i32 last() const { return last_key(seq_q - 1); }
  FLYDSL_DEVICE u32 tiles() const {
    return last() < begin() ? 0 : static_cast<u32>(last() - begin()) / kKeysOfTile + 1;
  }
};

// Numbers that do not fit are clamped: whatever they are, no memory outside the tensors is touched.
FLYDSL_DEVICE Sequence sequence_of(u32 batch) {
  const Arguments args = fresh_arguments();
  const i32 longest = args->seq_k;
  if (!args->seqused_k) return Sequence(longest);
  return Sequence(clamped(((global_ptr<const i32>)args->seqused_k)[batch], 0, longest));
}

// Tiles of the 64 sequences from `first` on, a lane each.
FLYDSL_DEVICE u32 tiles_of_lane(u32 first, u32 lane) {
  const u32 batch = first + lane;
  return batch < fresh_arguments()->batches ? sequence_of(batch).tiles() : 0;
}

FLYDSL_DEVICE u32 from_lane(u32 value, u32 lane) {
  return static_cast<u32>(
      __builtin_amdgcn_ds_bpermute(static_cast<i32>(lane * 4), static_cast<i32>(value)));
}

// `value` of the lane that DPP control `control` names, in the rows of 16 lanes that `rows` names; else 0.
template <int control, int rows>
FLYDSL_DEVICE u32 moved(u32 value) {
  return static_cast<u32>(
      __builtin_amdgcn_update_dpp(0, static_cast<int>(value), control, rows, 15, false));
}
// Sum over the lanes up to and with this one: inside rows, then each row's last lane to the next row, and lane
// 31 to the upper half.
FLYDSL_DEVICE u32 inclusive_sum(u32 value) {
  value += moved<0x111, 15>(value);  // row_shr:1, 2, 4, 8
  value += moved<0x112, 15>(value);
  value += moved<0x114, 15>(value);
  value += moved<0x118, 15>(value);
  value += moved<0x142, 10>(value);  // row_bcast:15
  value += moved<0x143, 12>(value);  // row_bcast:31
  return value;
}

// Tiles of one pair in all sequences, and in those before `batch`.
struct TileCount {
  u32 all, before;
};
FLYDSL_DEVICE TileCount count_tiles(u32 batch, u32 lane) {
  const u32 batches = fresh_arguments()->batches;
  TileCount count = {0, 0};
#pragma unroll 1
  for (u32 first = 0; first < batches; first += kWaveLanes) {
    const u32 sums = inclusive_sum(tiles_of_lane(first, lane));
    const u32 all = __builtin_amdgcn_readlane(sums, kWaveLanes - 1);
    count.all += all;
    if (batch >= first + kWaveLanes)
      count.before += all;
    else if (batch > first)
      count.before += __builtin_amdgcn_readlane(sums, batch - first - 1);
  }
  return count;
}

// The sequence in which tile number `tile` (counted over one pair of all sequences) lies.
struct Location {
  u32 batch, tiles_before;
};
FLYDSL_DEVICE Location locate(u32 tile, u32 lane) {
  Location at = {0, 0};
#pragma unroll 1
  for (;; at.batch += kWaveLanes) {
    const u32 tiles = tiles_of_lane(at.batch, lane);
    const u32 sums = inclusive_sum(tiles);
    const u64 past = ballot(at.tiles_before + sums > tile);
    if (past != 0) {
      const u32 found = __builtin_ctzll(past);
      at.batch += found;
      at.tiles_before += __builtin_amdgcn_readlane(sums - tiles, found);
      return at;
    }
    at.tiles_before += __builtin_amdgcn_readlane(sums, kWaveLanes - 1);
  }
}

// Equal shares of the units: the first `extra` workers have one more than the others.
struct Shares {
  u32 each, extra;
  static FLYDSL_DEVICE Shares of(u32 units, u32 workers) {
    return {units / workers, units % workers};
  }
  FLYDSL_DEVICE u32 begin(u32 worker) const {
    return worker * each + (worker < extra ? worker : extra);
  }
  FLYDSL_DEVICE u32 owner(u32 unit) const {
    const u32 of_larger = extra * (each + 1);
    const bool larger = unit < of_larger;
    return (larger ? unit : unit - of_larger) / (larger ? each + 1 : each) + (larger ? 0 : extra);
  }
};

// n / d for n < 2^31; `by` is what the host made of d (divider_of in v2src/attention_decode_describe.cc).
FLYDSL_DEVICE u32 quotient(u32 n, u64 by) {
  return static_cast<u32>(static_cast<u64>(2 * n) * static_cast<u32>(by) >> 32) >> (by >> 32);
}

// The workers that have a pair's units, which follow each other.
struct Owners {
  u32 first, count;
};

// The plan where each sequence has the same number of tiles, above 0.
struct EqualPlan {
  u32 tiles;  // of a sequence; 0: there is no such plan
  Shares shares;
  u64 by_each, by_each_and_one;

  FLYDSL_DEVICE explicit EqualPlan(Arguments args)
      : tiles(args->equal_tiles),
        shares{args->equal_share, args->larger_shares},
        by_each(args->by_equal_share),
        by_each_and_one(args->by_larger_share) {}
  FLYDSL_DEVICE u32 owner(u32 unit) const {
    const u32 of_larger = shares.extra * (shares.each + 1);
    return unit < of_larger ? quotient(unit, by_each_and_one)
                            : quotient(unit - of_larger, by_each) + shares.extra;
  }
  // `pair`: counted over all sequences.
  FLYDSL_DEVICE Owners owners(u32 pair) const {
    const u32 first = owner(pair * tiles);
    return {first, owner(pair * tiles + tiles - 1) - first + 1};
  }
};

// Pairs of a sequence.
FLYDSL_DEVICE u32 pairs_of_sequence() {
  const Arguments args = fresh_arguments();
  return args->heads_kv * args->row_tiles;
}

// A worker's units, and where the first of them lies.
struct Work {
  u32 unit, end;
  u32 batch, pair, tile;

  FLYDSL_DEVICE bool empty() const { return unit >= end; }
  FLYDSL_DEVICE Work(u32 worker, u32 lane) {
    const Arguments args = fresh_arguments();
    const EqualPlan plan(args);
    const u32 pairs = pairs_of_sequence();
    if (FLYDSL_LIKELY(plan.tiles != 0)) {
      unit = plan.shares.begin(worker);
      end = plan.shares.begin(worker + 1);
      const u32 pair_of_all = quotient(unit, args->by_equal_tiles);
      batch = quotient(pair_of_all, args->by_pairs);
      pair = pair_of_all - batch * pairs;
      tile = unit - pair_of_all * plan.tiles;
    } else {
      const Shares shares = Shares::of(count_tiles(0, lane).all * pairs, args->workers);
      unit = shares.begin(worker);
      end = shares.begin(worker + 1);
      if (empty()) return;
      const Location at = locate(unit / pairs, lane);
      batch = at.batch;
      const u32 offset = unit - at.tiles_before * pairs;
      const u32 tiles = uniform(sequence_of(batch).tiles());
      pair = offset / tiles;
      tile = offset % tiles;
    }
  }
};

}  // namespace flydsl::kernels
