// The part of LDS that a wave has for itself: rows of 128 elements of the next item's queries until they
// are needed, and of outputs on their way to memory. Either way lines of whole rows are moved, which the caches
// answer several times faster than lanes with rows of their own.
//
// The 64 rows lie as those of a K tile: rows 0 to 31 of the first half of the item, then those of the second.
#pragma once

#include "attention_forward/pipelined/accumulators.hip.h"
#include "attention_forward/pipelined/items.hip.h"
#include "common/lds.hip.h"
#include "common/memory.hip.h"

namespace flydsl::kernels::pipelined {

struct OwnRows {
  using Layout = TileLayout<128>;
  static constexpr int bytes = Layout::k_bytes, lines = Layout::lines;
  static constexpr int lines_at_once = 4;
  lds_ptr<char> at;
  u32 wave, lane;
  // Of queries and outputs: lines that were moved, this lane's part of the next one, bytes between rows, rows
  // that follow.
  i32 q_lines = 0, out_lines = lines;
  global_ptr<const char> q_next;
  global_ptr<char> out_next;
  i64 q_step, out_step;
  i32 q_more, out_more;

  FLYDSL_DEVICE OwnRows(lds_ptr<char> rows, u32 wave, u32 lane)
      : at(rows + fresh(wave * bytes)), wave(wave), lane(lane) {}

  // With line `line` lane l moves 16 bytes, from byte(l) on, of row first_row(l) + line of the item.
  FLYDSL_DEVICE i32 first_row(u32 lane) const {
    const u32 slot = lane / Layout::lanes_of_row;
    return static_cast<i32>(slot / 2 * kRowsOfHalf + wave * kRowsOfWave + slot % 2 * lines);
  }
  static FLYDSL_DEVICE u32 byte(u32 lane) { return lane % Layout::lanes_of_row * 16; }
  // Queries to come: `q` is row 0; rows past `last` repeat it.
  FLYDSL_DEVICE void begin_queries(global_ptr<const char> q, i64 row_bytes, i32 item_row,
                                   i32 last) {
    const u32 l = fresh_lane(lane);
    const i32 row = item_row + first_row(l);
    q_step = in_lanes(row_bytes);
    q_more = last - row;
    q_next = q + byte(l) + smaller(row, last) * row_bytes;
    q_lines = 0;
  }
  // Some lines of them; all outputs have left.
  FLYDSL_DEVICE void fetch_lines() {
    lds_ptr<char> to = at + q_lines * Layout::k_pitch;
#pragma unroll
    for (int n = 0; n < lines_at_once; ++n) {
      copy_b128(to, q_next);
      q_next += q_more > n ? q_step : 0;
      to += Layout::k_pitch;
    }
    q_more -= lines_at_once;
    q_lines += lines_at_once;
  }

  // A lane's part of the address of its row.
  FLYDSL_DEVICE lds_ptr<char> lane_rows() const {
    return at + Layout::k_lane(fresh_lane(lane));
  }
  // The B operand of S^T = K Q^T for rows of `half`, elements 16 step .., to a register.
  template <int number, int half, int step>
  static FLYDSL_DEVICE void read_query(lds_ptr<const char> lane_rows) {
    asm volatile("ds_read_b128 a[%0:%1], %2 offset:%3" ::"n"(number), "n"(number + 3),
                 "v"(lane_rows), "n"(Layout::k_immediate(half, step)));
  }
  // Elements 16 piece + 8 (lane / 32) .. of row lane % 32 of `half`.
  static FLYDSL_DEVICE void put(lds_ptr<char> lane_rows, int half, int piece, u32x4 value) {
    write_b128(lane_rows + Layout::k_immediate(half, piece), value);
  }

  // Outputs are there: `out` is row 0; rows past `last` do not exist.
  FLYDSL_DEVICE void begin_outputs(global_ptr<char> out, i64 row_bytes, i32 item_row, i32 last) {
    const u32 l = fresh_lane(lane);
    const i32 row = item_row + first_row(l);
    out_step = in_lanes(row_bytes);
    out_more = last - row;
    out_next = out + byte(l) + row * row_bytes;
    out_lines = 0;
  }
  FLYDSL_DEVICE void store_lines() {
    const lds_ptr<const char> from = at + (out_lines * Layout::k_pitch + fresh_lane(lane) * 16);
    u32x4 values[lines_at_once];
#pragma unroll
    for (int n = 0; n < lines_at_once; ++n) values[n] = read_b128(from + n * Layout::k_pitch);
    const bool all_exist = ballot(out_more < lines_at_once - 1) == 0;
#pragma unroll
    for (int n = 0; n < lines_at_once; ++n) {
      if (FLYDSL_LIKELY(all_exist) || out_more >= n) store_16_bytes(out_next, values[n]);
      out_next += out_step;
    }
    out_more -= lines_at_once;
    out_lines += lines_at_once;
  }
};

}  // namespace flydsl::kernels::pipelined
