// The order of a step of the fused kernel: 80 matrix instructions, and what stands in the gap after each of them. All of it is
// computed by the compiler, also how many LDS instructions may be in flight when an operand is needed: the kernel
// waits for nothing else.
//
//   step i   S   = Q K^T - lse / scale     16    A: rows of Q,    B: keys in registers (some from LDS)
//            dQ^T = K^T dS^T of tile i - 1 16    A: columns of K, B: dS of all waves from LDS
//            dP  = dO V^T - delta          16    A: rows of dO,   B: values in registers
//            dV^T += dO^T P                16    A: columns of dO
//            dK^T += Q^T dS                16    A: columns of Q
//
// Of head dim 64, 64 rows in two blocks of 32 are as many products; a block has its own S and dP, and vector work as much as all of head
// dim 128. So that it has room beside nearly all of the step, the blocks come one after the other: S, dP, (dQ between), S of the
// second, dV, dP of the second, dK, and the second's dV and dK.
//
// One wave is alone on its SIMD and issues at most one instruction every 4 clocks; a matrix instruction takes 32, so a gap
// holds 7 more, of which vector instructions may use 6 (an exponential counts twice).
#pragma once

#include "attention_backward/fused/tiles.hip.h"
#include "common/vectors.hip.h"

namespace flydsl::kernels::fused {

enum class Product { s, dq, dp, dv, dk };
struct Op {
  Product product;
  int n;  // of 16
};

// What is read from, or written to, LDS. Rows are 16 bytes of a row a lane, columns two transposed reads.
enum class Move {
  q_row,
  k_row,
  dout_row,
  dout_column,
  q_column,
  k_column,
  ds_column,
  lse,
  delta,
  write_ds,
  write_values
};
constexpr int instructions_of(Move move) {
  switch (move) {
    case Move::lse:
    case Move::delta:
      return 4;
    case Move::dout_column:
    case Move::q_column:
    case Move::k_column:
    case Move::ds_column:
      return 2;
    default:
      return 1;
  }
}
struct LdsEvent {
  Move move;
  int n;
  bool of_next_step;
};

// Vector work on element e of 32 (then those of the next 32 rows), or pair e of 16: old sums of dQ, exponents, weights, weights in the input type, derivatives of scores, these in
// the input type.
enum class Vector {
  spread,
  add_sums,
  exponent,
  weight,
  round_weight,
  derivative,
  round_derivative,
  write
};
struct VectorEvent {
  Vector work;
  int n;
};

// The elements a lane has of S of 32 rows: 16 of each of two key blocks. Element e of this order is needed in the order of the products.
constexpr int block_of(int e) {
  return e / 8 % 2;
}
constexpr int element_of_block(int e) {
  return e / 16 * 8 + e % 8;
}

// Keys that stay in the compiler's registers: K fragments by (step of 16 elements, key block), n = 2 step + block. Of head dim 64
// all stay in accumulation registers.
constexpr bool resident_key(int n) {
  return kHeadDim == 64 || n % 2 == 0;
}
constexpr int kResidentKeys = 8;
constexpr int resident_number(int n) {
  int number = 0;
  for (int i = 0; i < n; ++i) number += resident_key(i);
  return number;
}

// Of a work-group's steps; the last one is dQ of the last tile.
enum class Part { middle, last };

template <Part part>
constexpr int kOps = part == Part::middle ? 80 : 16;

template <Part part>
constexpr Op op_at(int i) {
  if (part == Part::last) return {Product::dq, i};
  if (kHeadDim == 64) {
    if (i < 8) return {Product::s, i};
    if (i < 24) return {i % 2 ? Product::dq : Product::dp, (i - 8) / 2};
    if (i < 40) return {i % 2 ? Product::dq : Product::s, 8 + (i - 24) / 2};
    const Product then[] = {Product::dv, Product::dp, Product::dk, Product::dv, Product::dk};
    const int n = (i - 40) / 8;
    return {then[n], (n == 0 || n == 2 ? 0 : 8) + i % 8};
  }
  if (i < 32) return {i % 2 ? Product::dq : Product::s, i / 2};
  i -= 16;
  return {i < 32 ? Product::dp : i < 48 ? Product::dv : Product::dk, i % 16};
}

constexpr int kRowRing = 4, kKeyRing = 2, kColumnRing = 3;  // fragments in registers
// Matrix instructions before their use that they are read.
constexpr int kRowsAhead = 6;
constexpr int kKeysAhead = 5;
template <Part part>
constexpr int kColumnsAhead = part == Part::last ? 2 : 5;

template <Part part>
struct Schedule {
  static constexpr int ops = kOps<part>, most = 12;
  LdsEvent before[most] = {};  // read before the first step
  int before_count = 0;
  LdsEvent lds[ops][most] = {};
  int lds_count[ops] = {};
  VectorEvent vector[ops][most] = {};
  int vector_count[ops] = {};
  // LDS instructions that may be in flight at op i; -1: no wait.
  int wait[ops] = {};
  int wait_at_barrier = 0;
  int mask_gap[kRowBlocks] = {}, writes_done = 0;
  bool fits = true;
};

// A result of a matrix instruction may be read so many later.
constexpr int kResultGaps = 4;

template <Part part>
constexpr int position(Product product, int n) {
  for (int i = 0; i < kOps<part>; ++i)
    if (op_at<part>(i).product == product && op_at<part>(i).n == n) return i;
  return -1;
}

constexpr int kExponentsAhead = 6;  // of the weights
constexpr int kWeightsBeforeSums =
    kHeadDim == 64 ? 4 : 12;  // sums of dQ take some 1,000 clocks to come
// Row values that products of a block of 32 rows begin with, read and spread; those of the first S in the step before.
struct RowValueGaps {
  int read, spread[4];  // four values each
};
constexpr RowValueGaps row_value_gaps(bool delta, int block) {
  if (kHeadDim == 128)
    return delta ? RowValueGaps{17, {23, 25, 27, 29}} : RowValueGaps{71, {74, 75, 77, 77}};
  if (block == 0) return delta ? RowValueGaps{0, {2, 4, 5, 6}} : RowValueGaps{71, {75, 76, 77, 78}};
  return delta ? RowValueGaps{40, {45, 46, 46, 46}} : RowValueGaps{4, {7, 8, 9, 9}};
}
// What is not in a schedule stands in these gaps, most of which hold little else: a branch or more than three scalar
// instructions beside reads would hold up the next product.
constexpr int kLoadValueGap = 0, kSumsPlaceGap = 1, kTurnGap = 3, kOldSumsGap = 5, kCopyGap = 7,
              kMoreAddressesGap = 15, kOldSumsReturnedGap = kHeadDim == 64 ? 41 : 40,
              kStoreSumsGap = kHeadDim == 64 ? 48 : 44, kReturnedGap = 64, kWriteValueGap = 65,
              kCounterGap = 66, kPlacesGap = 67, kPointersGap = 68, kAdvanceGap = 69,
              kBuffersGap = 70, kBarrierGap = kHeadDim == 64 ? 78 : 72, kAddressesGap = 73,
              kSignalGap = kHeadDim == 64 ? 77 : 73, kLseGap = row_value_gaps(false, 0).read;
// The counts in waits for memory, and what is read before it moves on, rest on this order.
static_assert(kLoadValueGap < kTurnGap - 1 && kSumsPlaceGap < kOldSumsGap &&
              kTurnGap < kOldSumsGap && kOldSumsGap < kCopyGap &&
              kCopyGap + 6 < kOldSumsReturnedGap && kStoreSumsGap + 3 < kReturnedGap &&
              kReturnedGap < kWriteValueGap && kReturnedGap < kCounterGap &&
              kCounterGap < kPlacesGap && kPlacesGap < kPointersGap && kPlacesGap < kSignalGap &&
              kBuffersGap < kLseGap);

constexpr int kOpsOfBlock = 2 * kHeadSteps;  // of S and dP for a block of 32 rows
// Row values in the order of lse and delta of a block, 16 each.
constexpr int spread_gap(int n) {
  return row_value_gaps(n / 16 % 2, n / 32).spread[n % 16 / 4];
}

template <Part part>
constexpr Schedule<part> make_schedule() {
  constexpr int ops = kOps<part>;
  Schedule<part> result;
  const auto put = [&](int gap, Move move, int n) {
    const bool next = gap < 0;
    if (next) {
      result.before[result.before_count++] = {move, n, false};
      if (part != Part::middle) return;
      gap += ops;
    }
    LdsEvent &event = result.lds[gap][result.lds_count[gap]++];
    event.move = move;
    event.n = n;
    event.of_next_step = next;
  };
  const auto later = [](int a, int b) { return a > b ? a : b; };
  for (int i = 0; i < ops; ++i) {
    const Op op = op_at<part>(i);
    const int n = op.n;
    switch (op.product) {
      case Product::s:
        if (n == 0) put(kLseGap - ops, Move::lse, 0);
        if (n == 8 && kRowBlocks == 2) put(row_value_gaps(false, 1).read, Move::lse, 1);
        if (n % 2 == 0) put(i - kRowsAhead, Move::q_row, n / 2);
        if (!resident_key(n)) put(i - kKeysAhead, Move::k_row, n);
        break;
      case Product::dp:
        if (n % kOpsOfBlock == 0)
          put(row_value_gaps(true, n / kOpsOfBlock).read, Move::delta, n / kOpsOfBlock);
        if (n % 2 == 0) put(i - kRowsAhead, Move::dout_row, n / 2);
        break;
      case Product::dv:
        if (n % 2 == 0) put(i - kRowsAhead, Move::dout_column, n / 2);
        break;
      case Product::dk:
        if (n % 2 == 0) put(i - kRowsAhead, Move::q_column, n / 2);
        break;
      case Product::dq:
        put(i - kColumnsAhead<part>, Move::k_column, n);
        put(i - kColumnsAhead<part> + (kHeadDim == 64 && part == Part::middle), Move::ds_column, n);
        break;
    }
  }

  if (part != Part::last) {
    const auto put_vector = [&](int g, Vector work, int n) {
      VectorEvent &event = result.vector[g][result.vector_count[g]++];
      event.work = work;
      event.n = n;
    };
    for (int n = 0; n < 32 * kRowBlocks; ++n) put_vector(spread_gap(n), Vector::spread, n);
    put(kWriteValueGap, Move::write_values, 0);
    int gap = 0, used = 0;
    const auto room = [&](int g) {
      int spread = 0;
      for (int n = 0; n < 32 * kRowBlocks; ++n) spread += spread_gap(n) == g;
      return 6 - spread - (result.lds_count[g] > 3 ? result.lds_count[g] - 3 : 0);
    };
    const auto add = [&](Vector work, int n, int slots, int earliest) {
      if (gap < earliest) gap = earliest, used = 0;
      while (gap < ops &&
             (used + slots > room(gap) || result.vector_count[gap] == Schedule<part>::most))
        ++gap, used = 0;
      if (gap >= ops) {
        result.fits = false;
        return;
      }
      used += slots;
      VectorEvent &event = result.vector[gap][result.vector_count[gap]++];
      event.work = work;
      event.n = n;
    };
    for (int block = 0; block < kRowBlocks; ++block) {
      const int after = (block + 1) * kOpsOfBlock, first = 32 * block;
      result.mask_gap[block] = position<part>(Product::s, after - 1) + 1;
      // The first elements are of the first key block, whose products end before those of the second.
      const int scores = position<part>(Product::s, after - 2) + kResultGaps;
      // Some exponents and weights, while the last product of dQ ends; its sums; the others.
      for (int e = 0; e < kExponentsAhead; ++e) add(Vector::exponent, first + e, 1, scores);
      for (int e = 0; e < 36; ++e) {
        if (block == kRowBlocks - 1 && e == kWeightsBeforeSums) {
          for (int n = 0; n < 16; ++n)
            add(Vector::add_sums, n, 1,
                later(position<part>(Product::dq, 15) + kResultGaps, kOldSumsReturnedGap));
          if (gap >= kStoreSumsGap) result.fits = false;
        }
        if (e + kExponentsAhead < 32) add(Vector::exponent, first + e + kExponentsAhead, 1, 0);
        if (e < 32) add(Vector::weight, first + e, 2, 0);
        if (e >= 3 && e % 2 == 1 && e <= 33)
          add(Vector::round_weight, first / 2 + (e - 3) / 2, 1, 0);
      }
      const int derivatives = position<part>(Product::dp, after - 1) + kResultGaps;
      for (int e = 0; e < 36; ++e) {
        if (e < 32) add(Vector::derivative, first + e, 1, derivatives);
        if (e >= 2 && e % 2 == 0 && e <= 32)
          add(Vector::round_derivative, first / 2 + (e - 2) / 2, 1, 0);
        if (e >= 7 && e % 4 == 3) add(Vector::write, first / 4 + (e - 7) / 4, 1, 0);
      }
    }
    result.writes_done = gap;
    // Rounded weights and derivatives are there two gaps before the products that take them.
    for (int g = 0; g < ops; ++g)
      for (int v = 0; v < result.vector_count[g]; ++v) {
        const VectorEvent event = result.vector[g][v];
        const bool weight = event.work == Vector::round_weight;
        if (!weight && event.work != Vector::round_derivative) continue;
        const int e = 2 * event.n;
        const int first = position<part>(weight ? Product::dv : Product::dk,
                                         e / 16 * 2 * kHeadBlocks + block_of(e));
        if (g + 2 > first) result.fits = false;
      }
    if (result.writes_done >= kBarrierGap) result.fits = false;
  }

  // Waits: two steps in a row, the second one's are kept.
  const auto instructions = [&](int g, auto each) {
    for (int l = 0; l < result.lds_count[g]; ++l)
      each(result.lds[g][l].move, result.lds[g][l].n, result.lds[g][l].of_next_step);
    for (int v = 0; v < result.vector_count[g]; ++v)
      if (result.vector[g][v].work == Vector::write)
        each(Move::write_ds, result.vector[g][v].n, false);
  };
  int issued = 0, landed = 0;
  int read[11][16] = {};  // by move and number: instructions issued when it was complete
  int coming[11][16] = {};
  for (int round = 0; round < 2; ++round) {
    for (auto &row : coming)
      for (int &x : row) {
        int &r = read[&row - coming][&x - row];
        if (x != 0) r = x;
        x = 0;
      }
    int writes = 0;
    for (int i = 0; i < ops; ++i) {
      const Op op = op_at<part>(i);
      int needed = 0;
      const auto need = [&](Move move, int n) { needed = later(needed, read[int(move)][n]); };
      if (part == Part::middle) {
        if (i == spread_gap(0)) needed = coming[int(Move::lse)][0];
        if (i == spread_gap(16)) need(Move::delta, 0);
        if (kRowBlocks == 2 && i == spread_gap(32)) need(Move::lse, 1);
        if (kRowBlocks == 2 && i == spread_gap(48)) need(Move::delta, 1);
      }
      switch (op.product) {
        case Product::s:
          need(Move::q_row, op.n / 2);
          if (!resident_key(op.n)) need(Move::k_row, op.n);
          break;
        case Product::dp:
          need(Move::dout_row, op.n / 2);
          break;
        case Product::dv:
          need(Move::dout_column, op.n / 2);
          break;
        case Product::dk:
          need(Move::q_column, op.n / 2);
          break;
        case Product::dq:
          need(Move::k_column, op.n);
          need(Move::ds_column, op.n);
          break;
      }
      result.wait[i] = -1;
      if (needed > landed) {
        landed = needed;
        const int younger = issued - needed;
        result.wait[i] = younger < 15 ? younger : 15;
      }
      instructions(i, [&](Move move, int n, bool next) {
        issued += instructions_of(move);
        (next ? coming : read)[int(move)][n] = issued;
        if (move == Move::write_ds || move == Move::write_values) writes = issued;
      });
      if (i == kBarrierGap && part != Part::last) {
        const int younger = issued - writes;
        result.wait_at_barrier = younger < 15 ? younger : 15;
        landed = later(landed, writes);
      }
    }
  }
  return result;
}

template <Part part>
constexpr Schedule<part> kSchedule = make_schedule<part>();

}  // namespace flydsl::kernels::fused
