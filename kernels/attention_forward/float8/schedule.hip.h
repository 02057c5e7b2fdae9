// Which vector work of the pipelined e4m3 instances stands in which gap after a matrix instruction.
#pragma once

#include "attention_forward/float8/tiles.hip.h"

namespace flydsl::kernels::float8 {

template <int head_dim>
struct Schedule {
  static constexpr int steps = head_dim / 64, blocks = head_dim / 32;
  // Fragments of a tile: K by (key block, step), V by (step, block). Each meets both halves of the rows; work is placed in the
  // gaps after matrix instructions.
  static constexpr int k_fragments = 2 * steps, v_fragments = 4 * blocks;
  static constexpr int o_gaps = 2 * v_fragments, s_gaps = 2 * k_fragments;
  static constexpr int v_ahead = 3, k_ahead = 2;  // fragments that are read before they are needed
  static constexpr int k_lines = Rows<KeyTile<head_dim>>::lines_of_wave,
                       v_lines = Rows<ValueTile<head_dim>>::lines_of_wave;

  // A gap of the first phase has room for 6 issues beside a matrix instruction and what is read after it, one of the second for
  // 13; an exponential takes two.
  //
  // D 128: all of it stands there. D 64: it would take twice as long as the matrix instructions. Packed fp32 instructions do two
  // elements at once, but wait until no matrix instruction runs: sums and exponents are packed, between the phases.
  static constexpr bool kPacked = head_dim == 64;
  static constexpr int smaller(int a, int b) { return a < b ? a : b; }
  // What the even gaps do for memory: copies of K, loads of V, writes of V, addresses.
  static constexpr int copy_at(int gap) { return gap / 2 - (head_dim == 128); }
  static constexpr int load_at(int gap) { return copy_at(gap) - k_lines; }
  static constexpr bool computes_address(int gap) {
    return (copy_at(gap) > 0 && copy_at(gap) < k_lines) ||
           (load_at(gap) > 0 && load_at(gap) < v_lines);
  }
  // Pairs of V are widened in the first gaps: two in each, four in the first where it has no exponentials yet.
  static constexpr int widen_gaps = kPacked ? 4 : o_gaps / 4 - 1;
  static constexpr int words_before(int gap) {
    return gap == 0 ? 0 : smaller(2 * gap + (kPacked ? 0 : 2), 4 * v_lines);
  }
  static constexpr int weights_in(int gap) {
    if (kPacked) return gap < widen_gaps ? 2 : 3;
    if (gap == 0) return 0;
    return gap < widen_gaps || (gap % 2 == 0 && computes_address(gap)) ? 1 : 2;
  }
  static constexpr int weights_before(int gap) {
    int sum = 0;
    for (int m = 0; m < gap; ++m) sum += weights_in(m);
    return sum;
  }
  static constexpr int kEarlyWeights = weights_before(o_gaps);
  // The second phase. D 128: the other weights in its first half, sums in all gaps but the last, pairs in the second half, evenly,
  // since together they take longer than the matrix instructions. D 64: weights and pairs.
  static constexpr int half_gaps = s_gaps / 2, add_gaps = s_gaps - 1;
  static constexpr int adds_before(int gap) {
    return kPacked || gap == 0 ? 0 : smaller(9 * gap + 2, 64);
  }
  static constexpr int pairs_before(int gap) {
    if (gap == s_gaps) return 32;
    return kPacked ? 6 * gap + (gap == 3 ? 2 : 0) : gap <= half_gaps ? 0 : 6 * (gap - half_gaps);
  }
  static constexpr int late_before(int gap) {
    constexpr int weights = 64 - kEarlyWeights, gaps = kPacked ? add_gaps : half_gaps;
    return kEarlyWeights + weights * smaller(gap, gaps) / gaps;
  }
};

}  // namespace flydsl::kernels::float8
