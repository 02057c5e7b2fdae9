// Gradients of norms of rows that no work-group's registers hold, or of which only dweight and dbias are wanted: two kernels, each
// of which reads x and dout. The first gives sums over parts of rows, the second, which goes down columns, the gradients.
#pragma once

#include "common/arguments.hip.h"
#include "common/norm_backward_terms.hip.h"
#include "common/row_place.hip.h"
#include "common/row_tile.hip.h"
#include "common/team.hip.h"

namespace flydsl::kernels {

// Sums of a part of a row: of products of gradients and what was normalised, and of gradients.
template <bool kCentred, u32 kThreads, class Tile, class Arguments>
FLYDSL_DEVICE void norm_backward_sums(const Arguments &args) {
  using Floats = typename Tile::Floats;
  static_assert(Tile::kTeam == kThreads, "a work-group takes a part");
  Team<kThreads, Tile::kTeam> team;
  const u32 rank = thread_index();
  for (u64 item = group_index(); item < args.tiles; item += args.groups) {
    const ArgumentsOf<Arguments> here = arguments_here(args);
    const u64 row = item / here->parts;
    const u32 part = static_cast<u32>(item - row * here->parts);
    const RowPlace place = place_of_row(row, here->rows, here->rows_inner);
    const auto x = (global_ptr<const char>)here->x + place.at(here->x_stride_o, here->x_stride_i);
    const auto dout =
        (global_ptr<const char>)here->dout + place.at(here->dout_stride_o, here->dout_stride_i);
    const RowNumbers of_row = numbers_of_row<kCentred>(here, place);
    const u32 begin = part * here->part_length, left = here->row_length - begin;
    const u32 end = begin + (left < here->part_length ? left : here->part_length);
    Floats products = {}, gradients = {};
    for (u32 first = begin; first < end; first += Tile::kCapacity) {
      const u32 count = end - first;
      if (!Tile::takes_part(rank, count)) break;
      Tile x_tile, dout_tile;
      const u64 at = u64{first} * kRealBytes<typename Tile::Element>;
      x_tile.load(x + at, rank, count);
      dout_tile.load(dout + at, rank, count);
#pragma unroll
      for (u32 v = 0; v < Tile::kVectors; ++v) {
        Floats weights, normed, douts;
        column_weights<Tile>(here, first, rank, v, count, weights);
        normalise<Tile>(x_tile.vectors[v], of_row, rank, v, count, normed);
        floats_inside<Tile>(dout_tile.vectors[v], rank, v, count, douts);
#pragma unroll
        for (u32 i = 0; i < Tile::kOfVector; ++i) {
          const float of = douts[i] * weights[i];
          products[i] = __builtin_fmaf(of, normed[i], products[i]);
          if constexpr (kCentred) gradients[i] += of;
        }
      }
    }
    float sums[kCentred ? 2 : 1] = {};
#pragma unroll
    for (u32 i = 0; i < Tile::kOfVector; ++i) {
      sums[0] += products[i];
      if constexpr (kCentred) sums[1] += gradients[i];
    }
    team.sums(sums);
    if (rank != 0) continue;
    const auto to = (global_ptr<float>)here->row_sums + item * (kCentred ? 2 : 1);
    to[0] = sums[0];
    if constexpr (kCentred) to[1] = sums[1];
  }
}

// A slot's rows of as many columns as a tile has.
template <class Arguments, bool kCentred, u32 kThreads, class Tile, u32 kMostRows>
class NormBackwardColumns {
 public:
  using Element = typename Tile::Element;
  using Floats = typename Tile::Floats;
  static constexpr u32 kOfVector = Tile::kOfVector;
  static constexpr u32 kTogether = Tile::kWide ? 4 : 2;  // rows that are on their way at once
  static_assert(Tile::kTeam == kThreads && Tile::kVectors == 1, "a thread has a vector");

  FLYDSL_DEVICE void compute(ArgumentsOf<Arguments> args, u64 slot, u32 first_column) {
    args_ = args;
    first_column_ = first_column;
    first_row_ = slot * args_->slot_rows;
    const u64 left = args_->rows - first_row_;
    rows_ = static_cast<u32>(left < args_->slot_rows ? left : args_->slot_rows);
    count_ = args_->row_length - first_column;
    load_rows();
    if (Tile::takes_part(rank_, count_)) {
      Floats weights = {};
      if (args_->dx) column_weights<Tile>(args_, first_column_, rank_, 0, count_, weights);
      Floats dweight = {}, dbias = {};
#pragma unroll 1
      for (u32 row = 0; row < rows_; row += kTogether) some_rows(row, weights, dweight, dbias);
      const u64 at = slot * args_->row_length + first_column_;
      if (args_->dweight_sums)
        store_sums<Tile>((global_ptr<float>)args_->dweight_sums + at, rank_, 0, count_, dweight);
      if constexpr (kCentred)
        if (args_->dbias_sums)
          store_sums<Tile>((global_ptr<float>)args_->dbias_sums + at, rank_, 0, count_, dbias);
    }
    group_barrier();
  }

 private:
  struct OfRow {
    RowNumbers numbers;
    RowMeans means;
  };

  static FLYDSL_DEVICE OfRow &of_row(u32 row) {
    FLYDSL_SHARED static OfRow rows[kMostRows];
    return rows[row];
  }

  // What rows have one of, into LDS, from their parts in order.
  FLYDSL_DEVICE void load_rows() {
    for (u32 row = rank_; row < rows_; row += kThreads) {
      OfRow loaded = {};
      const u64 number = first_row_ + row;
      loaded.numbers =
          numbers_of_row<kCentred>(args_, place_of_row(number, args_->rows, args_->rows_inner));
      if (args_->dx) {
        constexpr u32 kOfPart = kCentred ? 2 : 1;
        const auto from =
            (global_ptr<const float>)args_->row_sums + number * args_->parts * kOfPart;
        for (u32 part = 0; part < args_->parts; ++part) {
          loaded.means.of_products += from[part * kOfPart];
          if constexpr (kCentred) loaded.means.of_gradients += from[part * kOfPart + 1];
        }
        const float inverse = 1.0f / static_cast<float>(args_->row_length);
        loaded.means.of_products *= inverse;
        loaded.means.of_gradients *= inverse;
      }
      of_row(row) = loaded;
    }
    group_barrier();
  }

  FLYDSL_DEVICE u64 at(const RowPlace &place, i64 outer, i64 inner) const {
    return place.at(outer, inner) + u64{first_column_} * kRealBytes<Element>;
  }

  FLYDSL_DEVICE void some_rows(u32 first, const Floats &weights, Floats &dweight, Floats &dbias) {
    Tile x[kTogether], dout[kTogether];
    // Rows past the slot's last one are the last one again, and are left out below.
#pragma unroll
    for (u32 r = 0; r < kTogether; ++r) {
      const RowPlace place = place_of(first + r);
      x[r].load_vector(
          (global_ptr<const char>)args_->x + at(place, args_->x_stride_o, args_->x_stride_i), rank_,
          0, count_);
      dout[r].load_vector((global_ptr<const char>)args_->dout +
                              at(place, args_->dout_stride_o, args_->dout_stride_i),
                          rank_, 0, count_);
    }
#pragma unroll
    for (u32 r = 0; r < kTogether; ++r) {
      if (first + r >= rows_) break;
      const OfRow row = of_row(first + r);
      Floats normed, douts;
      normalise<Tile>(x[r].vectors[0], row.numbers, rank_, 0, count_, normed);
      floats_inside<Tile>(dout[r].vectors[0], rank_, 0, count_, douts);
#pragma unroll
      for (u32 i = 0; i < kOfVector; ++i) {
        dweight[i] = __builtin_fmaf(douts[i], normed[i], dweight[i]);
        if constexpr (kCentred) dbias[i] += douts[i];
      }
      if (!args_->dx) continue;
      const RowPlace place = place_of(first + r);
      Floats values = {};
      if (args_->dsum) {
        Tile::template operand<Element>((global_ptr<const char>)args_->dsum +
                                            at(place, args_->dsum_stride_o, args_->dsum_stride_i),
                                        rank_, 0, count_, values);
      }
#pragma unroll
      for (u32 i = 0; i < kOfVector; ++i)
        values[i] += gradient(douts[i] * weights[i], normed[i], row.numbers.rstd, row.means);
      Tile::store((global_ptr<char>)args_->dx + at(place, args_->dx_stride_o, args_->dx_stride_i),
                  rank_, 0, count_, pack_reals<Element>(values));
    }
  }

  FLYDSL_DEVICE RowPlace place_of(u32 row) const {
    const u32 there = row < rows_ ? row : rows_ - 1;
    return place_of_row(first_row_ + there, args_->rows, args_->rows_inner);
  }

  ArgumentsOf<Arguments> args_;
  u64 first_row_;
  u32 first_column_, rows_, count_;
  u32 rank_ = thread_index();
};

template <bool kCentred, u32 kThreads, class Tile, u32 kMostRows, class Arguments>
FLYDSL_DEVICE void norm_backward_columns(const Arguments &args) {
  NormBackwardColumns<Arguments, kCentred, kThreads, Tile, kMostRows> columns;
  for (u64 item = group_index(); item < args.tiles; item += args.groups) {
    const ArgumentsOf<Arguments> here = arguments_here(args);
    // The last rows first: caches still have those that the sums were made of last.
    const u64 slot = here->slots - 1 - item / here->column_tiles;
    const u32 part = static_cast<u32>(item % here->column_tiles);
    columns.compute(here, slot, part * Tile::kCapacity);
  }
}

}  // namespace flydsl::kernels
