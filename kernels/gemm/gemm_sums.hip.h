// Sums of a matrix over one of its axes, in an order that depends on sizes and strides only: bias gradients. The kernel arguments are
// those of a product with a vector of ones: D (m) = A (m, k) 1, over `splits` matrices of a batch, or each of `batches` for itself.
#pragma once

#include "common/lds.hip.h"
#include "gemm/arguments.hip.h"
#include "gemm/row8.hip.h"

namespace flydsl::kernels {
namespace gemm {

constexpr u32 kSumThreads = 1024, kSumRows = 32;  // of D, of a work-group
constexpr u32 kSumLanes = kSumRows / 8;           // that have them, 8 each

// Anything but K contiguous: a lane has 8 neighbours in M, and every 256th k.
struct SumsAlongM {
  static constexpr u32 kSlices = kSumThreads / kSumLanes, kUnrolled = 4;
  float total[8] = {};

  FLYDSL_DEVICE void add(const float (&values)[8]) {
#pragma unroll
    for (int i = 0; i < 8; ++i) total[i] += values[i];
  }
  // `from`: of the first of the lane's neighbours, of which `count` exist.
  FLYDSL_DEVICE void add_matrix(global_ptr<const char> from, Arguments args, i32 count,
                                u32 slice) {
    const Dtype dtype{args->a_dtype};
    const i32 k = args->k;
    const i64 step = args->a_stride_k * bytes_of(dtype);
    i32 at = static_cast<i32>(slice);
    if (args->a_stride_m == 1 && count >= 8 && dtype != Dtype::fp32) {
      constexpr i32 kStep = kSlices * kUnrolled;
      for (; at + kStep - static_cast<i32>(kSlices) < k; at += kStep) {
        u32x4 rows[kUnrolled];
#pragma unroll
        for (u32 i = 0; i < kUnrolled; ++i)
          rows[i] = load_16_bytes(from + (at + i64{i * kSlices}) * step);
#pragma unroll
        for (u32 i = 0; i < kUnrolled; ++i) {
          float values[8];
#pragma unroll
          for (int j = 0; j < 8; ++j)
            values[j] = dtype == Dtype::fp16 ? element_of<fp16>(rows[i], j)
                                             : element_of<bf16>(rows[i], j);
          add(values);
        }
      }
    }
    for (; at < k; at += kSlices) {
      float values[8];
      load_row8(from + at * step, dtype, args->a_stride_m, count, values);
      add(values);
    }
  }
};

// K contiguous: a lane has every 32nd block of 8 k of one row.
FLYDSL_DEVICE float sum_along_k(global_ptr<const char> from, Arguments args, u32 block) {
  constexpr i32 kStep = 8 * kSumThreads / kSumRows;
  const Dtype dtype{args->a_dtype};
  const i32 k = args->k;
  float total = 0.0f;
#pragma unroll 4
  for (i32 at = 8 * static_cast<i32>(block); at < k; at += kStep) {
    float values[8];
    load_row8(from + i64{at} * bytes_of(dtype), dtype, 1, k - at, values);
    total += ((values[0] + values[1]) + (values[2] + values[3])) +
             ((values[4] + values[5]) + (values[6] + values[7]));
  }
  return total;
}

}  // namespace gemm

FLYDSL_DEVICE void sum_matrix(const flydsl_aot_gemm_kernarg &) {
  using namespace gemm;
  constexpr u32 kSlices = SumsAlongM::kSlices, kGroups = kSumThreads / kSumRows;
  FLYDSL_SHARED static float memory[kSlices * kSumRows] __attribute__((aligned(16)));
  FLYDSL_SHARED static float of_groups[kGroups * kSumRows];
  const Arguments args = fresh_arguments();
  const u32 number =
      uniform(__builtin_amdgcn_workgroup_id_y() * args->grid_x + __builtin_amdgcn_workgroup_id_x());
  if (number >= args->tiles) return;
  const u32 thread = __builtin_amdgcn_workitem_id_x();
  const u32 batch = number / args->row_tiles;
  const i32 first = static_cast<i32>(number % args->row_tiles * kSumRows);
  const Dtype dtype{args->a_dtype};
  const bool along_k = args->a_stride_k == 1 && args->a_stride_m != 1;
  const u32 group = thread / kSumRows, row = thread % kSumRows;
  // (Threads of a row are neighbours where K is contiguous, threads of neighbouring rows else.)
  const i32 mine = first + static_cast<i32>(along_k ? thread / kGroups : thread % kSumLanes * 8);
  const i32 count = args->m - mine;
  const auto matrix = [&](u32 n) FLYDSL_INLINED {
    return (global_ptr<const char>)args->a +
           (i64{static_cast<i64>(batch + n)} * args->a_stride_b + i64{mine} * args->a_stride_m) *
               bytes_of(dtype);
  };
  float sum = 0.0f;
  if (along_k) {
    if (count > 0)
      for (u32 n = 0; n < args->splits; ++n) sum += sum_along_k(matrix(n), args, thread % kGroups);
    of_groups[thread % kGroups * kSumRows + thread / kGroups] = sum;
  } else {
    SumsAlongM sums;
    if (count > 0)
      for (u32 n = 0; n < args->splits; ++n)
        sums.add_matrix(matrix(n), args, count, thread / kSumLanes);
#pragma unroll
    for (u32 i = 0; i < 8; ++i)
      memory[thread / kSumLanes * kSumRows + thread % kSumLanes * 8 + i] = sums.total[i];
    barrier();
#pragma unroll
    for (u32 i = 0; i < kSlices / kGroups; ++i)
      sum += memory[(group * (kSlices / kGroups) + i) * kSumRows + row];
    of_groups[group * kSumRows + row] = sum;
  }
  barrier();
  if (thread >= kSumRows || first + static_cast<i32>(thread) >= args->m) return;
  sum = 0.0f;
#pragma unroll
  for (u32 i = 0; i < kGroups; ++i) sum += of_groups[i * kSumRows + thread];
  const Dtype to{args->d_dtype};
  store_element((global_ptr<char>)args->d +
                    (i64{static_cast<i64>(batch)} * args->d_stride_b +
                     (first + static_cast<i64>(thread)) * args->d_stride_m) *
                        bytes_of(to),
                sum, to);
}

}  // namespace flydsl::kernels
