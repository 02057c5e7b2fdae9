// dweight and dbias of norms of rows: the sums of all slots, in an order that depends on their number only.
#pragma once

#include "common/arguments.hip.h"
#include "common/reals.hip.h"
#include "common/threads.hip.h"

namespace flydsl::kernels {

// Threads that are neighbours take neighbouring columns, kThreads / kColumns of them the slots of one; fp64, so that nothing is
// lost however many slots there are.
template <u32 kThreads, u32 kColumns>
FLYDSL_DEVICE void total_of_slots(global_ptr<const float> sums, u64 slots, u32 row_length,
                                  u32 column, global_ptr<char> to, Real type) {
  constexpr u32 kShares = kThreads / kColumns;
  FLYDSL_SHARED static double of_shares[kShares][kColumns];
  const u32 share = thread_index() / kColumns, place = thread_index() % kColumns;
  double sum = 0;
  if (column < row_length) {
#pragma unroll 8
    for (u64 slot = share; slot < slots; slot += kShares) sum += sums[slot * row_length + column];
  }
  of_shares[share][place] = sum;
  group_barrier();
  if (share == 0 && column < row_length) {
#pragma unroll
    for (u32 other = 1; other < kShares; ++other) sum += of_shares[other][place];
    with_real(type, [&](auto element) FLYDSL_INLINED {
      using Element = typename decltype(element)::type;
      store_real<Element>(to + u64{column} * kRealBytes<Element>, static_cast<float>(sum));
    });
  }
  group_barrier();
}

// Tiles of columns of dweight, then of dbias, of which one may not be wanted.
template <bool kCentred, u32 kThreads, u32 kColumns, class Arguments>
FLYDSL_DEVICE void norm_backward_totals(const Arguments &args) {
  for (u64 tile = group_index(); tile < args.tiles; tile += args.groups) {
    const ArgumentsOf<Arguments> here = arguments_here(args);
    const u64 of_one = (here->row_length + u64{kColumns} - 1) / kColumns;
    const u64 place = tile < of_one ? tile : tile - of_one;
    const u32 column = static_cast<u32>(place) * kColumns + thread_index() % kColumns;
    auto sums = (global_ptr<const float>)here->dweight_sums;
    auto to = (global_ptr<char>)here->dweight;
    u32 dtype = here->dweight_dtype;
    if constexpr (kCentred) {
      if (!here->dweight || tile >= of_one) {
        sums = (global_ptr<const float>)here->dbias_sums;
        to = (global_ptr<char>)here->dbias;
        dtype = here->dbias_dtype;
      }
    }
    total_of_slots<kThreads, kColumns>(sums, here->slots, here->row_length, column, to,
                                       static_cast<Real>(dtype));
  }
}

}  // namespace flydsl::kernels
