// Gradients of norms of rows that LDS holds, as common/norm_backward_row has them of rows that registers hold: registers are for the
// sums over rows.
#pragma once

#include "common/arguments.hip.h"
#include "common/held_row.hip.h"
#include "common/norm_backward_terms.hip.h"
#include "common/row_place.hip.h"
#include "common/row_tile.hip.h"
#include "common/team.hip.h"

namespace flydsl::kernels {

template <class Arguments, bool kCentred, u32 kThreads, class Tile, u32 kPlaces>
class NormBackwardHeldRows {
 public:
  using Element = typename Tile::Element;
  using Floats = typename Tile::Floats;
  using Held = HeldRow<kThreads, 2 * Tile::kVectors, kPlaces>;
  static constexpr u32 kOfVector = Tile::kOfVector, kVectors = Tile::kVectors;
  // Memory accesses of AMD GPUs are waited for in their order: weights would come behind the next row.
#if defined(__NVPTX__)
  static constexpr bool kKeepsWeights = false;
#else
  static constexpr bool kKeepsWeights = true;
#endif
  static_assert(Tile::kTeam == kThreads && Tile::kWide,
                "a work-group takes a row, 16 bytes at once");

  FLYDSL_DEVICE void slot(ArgumentsOf<Arguments> args, u64 number) {
    args_ = args;
    count_ = args_->row_length;
    const u64 first = number * args_->slot_rows, left = args_->rows - first;
    const u32 turns = static_cast<u32>(left < args_->slot_rows ? left : args_->slot_rows);
#pragma unroll
    for (u32 v = 0; v < kVectors; ++v) {
#pragma unroll
      for (u32 i = 0; i < kOfVector; ++i) dweight_[v][i] = dbias_[v][i] = 0;
    }
    lanes_ = lanes_where(Tile::takes_part(rank_, count_));
    // Places that all lanes before it have, too, so that each vector has a store.
    const bool whole = lanes_where(Tile::inside(rank_, kVectors - 1, 0, count_)) != 0;
    own_weights_ = args_->weight && args_->weight_dtype == static_cast<u32>(real_of<Element>());
    if constexpr (kKeepsWeights) {
      if (own_weights_) weights_.load((global_ptr<const char>)args_->weight, rank_, count_);
    }
    find_next(first);
    begin_next();
#pragma unroll 1
    for (u32 turn = 0; turn < turns; ++turn) {
      held_.template arrive<Held::kEarly ? kVectors : 1>(turn != 0 && whole);
      of_row_ = next_of_row_;
      more_ = turn + 1 < turns;
      if (more_) {
        find_next(first + turn + 1);
        if constexpr (Held::kEarly) begin_next();
      }
      compute(first + turn);
    }
    write_sums(number);
  }

 private:
  FLYDSL_DEVICE void find_next(u64 row) {
    const RowPlace place = place_of_row(row, args_->rows, args_->rows_inner);
    next_x_ = (global_ptr<const char>)args_->x + place.at(args_->x_stride_o, args_->x_stride_i);
    next_dout_ =
        (global_ptr<const char>)args_->dout + place.at(args_->dout_stride_o, args_->dout_stride_i);
    next_of_row_ = numbers_of_row<kCentred>(args_, place);
  }

  FLYDSL_DEVICE void begin_next() {
    if (!Tile::takes_part(rank_, count_)) return;
#pragma unroll
    for (u32 v = 0; v < kVectors; ++v) begin_vectors(v);
  }
  FLYDSL_DEVICE void begin_vectors(u32 v) {
    const u32 at = Tile::place_of_vector(rank_, v, count_);
    held_.begin(v, next_x_, at);
    held_.begin(kVectors + v, next_dout_, at);
  }

  // use(weights_of), weights_of(v, weights of vector v). Where they come from memory, apart for those of the row's own type, of which
  // no load is in a branch.
  template <class Use>
  FLYDSL_DEVICE void with_weights(Use use) {
    const auto any = [&](u32 v, Floats &weights) FLYDSL_INLINED {
      column_weights<Tile>(args_, 0, rank_, v, count_, weights);
    };
    if constexpr (kKeepsWeights) {
      use([&](u32 v, Floats &weights) FLYDSL_INLINED {
        if (!own_weights_) return any(v, weights);
        weights_.forget_floats(v);
        unpack_reals<Element>(weights_.vectors[v], weights);
        add_offset(weights);
      });
    } else if (own_weights_) {
      use([&](u32 v, Floats &weights) FLYDSL_INLINED {
        Tile::template operand<Element>((global_ptr<const char>)args_->weight, rank_, v, count_,
                                        weights);
        add_offset(weights);
      });
    } else {
      use(any);
    }
  }
  FLYDSL_DEVICE void add_offset(Floats &weights) {
    const float offset = args_->weight_offset;
#pragma unroll
    for (u32 i = 0; i < kOfVector; ++i) weights[i] += offset;
  }

  FLYDSL_DEVICE void compute(u64 number) {
    float sums[kCentred ? 2 : 1] = {};
    const bool takes_part = Tile::takes_part(rank_, count_);
    if (takes_part) {
      with_weights([&](auto weights_of) FLYDSL_INLINED {
#pragma unroll
        for (u32 v = 0; v < kVectors; ++v) {
          Floats weights, normed, douts;
          weights_of(v, weights);
          normalise<Tile>(held_.vector(v), of_row_, rank_, v, count_, normed);
          floats_inside<Tile>(held_.vector(kVectors + v), rank_, v, count_, douts);
#pragma unroll
          for (u32 i = 0; i < kOfVector; ++i) {
            const float of = douts[i] * weights[i];
            sums[0] = __builtin_fmaf(of, normed[i], sums[0]);
            if constexpr (kCentred) sums[1] += of;
          }
          access_fence(lanes_);
        }
      });
    }
    team_.sums(sums);
    if (!takes_part) return;
    rank_ = opaque(rank_);
    const RowPlace place = place_of_row(number, args_->rows, args_->rows_inner);
    dsum_ =
        (global_ptr<const char>)args_->dsum + place.at(args_->dsum_stride_o, args_->dsum_stride_i);
    dx_ = (global_ptr<char>)args_->dx + place.at(args_->dx_stride_o, args_->dx_stride_i);
    const float inverse = 1.0f / static_cast<float>(count_);
    means_ = {sums[0] * inverse, kCentred ? sums[kCentred] * inverse : 0.0f};
    with_weights([&](auto weights_of) FLYDSL_INLINED {
#pragma unroll
      for (u32 v = 0; v < kVectors; ++v) {
        Floats weights;
        weights_of(v, weights);
        write_vector(v, weights);
        access_fence(lanes_);
      }
    });
  }

  FLYDSL_DEVICE void write_vector(u32 v, const Floats &weights) {
    Floats normed, douts, values = {};
    u32x4 x = held_.vector(v), dout = held_.vector(kVectors + v);
    if constexpr (!Held::kEarly) {
      // They have been read before their places are written to.
      x[0] = opaque(x[0]);
      dout[0] = opaque(dout[0]);
      if (more_) begin_vectors(v);
    }
    normalise<Tile>(x, of_row_, rank_, v, count_, normed);
    floats_inside<Tile>(dout, rank_, v, count_, douts);
    if (args_->dsum) Tile::template operand<Element>(dsum_, rank_, v, count_, values);
#pragma unroll
    for (u32 i = 0; i < kOfVector; ++i) {
      // Opaque, or the two uses of with_weights() would share this after all vectors, which would stay in registers.
      dweight_[v][i] = opaque(__builtin_fmaf(douts[i], normed[i], dweight_[v][i]));
      if constexpr (kCentred) dbias_[v][i] = opaque(dbias_[v][i] + douts[i]);
      values[i] += gradient(douts[i] * weights[i], normed[i], of_row_.rstd, means_);
    }
    Tile::store(dx_, rank_, v, count_, pack_reals<Element>(values));
  }

  FLYDSL_DEVICE void write_sums(u64 slot) {
    const auto write = [&](float *to, const Floats(&sums)[kVectors]) FLYDSL_INLINED {
      if (!to) return;
#pragma unroll
      for (u32 v = 0; v < kVectors; ++v)
        store_sums<Tile>((global_ptr<float>)to + slot * count_, rank_, v, count_, sums[v]);
    };
    write(args_->dweight_sums, dweight_);
    if constexpr (kCentred) write(args_->dbias_sums, dbias_);
  }

  ArgumentsOf<Arguments> args_;
  Team<kThreads, Tile::kTeam> team_;
  Held held_;
  Floats dweight_[kVectors], dbias_[kVectors];
  global_ptr<const char> next_x_, next_dout_, dsum_;
  global_ptr<char> dx_;
  RowNumbers of_row_, next_of_row_;
  RowMeans means_;
  Tile weights_;  // of the row's own type, where kKeepsWeights
  u64 lanes_;     // that take part
  u32 rank_ = thread_index(), count_;
  bool own_weights_, more_;
};

template <bool kCentred, u32 kThreads, class Tile, u32 kPlaces, class Arguments>
FLYDSL_DEVICE void norm_backward_held_rows(const Arguments &args) {
  NormBackwardHeldRows<Arguments, kCentred, kThreads, Tile, kPlaces> rows;
  for (u64 slot = group_index(); slot < args.slots; slot += args.groups)
    rows.slot(arguments_here(args), slot);
}

}  // namespace flydsl::kernels
