// The epilogue of a whole tile: a lane has the same 8 columns in each row, so what does not depend on the row is looked up once, and what is
// read for each row is under way while the rows before it are finished. It does what finish_row8 of epilogue.hip.h does, where the columns of
// D, C, the residual and the auxiliary output are contiguous.
#pragma once

#include "gemm/destination.hip.h"

namespace flydsl::kernels::gemm {

// What a lane reads or writes in each row of a matrix or vector.
struct RowsOf {
  global_ptr<char> first = nullptr;
  i64 row_bytes = 0;

  FLYDSL_DEVICE RowsOf() {}
  FLYDSL_DEVICE RowsOf(const void *base, i64 offset, i64 stride, Dtype dtype)
      : first((global_ptr<char>)base + offset * bytes_of(dtype)),
        row_bytes(in_lanes(stride * bytes_of(dtype))) {}
  FLYDSL_DEVICE global_ptr<char> row(u32 rows_on) const { return first + rows_on * row_bytes; }
};

// `rows_apart`: rows from one of those that are finished together to the next.
template <u32 rows_apart>
struct FinishRows {
  static constexpr int kTogether = 16 / rows_apart;  // of a lane
  // Of `what`: which there are, their types (4 bits each) and the activation.
  enum : u32 { kC, kResidual, kAux, kBiasM, kD, kADescale, kBDescale, kBiasN, kDScale };
  u32 what, types;
  u32 last;  // rows on, of the last ones
  RowsOf c, residual;
  float d_scale;
  float factors[8], bias_n[8];                         // of the lane's columns
  u32x4 ahead[kTogether][2];  // of C, or of the residual if there is no C, as in memory; the second half of fp32 only
  float row_factor[kTogether], row_bias[kTogether];

  FLYDSL_DEVICE bool has(u32 part) const { return (what >> part & 1) != 0; }
  FLYDSL_DEVICE Dtype dtype(u32 part) const { return Dtype{types >> 4 * part & 15}; }
  FLYDSL_DEVICE Activation activation() const { return Activation{what >> 16}; }

  // Whether the arguments allow it, for a whole tile.
  static FLYDSL_DEVICE bool takes(Arguments args) {
    const bool contiguous = (!args->c | (args->c_stride_n == 1)) &
                            (!args->residual | (args->residual_stride_n == 1)) &
                            (!args->aux | (args->aux_stride_n == 1)) & (args->d_stride_n == 1);
    return contiguous & !args->gradient & ((args->splits == 1) | (args->whole_tiles != 0));
  }
  static FLYDSL_DEVICE u32 is_there(const void *base, u32 part) { return base ? 1u << part : 0; }

  // `first_row`, `last_row`: the wave's, rows on from the lane's first. Few arguments are in scalar registers at a time.
  FLYDSL_DEVICE FinishRows(const Destination &to, u32 first_row, u32 last_row) : last(last_row) {
    const i64 batch = to.batch, m = to.row, n = to.column;
    // Anything, or clang 22 keeps what the tile before left in them where they stay unset.
#pragma unroll
    for (int i = 0; i < kTogether; ++i)
      asm volatile("" : "=v"(ahead[i][0]), "=v"(ahead[i][1]));
    Arguments args = fresh_arguments();
    what = is_there(args->c, kC) | is_there(args->residual, kResidual) |
           is_there(args->aux, kAux) | is_there(args->bias_m, kBiasM) |
           is_there(args->a_descale, kADescale) | is_there(args->b_descale, kBDescale) |
           is_there(args->bias_n, kBiasN) | is_there(args->d_scale, kDScale) |
           args->activation << 16;
    args = fresh_arguments();
    types = args->c_dtype << 4 * kC | args->residual_dtype << 4 * kResidual |
            args->aux_dtype << 4 * kAux | args->bias_m_dtype << 4 * kBiasM |
            args->d_dtype << 4 * kD;
    args = fresh_arguments();
    if (has(kC))
      c = RowsOf(args->c, batch * args->c_stride_b + m * args->c_stride_m + n, args->c_stride_m,
                 dtype(kC));
    args = fresh_arguments();
    if (has(kResidual))
      residual = RowsOf(args->residual,
                        batch * args->residual_stride_b + m * args->residual_stride_m + n,
                        args->residual_stride_m, dtype(kResidual));
    load(to, first_row);
    args = fresh_arguments();
    d_scale = in_lanes(args->d_scale ? *(global_ptr<const float>)args->d_scale : 1.0f);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      factors[i] = 1.0f;
      bias_n[i] = 0.0f;
    }
    args = fresh_arguments();
    if (args->b_descale)
      load_row8(place(args->b_descale, batch * args->b_descale_stride_b + n * args->b_descale_stride_n,
                      Dtype::fp32),
                Dtype::fp32, args->b_descale_stride_n, 8, factors);
    args = fresh_arguments();
    if (args->bias_n) {
      const Dtype dtype{args->bias_n_dtype};
      load_row8(place(args->bias_n, batch * args->bias_n_stride_b + n * args->bias_n_stride_n, dtype),
                dtype, args->bias_n_stride_n, 8, bias_n);
    }
  }

  static FLYDSL_DEVICE void load(const RowsOf &from, u32 rows_on, Dtype dtype,
                                 u32x4 (&rows)[kTogether][2]) {
#pragma unroll
    for (u32 i = 0; i < kTogether; ++i) rows[i][0] = load_16_bytes(from.row(rows_on + i * rows_apart));
    if (dtype != Dtype::fp32) return;
#pragma unroll
    for (u32 i = 0; i < kTogether; ++i)
      rows[i][1] = load_16_bytes(from.row(rows_on + i * rows_apart) + 16);
  }
  // What rows need, in front of their sums.
  FLYDSL_DEVICE void load(const Destination &to, u32 rows_on) {
#pragma unroll
    for (u32 i = 0; i < kTogether; ++i) {
      row_factor[i] = 1.0f;
      row_bias[i] = 0.0f;
    }
    const i64 batch = to.batch, m = to.row + static_cast<i32>(rows_on);
    if (has(kADescale)) {
      const Arguments args = fresh_arguments();
      const RowsOf rows(args->a_descale,
                        batch * args->a_descale_stride_b + m * args->a_descale_stride_m,
                        args->a_descale_stride_m, Dtype::fp32);
#pragma unroll
      for (u32 i = 0; i < kTogether; ++i)
        row_factor[i] = *(global_ptr<const float>)rows.row(i * rows_apart);
    }
    if (has(kBiasM)) {
      const Arguments args = fresh_arguments();
      const RowsOf rows(args->bias_m, batch * args->bias_m_stride_b + m * args->bias_m_stride_m,
                        args->bias_m_stride_m, dtype(kBiasM));
#pragma unroll
      for (u32 i = 0; i < kTogether; ++i)
        row_bias[i] = load_element(rows.row(i * rows_apart), dtype(kBiasM));
    }
    if (has(kC))
      load(c, rows_on, dtype(kC), ahead);
    else if (has(kResidual))
      load(residual, rows_on, dtype(kResidual), ahead);
  }

  // take(i, j, sums[i][j])
  template <class Take>
  static FLYDSL_DEVICE void for_each(float (&sums)[kTogether][8], Take take) {
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
#pragma unroll
      for (int j = 0; j < 8; ++j) take(i, j, sums[i][j]);
    }
  }
  // take(sums[i][j], value of row i and column j)
  template <class Take>
  static FLYDSL_DEVICE void each_value(const u32x4 (&rows)[kTogether][2], Dtype dtype,
                                       float (&sums)[kTogether][8], Take take) {
    const auto all = [&](auto value_of) FLYDSL_INLINED {
      for_each(sums, [&](int i, int j, float &sum)
                         FLYDSL_INLINED { take(sum, value_of(rows[i], j)); });
    };
    if (dtype == Dtype::bf16)
      all([](const u32x4(&row)[2], int j) FLYDSL_INLINED { return element_of<bf16>(row[0], j); });
    else if (dtype == Dtype::fp16)
      all([](const u32x4(&row)[2], int j) FLYDSL_INLINED { return element_of<fp16>(row[0], j); });
    else
      all([](const u32x4(&row)[2], int j)
              FLYDSL_INLINED { return bits_as<float>(row[j / 4][j % 4]); });
  }

  // The rows that were loaded last, and loads those that follow.
  FLYDSL_DEVICE void finish(const Destination &to, u32 rows_on, float (&sums)[kTogether][8]) {
    asm volatile("" : "+s"(what), "+s"(types));  // or clang makes a loop of its own for every combination of them
    Arguments args = fresh_arguments();
    const float alpha = args->alpha, beta = args->beta;
    // What is not there is jumped over rather than 1 or 0: each is a thousand clocks of a tile.
    if (has(kADescale) || has(kBDescale)) {
      for_each(sums, [&](int i, int j, float &sum)
                         FLYDSL_INLINED { sum = sum * (alpha * row_factor[i]) * factors[j]; });
    } else {
      for_each(sums, [&](int, int, float &sum) FLYDSL_INLINED { sum *= alpha; });
    }
    if (has(kC))
      each_value(ahead, dtype(kC), sums,
                 [&](float &sum, float value) FLYDSL_INLINED { sum = fma(beta, value, sum); });
    if (has(kBiasM))
      for_each(sums, [&](int i, int, float &sum) FLYDSL_INLINED { sum += row_bias[i]; });
    if (has(kBiasN))
      for_each(sums, [&](int, int j, float &sum) FLYDSL_INLINED { sum += bias_n[j]; });
    if (has(kAux)) {
      args = fresh_arguments();
      const RowsOf aux(args->aux,
                       i64{to.batch} * args->aux_stride_b +
                           i64{to.row + static_cast<i32>(rows_on)} * args->aux_stride_m + to.column,
                       args->aux_stride_m, dtype(kAux));
#pragma unroll
      for (u32 i = 0; i < kTogether; ++i)
        store_row8(aux.row(i * rows_apart), dtype(kAux), 1, 8, sums[i]);
    }
    if (activation() != Activation::none) activate(sums);
    if (has(kResidual)) {
      if (has(kC)) load(residual, rows_on, dtype(kResidual), ahead);  // registers are for one of them
      each_value(ahead, dtype(kResidual), sums,
                 [](float &sum, float value) FLYDSL_INLINED { sum += value; });
    }
    const u32 next = rows_on + kTogether * rows_apart;
    load(to, next < last ? next : last);
    if (has(kDScale))
      for_each(sums, [&](int, int, float &sum) FLYDSL_INLINED { sum *= d_scale; });
#pragma unroll
    for (u32 i = 0; i < kTogether; ++i) to.store_any(rows_on + i * rows_apart, sums[i]);
  }

  // The last load is for nothing: waited for here, or clang 22 waits where the next tile's main loop uses its registers.
  FLYDSL_DEVICE void end() const {
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      asm volatile("" ::"v"(ahead[i][0]), "v"(ahead[i][1]));
      asm volatile("" ::"v"(row_factor[i]), "v"(row_bias[i]));
    }
  }

  // A row after the other: the functions are much code, which is not in a cache yet.
  FLYDSL_DEVICE void activate(float (&sums)[kTogether][8]) const {
    const Activation function = activation();
    if (function == Activation::relu)
      each_row<relu>(sums);
    else if (function == Activation::gelu)
      each_row<gelu>(sums);
    else if (function == Activation::gelu_tanh)
      each_row<gelu_tanh>(sums);
    else
      each_row<silu>(sums);
  }
  template <float (*function)(float)>
  static FLYDSL_DEVICE void each_row(float (&sums)[kTogether][8]) {
#pragma unroll 1
    for (int row = 0; row < kTogether; ++row) {
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const float done = function(sums[0][j]);
#pragma unroll
        for (int i = 0; i < kTogether - 1; ++i) sums[i][j] = sums[i + 1][j];
        sums[kTogether - 1][j] = done;
      }
    }
  }
};

}  // namespace flydsl::kernels::gemm
