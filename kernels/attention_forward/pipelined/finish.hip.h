// The end of an item: outputs are normalised and stored, rows whose result is not trusted are found.
#pragma once

#include "attention_forward/outputs.hip.h"
#include "attention_forward/pipelined/own_rows.hip.h"
#include "attention_forward/softmax.hip.h"

namespace flydsl::kernels::pipelined {

// Outputs of half h, 128 columns, from their registers to the wave's LDS, and log-sum-exps to memory; returns the
// rows that need the slow path.
template <class Element, int h, Mask mask>
FLYDSL_DEVICE u32 finish_rows(const Item<mask> &work, float reference, float half_sum,
                              const OwnRows &own) {
  const i32 row = work.lane_row(own.wave, h, own.lane);
  const float sum = sum_of_halves(half_sum);
  const bool empty = work.last_key(row) < 0;
  const float factor = empty ? 0.0f : reciprocal(sum);
  // Not finite anywhere <=> this is NaN: 0 * x is 0 for finite x only.
  const lds_ptr<char> rows = own.lane_rows();
  f32x2 probe = sum * f32x2{};
  each<OwnRows::Layout::value_blocks>([&](auto number) {
    constexpr int block = decltype(number)::value;
    f32x16 o[1];
    each<16>([&](auto i) {
      constexpr int n = decltype(i)::value;
      o[0][n] = read_hidden<o_register(h, block) + n>();
    });
#pragma unroll
    for (int i = 0; i < 16; i += 2) {
      f32x2 pair = {o[0][i], o[0][i + 1]};
      probe = __builtin_elementwise_fma(pair, f32x2{}, probe);
      pair *= factor;
      o[0][i] = pair[0], o[0][i + 1] = pair[1];
    }
    u32x4 pieces[2];
    pieces_of_row<Element>(1.0f, o, pieces);
    OwnRows::put(rows, h, 2 * block, pieces[0]);
    OwnRows::put(rows, h, 2 * block + 1, pieces[1]);
  });
  const bool trusted =
      probe[0] + probe[1] == 0.0f && (empty || __builtin_fabsf(reference) < kLargestReference);
  const bool in_range = row < work.seq_q;
  const u64 distrust = ballot(in_range && !trusted);
  if (in_range && trusted && fresh_lane(own.lane) < 32)
    work.here().store_lse(row, empty ? -kInfinity : (reference + log2(sum)) * kLn2);
  return static_cast<u32>(distrust) | static_cast<u32>(distrust >> 32);
}

// An item whose rows see no key; its numbers are not put aside yet.
template <int head_dim_v, Mask mask>
FLYDSL_DEVICE void store_empty(const Item<mask> &item, u32 wave, u32 lane_number) {
  const u32 lane = fresh_lane(lane_number);
#pragma unroll 1
  for (int h = 0; h < 2; ++h) {
    const i32 row = item.wave_row(wave, h) + static_cast<i32>(lane % 32);
    if (row >= item.seq_q) continue;
#pragma unroll 1
    for (u32 byte = 16 * (lane / 32); byte < 2 * head_dim_v; byte += 32)
      store_16_bytes(item.out_row(row) + byte, u32x4{});
    if (lane < 32) item.store_lse(row, -kInfinity);
  }
}

}  // namespace flydsl::kernels::pipelined
