// The gradients of a wave's own 32 rows: their sums, transposed, in fp32, and their end. A lane owns one row; its element i of block b is
// head-dim element 32 b + 8 (i / 4) + 4 (l / 32) + i % 4.
#pragma once

#include "attention_backward/exact.hip.h"
#include "attention_forward/outputs.hip.h"

namespace flydsl::kernels {

// To be called in the last round of the loop over tiles: out of it clang 22.1 reads sums, in one instance after 11 of the 12 wait
// states that a matrix result takes (found by the emulator's hazard check).
FLYDSL_DEVICE void sums_settle() {
  asm volatile("s_nop 7\n\ts_nop 7" ::: "memory");
}

template <class Element, int head_dim_qk, int head_dim_v, Pass pass, bool general>
struct GradientSums {
  f32x16 of_1[head_dim_qk / 32] = {},
                            of_2[head_dim_v / 32] = {};  // dk or dq, without the scale; dv

  // `scale`: of dk or dq. Rows that the fast path cannot be trusted with are computed by the slow one.
  FLYDSL_DEVICE void store(const Work<pass> &work, i32 first_own, u32 lane, float scale) const {
    const i32 own = first_own + static_cast<i32>(lane % 32);
    const bool exists = own < work.own_count();
    u32 exact_rows = untrusted_rows(exists);
    const bool write = exists && !(exact_rows >> lane % 32 & 1);
    if constexpr (pass == Pass::keys) {
      store_gradient(fresh_arguments()->dk, lane, write, work.dk_row(own),
                     fresh_arguments()->head_dim_qk, scale, of_1);
      store_gradient(fresh_arguments()->dv, lane, write, work.dv_row(own),
                     fresh_arguments()->head_dim_v, 1.0f, of_2);
    } else {
      store_gradient(fresh_arguments()->dq, lane, write, work.dq_row(own),
                     fresh_arguments()->head_dim_qk, scale, of_1);
    }
#pragma unroll 1
    for (; FLYDSL_UNLIKELY(exact_rows != 0); exact_rows &= exact_rows - 1)
      exact_gradients<Element, head_dim_qk, head_dim_v, general>(
          work, first_own + __builtin_ctz(exact_rows), lane);
  }

 private:
  // The slow path has to compute rows with a gradient that is not finite again, a bit each.
  FLYDSL_DEVICE u32 untrusted_rows(bool exists) const {
    // Not finite anywhere <=> this is NaN: 0 * x is 0 for finite x only.
    float probe = 0.0f;
    probe_all(of_1, probe);
    if constexpr (pass == Pass::keys) probe_all(of_2, probe);
    const u64 distrust = ballot(exists && !(probe == 0.0f));
    return static_cast<u32>(distrust) | static_cast<u32>(distrust >> 32);
  }
  template <int blocks>
  static FLYDSL_DEVICE void probe_all(const f32x16 (&sum)[blocks], float &probe) {
#pragma unroll
    for (const f32x16 &block : sum) {
#pragma unroll
      for (int i = 0; i < 16; ++i) probe = fma(block[i], 0.0f, probe);
    }
  }
  template <int blocks>
  FLYDSL_DEVICE void store_gradient(const void *tensor, u32 lane, bool write, global_ptr<char> row,
                                    i32 head_dim, float factor, const f32x16 (&sum)[blocks]) const {
    u32x4 pieces[2 * blocks];
    pieces_of_row<Element>(factor, sum, pieces);
    if (!tensor || !write) return;
    const i32 first = static_cast<i32>(computed_here(lane / 32 * 8));
#pragma unroll
    for (int piece = 0; piece < 2 * blocks; ++piece) {
      if constexpr (general) {
        store_elements(row, 16 * piece + first, head_dim, pieces[piece]);
      } else {
        if (piece < 2 * blocks - 2 || 16 * piece + first < head_dim)
          store_16_bytes(row + 2 * (16 * piece + first), pieces[piece]);
      }
    }
  }
};

}  // namespace flydsl::kernels
