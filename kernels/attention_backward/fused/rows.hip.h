// The tiles of rows that a work-group walks over, from the last ones down, those of all query heads of the group before the next
// ones: so a block under a causal mask, which has fewer rows than the blocks before it, waits for them no longer than at its
// start. And this wave's part of bringing them to LDS: two lines each of Q and dO, two tiles ahead of the step that computes
// them, and the numbers of their rows.
#pragma once

#include "attention_backward/fused/order.hip.h"
#include "attention_backward/planes.hip.h"
#include "attention_forward/problem.hip.h"
#include "common/math.hip.h"

namespace flydsl::kernels::fused {

// The same value, for a scalar register: what is computed from it is not kept from before this point.
template <class Scalar>
FLYDSL_DEVICE Scalar fresh(Scalar value) {
  asm volatile("" : "+s"(value));
  return value;
}

// A tile on its way: copied, computed, added to dQ.
struct Place {
  i32 first_row, plane_row;  // in its head; among the rows of all planes
};

template <Mask mask>
struct Rows {
  Work<Pass::keys> work;
  u32 wave, lane;
  i32 tiles, heads;  // of a head; of the group
  i32 tiles_left;    // of a head, after those that until_change counts
  i32 until_change;  // tiles from the one that is copied to one that is not a step from the one before, or has other lanes
  Place copied, next, now;
  i32 summed_row;  // plane row of the tile whose dQ is computed
  // Sums of that tile: in the first step of none, and block 0 loads none.
  u32x4 sums;
  u32 bytes_to_load = 0, bytes_to_store = 0;
  u32x4 counters;  // no bytes of them while there is no signal to give
  u32 signal_byte;
  global_ptr<const char> all_sums;  // of this wave
  // Of the tile that is copied.
  global_ptr<const char> q_tile, dout_tile;
  global_ptr<const float> row_values;
  // A step: to the tile of the next head; of a group of one to the next tile down.
  i64 q_step_bytes, dout_step_bytes;
  i32 row_step, plane_step;
  u32 q_lane[RowTile::lines_of_wave], dout_lane[RowTile::lines_of_wave];
  u32 value_lane;
  float value_factor, row_value;
  u32 buffer_now, buffer_next, buffer_copied;  // bytes from the first
  u32 to_buffer_now = 0;                       // from the one before

  FLYDSL_DEVICE Rows(const Work<Pass::keys> &work, u32 wave, u32 lane)
      : work(work), wave(wave), lane(lane) {
    const Arguments a = fresh_arguments();
    // Block 0 takes all rows: it writes dQ without looking.
    const i32 first =
        mask == Mask::none || work.first_own == 0 ? 0 : work.first_row(work.first_own);
    tiles = last_tile() - first / kRows + 1;
    if (first >= work.seq_q) tiles = 0;
    heads = a->heads_per_kv;
    const bool of_one = heads == 1;
    q_step_bytes = 2 * (of_one ? -kRows * a->q_stride_s : a->q_stride_h);
    dout_step_bytes = 2 * (of_one ? -kRows * a->dout_stride_s : a->dout_stride_h);
    row_step = of_one ? -kRows : 0;
    plane_step = of_one ? -kRows : static_cast<i32>(a->rows_stride);
    value_lane = lane % kRows * 4;
    // Half of the waves bring lse, the others delta.
    value_factor = wave % 2 ? -1.0f : -1.0f / (a->scale * kLog2E);
    all_sums = (global_ptr<const char>)a->dq_accumulator + wave * kSumsBytes;
    const u64 first_counter = reinterpret_cast<u64>(a->dq_counters) + 4 * (kTickets + wave);
    counters = u32x4{static_cast<u32>(first_counter), static_cast<u32>(first_counter >> 32), 0,
                     kResourceFlags};
    buffer_now = 0;
    buffer_next = kRowBufferBytes;
    buffer_copied = 2 * kRowBufferBytes;
  }
  FLYDSL_DEVICE i32 steps() const { return tiles * heads; }
  FLYDSL_DEVICE i32 last_tile() const { return (work.seq_q - 1) / kRows; }

  FLYDSL_DEVICE void set_lanes(i32 first_row) {
    const Arguments a = fresh_arguments();
    const u32 q_row_bytes = static_cast<u32>(2 * a->q_stride_s);
    const u32 dout_row_bytes = static_cast<u32>(2 * a->dout_stride_s);
    const u32 byte = RowTile::copied_chunk(lane) * 16;
#pragma unroll
    for (int line = 0; line < RowTile::lines_of_wave; ++line) {
      // Rows past the end repeat the last one; they have weights of 0.
      const i32 in_tile =
          static_cast<i32>(RowTile::copied_row(wave * RowTile::lines_of_wave + line, lane));
      const u32 row = static_cast<u32>(smaller(in_tile, work.seq_q - 1 - first_row));
      u32 of_q = row * q_row_bytes, of_dout = row * dout_row_bytes;
      // Without these clang 22 computes pairs of registers and moves them in every step.
      asm volatile("" : "+v"(of_q), "+v"(of_dout));
      q_lane[line] = of_q + byte;
      dout_lane[line] = of_dout + byte;
    }
  }
  // To the last tile of the first head.
  FLYDSL_DEVICE void begin() {
    const Arguments a = fresh_arguments();
    copied.first_row = last_tile() * kRows;
    copied.plane_row =
        static_cast<i32>(::flydsl::kernels::plane_row(work.batch, work.head, work.first_q)) +
        copied.first_row;
    q_tile = work.q_row(copied.first_row);
    dout_tile = work.dout_row(copied.first_row);
    row_values = (global_ptr<const float>)(wave % 2 ? a->row_delta : a->row_lse) + copied.plane_row;
    tiles_left = tiles - 1;
    until_change = heads;
    set_lanes(copied.first_row);
  }
  // The tile that is copied becomes the one after it, if there is one; else it is copied again.
  FLYDSL_DEVICE void advance_pointers() {
    q_tile += q_step_bytes;
    dout_tile += dout_step_bytes;
    asm volatile("" : "+s"(q_tile), "+s"(dout_tile));
  }
  FLYDSL_DEVICE void advance() {
    move_rows(1);
    --until_change;
    asm volatile(""
                 : "+s"(row_values), "+s"(copied.first_row), "+s"(copied.plane_row),
                   "+s"(until_change));
    if (FLYDSL_UNLIKELY(until_change == 0)) change();
  }
  FLYDSL_DEVICE void change() {
    if (tiles_left == 0) {
      until_change = 1;
      move(-1);
      return;
    }
    if (tiles_left == tiles - 1) set_lanes(0);  // after the tile that the sequence ends in
    if (heads == 1) {
      until_change = tiles_left;
      tiles_left = 0;
      return;
    }
    until_change = heads;
    --tiles_left;
    move(-heads);
    const Arguments a = fresh_arguments();
    q_tile -= 2 * kRows * a->q_stride_s;
    dout_tile -= 2 * kRows * a->dout_stride_s;
    row_values -= kRows;
    copied.first_row -= kRows;
    copied.plane_row -= kRows;
  }
  FLYDSL_DEVICE void find_sums() {
    const u64 at = reinterpret_cast<u64>(all_sums) +
                   static_cast<u64>(static_cast<u32>(summed_row)) * (kHeadDim * 4);
    sums[0] = static_cast<u32>(at);
    sums[1] = static_cast<u32>(at >> 32);
    sums[3] = kResourceFlags;
    asm volatile("" : "+s"(sums));
  }
  FLYDSL_DEVICE void begin_signals() {
    counters[2] = ~0u;
    asm volatile("" : "+s"(counters));
  }
  FLYDSL_DEVICE void turn_buffers() {
    const u32 free = buffer_now;
    to_buffer_now = buffer_next - buffer_now;
    buffer_now = buffer_next;
    buffer_next = buffer_copied;
    buffer_copied = free;
    asm volatile(""
                 : "+s"(buffer_now), "+s"(buffer_next), "+s"(buffer_copied), "+s"(to_buffer_now));
  }
  // At the end of a step: its tile's dQ comes next.
  FLYDSL_DEVICE void turn_places(u32 block) {
    bytes_to_load = block == 0 ? 0 : kSumsBytes;
    bytes_to_store = kSumsBytes;
    signal_byte = counter_byte(summed_row);
    summed_row = now.plane_row;
    now = next;
    next = copied;
    asm volatile("" : "+v"(signal_byte), "+s"(bytes_to_load), "+s"(bytes_to_store));
    asm volatile(""
                 : "+s"(summed_row), "+s"(now.first_row), "+s"(now.plane_row), "+s"(next.first_row),
                   "+s"(next.plane_row));
  }

  template <int line, bool of_dout>
  FLYDSL_DEVICE void copy() {
    u32 &byte = of_dout ? dout_lane[line] : q_lane[line];
    const u32 to = buffer_copied + kRowsAt + (of_dout ? kDoutAt : 0) +
                   (wave * RowTile::lines_of_wave + line) * RowTile::pitch;
    // clang 22 takes the scalar address only when it sees the 32 bits of the offset beside the copy.
    asm volatile("" : "+v"(byte));
    copy_b128((lds_ptr<char>)to, fresh(of_dout ? dout_tile : q_tile) + byte);
  }
  FLYDSL_DEVICE void load_row_value() {
    asm volatile("global_load_dword %0, %1, %2"
                 : "=v"(row_value)
                 : "v"(value_lane), "s"(row_values));
  }
  FLYDSL_DEVICE void write_row_value() {
    const u32 to =
        value_lane + (buffer_copied + kRowsAt + kValuesAt + wave % 2 * RowValues::delta_byte);
    asm volatile("ds_write_b32 %0, %1" ::"v"(to), "v"(row_value * value_factor) : "memory");
  }
  // Begins to copy the first two tiles; the third is to be copied next.
  FLYDSL_DEVICE void start() {
    begin();
    const u32 third = buffer_copied;
    buffer_copied = buffer_now;
    now = copied;
    copy_all();
    first_value = row_value;
    buffer_copied = buffer_next;
    advance_pointers();
    advance();
    next = copied;
    copy_all();
    buffer_copied = third;
    advance_pointers();
    advance();
  }
  // After the copies.
  FLYDSL_DEVICE void write_first_values() {
    const u32 third = buffer_copied;
    asm volatile("" : "+v"(row_value), "+v"(first_value));
    buffer_copied = buffer_next;
    write_row_value();
    row_value = first_value;
    buffer_copied = buffer_now;
    write_row_value();
    buffer_copied = third;
    __builtin_amdgcn_s_waitcnt(0xc07f);
  }

 private:
  float first_value;

  FLYDSL_DEVICE void move_rows(i32 steps) {
    row_values += steps * plane_step;
    copied.first_row += steps * row_step;
    copied.plane_row += steps * plane_step;
  }
  FLYDSL_DEVICE void move(i32 steps) {
    q_tile += steps * q_step_bytes;
    dout_tile += steps * dout_step_bytes;
    move_rows(steps);
  }

  FLYDSL_DEVICE void copy_all() {
    load_row_value();
    copy<0, false>();
    copy<1, false>();
    copy<0, true>();
    copy<1, true>();
  }
};

}  // namespace flydsl::kernels::fused
