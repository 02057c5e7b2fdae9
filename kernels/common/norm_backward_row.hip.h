// Gradients of norms of rows that registers hold: of rms_norm, and of layer_norm, which is `kCentred`. The definitions are
// include/flydsl_aot/rms_norm_backward.h and layer_norm_backward.h.
//
// A work-group goes over the rows of a slot, a row a team and turn: it reads x and dout once, writes dx, and keeps sums over rows
// for dweight and dbias, which go to the slot's place in the workspace; common/norm_backward_totals adds those. `Arguments` is the
// operator's, with fields of the same names.
#pragma once

#include "common/arguments.hip.h"
#include "common/norm_backward_terms.hip.h"
#include "common/row_place.hip.h"
#include "common/row_tile.hip.h"
#include "common/team.hip.h"

namespace flydsl::kernels {

template <class Arguments, bool kCentred, u32 kThreads, class Tile>
class NormBackwardRows {
 public:
  using Element = typename Tile::Element;
  using Floats = typename Tile::Floats;
  static constexpr u32 kOfVector = Tile::kOfVector, kVectors = Tile::kVectors;
  static constexpr u32 kTeams = kThreads / Tile::kTeam;
  // Where registers are fewer than the row takes as floats beside the sums and the next row.
#if defined(__NVPTX__)
  static constexpr bool kUnpacksTwice = sizeof(typename Element::scalar) < 4 && kThreads >= 512;
#else
  static constexpr bool kUnpacksTwice = false;
#endif

  FLYDSL_DEVICE NormBackwardRows()
      : rank_(thread_index() % Tile::kTeam), team_number_(thread_index() / Tile::kTeam) {}

  FLYDSL_DEVICE void slot(ArgumentsOf<Arguments> args, u64 number) {
    args_ = args;
    const u64 first = number * args_->slot_rows * kTeams;
    const u64 turns_left = (args_->rows - first + kTeams - 1) / kTeams;
    const u32 turns =
        static_cast<u32>(turns_left < args_->slot_rows ? turns_left : args_->slot_rows);
    load_weights();
#pragma unroll
    for (u32 v = 0; v < kVectors; ++v) {
#pragma unroll
      for (u32 i = 0; i < kOfVector; ++i) dweight_[v][i] = dbias_[v][i] = 0;
    }
    u64 row = first + team_number_;
    fetch(row);
#pragma unroll 1
    for (u32 turn = 0; turn < turns; ++turn, row += kTeams) {
      Fetched now = next_;
      // The next row is on its way while this one is summed.
      if (turn + 1 < turns) fetch(row + kTeams);
      compute(now, row);
    }
    write_sums(number);
  }

 private:
  struct Fetched {
    Tile x, dout;
    RowNumbers of_row;
    u32 count;  // elements; 0 of a row that is not there
  };

  FLYDSL_DEVICE void load_weights() {
    const auto weight = (global_ptr<const char>)args_->weight;
    const u32 count = args_->row_length;
#pragma unroll
    for (u32 v = 0; v < kVectors; ++v) {
#pragma unroll
      for (u32 i = 0; i < kOfVector; ++i) weights_[v][i] = 1;
    }
    if (!weight || !Tile::takes_part(rank_, count)) return;
    const float offset = args_->weight_offset;
    with_real(static_cast<Real>(args_->weight_dtype), [&](auto type) FLYDSL_INLINED {
#pragma unroll
      for (u32 v = 0; v < kVectors; ++v) {
        Tile::template operand<typename decltype(type)::type>(weight, rank_, v, count, weights_[v]);
#pragma unroll
        for (u32 i = 0; i < kOfVector; ++i) weights_[v][i] += offset;
      }
    });
  }

  FLYDSL_DEVICE void fetch(u64 row) {
    const bool real = row < args_->rows;
    next_.count = real ? args_->row_length : 0;
    next_.of_row = {};
    const RowPlace place =
        place_of_row(real ? row : args_->rows - 1, args_->rows, args_->rows_inner);
    next_.x.load((global_ptr<const char>)args_->x + place.at(args_->x_stride_o, args_->x_stride_i),
                 rank_, next_.count);
    next_.dout.load(
        (global_ptr<const char>)args_->dout + place.at(args_->dout_stride_o, args_->dout_stride_i),
        rank_, next_.count);
    if (real) next_.of_row = numbers_of_row<kCentred>(args_, place);
  }

  FLYDSL_DEVICE void compute(Fetched &row, u64 number) {
    float sums[kCentred ? 2 : 1] = {};
    Floats normed[kVectors], douts[kVectors];
    const auto unpack = [&](u32 v) {
      normalise<Tile>(row.x.vectors[v], row.of_row, rank_, v, row.count, normed[v]);
      floats_inside<Tile>(row.dout.vectors[v], rank_, v, row.count, douts[v]);
    };
#pragma unroll
    for (u32 v = 0; v < kVectors; ++v) {
      unpack(v);
#pragma unroll
      for (u32 i = 0; i < kOfVector; ++i) {
        const float of = douts[v][i] * weights_[v][i];
        sums[0] = __builtin_fmaf(of, normed[v][i], sums[0]);
        if constexpr (kCentred) {
          sums[1] += of;
          dbias_[v][i] += douts[v][i];
        }
        dweight_[v][i] = __builtin_fmaf(douts[v][i], normed[v][i], dweight_[v][i]);
      }
    }
    team_.sums(sums);
    if (row.count == 0 || !Tile::takes_part(rank_, row.count)) return;
    const RowPlace place = place_of_row(number, args_->rows, args_->rows_inner);
    const auto dsum =
        (global_ptr<const char>)args_->dsum + place.at(args_->dsum_stride_o, args_->dsum_stride_i);
    const auto dx = (global_ptr<char>)args_->dx + place.at(args_->dx_stride_o, args_->dx_stride_i);
    const float inverse = 1.0f / static_cast<float>(args_->row_length);
    const RowMeans means = {sums[0] * inverse, kCentred ? sums[kCentred] * inverse : 0.0f};
#pragma unroll
    for (u32 v = 0; v < kVectors; ++v) {
      if constexpr (kUnpacksTwice) {
        row.x.forget_floats(v);
        row.dout.forget_floats(v);
        unpack(v);
      }
      Floats values = {};
      if (args_->dsum) Tile::template operand<Element>(dsum, rank_, v, row.count, values);
#pragma unroll
      for (u32 i = 0; i < kOfVector; ++i)
        values[i] += gradient(douts[v][i] * weights_[v][i], normed[v][i], row.of_row.rstd, means);
      Tile::store(dx, rank_, v, row.count, pack_reals<Element>(values));
    }
  }

  FLYDSL_DEVICE void write_sums(u64 slot) {
    const auto at = [&](float *to)
                        FLYDSL_INLINED { return (global_ptr<float>)to + slot * args_->row_length; };
    if (args_->dweight_sums) write_sums(dweight_, at(args_->dweight_sums));
    if constexpr (kCentred)
      if (args_->dbias_sums) write_sums(dbias_, at(args_->dbias_sums));
  }

  FLYDSL_DEVICE void write_sums(const Floats (&sums)[kVectors], global_ptr<float> to) {
    const u32 count = args_->row_length;
    if constexpr (kTeams == 1) {
#pragma unroll
      for (u32 v = 0; v < kVectors; ++v) store_sums<Tile>(to, rank_, v, count, sums[v]);
    } else {
      // Teams one after another.
      FLYDSL_SHARED static float of_teams[kTeams][Tile::kCapacity];
#pragma unroll
      for (u32 v = 0; v < kVectors; ++v) {
#pragma unroll
        for (u32 i = 0; i < kOfVector; ++i)
          of_teams[team_number_][Tile::index(rank_, v, i)] = sums[v][i];
      }
      group_barrier();
      for (u32 column = thread_index(); column < count; column += kThreads) {
        float sum = of_teams[0][column];
#pragma unroll
        for (u32 team = 1; team < kTeams; ++team) sum += of_teams[team][column];
        to[column] = sum;
      }
      group_barrier();
    }
  }

  ArgumentsOf<Arguments> args_;
  Team<kThreads, Tile::kTeam> team_;
  Fetched next_;
  Floats weights_[kVectors], dweight_[kVectors], dbias_[kVectors];
  u32 rank_, team_number_;
};

template <bool kCentred, u32 kThreads, class Tile, class Arguments>
FLYDSL_DEVICE void norm_backward_rows(const Arguments &args) {
  NormBackwardRows<Arguments, kCentred, kThreads, Tile> rows;
  for (u64 slot = group_index(); slot < args.slots; slot += args.groups)
    rows.slot(arguments_here(args), slot);
}

}  // namespace flydsl::kernels
