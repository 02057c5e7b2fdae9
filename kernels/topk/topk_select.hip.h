// TopK by radix selection, one work-group a row or a part of one. Entry: topk_select().
//
// Where K is small against the elements, the K-th largest of the maxima of groups of them bounds the K-th best from below; what reaches
// it, usually little more than K, goes to LDS, and the K best are found there. Else they are found among all. The best go to LDS, or to
// the workspace where that is too small, and are sorted there. A part of a row leaves its candidates to a second launch,
// whose elements they are.
#pragma once

#include "topk/selector.hip.h"

namespace flydsl::kernels {

constexpr u32 kCounted = 192;  // as many candidates are ranked by counting, more by sorting

// The K best of a row or part, and where they go.
template <class Element, u32 kThreads>
class Selection {
 public:
  // The host gives a workspace where K is above 2048.
  using Memory = SelectMemory < kThreads<1024 ? 2048 : 4096>;

  FLYDSL_DEVICE Selection(TopkArguments args, const TopkRow<Element> &row, u64 number, u32 k,
                          u64 part, lds_ptr<Memory> memory)
      : args_(args), row_(row), k_(k), memory_(memory), selector_(memory) {
    // Of a row's own, or in turn of the rows of a work-group.
    const u64 owner = args->leaves_candidates ? number : group_index();
    workspace_ = (global_ptr<Candidate>)args->workspace + owner * args->row_candidates +
                 (args->leaves_candidates ? part * args->k : 0);
  }

  // Of all candidates of `source`; `held` has the same, and the largest ones of groups of them.
  template <class Source>
  FLYDSL_DEVICE void run(const Source &source) {
    finish(source);
    group_barrier();
  }
  template <class Held, class Source>
  FLYDSL_DEVICE void run(const Held &held, const Source &source) {
    if (2 * k_ <= held.groups() && by_bound(held)) return;
    run(source);
  }

 private:
  static constexpr u32 kOrderBits = kRealBytes<Element> == 2 ? 16 : 32;

  // Whether so few reach the bound that they were enough.
  template <class Source>
  FLYDSL_DEVICE bool by_bound(const Source &source) {
    const GroupSource<kThreads, Source::kGroups> maxima(source);
    const Candidate bound = selector_.least_of_best(
        maxima, k_, kOrderBits,
        kOrderBits > 2 * kDigitBits ? 32 + kOrderBits - 2 * kDigitBits : 32);
    // The K best of a row go to the other half.
    const u32 most = args_->leaves_candidates ? Memory::kSorted : Memory::kSorted / 2;
    const u32 count = selector_.collect(source, bound >> 32 << 32, most,
                                        [&](u32 slot, Candidate candidate)
                                            FLYDSL_INLINED { memory_->sorted[slot] = candidate; });
    if (count > most) return false;
    if (count <= kCounted)
      rank_by_counting(&memory_->sorted[0], count);
    else
      finish(LdsSource<kThreads>{&memory_->sorted[0], count});
    group_barrier();
    return true;
  }

  template <class Source>
  FLYDSL_DEVICE void finish(const Source &source) {
    const Candidate least = selector_.least_of_best(source, k_, kOrderBits);
    if (args_->leaves_candidates || k_ > Memory::kSorted) {
      selector_.collect(source, least, k_, [&](u32 slot, Candidate candidate) FLYDSL_INLINED {
        workspace_[slot] = candidate;
      });
      if (args_->leaves_candidates) return;
      sort_candidates<kThreads>(workspace_, k_, group_barrier_of_memory);
      for (u32 rank = thread_index(); rank < k_; rank += kThreads)
        row_.store(rank, workspace_[rank]);
      return;
    }
    constexpr bool kFromLds = __is_same(Source, LdsSource<kThreads>);
    const auto chosen = &memory_->sorted[kFromLds ? Memory::kSorted / 2 : 0];
    selector_.collect(source, least, k_, [&](u32 slot, Candidate candidate) FLYDSL_INLINED {
      chosen[slot] = candidate;
    });
    if (k_ <= kCounted) return rank_by_counting(chosen, k_);
    sort_candidates<kThreads>(chosen, k_, group_barrier);
    for (u32 rank = thread_index(); rank < k_; rank += kThreads) row_.store(rank, chosen[rank]);
  }

  FLYDSL_DEVICE void rank_by_counting(lds_ptr<const Candidate> candidates, u32 count) {
    for (u32 c = thread_index(); c < count; c += kThreads) {
      const Candidate mine = candidates[c];
      u32 better = 0;
#pragma unroll 4
      for (u32 other = 0; other < count; ++other) better += candidates[other] > mine;
      if (better >= k_) continue;
      if (args_->leaves_candidates)
        workspace_[better] = mine;
      else
        row_.store(better, mine);
    }
  }

  TopkArguments args_;
  const TopkRow<Element> &row_;
  u32 k_;
  lds_ptr<Memory> memory_;
  Selector<kThreads, Memory> selector_;
  global_ptr<Candidate> workspace_;
};

enum class Held { memory, registers, narrow_registers, candidates, few_candidates };

template <class Element, Held held, u32 kThreads>
FLYDSL_DEVICE void topk_select(const flydsl_aot_topk_kernarg &args) {
  using Memory = typename Selection<Element, kThreads>::Memory;
  FLYDSL_SHARED static Memory memory;
  const auto lds = (lds_ptr<Memory>)&memory;
  for (u64 tile = group_index(); tile < args.tiles; tile += args.groups) {
    const TopkArguments here = arguments_here(args);
    const u64 number = here->parts == 1 ? tile : tile / here->parts,
              part = tile - number * here->parts;
    const TopkRow<Element> row(here, number);
    const u32 first = static_cast<u32>(part * here->part_length);
    const u32 rest = here->length - first;
    const u32 count = rest < here->part_length ? rest : here->part_length;
    const u32 k = count < here->k ? count : here->k;
    const RowSource<Element, kThreads> in_memory{row, first, count, here->flip};
    Selection<Element, kThreads> selection(here, row, number, k, part, lds);
    if constexpr (held == Held::candidates || held == Held::few_candidates) {
      const auto candidates =
          (global_ptr<const Candidate>)here->workspace + number * here->row_candidates;
      if constexpr (held == Held::candidates) {
        const CandidateSource<kThreads> source{candidates, static_cast<u32>(here->row_candidates)};
        selection.run(source, source);
      } else {
        RegisterCandidates<kThreads> source;
        source.count = static_cast<u32>(here->row_candidates);
        source.load(candidates);
        selection.run(source, source);
      }
    } else if constexpr (held == Held::memory) {
      selection.run(in_memory);
    } else {
      const RegisterSource<Element, kThreads, held == Held::registers> held_source(
          row, first, count, here->flip);
      selection.run(held_source, in_memory);
    }
  }
}

}  // namespace flydsl::kernels
