// TopK of few elements of rows that fit registers. Entry: topk_few().
//
// The K-th largest of the maxima of 64 groups of threads bounds the K-th element from below. What reaches the bound, usually
// little more than K elements, goes to LDS, where each counts those that are better: that is its rank. Where too many
// reach it, as with equal elements, the best one is taken out K times.
#pragma once

#include "common/atomics.hip.h"
#include "common/row_tile.hip.h"
#include "common/team.hip.h"
#include "topk/rows.hip.h"

namespace flydsl::kernels {

constexpr u32 kGroups = 64;

// How many of the groups' maxima come before number `own`: they are larger, or as large and earlier.
FLYDSL_DEVICE u32 before(lds_ptr<const u32> maxima, u32 own) {
  const u32 mine = maxima[own];
  u32 count = 0;
  own =
      opaque(own);  // or the 64 comparisons with it would be made, and kept, before the rows' loop
#pragma unroll
  for (u32 other = 0; other < kGroups; other += 4) {
    const u32x4 values = *(lds_ptr<const u32x4>)(maxima + other);
#pragma unroll
    for (u32 i = 0; i < 4; ++i) count += other + i < own ? values[i] >= mine : values[i] > mine;
    if (other % 16 == 12) compiler_fence();
  }
  return count;
}

template <class Element, u32 kThreads, u32 kTeam, bool kWide>
class TopkFew {
 public:
  static constexpr u32 kElements = 16;  // of a thread
  static constexpr u32 kOfVector = kReals16<Element>;
  using Tile = RowTile<Element, kTeam, kElements / kOfVector, kWide>;
  static constexpr u32 kTeams = kThreads / kTeam;
  static constexpr u32 kCandidates = 128;  // of a team

  FLYDSL_DEVICE void compute(TopkArguments args, u64 number, bool real) {
    FLYDSL_SHARED static Candidate candidates[kTeams][kCandidates];
    FLYDSL_SHARED static u32 elements[kTeams][kCandidates];  // as they are in memory
    FLYDSL_SHARED alignas(16) static u32 maxima[kTeams][kGroups];
    FLYDSL_SHARED static u32 counts[kTeams], bounds[kTeams];
    const u32 team = thread_index() / kTeam, rank = thread_index() % kTeam;
    const TopkRow<Element> row(args, number);
    const u32 length = real ? args->length : 0, k = args->k;

    Tile tile;
    tile.load(row.x(), rank, length);
    u32 orders[kElements], best = 0;
#pragma unroll
    for (u32 e = 0; e < kElements; ++e) {
      orders[e] = order_of<Element>(bits_of(tile, e), args->flip);
      if (inside(rank, e, length) && orders[e] > best) best = orders[e];
    }
#pragma unroll
    for (u32 mask = 1; mask < kTeam / kGroups; mask *= 2) {
      const u32 other = lane_xor_bits(best, mask);
      best = best > other ? best : other;
    }
    if (rank % (kTeam / kGroups) == 0) maxima[team][rank / (kTeam / kGroups)] = best;
    group_barrier();
    if (rank == 0) counts[team] = 0;
    if (rank < kGroups && before((lds_ptr<const u32>)&maxima[team][0], rank) == k - 1)
      bounds[team] = maxima[team][rank];
    group_barrier();
    const u32 bound = bounds[team];
#pragma unroll
    for (u32 e = 0; e < kElements; ++e) {
      if (orders[e] < bound || !inside(rank, e, length)) continue;
      const u32 slot = atomic_add((lds_ptr<u32>)&counts[team], 1);
      if (slot >= kCandidates) continue;
      candidates[team][slot] = candidate_of(orders[e], index(rank, e));
      elements[team][slot] = bits_of(tile, e);
    }
    group_barrier();
    const u32 count = counts[team];
    if (count <= kCandidates) {
      for (u32 c = rank; c < count; c += kTeam) {
        const Candidate mine = candidates[team][c];
        u32 better = 0;
        for (u32 other = 0; other < count; ++other) better += candidates[team][other] > mine;
        if (better < k) row.store(better, index_of(mine), elements[team][c]);
      }
    }
    bool too_many = false;
#pragma unroll
    for (u32 other = 0; other < kTeams; ++other) too_many |= counts[other] > kCandidates;
    if (!too_many) return;
    // All teams take the same turns.
    Candidate last = 0;  // of the turn before
    for (u32 turn = 0; turn < k; ++turn) {
      Candidate own = 0;
#pragma unroll
      for (u32 e = 0; e < kElements; ++e) {
        const Candidate candidate = candidate_of(orders[e], index(rank, e));
        if (inside(rank, e, length) && candidate > own && (turn == 0 || candidate < last))
          own = candidate;
      }
      const u32 order = team_.largest(order_of(own));
      const u32 low = team_.largest(order_of(own) == order ? static_cast<u32>(own) : 0);
      last = u64{order} << 32 | low;
      if (real && rank == 0 && count > kCandidates)
        row.store(turn, index_of(last), row.bits(index_of(last)));
    }
  }

 private:
  static FLYDSL_DEVICE u32 index(u32 rank, u32 e) {
    return Tile::index(rank, e / kOfVector, e % kOfVector);
  }
  static FLYDSL_DEVICE bool inside(u32 rank, u32 e, u32 length) {
    return index(rank, e) < length;
  }

  static FLYDSL_DEVICE u32 bits_of(const Tile &tile, u32 e) {
    const u32 i = e % kOfVector;
    const u32 word = tile.vectors[e / kOfVector][i * kRealBytes<Element> / 4];
    return kRealBytes<Element> == 2 ? word >> i % 2 * 16 & 0xffff : word;
  }

  Team<kThreads, kTeam> team_;
};

template <class Element, u32 kThreads, u32 kTeam, bool kWide>
FLYDSL_DEVICE void topk_few(const flydsl_aot_topk_kernarg &args) {
  constexpr u32 kTeams = kThreads / kTeam;
  TopkFew<Element, kThreads, kTeam, kWide> rows;
  for (u64 tile = group_index(); tile < args.tiles; tile += args.groups) {
    const TopkArguments here = arguments_here(args);
    const u64 number = tile * kTeams + thread_index() / kTeam;
    const bool real = number < here->rows;
    rows.compute(here, real ? number : here->rows - 1, real);
  }
}

}  // namespace flydsl::kernels
