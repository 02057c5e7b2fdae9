// attention_backward for plain problems of head dims 64 and 128: dK, dV and dQ by five products, of which S and dP are computed once.
//
// A work-group of 4 waves, one a SIMD, has 256 keys, 64 a wave, and walks over the rows that see them, 32 a step (64 of head dim 64), from the last
// down, for each query head of the group. dK and dV stay in accumulation registers. dS goes through LDS: a wave
// computes 32 columns of 32 rows of dQ over all 256 keys and adds them to what the blocks of lower keys have written (order.hip.h).
// schedule.hip.h has the order of a step's instructions.
//
// The formula, with lse and delta from `prepare`: P = 2^(c (S - lse / c)), c = scale log2(e); dS = P (dP - delta); the scale of
// dQ and dK comes at the end. What is subtracted is where the products' accumulators begin.
#pragma once

#include "attention_backward/exact.hip.h"
#include "attention_backward/fused/accumulators.hip.h"
#include "attention_backward/fused/order.hip.h"
#include "attention_backward/fused/rows.hip.h"
#include "attention_backward/fused/schedule.hip.h"
#include "attention_forward/outputs.hip.h"
#include "attention_forward/problem.hip.h"

namespace flydsl::kernels::fused {

FLYDSL_DEVICE void slot() {
  __builtin_amdgcn_sched_barrier(0);
}
// Keeps a value from being computed later than here.
FLYDSL_DEVICE void by_now(float x) {
  asm volatile("" ::"v"(x));
}
FLYDSL_DEVICE void by_now(u32 x) {
  asm volatile("" ::"v"(x));
}
template <int younger>
FLYDSL_DEVICE void wait_for_lds() {
  __builtin_amdgcn_s_waitcnt(0xc07f | younger << 8);
}
template <int younger>
FLYDSL_DEVICE void wait_for_memory() {
  static_assert(younger < 16);
  __builtin_amdgcn_s_waitcnt(0x0f70 | younger);
}

// LDS reads as inline assembly: nothing may touch a result before wait_for_lds().
template <int immediate>
FLYDSL_DEVICE u32x4 read_row(u32 at) {
  u32x4 value;
  asm volatile("ds_read_b128 %0, %1 offset:%2" : "=v"(value) : "v"(at), "n"(immediate));
  return value;
}
template <int immediate>
FLYDSL_DEVICE u32 read_dword(u32 at) {
  u32 value;
  asm volatile("ds_read_b32 %0, %1 offset:%2" : "=v"(value) : "v"(at), "n"(immediate));
  return value;
}
// That of lane n of four neighbours.
template <int n>
FLYDSL_DEVICE u32 of_quad(u32 x) {
  return static_cast<u32>(
      __builtin_amdgcn_update_dpp(0, static_cast<i32>(x), 0x55 * n, 0xf, 0xf, true));
}
template <int first, int second>
FLYDSL_DEVICE u32x4 read_columns(u32 first_at, u32 second_at) {
  u32x2 low, high;
  asm volatile("ds_read_b64_tr_b16 %0, %1 offset:%2" : "=v"(low) : "v"(first_at), "n"(first));
  asm volatile("ds_read_b64_tr_b16 %0, %1 offset:%2" : "=v"(high) : "v"(second_at), "n"(second));
  return u32x4{low[0], low[1], high[0], high[1]};
}

template <class Element, Mask mask>
struct Wave {
  Rows<mask> rows;
  u32 block, wave, lane;
  float c;

  // Operands that stay, and 0 or, for keys that do not exist, -inf.
  u32x4 keys[kResidentKeys], values[2 * kHeadSteps];
  float key_exists[2];

  // Addresses in LDS of this lane.
  u32 row_at, column_at[2], value_at, ds_at, ds_write_at[2 * kRowBlocks], key_at, key_column_at;
  i32 to_written =
      -DerivativeTile::bytes;  // to the buffer of dS that is written next from the other

  // In a step.
  f32x16 s[kRowBlocks][2], dp[kRowBlocks][2], dq, start[2 * kRowBlocks];
  u32x4 p[kRowBlocks][2][2], ds[kRowBlocks][2][2];
  u32x4 row_ring[kRowRing], key_ring[kKeyRing], key_column_ring[kColumnRing],
      ds_column_ring[kColumnRing];
  u32x4 old_sums[4];
  u32 quad_values[2 * kRowBlocks][4];
  u32 counter;

  FLYDSL_DEVICE Wave(const Work<Pass::keys> &work, u32 block, u32 wave, u32 lane)
      : rows(work, wave, lane), block(block), wave(wave), lane(lane) {
    const Arguments a = fresh_arguments();
    c = a->scale * kLog2E;
    row_at = kRowsAt + RowTile::row_lane(lane);
    column_at[0] = kRowsAt + RowTile::column_lane(lane);
    column_at[1] = column_at[0] ^ 16;
    value_at = kRowsAt + kValuesAt + RowValues::lane_byte(lane);
    ds_at = kDerivativesAt + DerivativeTile::bytes +
            DerivativeTile::column_lane(lane, wave / kHeadBlocks);
#pragma unroll
    for (int piece = 0; piece < 2 * kRowBlocks; ++piece)
      ds_write_at[piece] =
          kDerivativesAt + DerivativeTile::bytes + DerivativeTile::write_lane(wave, lane, piece);
    key_at = kKeysAt + wave * KeyTile::bytes + KeyTile::row_lane(lane);
    key_column_at = kKeysAt + KeyTile::column_lane(lane) + wave % kHeadBlocks * 64;
  }

  // ---- LDS

  template <bool of_delta, int block>
  FLYDSL_DEVICE void read_values() {
    each<4>([&](auto n) {
      constexpr int i = decltype(n)::value;
      quad_values[2 * block + of_delta][i] =
          read_dword<RowValues::immediate(of_delta, block, i)>(value_at);
    });
  }
  template <Move move, int n>
  FLYDSL_DEVICE void do_move() {
    if constexpr (move == Move::q_row) {
      row_ring[n % kRowRing] =
          read_row<RowTile::row_immediate(n / kHeadSteps, n % kHeadSteps)>(row_at);
    } else if constexpr (move == Move::dout_row) {
      row_ring[n % kRowRing] =
          read_row<kDoutAt + RowTile::row_immediate(n / kHeadSteps, n % kHeadSteps)>(row_at);
    } else if constexpr (move == Move::k_row) {
      key_ring[(n - resident_number(n)) % kKeyRing] =
          read_row<KeyTile::row_immediate(n % 2, n / 2)>(key_at);
    } else if constexpr (move == Move::dout_column || move == Move::q_column) {
      constexpr int first = move == Move::dout_column ? kDoutAt : 0;
      row_ring[n % kRowRing] =
          read_columns<first + RowTile::column_immediate(n / kHeadBlocks, 0, n % kHeadBlocks),
                       first + RowTile::column_immediate(n / kHeadBlocks, 1, n % kHeadBlocks)>(
              column_at[0], column_at[1]);
    } else if constexpr (move == Move::k_column) {
      key_column_ring[n % kColumnRing] =
          read_columns<KeyTile::column_immediate(n, 0), KeyTile::column_immediate(n, 1)>(
              key_column_at, key_column_at);
    } else if constexpr (move == Move::ds_column) {
      ds_column_ring[n % kColumnRing] =
          read_columns<DerivativeTile::column_immediate(n, 0),
                       DerivativeTile::column_immediate(n, 1)>(ds_at, ds_at);
    } else if constexpr (move == Move::lse) {
      read_values<false, n>();
    } else if constexpr (move == Move::delta) {
      read_values<true, n>();
    } else if constexpr (move == Move::write_values) {
      rows.write_row_value();
    } else {
      static_assert(move == Move::write_ds);
      constexpr int block = n / 8, keys = block_of(4 * n), element = element_of_block(4 * n % 32);
      const u32x4 &from = ds[block][keys][element / 8];
      const u32x2 pairs = {from[element / 2 % 4], from[element / 2 % 4 + 1]};
      asm volatile("ds_write_b64 %0, %1 offset:%2" ::"v"(ds_write_at[2 * block + element / 8]),
                   "v"(pairs), "n"(DerivativeTile::write_immediate(keys, element / 4 % 2))
                   : "memory");
    }
  }

  // ---- products

  template <Product which, int n>
  FLYDSL_DEVICE void multiply() {
    constexpr int block = n / kOpsOfBlock, of_block = n % kOpsOfBlock;     // of S and dP
    constexpr int step = n / 2 / kHeadBlocks, head = n / 2 % kHeadBlocks;  // of dV and dK: 16 rows
    if constexpr (kHeadDim == 64 && which == Product::s) {
      begin_or_add_hidden<of_block, register_of(Operand::key, of_block)>(
          s[block], row_ring[n / 2 % kRowRing], start[2 * block]);
    } else if constexpr (kHeadDim == 64 && which == Product::dp) {
      begin_or_add_hidden<of_block, register_of(Operand::value, of_block)>(
          dp[block], row_ring[n / 2 % kRowRing], start[2 * block + 1]);
    } else if constexpr (which == Product::s) {
      const u32x4 a = row_ring[n / 2 % kRowRing];
      if constexpr (resident_key(n))
        begin_or_add<n>(s[0], a, keys[resident_number(n)], start[0]);
      else
        begin_or_add<n>(s[0], a, key_ring[(n - resident_number(n)) % kKeyRing], start[0]);
    } else if constexpr (which == Product::dp) {
      begin_or_add<n>(dp[0], row_ring[n / 2 % kRowRing], values[n], start[1]);
    } else if constexpr (which == Product::dv) {
      add_product<Element, register_of(Sum::dv, head, n % 2)>(row_ring[n / 2 % kRowRing],
                                                              p[step / 2][n % 2][step % 2]);
    } else if constexpr (which == Product::dk) {
      add_product<Element, register_of(Sum::dk, head, n % 2)>(row_ring[n / 2 % kRowRing],
                                                              ds[step / 2][n % 2][step % 2]);
    } else if constexpr (n == 0) {
      product<Element>(dq, key_column_ring[0], ds_column_ring[0]);
    } else {
      add_product<Element>(dq, key_column_ring[n % kColumnRing], ds_column_ring[n % kColumnRing]);
    }
  }
  template <int n>
  FLYDSL_DEVICE void begin_or_add(f32x16 (&sum)[2], u32x4 a, u32x4 b, const f32x16 &from) {
    if constexpr (n == 0) {
      product_plus<Element>(sum[0], a, b, from);
    } else {
      if constexpr (n == 1) sum[1] = from;
      add_product<Element>(sum[n % 2], a, b);
    }
  }
  template <int n, int b>
  FLYDSL_DEVICE void begin_or_add_hidden(f32x16 (&sum)[2], u32x4 a, const f32x16 &from) {
    if constexpr (n == 0) {
      product_of_hidden_plus<Element, b>(sum[0], a, from);
    } else {
      if constexpr (n == 1) sum[1] = from;
      add_product_of_hidden<Element, b>(sum[n % 2], a);
    }
  }

  // ---- vector work

  template <Vector work, int e>
  FLYDSL_DEVICE void compute() {
    constexpr bool of_pair = work == Vector::round_weight || work == Vector::round_derivative;
    constexpr int first = of_pair ? 2 * e : e;
    constexpr int block = first / 32 % kRowBlocks, b = block_of(first),
                  i = element_of_block(first % 32);
    auto &s = this->s[block], &dp = this->dp[block];
    auto &p = this->p[block], &ds = this->ds[block];
    if constexpr (work == Vector::spread) {
      start[e / 16][e % 16] = bits_as<float>(of_quad<e % 4>(quad_values[e / 16][e % 16 / 4]));
      by_now(start[e / 16][e % 16]);
    } else if constexpr (work == Vector::add_sums) {
      dq[e] += bits_as<float>(old_sums[e / 4][e % 4]);
      by_now(dq[e]);
    } else if constexpr (work == Vector::exponent) {
      s[b][i] = fma(s[b][i], c, key_exists[b]);
      by_now(s[b][i]);
    } else if constexpr (work == Vector::weight) {
      s[b][i] = exp2(s[b][i]);
      by_now(s[b][i]);
    } else if constexpr (work == Vector::round_weight) {
      p[b][i / 8][i / 2 % 4] = round_pair<Element>(s[b][i], s[b][i + 1]);
      by_now(p[b][i / 8][i / 2 % 4]);
    } else if constexpr (work == Vector::derivative) {
      dp[b][i] *= s[b][i];
      by_now(dp[b][i]);
    } else if constexpr (work == Vector::round_derivative) {
      ds[b][i / 8][i / 2 % 4] = round_pair<Element>(dp[b][i], dp[b][i + 1]);
      by_now(ds[b][i / 8][i / 2 % 4]);
    } else {
      do_move<Move::write_ds, e>();
    }
  }
  // Hides what a bound on the right hides: a lane's key from rows before it.
  template <int block>
  FLYDSL_DEVICE void mask_scores() {
    if (mask == Mask::none) return;
    auto &s = this->s[block];
    const i32 first_row = rows.now.first_row + 32 * block,
              first_key = rows.work.first_own + wave * kKeysOfWave;
    if (FLYDSL_LIKELY(first_key + kKeysOfWave - 1 - rows.work.high <= first_row)) return;
    wait_for_products();
    const float hidden = __builtin_copysignf(kInfinity, -c);
#pragma unroll
    for (int b = 0; b < 2; ++b) {
      i32 least = first_key + 32 * b + static_cast<i32>(lane % 32) - rows.work.high - first_row -
                  static_cast<i32>(lane / 32 * 4);
      // Compared where it is needed: 16 lane masks would be kept.
      asm volatile("" : "+v"(least));
#pragma unroll
      for (int i = 0; i < 16; ++i) s[b][i] = least <= 8 * (i / 4) + i % 4 ? s[b][i] : hidden;
    }
  }

  // ---- dQ of the tile before

  FLYDSL_DEVICE void look_at_counter(i32 plane_row) {
    counter = load_counter(rows.counters, counter_byte(plane_row));
  }
  // After the look has returned: waits for this block's turn.
  FLYDSL_DEVICE void wait_for_turn() {
    // Clang 22 puts a loop in C++ here into the way of those who need not wait.
    asm goto("s_cmp_lt_u32 %0, %1\n\ts_cbranch_scc1 %l2" ::"s"(uniform(counter)), "s"(block)
             : "scc"
             : poll);
    return;
  poll:
#pragma unroll 1
    do {
      __builtin_amdgcn_s_sleep(1);
      look_at_counter(rows.summed_row);
      wait_for_memory<0>();
      asm volatile("" : "+v"(counter));
    } while (uniform(counter) < block);
  }
  // Begins to load what is there.
  FLYDSL_DEVICE void load_old_sums() {
    rows.sums[2] = rows.bytes_to_load;
    each<4>([&](auto n) {
      constexpr int i = decltype(n)::value;
      old_sums[i] = load_sums<i>(rows.sums, lane * 16);
    });
  }
  template <int n>
  FLYDSL_DEVICE u32x4 new_sums() const {
    return bits_as<u32x4>(f32x4{dq[4 * n], dq[4 * n + 1], dq[4 * n + 2], dq[4 * n + 3]});
  }
  template <int n>
  FLYDSL_DEVICE void store_new_sums() {
    store_sums<n>(rows.sums, lane * 16, new_sums<n>());
  }
  // Nothing is written over them for some instructions after the store (2 wait states).
  template <int n>
  FLYDSL_DEVICE void keep_new_sums() {
    asm volatile("" ::"v"(new_sums<n>()));
  }
  // After the stores have completed.
  FLYDSL_DEVICE void signal() {
    store_counter(rows.counters, rows.signal_byte, block + 1);
  }

  // ---- a step

  template <Part part, int g>
  FLYDSL_DEVICE void do_extra() {
    const auto at = [](int gap) { return g == gap; };
    if constexpr (part == Part::middle) {
      if constexpr (at(kMoreAddressesGap)) turn_more_buffers();
      if constexpr (at(kTurnGap - 1)) wait_for_memory<2>();  // but signal, row value
      if constexpr (at(kTurnGap)) wait_for_turn();
      if constexpr (at(kOldSumsGap)) load_old_sums();
      if constexpr (at(kOldSumsReturnedGap)) {
        wait_for_memory<4>();  // but copies
        rows.sums[2] = rows.bytes_to_store;
      }
      if constexpr (g > kStoreSumsGap && g <= kStoreSumsGap + 4)
        keep_new_sums<g - kStoreSumsGap - 1>();
      if constexpr (g >= kStoreSumsGap && g < kStoreSumsGap + 4)
        store_new_sums<g - kStoreSumsGap>();
      if constexpr (at(kLoadValueGap)) rows.load_row_value();
      if constexpr (at(kCopyGap)) rows.template copy<0, false>();
      if constexpr (at(kCopyGap + 2)) rows.template copy<1, false>();
      if constexpr (at(kCopyGap + 4)) rows.template copy<0, true>();
      if constexpr (at(kCopyGap + 6)) rows.template copy<1, true>();
      if constexpr (g == kSchedule<part>.mask_gap[0] ||
                    g == kSchedule<part>.mask_gap[kRowBlocks - 1]) {
        mask_scores<(g == kSchedule<part>.mask_gap[0] ? 0 : kRowBlocks - 1)>();
        asm volatile("s_nop 3");  // the last wait states between the products and their exponents
      }
      if constexpr (at(kReturnedGap)) wait_for_memory<4>();  // but stores of sums
      if constexpr (at(kCounterGap)) look_at_counter(rows.now.plane_row);
      if constexpr (at(kPlacesGap)) rows.turn_places(block);
      if constexpr (at(kPointersGap)) rows.advance_pointers();
      if constexpr (at(kAdvanceGap)) rows.advance();
      if constexpr (at(kBuffersGap)) {
        rows.turn_buffers();
        value_at += rows.to_buffer_now;
      }
      if constexpr (at(kSumsPlaceGap)) rows.find_sums();
      if constexpr (at(kBarrierGap)) {
        wait_for_lds<kSchedule<part>.wait_at_barrier>();
        __builtin_amdgcn_s_barrier();
      }
      if constexpr (at(kAddressesGap)) turn_buffers();
      if constexpr (at(kSignalGap)) {
        wait_for_memory<1>();  // but the look
        signal();
        rows.begin_signals();
      }
    }
  }
  // Addresses of the next step, those that it needs at once and the others.
  FLYDSL_DEVICE void turn_buffers() {
    row_at += rows.to_buffer_now;
    ds_at -= to_written;
    asm volatile("" : "+v"(row_at), "+v"(ds_at));
  }
  FLYDSL_DEVICE void turn_more_buffers() {
    column_at[0] += rows.to_buffer_now;
    column_at[1] += rows.to_buffer_now;
    each<2 * kRowBlocks>([&](auto piece) {
      u32 &at = ds_write_at[decltype(piece)::value];
      at += to_written;
      asm volatile("" : "+v"(at));
    });
    to_written = -to_written;
    asm volatile("" : "+v"(column_at[0]), "+v"(column_at[1]), "+s"(to_written));
  }
  template <Part part>
  FLYDSL_DEVICE void step() {
    static_assert(kSchedule<part>.fits, "vector work comes too late for the products");
    each<kOps<part>>([&](auto number) {
      constexpr int g = decltype(number)::value;
      constexpr auto &schedule = kSchedule<part>;
      slot();
      if constexpr (schedule.wait[g] >= 0) wait_for_lds<schedule.wait[g]>();
      slot();
      constexpr Op op = op_at<part>(g);
      multiply<op.product, op.n>();
      slot();
      each<schedule.lds_count[g]>([&](auto event) {
        constexpr LdsEvent e = kSchedule<part>.lds[g][decltype(event)::value];
        do_move<e.move, e.n>();
      });
      slot();
      do_extra<part, g>();
      slot();
      each<schedule.vector_count[g]>([&](auto event) {
        constexpr VectorEvent e = kSchedule<part>.vector[g][decltype(event)::value];
        compute<e.work, e.n>();
      });
      if constexpr (g % 8 == 7) keep_hidden();
    });
    slot();
  }
  // The reads that a step expects to be under way.
  template <Part part>
  FLYDSL_DEVICE void read_ahead() {
    slot();
    each<kSchedule<part>.before_count>([&](auto event) {
      constexpr LdsEvent e = kSchedule<part>.before[decltype(event)::value];
      do_move<e.move, e.n>();
    });
    wait_for_lds<0>();
    slot();
    if constexpr (part == Part::middle)
      each<16>([&](auto e) { compute<Vector::spread, decltype(e)::value>(); });
    slot();
  }

  FLYDSL_DEVICE void load_values() {
    const auto &work = rows.work;
    const i32 first = work.first_own + static_cast<i32>(wave * kKeysOfWave + lane % 32);
#pragma unroll
    for (int b = 0; b < 2; ++b) {
      key_exists[b] = first + 32 * b < work.seq_k ? 0.0f : -kInfinity;
      const i32 key = work.real_key(first + 32 * b);
      const auto row = work.v_row(key) + lane / 32 * 16, key_row = work.k_row(key) + lane / 32 * 16;
#pragma unroll
      for (int step = 0; step < kHeadSteps; ++step) {
        values[2 * step + b] = *(global_ptr<const u32x4>)(row + 32 * step);
        if (kHeadDim == 64) keys[2 * step + b] = *(global_ptr<const u32x4>)(key_row + 32 * step);
      }
    }
  }
  // To where they stay.
  FLYDSL_DEVICE void read_resident() {
    if constexpr (kHeadDim == 64) {
      each<8>([&](auto number) {
        constexpr int n = decltype(number)::value;
        write_hidden<register_of(Operand::key, n)>(keys[n]);
        write_hidden<register_of(Operand::value, n)>(values[n]);
      });
      keep_hidden();
    } else {
      each<16>([&](auto number) {
        constexpr int n = decltype(number)::value;
        if constexpr (resident_key(n))
          keys[resident_number(n)] = read_row<KeyTile::row_immediate(n % 2, n / 2)>(key_at);
      });
      wait_for_lds<0>();
    }
  }
  FLYDSL_DEVICE void copy_keys() {
    const auto &work = rows.work;
    const i64 row_bytes = 2 * fresh_arguments()->k_stride_s;
    const auto row_0 = work.k_row(0) + lane % kChunks * 16;
#pragma unroll
    for (int line = 0; line < KeyTile::lines; ++line) {
      const i32 key = work.first_own +
                      static_cast<i32>(wave * kKeysOfWave + lane / kChunks * (4 * KeyTile::n)) +
                      KeyTile::row_of(line, 0);
      copy_b128((lds_ptr<char>)(kKeysAt + wave * KeyTile::bytes + line * KeyTile::pitch),
                row_0 + work.real_key(key) * row_bytes);
    }
  }

  FLYDSL_DEVICE void run() {
    each<256>([](auto number) { clear_hidden<decltype(number)::value>(); });
    keep_hidden();
    const i32 steps = rows.steps();
    if (steps > 0) {
      copy_keys();
      rows.start();
      load_values();
      wait_for_copies();
      rows.write_first_values();
      barrier();
      read_resident();
      // The first step adds to the dQ of no tile.
      counter = ~0u;
      read_ahead<Part::middle>();
#pragma unroll 1
      for (i32 i = 0; i < steps; ++i) step<Part::middle>();
      // What the last step has read ahead, before other values take its registers.
      slot();
      wait_for_lds<0>();
      wait_for_memory<0>();
      slot();
      wait_for_turn();
      rows.find_sums();
      load_old_sums();
      read_ahead<Part::last>();
      step<Part::last>();
      wait_for_memory<0>();
      rows.sums[2] = rows.bytes_to_store;
      wait_for_products();
      each<16>([&](auto e) { compute<Vector::add_sums, decltype(e)::value>(); });
      each<4>([&](auto n) { store_new_sums<decltype(n)::value>(); });
      wait_for_memory<0>();
      rows.signal_byte = counter_byte(rows.summed_row);
      signal();
    }
    wait_for_products();
    keep_hidden();
    u64 exact_keys = 0;
    store<Sum::dv>(1.0f, exact_keys);
    store<Sum::dk>(fresh_arguments()->scale, exact_keys);
    if (FLYDSL_LIKELY(exact_keys == 0)) return;
    wait_for_memory<0>();
    Work<Pass::keys> work = rows.work;
#pragma unroll 1
    for (; exact_keys != 0; exact_keys &= exact_keys - 1)
      exact_gradients<Element, kHeadDim, kHeadDim, false>(
          work, work.first_own + static_cast<i32>(wave * kKeysOfWave) + __builtin_ctzll(exact_keys),
          lane);
  }
  // Keys with a gradient that is not finite are left to the slow path, a bit each.
  template <Sum sum>
  FLYDSL_DEVICE void store(float factor, u64 &exact_keys) {
    const auto &work = rows.work;
    each<2>([&](auto number) {
      constexpr int b = decltype(number)::value;
      f32x16 gradient[kHeadBlocks];
      float probe = 0.0f;  // NaN if one is not finite
      each<kHeadBlocks>([&](auto n) {
        constexpr int i = decltype(n)::value;
        each<16>([&](auto e) {
          const float x = read_hidden<register_of(sum, i, b) + decltype(e)::value>();
          gradient[i][decltype(e)::value] = x;
          probe = fma(x, 0.0f, probe);
        });
      });
      const i32 key = work.first_own + static_cast<i32>(wave * kKeysOfWave + 32 * b + lane % 32);
      const bool exists = key < work.seq_k;
      const u64 distrust = ballot(exists && !(probe == 0.0f));
      exact_keys |= ((distrust | distrust >> 32) & 0xffffffffu) << (32 * b);
      const i32 real = work.real_key(key);
      store_row<Element, kHeadBlocks>(sum == Sum::dv ? work.dv_row(real) : work.dk_row(real), lane,
                                      exists, factor, gradient);
      keep_hidden();
    });
  }
};

template <class Element, int head_dim, Mask mask>
FLYDSL_DEVICE void attention_backward_fused(const flydsl_aot_attention_backward_kernarg &) {
  static_assert(head_dim == kHeadDim && mask != Mask::window);
  FLYDSL_SHARED static char tiles[kLdsBytes + 16] __attribute__((aligned(16)));
  const u32 thread = __builtin_amdgcn_workitem_id_x(), wave = uniform(thread / kWaveLanes),
            lane = thread % kWaveLanes;
  // All places in LDS are numbers: the array is the only one and begins at 0.
  const auto item_of_all = (lds_ptr<u32x4>)(lds_ptr<char>)tiles;
  if (thread == 0) {
    const WorkItem item = take_item < mask == Mask::causal ? 2 * kHeadsInTurn : kHeadsInTurn > ();
    *item_of_all = u32x4{item.head, item.batch, item.row_tile, 0};
  }
  barrier();
  const u32x4 item = *item_of_all;
  barrier();
  Work<Pass::keys> work;
  static_cast<Sequence &>(work) = equal_sequence();
  work.kv_head = uniform(item[0]);
  work.batch = uniform(item[1]);
  const u32 block = uniform(item[2]);
  work.first_own = static_cast<i32>(block) * kKeys;
  if (block >= fresh_arguments()->row_tiles || work.first_own >= work.seq_k) return;
  work.take_head(0);
  Wave<Element, mask>(work, block, wave, lane).run();
}

}  // namespace flydsl::kernels::fused
