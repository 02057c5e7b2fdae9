// TopK of few elements, one wave a row, whatever its length: one pass over memory. Entry: topk_few().
//
// The row comes a tile at a time, the next one on its way. The K-th largest of the maxima of 32 groups of lanes of the first tile is
// reached by the K best of the row at least; later it is what K elements before are better than. What reaches it goes to LDS; when
// there is much there, or a first tile has been seen, the K best of that are found by counting those that are better.
#pragma once

#include "topk/rows.hip.h"
#include "topk/tile.hip.h"

namespace flydsl::kernels {

constexpr u32 kFewCandidates = 128;  // of a wave

struct FewMemory {
  Candidate candidates[2][kFewCandidates];
  u32 elements[2][kFewCandidates];  // as they are in memory
};

// With `kOneTile` the row is not longer than a tile.
template <class Element, bool kWide, bool kOneTile>
class TopkFew {
 public:
  static constexpr u32 kOfVector = kReals16<Element>;
  static constexpr u32 kVectors = kOneTile ? 32 / kOfVector : 4;
  using Tile = RowTile<Element, kWaveSize, kVectors, kWide>;
  using Number = typename Screen<Element>::Number;
  static constexpr u32 kGroups = 32;  // K is at most that
  static_assert(kWaveSize % kGroups == 0);

  FLYDSL_DEVICE TopkFew(TopkArguments args, lds_ptr<FewMemory> memory, u64 number)
      : row_(args, number),
        memory_(memory),
        length_(args->length),
        k_(args->k),
        flip_(args->flip) {}

  FLYDSL_DEVICE void run() {
    const u32 lane =
        opaque(lane_index());  // or what follows from it would be kept round the rows' loop
    Tile next;
    load(next, row_.x(), lane, length_);
    if constexpr (kOneTile) {
      turn_round(next);
      const Number of_lane = largest(next, lane, length_);
      least_ = bound(of_lane, lane);
      const u32 mine = candidates_in(next, lane, length_);
      if (store_singles(next, lane, of_lane, mine)) return;
      take(next, mine, lane, 0);
    } else {
      for (u32 begin = 0;; begin += Tile::kCapacity) {
        Tile tile = next;
        const u32 rest = length_ - begin;
        const bool last = rest <= Tile::kCapacity;
        if (!last)
          load(next, row_.x() + u64{begin + Tile::kCapacity} * kRealBytes<Element>, lane,
               rest - Tile::kCapacity);
        turn_round(tile);
        if (begin == 0) least_ = bound(largest(tile, lane, rest), lane);
        take(tile, candidates_in(tile, lane, rest), lane, begin);
        if (last) break;
        if (begin == 0 ? count_ > k_ : count_ > 2 * k_ + kWaveSize / 2) reduce();
      }
    }
    best([&](u32 rank, Candidate candidate, u32 element)
             FLYDSL_INLINED { row_.store(rank, index_of(candidate), element); });
  }

 private:
  // A whole tile takes one address.
  static FLYDSL_DEVICE void load(Tile &tile, global_ptr<const char> from, u32 lane, u32 count) {
    if constexpr (kWide) {
      if (count >= Tile::kCapacity) {
#pragma unroll
        for (u32 v = 0; v < kVectors; ++v)
          tile.vectors[v] =
              *(global_ptr<const u32x4>)(from + (v * kWaveSize + lane) * sizeof(u32x4));
        return;
      }
    }
    tile.load(from, lane, count);
  }

  // The smallest become the largest, if they are wanted.
  FLYDSL_DEVICE void turn_round(Tile &tile) const {
    if (flip_ == 0) return;
#pragma unroll
    for (u32 v = 0; v < kVectors; ++v) {
#pragma unroll
      for (u32 i = 0; i < 4; ++i) tile.vectors[v][i] ^= Screen<Element>::kTurned;
    }
  }

  // Of a lane; places past the end of its part hold its first element.
  static FLYDSL_DEVICE Number largest(const Tile &tile, u32 lane, u32 count) {
    return Tile::takes_part(lane, count) ? largest_number(tile, 0u) : Screen<Element>::kLeast;
  }

  // The K-th largest of the maxima of the lanes, or of groups of them. A lane without any number has the least.
  FLYDSL_DEVICE Number bound(Number of_lane, u32 lane) const {
    return k_ <= 2 ? bound_of_two(of_lane) : bound_of_groups(of_lane, lane);
  }
  FLYDSL_DEVICE Number bound_of_two(Number first) const {
    Number second = Screen<Element>::kLeast;
#pragma unroll
    for (u32 mask = 1; mask < kWaveSize; mask *= 2) {
      const Number other = of_other(first, mask), next = of_other(second, mask);
      second = Screen<Element>::larger(Screen<Element>::larger(second, next),
                                       Screen<Element>::smaller(first, other));
      first = Screen<Element>::larger(first, other);
    }
    return k_ == 1 ? first : second;
  }
  // Sorted for it (bitonic, Batcher 1968).
  FLYDSL_DEVICE Number bound_of_groups(Number best, u32 lane) const {
    constexpr u32 kOfGroup = kWaveSize / kGroups;
#pragma unroll
    for (u32 mask = 1; mask < kOfGroup; mask *= 2)
      best = Screen<Element>::larger(best, of_other(best, mask));
    const u32 group = lane / kOfGroup;
#pragma unroll
    for (u32 span = 2; span <= kGroups; span *= 2) {
#pragma unroll
      for (u32 step = span / 2; step > 0; step /= 2) {
        const Number other = of_other(best, step * kOfGroup);
        const bool larger = (group * span / step & span) == (group & span);
        best = (other > best) == larger ? other : best;
      }
    }
    return bits_as<Number>(uniform_lane_bits(bits_as<u32>(best), (k_ - 1) * kOfGroup));
  }
  static FLYDSL_DEVICE Number of_other(Number value, u32 mask) {
    return bits_as<Number>(lane_xor_bits(bits_as<u32>(value), mask));
  }

  // Stores the results where no lane has more than one element that reaches the bound, which is its largest then, and no NaN: without
  // another access to memory. (The least number may stand for there being none.)
  FLYDSL_DEVICE bool store_singles(const Tile &tile, u32 lane, Number of_lane, u32 mine) const {
    const bool single =
        (mine & (mine - 1)) == 0 && of_lane > Screen<Element>::kLeast && of_lane >= least_;
    if (lanes_where(mine != 0 && !single) != 0) return false;
    const u32 index = index_in(tile, lane, static_cast<u32>(__builtin_ctz(mine | 0x80000000)));
    const u32 element = Screen<Element>::bits_of(of_lane, flip_);
    const Candidate own = candidate_of(order_of<Element>(element, flip_), index);
    u32 better = 0;
    for (u64 lanes = lanes_where(mine != 0); lanes != 0; lanes &= lanes - 1) {
      const u32 from = static_cast<u32>(__builtin_ctzll(lanes));
      const Candidate other = u64{uniform_lane_bits(order_of(own), from)} << 32 |
                              uniform_lane_bits(static_cast<u32>(own), from);
      better += other > own;
    }
    if (mine != 0 && better < k_) row_.store(better, index, element);
    return true;
  }

  // Bit e: element e reaches the bound.
  FLYDSL_DEVICE u32 candidates_in(const Tile &tile, u32 lane, u32 count) const {
    return reaching(tile, least_, 0u) & elements_inside(tile, lane, count);
  }

  // Puts those of `mine` to the candidates, of each lane one at a time.
  FLYDSL_DEVICE void take(const Tile &tile, u32 mine, u32 lane, u32 begin) {
    Candidate worst = 0;  // of the K best, where they have been counted within this tile
    for (u64 lanes = lanes_where(mine != 0); lanes != 0; lanes = lanes_where(mine != 0)) {
      u32 element = 0;
      Candidate candidate = 0;
      if (mine != 0) {
        const u32 e = static_cast<u32>(__builtin_ctz(mine));
        const u32 index = begin + index_in(tile, lane, e);
        element = row_.bits(index);
        candidate = candidate_of(order_of<Element>(element, flip_), index);
        mine &= mine - 1;
      }
      const bool taken = candidate > worst;
      const u64 takers = lanes_where(taken);
      const u32 slot = count_ + lanes_before(takers);
      if (taken) {
        memory_->candidates[half_][slot] = candidate;
        memory_->elements[half_][slot] = element;
      }
      count_ += count_lanes(takers);
      if (count_ > kFewCandidates - kWaveSize) worst = reduce();
    }
  }

  // Calls put(rank, candidate, element) for the K best candidates, or for all if they are fewer.
  template <class Put>
  FLYDSL_DEVICE void best(Put put) {
    wave_barrier();
    const auto candidates = &memory_->candidates[half_][0];
    for (u32 c = lane_index(); c < count_; c += kWaveSize) {
      const Candidate mine = candidates[c];
      u32 better = 0;
#pragma unroll 4
      for (u32 other = 0; other < count_; ++other) better += candidates[other] > mine;
      if (better < k_) put(better, mine, memory_->elements[half_][c]);
    }
  }

  // Leaves the K best candidates, or all if they are fewer; the last of K. Elements of later tiles have higher indices, so that they
  // have to be better than it.
  FLYDSL_DEVICE Candidate reduce() {
    const u32 to = half_ ^ 1;
    best([&](u32 rank, Candidate candidate, u32 element) FLYDSL_INLINED {
      memory_->candidates[to][rank] = candidate;
      memory_->elements[to][rank] = element;
    });
    wave_barrier();
    half_ = to;
    if (count_ < k_) return 0;
    count_ = k_;
    const Candidate last = memory_->candidates[to][k_ - 1];
    const u32 order = order_of(last);
    least_ = Screen<Element>::least_of(order == ~0u ? order : order + 1, flip_);
    return last;
  }

  TopkRow<Element> row_;
  lds_ptr<FewMemory> memory_;
  u32 length_, k_, flip_;
  u32 count_ = 0, half_ = 0;
  Number least_ = Screen<Element>::kLeast;
};

template <class Element, u32 kThreads, bool kWide, bool kOneTile>
FLYDSL_DEVICE void topk_few(const flydsl_aot_topk_kernarg &args) {
  constexpr u32 kRows = kThreads / kWaveSize;
  FLYDSL_SHARED static FewMemory memory[kRows];
  const u32 wave = wave_uniform(thread_index() / kWaveSize);
  for (u64 tile = group_index(); tile < args.tiles; tile += args.groups) {
    const TopkArguments here = arguments_here(args);
    const u64 number = tile * kRows + wave;
    if (number >= here->rows) return;
    TopkFew<Element, kWide, kOneTile>(here, (lds_ptr<FewMemory>)&memory[wave], number).run();
    wave_barrier();
  }
}

}  // namespace flydsl::kernels
