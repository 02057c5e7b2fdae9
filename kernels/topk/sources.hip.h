// Where candidates come from. A source's for_each(use) calls use(candidate) for the thread's share of them. One with for_each_group(use)
// tells use(which, largest order) of each group of the thread's elements too, about `groups` of all threads.
#pragma once

#include "topk/rows.hip.h"
#include "topk/tile.hip.h"

namespace flydsl::kernels {

// use(i, load(i)) for the thread's share of i below `count`, several loads on their way at once.
template <u32 kThreads, class Index, class Load, class Use>
FLYDSL_DEVICE void in_batches(Index count, Load load, Use use) {
  constexpr u32 kBatch = 8;
  Index i = thread_index();
  for (; i + (kBatch - 1) * kThreads < count; i += kBatch * kThreads) {
    decltype(load(i)) values[kBatch];
#pragma unroll
    for (u32 b = 0; b < kBatch; ++b) values[b] = load(i + b * kThreads);
#pragma unroll
    for (u32 b = 0; b < kBatch; ++b) use(i + b * kThreads, values[b]);
  }
  for (; i < count; i += kThreads) use(i, load(i));
}

FLYDSL_DEVICE u32 larger(u32 a, u32 b) {
  return a > b ? a : b;
}

// Elements where they are in memory, read anew for each digit.
template <class Element, u32 kThreads>
struct RowSource {
  TopkRow<Element> row;
  u32 first, count, flip;
  template <class Use>
  FLYDSL_DEVICE void for_each(Use use) const {
    in_batches<kThreads>(
        u64{count}, [&](u64 i) FLYDSL_INLINED { return row.bits(first + static_cast<u32>(i)); },
        [&](u64 i, u32 bits) FLYDSL_INLINED {
          use(candidate_of(order_of<Element>(bits, flip), first + static_cast<u32>(i)));
        });
  }
};

// The same, held in registers as they are in memory: only for a bound.
template <class Element, u32 kThreads, bool kWide>
struct RegisterSource {
  using Tile = RowTile<Element, kThreads, 32 / kReals16<Element>, kWide>;
  static constexpr u32 kElements = kElementsOf<Tile>,
                       kOfGroup = 4;  // of a thread, neighbours in the tile
  static constexpr u32 kGroups = kElements / kOfGroup;
  TopkRow<Element> row;
  u32 first, count, flip;
  Tile tile;

  FLYDSL_DEVICE RegisterSource(const TopkRow<Element> &its_row, u32 its_first, u32 its_count,
                               u32 its_flip)
      : row(its_row), first(its_first), count(its_count), flip(its_flip) {
    tile.load(row.x() + u64{first} * kRealBytes<Element>, thread_index(), count);
  }
  // Those without an element have the least number.
  FLYDSL_DEVICE u32 groups() const { return count / kOfGroup; }
  template <class Use>
  FLYDSL_DEVICE void for_each_group(Use use) const {
    if (count == Tile::kCapacity) return groups_of([](u32) FLYDSL_INLINED { return true; }, use);
    const u32 inside = elements_inside(tile, thread_index(), count);
    groups_of([&](u32 e) FLYDSL_INLINED { return (inside >> e & 1) != 0; }, use);
  }
  // Those that may be `least` or better, and few others.
  template <class Use>
  FLYDSL_DEVICE void for_each_from(Candidate least, Use use) const {
    const u32 thread = opaque(thread_index());
    u32 mine = reaching(tile, Screen<Element>::least_of(order_of(least), flip), flip) &
               elements_inside(tile, thread, count);
    while (mine != 0) {
      const u32 index = first + index_in(tile, thread, static_cast<u32>(__builtin_ctz(mine)));
      mine &= mine - 1;
      use(candidate_of(row.order(index), index));
    }
  }

 private:
  template <class Inside, class Use>
  FLYDSL_DEVICE void groups_of(Inside inside, Use use) const {
#pragma unroll
    for (u32 e = 0; e < kElements; e += kOfGroup) {
      auto largest = Screen<Element>::kLeast;
#pragma unroll
      for (u32 i = 0; i < kOfGroup; ++i) {
        if (inside(e + i)) largest = Screen<Element>::larger(largest, number_in(tile, e + i, flip));
      }
      use(e / kOfGroup, Screen<Element>::order_of_number(largest, flip));
    }
  }
};

// Candidates that the parts of a row left.
template <u32 kThreads>
struct CandidateSource {
  static constexpr u32 kGroups = 2;
  global_ptr<const Candidate> candidates;
  u32 count;

  FLYDSL_DEVICE u32 groups() const { return count >= 2 * kThreads ? 2 * kThreads : 0; }
  template <class Use>
  FLYDSL_DEVICE void for_each_group(Use use) const {
    u32 largest[2] = {0, 0};
#pragma unroll 4
    for (u32 i = thread_index(); i < count; i += 2 * kThreads) {
      largest[0] = larger(largest[0], order_of(candidates[i]));
      if (i + kThreads < count) largest[1] = larger(largest[1], order_of(candidates[i + kThreads]));
    }
    use(0, largest[0]);
    use(1, largest[1]);
  }
  template <class Use>
  FLYDSL_DEVICE void for_each(Use use) const {
    in_batches<kThreads>(
        count, [&](u32 i) FLYDSL_INLINED { return candidates[i]; },
        [&](u32, Candidate candidate) FLYDSL_INLINED { use(candidate); });
  }
};

// The same, held in registers.
template <u32 kThreads>
struct RegisterCandidates {
  static constexpr u32 kElements = 8, kOfGroup = 4;  // of a thread
  static constexpr u32 kGroups = kElements / kOfGroup;
  Candidate candidates[kElements];
  u32 count;

  FLYDSL_DEVICE void load(global_ptr<const Candidate> from) {
#pragma unroll
    for (u32 e = 0; e < kElements; ++e) {
      const u32 index = e * kThreads + thread_index();
      candidates[e] = from[index < count ? index : 0];
    }
  }
  FLYDSL_DEVICE u32 groups() const {
    return count / kOfGroup;
  }
  template <class Use>
  FLYDSL_DEVICE void for_each_group(Use use) const {
#pragma unroll
    for (u32 e = 0; e < kElements; e += kOfGroup) {
      u32 largest = 0;
#pragma unroll
      for (u32 i = 0; i < kOfGroup; ++i) {
        if ((e + i) * kThreads + thread_index() < count)
          largest = larger(largest, order_of(candidates[e + i]));
      }
      use(e / kOfGroup, largest);
    }
  }
  template <class Use>
  FLYDSL_DEVICE void for_each(Use use) const {
    const u32 thread = opaque(thread_index());
#pragma unroll
    for (u32 e = 0; e < kElements; ++e) {
      if (e * kThreads + thread < count) use(candidates[e]);
    }
  }
};

// Candidates in LDS.
template <u32 kThreads>
struct LdsSource {
  lds_ptr<const Candidate> candidates;
  u32 count;
  template <class Use>
  FLYDSL_DEVICE void for_each(Use use) const {
    for (u32 i = thread_index(); i < count; i += kThreads) use(candidates[i]);
  }
};

// The largest of each group of a source, as candidates.
template <u32 kThreads, u32 kGroups>
struct GroupSource {
  u32 largest[kGroups];
  template <class Source>
  FLYDSL_DEVICE explicit GroupSource(const Source &source) {
    source.for_each_group([&](u32 group, u32 order) FLYDSL_INLINED { largest[group] = order; });
  }
  template <class Use>
  FLYDSL_DEVICE void for_each(Use use) const {
#pragma unroll
    for (u32 i = 0; i < kGroups; ++i) {
      use(candidate_of(largest[i], i * kThreads + thread_index()));
    }
  }
};

}  // namespace flydsl::kernels
