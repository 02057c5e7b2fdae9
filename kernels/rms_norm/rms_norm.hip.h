// Root-mean-square norm of rows. Entry: rms_norm(). The definition is include/flydsl_aot/rms_norm.h.
//
// A team of threads takes a row: it sums the squares, then writes the products. Rows that fit a tile of registers are read
// once; longer ones tile by tile, once for each pass.
#pragma once

#include "common/arguments.hip.h"
#include "common/row_tile.hip.h"
#include "common/team.hip.h"
#include "flydsl_aot_generated/rms_norm_kernarg.h"
#include "rms_norm/quantised_row.hip.h"

namespace flydsl::kernels {

using RmsNormArguments = flydsl_aot_rms_norm_kernarg;

// Where a row begins, in bytes or elements as the strides are.
struct RowPlace {
  u64 outer, inner;
  FLYDSL_DEVICE u64 at(i64 outer_stride, i64 inner_stride) const {
    return outer * static_cast<u64>(outer_stride) + inner * static_cast<u64>(inner_stride);
  }
};
FLYDSL_DEVICE RowPlace place_of_row(u64 row, u64 rows, u64 rows_inner) {
  if (rows_inner == rows) return {0, row};
  // The host counts rows of more axes in 32 bits.
  const u32 outer = static_cast<u32>(row) / static_cast<u32>(rows_inner);
  return {outer, row - outer * rows_inner};
}

template <u32 kThreads, class Tile, bool kLooped, bool kQuantised>
class RmsNormRow {
 public:
  using Element = typename Tile::Element;
  using Floats = typename Tile::Floats;
  static constexpr u32 kOfVector = Tile::kOfVector;
  static constexpr Real kType = real_of<Element>();
  // Vectors of other operands that are on their way at once, or twice the row would be in registers.
  static constexpr u32 kMostOfPart = kOfVector == 4 ? 4 : 2;
  static constexpr u32 kPart = Tile::kVectors <= kMostOfPart       ? Tile::kVectors
                               : Tile::kVectors % kMostOfPart == 0 ? kMostOfPart
                                                                   : 1;
  static_assert(Tile::kVectors % kPart == 0, "parts are whole");

  FLYDSL_DEVICE RmsNormRow() : rank_(thread_index() % Tile::kTeam) {}

  FLYDSL_DEVICE void compute(ArgumentsOf<RmsNormArguments> args, u64 row, bool real) {
    args_ = args;
    const RowPlace place = place_of_row(row, args_->rows, args_->rows_inner);
    x_ = (global_ptr<const char>)args_->x + place.at(args_->x_stride_o, args_->x_stride_i);
    residual_ = (global_ptr<const char>)args_->residual +
                place.at(args_->residual_stride_o, args_->residual_stride_i);
    sum_ = (global_ptr<char>)args_->sum + place.at(args_->sum_stride_o, args_->sum_stride_i);
    out_ = (global_ptr<char>)args_->out + place.at(args_->out_stride_o, args_->out_stride_i);
    length_ = real ? args_->row_length : 0;

    // Weights of the row's own type are on their way before they are needed.
    has_weights_ = !kLooped && args_->weight && args_->weight_dtype == static_cast<u32>(kType);
    float squares = 0;
    for_tiles([&](u32 first, u32 count) {
      fetch(first, count, true);
      if constexpr (!kLooped) {
        if (has_weights_) weights_.load((global_ptr<const char>)args_->weight, rank_, count);
      }
      Floats sums = {};
#pragma unroll
      for (u32 v = 0; v < Tile::kVectors; ++v) {
        Floats x;
        tile_.floats(rank_, v, count, x);
#pragma unroll
        for (u32 i = 0; i < kOfVector; ++i) sums[i] = __builtin_fmaf(x[i], x[i], sums[i]);
        if (v % kPart == kPart - 1) schedule_fence();
      }
#pragma unroll
      for (u32 i = 0; i < kOfVector; ++i) squares += sums[i];
    });
    squares = team_.sum(squares);
    rank_ = opaque(
        rank_);  // what is inside the row is found out anew, not kept in registers: so below, too
#pragma unroll
    for (u32 v = 0; v < Tile::kVectors; ++v) tile_.forget_floats(v);
    rstd_ = 1.0f / __builtin_sqrtf(squares / static_cast<float>(args_->row_length) + args_->eps);
    if (args_->rstd && real && rank_ == 0) {
      *((global_ptr<float>)args_->rstd + place.at(args_->rstd_stride_o, args_->rstd_stride_i)) =
          rstd_;
    }
    if constexpr (kQuantised)
      write_quantised(place);
    else
      write();
  }

 private:
  // do_tile(first element, elements from there on), for the tiles of the row; the work-group's threads do as many.
  template <class DoTile>
  FLYDSL_DEVICE void for_tiles(DoTile do_tile) {
    if constexpr (kLooped) {
      for (u32 first = 0; first < length_; first += Tile::kCapacity)
        do_tile(first, length_ - first);
    } else {
      do_tile(0, length_);
    }
  }

  template <class Byte>
  static FLYDSL_DEVICE global_ptr<Byte> at(global_ptr<Byte> row, u32 first) {
    return row + u64{first} * kRealBytes<Element>;
  }

  // What is normalised. `first_time`: the sum with the residual is written, too; later it may have taken the place of
  // what it was made of.
  FLYDSL_DEVICE void fetch(u32 first, u32 count, bool first_time) {
    if (!args_->residual) {
      tile_.load(at(x_, first), rank_, count);
      return;
    }
    if (!first_time && args_->sum) {
      tile_.load(at((global_ptr<const char>)sum_, first), rank_, count);
      return;
    }
    if (!Tile::takes_part(rank_, count)) return tile_.clear();
#pragma unroll
    for (u32 part = 0; part < Tile::kVectors; part += kPart) {
      Floats others[kPart];
#pragma unroll
      for (u32 v = 0; v < kPart; ++v) {
        tile_.load_vector(at(x_, first), rank_, part + v, count);
        Tile::template operand<Element>(at(residual_, first), rank_, part + v, count, others[v]);
      }
#pragma unroll
      for (u32 v = 0; v < kPart; ++v) {
        Floats x;
        unpack_reals<Element>(tile_.vectors[part + v], x);
#pragma unroll
        for (u32 i = 0; i < kOfVector; ++i) x[i] += others[v][i];
        tile_.set(part + v, x);
        if (args_->sum)
          Tile::store(at(sum_, first), rank_, part + v, count, tile_.vectors[part + v]);
      }
      compiler_fence();
    }
  }

  // use(v, vector v of the result in fp32) for the vectors of the tile.
  template <class Use>
  FLYDSL_DEVICE void results(u32 first, u32 count, Use use) {
    const auto with_weights = [&](auto weights_of) FLYDSL_INLINED {
#pragma unroll
      for (u32 v = 0; v < Tile::kVectors; ++v) {
        Floats values, weights;
        weights_of(v, weights);
        tile_.floats(rank_, v, count, values);
#pragma unroll
        for (u32 i = 0; i < kOfVector; ++i) values[i] = values[i] * rstd_ * weights[i];
        use(v, values);
        if (v % kPart == kPart - 1) compiler_fence();
      }
    };
    if (!args_->weight) {
      with_weights([](u32, Floats &weights) FLYDSL_INLINED {
#pragma unroll
        for (u32 i = 0; i < kOfVector; ++i) weights[i] = 1.0f;
      });
      return;
    }
    if (!Tile::takes_part(rank_, count)) return;
    if constexpr (!kLooped) {
      if (has_weights_) {
        const float offset = args_->weight_offset;
        with_weights([&](u32 v, Floats &weights) FLYDSL_INLINED {
          unpack_reals<Element>(weights_.vectors[v], weights);
#pragma unroll
          for (u32 i = 0; i < kOfVector; ++i) weights[i] += offset;
        });
        return;
      }
    }
    const auto weight = (global_ptr<const char>)args_->weight;
    const float offset = args_->weight_offset;
    with_real(static_cast<Real>(args_->weight_dtype), [&](auto type) FLYDSL_INLINED {
      with_weights([&](u32 v, Floats &weights) FLYDSL_INLINED {
        Tile::template operand<typename decltype(type)::type>(
            weight + u64{first} * kRealBytes<typename decltype(type)::type>, rank_, v, count,
            weights);
#pragma unroll
        for (u32 i = 0; i < kOfVector; ++i) weights[i] += offset;
      });
    });
  }

  FLYDSL_DEVICE void write() {
    for_tiles([&](u32 first, u32 count) FLYDSL_INLINED {
      if constexpr (kLooped) fetch(first, count, false);
      results(first, count, [&](u32 v, const Floats &values) FLYDSL_INLINED {
        tile_.set(v, values);
        tile_.forget_floats(
            v);  // or the branches of results() would share their rounding, after all of them
      });
      rank_ = opaque(rank_);
#pragma unroll
      for (u32 v = 0; v < Tile::kVectors; ++v)
        Tile::store(at(out_, first), rank_, v, count, tile_.vectors[v]);
    });
  }

  FLYDSL_DEVICE void write_quantised(const RowPlace &place) {
    const Byte format = static_cast<Byte>(args_->out_dtype);
    const bool blocks = args_->block_scales != 0;
    const u64 scales = place.at(args_->out_scale_stride_o, args_->out_scale_stride_i);
    Floats all[Tile::kVectors] = {};  // of a thread without elements nothing else is made
    const auto compute = [&](u32 first, u32 count) FLYDSL_INLINED {
      if constexpr (kLooped) fetch(first, count, false);
      results(first, count, [&](u32 v, const Floats &values) FLYDSL_INLINED {
#pragma unroll
        for (u32 i = 0; i < kOfVector; ++i) all[v][i] = values[i];
      });
    };
    if constexpr (!kLooped) compute(0, length_);
    Scale scale;
    if (!blocks) {
      u32 largest = 0;
      for_tiles([&](u32 first, u32 count) FLYDSL_INLINED {
        if constexpr (kLooped) compute(first, count);
#pragma unroll
        for (u32 v = 0; v < Tile::kVectors; ++v)
          largest = largest_magnitude<Tile>(largest, rank_, v, count, all[v]);
      });
      scale = token_scale(team_.largest(largest), format);
      if (length_ != 0 && rank_ == 0) *((global_ptr<float>)args_->out_scale + scales) = scale.value;
    }
    for_tiles([&](u32 first, u32 count) FLYDSL_INLINED {
      if constexpr (kLooped) compute(first, count);
#pragma unroll
      for (u32 v = 0; v < Tile::kVectors; ++v) {
        if (blocks) {
          store_block_scaled<Tile>((global_ptr<u8>)args_->out_scale + scales,
                                   args_->out_scale_stride_g, out_ + first, rank_, v, first, count,
                                   all[v], format);
        } else {
          store_scaled<Tile>(out_ + first, rank_, v, count, all[v], scale, format);
        }
      }
    });
  }

  ArgumentsOf<RmsNormArguments> args_;
  Team<kThreads, Tile::kTeam> team_;
  Tile tile_, weights_;
  bool has_weights_;
  global_ptr<const char> x_, residual_;
  global_ptr<char> sum_, out_;
  u32 rank_, length_;
  float rstd_;
};

// `args.tiles` times as many rows as the work-group has teams, shared by `args.groups` work-groups.
template <u32 kThreads, class Tile, bool kLooped, bool kQuantised>
FLYDSL_DEVICE void rms_norm(const RmsNormArguments &args) {
  constexpr u32 kTeams = kThreads / Tile::kTeam;
  static_assert(!kLooped || kTeams == 1, "all threads of a work-group go round as often");
  RmsNormRow<kThreads, Tile, kLooped, kQuantised> row;
  for (u64 tile = group_index(); tile < args.tiles; tile += args.groups) {
    const ArgumentsOf<RmsNormArguments> here = arguments_here(args);
    const u64 number = tile * kTeams + thread_index() / Tile::kTeam;
    const bool real = number < here->rows;
    // A team without a row reads the last one, and writes nothing.
    row.compute(here, real ? number : here->rows - 1, real);
  }
}

}  // namespace flydsl::kernels
