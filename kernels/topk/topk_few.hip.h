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
    next.load(row_.x(), lane, length_);
    if constexpr (kOneTile) {
      least_ = bound(next, lane, length_);
      take(next, lane, 0, length_);
    } else {
      for (u32 begin = 0;; begin += Tile::kCapacity) {
        const Tile tile = next;
        const u32 rest = length_ - begin;
        const bool last = rest <= Tile::kCapacity;
        if (!last)
          next.load(row_.x() + u64{begin + Tile::kCapacity} * kRealBytes<Element>, lane,
                    rest - Tile::kCapacity);
        if (begin == 0) least_ = bound(tile, lane, rest);
        take(tile, lane, begin, rest);
        if (last) break;
        if (begin == 0 ? count_ > k_ : count_ > 2 * k_ + kWaveSize / 2) reduce();
      }
    }
    best([&](u32 rank, Candidate candidate, u32 element)
             FLYDSL_INLINED { row_.store(rank, index_of(candidate), element); });
  }

 private:
  // The K-th largest of the maxima of the groups, which are sorted for it (bitonic, Batcher 1968). A group without any number has
  // the least.
  FLYDSL_DEVICE Number bound(const Tile &tile, u32 lane, u32 count) const {
    constexpr u32 kOfGroup = kWaveSize / kGroups;
    // Places past the end of a lane's part hold its first element.
    Number best = largest_number(tile, flip_);
    if (!Tile::takes_part(lane, count)) best = Screen<Element>::kLeast;
    const auto of_lane = [&](u32 mask) FLYDSL_INLINED {
      return bits_as<Number>(lane_xor_bits(bits_as<u32>(best), mask));
    };
#pragma unroll
    for (u32 mask = 1; mask < kOfGroup; mask *= 2)
      best = Screen<Element>::larger(best, of_lane(mask));
    const u32 group = lane / kOfGroup;
#pragma unroll
    for (u32 span = 2; span <= kGroups; span *= 2) {
#pragma unroll
      for (u32 step = span / 2; step > 0; step /= 2) {
        const Number other = of_lane(step * kOfGroup);
        const bool larger = (group * span / step & span) == (group & span);
        best = (other > best) == larger ? other : best;
      }
    }
    return bits_as<Number>(uniform_lane_bits(bits_as<u32>(best), (k_ - 1) * kOfGroup));
  }

  // Puts what reaches the bound to the candidates, of each lane one at a time.
  FLYDSL_DEVICE void take(const Tile &tile, u32 lane, u32 begin, u32 count) {
    u32 mine = reaching(tile, least_, flip_) & elements_inside(tile, lane, count);
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
