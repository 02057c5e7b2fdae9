// Norms of rows: rms_norm, and layer_norm, which is `kCentred`. The definitions are include/flydsl_aot/rms_norm.h and layer_norm.h.
//
// A team of threads takes a row: it sums the squares (centred: finds the mean first), then writes the products. Rows that fit a
// tile of registers, or LDS, are read once; longer ones tile by tile, once for each pass. `Arguments` is the operator's, with fields of
// the same names.
#pragma once

#include "common/arguments.hip.h"
#include "common/held_row.hip.h"
#include "common/norm_room.hip.h"
#include "common/quantised_row.hip.h"
#include "common/row_place.hip.h"
#include "common/row_tile.hip.h"
#include "common/team.hip.h"

namespace flydsl::kernels {

template <class Arguments, bool kCentred, u32 kThreads, class Tile, RowIn kIn, bool kQuantised>
class NormRow {
 public:
  using Element = typename Tile::Element;
  using Floats = typename Tile::Floats;
  static constexpr bool kLooped = kIn == RowIn::memory, kHeld = kIn == RowIn::lds;
  static constexpr u32 kOfVector = Tile::kOfVector;
  static constexpr Real kType = real_of<Element>();
  // Vectors of other operands that are on their way at once, or twice the row would be in registers.
  static constexpr u32 kMostOfPart = kOfVector == 4 ? 4 : 2;
  static constexpr u32 kPart = Tile::kVectors <= kMostOfPart       ? Tile::kVectors
                               : Tile::kVectors % kMostOfPart == 0 ? kMostOfPart
                                                                   : 1;
  static_assert(Tile::kVectors % kPart == 0, "parts are whole");

  FLYDSL_DEVICE NormRow() : rank_(thread_index() % Tile::kTeam) {}

  using Room = NormRoom<kCentred, kThreads, Tile, kIn, kQuantised>;
  static constexpr bool kKeeps = Room::kKeeps, kInRegisters = Room::kInRegisters;
  static constexpr u32 kKept = Room::kKept, kInAll = Room::kInAll;
  static_assert(!kHeld || (Tile::kWide && Tile::kTeam == kThreads && !kQuantised),
                "a work-group takes a row, 16 bytes at once");

  FLYDSL_DEVICE void begin(ArgumentsOf<Arguments> args) {
    has_weights_ = !kLooped && args->weight && args->weight_dtype == static_cast<u32>(kType);
    if constexpr (kKeeps || kHeld) {
      if (has_weights_) keep(args->weight, args->row_length, 0, weights_);
      if constexpr (kCentred) {
        has_biases_ = args->bias && args->bias_dtype == static_cast<u32>(kType);
        if (has_biases_) keep(args->bias, args->row_length, 1, biases_);
      }
      compiler_fence();
    }
    if constexpr (kHeld) {
      args_ = args;
      length_ = args->row_length;
      lanes_ = lanes_where(Tile::takes_part(rank_, length_));
      // Of the wave: each vector has a store.
      whole_ = lanes_where(Tile::inside(rank_, Tile::kVectors - 1, 0, length_)) != 0;
      find_next(group_index());
      if (Tile::takes_part(rank_, length_)) {
#pragma unroll
        for (u32 v = 0; v < Tile::kVectors; ++v) begin_vector(v);
      }
    }
  }

  // Row `next` follows, if `more`.
  FLYDSL_DEVICE void compute(ArgumentsOf<Arguments> args, u64 row, bool real, u64 next, bool more) {
    args_ = args;
    more_ = more;
    next_row_ = next;
    const RowPlace place = place_of_row(row, args_->rows, args_->rows_inner);
    x_ = (global_ptr<const char>)args_->x + place.at(args_->x_stride_o, args_->x_stride_i);
    residual_ = (global_ptr<const char>)args_->residual +
                place.at(args_->residual_stride_o, args_->residual_stride_i);
    sum_ = (global_ptr<char>)args_->sum + place.at(args_->sum_stride_o, args_->sum_stride_i);
    out_ = (global_ptr<char>)args_->out + place.at(args_->out_stride_o, args_->out_stride_i);
    length_ = real ? args_->row_length : 0;

    if constexpr (kHeld) {
      held_.template arrive<1>(stored_ && whole_);
      stored_ = true;
      if (more_) find_next(next);
    }
    const float variance = kCentred ? centre() : mean_square();
    rstd_ = 1.0f / __builtin_sqrtf(variance + args_->eps);
    if (args_->rstd && real && rank_ == 0) {
      *((global_ptr<float>)args_->rstd + place.at(args_->rstd_stride_o, args_->rstd_stride_i)) =
          rstd_;
    }
    if constexpr (kCentred) {
      if (args_->mean && real && rank_ == 0) {
        *((global_ptr<float>)args_->mean + place.at(args_->mean_stride_o, args_->mean_stride_i)) =
            shift_ + correction_;
      }
    }
    if constexpr (kQuantised)
      write_quantised(place);
    else
      write();
  }

 private:
  FLYDSL_DEVICE void keep(const void *from, u32 count, u32 which, Tile &tile) {
    tile.load((global_ptr<const char>)from, rank_, count);
    if constexpr (kKept > 0) {
#pragma unroll
      for (u32 v = 0; v < kKept; ++v) *kept_place(which, v) = tile.vectors[v];
    }
  }
  static FLYDSL_DEVICE lds_ptr<u32x4> kept_place(u32 which, u32 v) {
    return held_vectors<kThreads, kInAll>() +
           ((kHeld ? Tile::kVectors : 0) + which * kKept + v) * kThreads + thread_index();
  }
  // Vector v of weights (`which` is 0) or biases of the row's own type; `tile` has them where they are in registers.
  FLYDSL_DEVICE u32x4 own_operand(u32 which, u32 v, const void *from, Tile &tile) const {
    if constexpr (kKept > 0) {
      if (v < kKept) return *kept_place(which, v);
    }
    if constexpr (kHeld && !kInRegisters)
      tile.load_vector((global_ptr<const char>)from, rank_, v, length_);
    if constexpr (kInRegisters) tile.forget_floats(v);
    return tile.vectors[v];
  }
  FLYDSL_DEVICE u32x4 own_weights(u32 v) {
    return own_operand(0, v, args_->weight, weights_);
  }

  FLYDSL_DEVICE void find_next(u64 row) {
    const RowPlace place = place_of_row(row, args_->rows, args_->rows_inner);
    next_x_ = (global_ptr<const char>)args_->x + place.at(args_->x_stride_o, args_->x_stride_i);
  }
  FLYDSL_DEVICE void begin_vector(u32 v) {
    held_.begin(v, next_x_, Tile::place_of_vector(rank_, v, length_));
  }
  // Vector v of the row, or its tile.
  FLYDSL_DEVICE u32x4 vector(u32 v) const {
    if constexpr (kHeld)
      return held_.vector(v);
    else
      return tile_.vectors[v];
  }
  FLYDSL_DEVICE void set_vector(u32 v, u32x4 vector) {
    if constexpr (kHeld)
      held_.set(v, vector);
    else
      tile_.vectors[v] = vector;
  }
  FLYDSL_DEVICE void floats(u32 v, u32 count, Floats &values) const {
    unpack_reals<Element>(vector(v), values);
#pragma unroll
    for (u32 i = 0; i < kOfVector; ++i)
      values[i] = Tile::inside(rank_, v, i, count) ? values[i] : 0.0f;
  }

  // do_tile(first element, elements from there on), for the tiles of the row; the work-group's threads do as many.
  template <class DoTile>
  FLYDSL_DEVICE void for_tiles(DoTile do_tile) {
    if constexpr (kLooped) {
      for (u32 first = 0; first < length_; first += Tile::kCapacity)
        do_tile(first, length_ - first);
    } else {
      if (kHeld && !Tile::takes_part(rank_, length_)) return;
      do_tile(0, length_);
    }
  }

  // The row, or its tile, from memory for the first time.
  FLYDSL_DEVICE void begin_tile(u32 first, u32 count) {
    if constexpr (kFetchesNext) {
      if (fetched_) {
        if (!Tile::takes_part(rank_, count)) return tile_.clear();
#pragma unroll
        for (u32 v = 0; v < Tile::kVectors; ++v) {
          if (v < kFetched)
            tile_.vectors[v] = next_[v];
          else
            tile_.load_vector(x_, rank_, v, count);
        }
        return;
      }
    }
    fetch(first, count, true);
    if constexpr (kIn == RowIn::registers && !kKeeps) {
      if (has_weights_) weights_.load((global_ptr<const char>)args_->weight, rank_, count);
    }
  }

  // The next row is on its way once this one is there: of a work-group that has a multiprocessor or compute unit for itself.
  static constexpr bool kFetchesNext = kKeeps && kThreads == 1024 && Tile::kWide;
#if defined(__NVPTX__)
  // Of 64 registers; one that is stored elsewhere would be waited for.
  static constexpr u32 kFetched = kCentred ? Tile::kVectors / 2 : Tile::kVectors;
#else
  static constexpr u32 kFetched = Tile::kVectors;
#endif
  FLYDSL_DEVICE void fetch_next() {
    if constexpr (kFetchesNext) {
      compiler_fence();
      fetched_ = more_ && !args_->residual;
      if (!fetched_) return;
      const u64 row = next_row_ < args_->rows ? next_row_ : args_->rows - 1;
      const RowPlace place = place_of_row(row, args_->rows, args_->rows_inner);
      const auto from =
          (global_ptr<const char>)args_->x + place.at(args_->x_stride_o, args_->x_stride_i);
      const u32 count = args_->row_length;
      if (!Tile::takes_part(rank_, count)) return;
#pragma unroll
      for (u32 v = 0; v < kFetched; ++v)
        next_[v] = *(global_ptr<const u32x4>)(from + Tile::place_of_vector(rank_, v, count));
    }
  }

  // Between passes: what is inside the row is found out anew, not kept in registers, nor are elements as floats.
  FLYDSL_DEVICE void end_pass() {
    rank_ = opaque(rank_);
    if constexpr (!kHeld) {
#pragma unroll
      for (u32 v = 0; v < Tile::kVectors; ++v) tile_.forget_floats(v);
    }
  }

  FLYDSL_DEVICE float mean_square() {
    float squares = 0;
    for_tiles([&](u32 first, u32 count) {
      begin_tile(first, count);
      Floats sums = {};
#pragma unroll
      for (u32 v = 0; v < Tile::kVectors; ++v) {
        Floats x;
        floats(v, count, x);
#pragma unroll
        for (u32 i = 0; i < kOfVector; ++i) sums[i] = __builtin_fmaf(x[i], x[i], sums[i]);
        if (v % kPart == kPart - 1) schedule_fence();
      }
#pragma unroll
      for (u32 i = 0; i < kOfVector; ++i) squares += sums[i];
    });
    fetch_next();
    squares = team_.sum(squares);
    end_pass();
    return squares / static_cast<float>(args_->row_length);
  }

  // The corrected two-pass algorithm (Chan, Golub and LeVeque 1983, "Algorithms for Computing the Sample Variance"), which gives
  // the variance, and the mean as shift_ + correction_: elements less both are right where the spread is far below the mean.
  // Terms of the mean are divided before they are added, so that no sum of finite numbers overflows; what that loses is in the
  // correction. Where the correction is not small against the spread (spreads of few units in the mean's last place) it becomes
  // part of the shift in a second turn, after which elements that are all equal have deviations of exactly 0.
  FLYDSL_DEVICE float centre() {
    const float inverse = 1.0f / static_cast<float>(args_->row_length);
    float mean = 0;
    for_tiles([&](u32 first, u32 count) {
      begin_tile(first, count);
      Floats sums = {};
#pragma unroll
      for (u32 v = 0; v < Tile::kVectors; ++v) {
        Floats x;
        floats(v, count, x);
#pragma unroll
        for (u32 i = 0; i < kOfVector; ++i) sums[i] = __builtin_fmaf(x[i], inverse, sums[i]);
        if (v % kPart == kPart - 1) schedule_fence();
      }
#pragma unroll
      for (u32 i = 0; i < kOfVector; ++i) mean += sums[i];
    });
    fetch_next();
    shift_ = team_.sum(mean);
    float mean_square;
#pragma unroll 1
    for (u32 turn = 0;; ++turn) {
      end_pass();
      mean_square = deviations(inverse);
      // Squares of what the mean is off by may overflow alone.
      const bool small =
          mean_square < __builtin_inff() && correction_ * correction_ <= 0.25f * mean_square;
      if (turn == 1 || nobody_turns_again(small)) break;
      // A team that turns again only because another does keeps its shift, and so its result.
      shift_ += small ? 0.0f : correction_;
    }
    end_pass();
    const float variance = __builtin_fmaf(-correction_, correction_, mean_square);
    return variance < 0 ? 0.0f : variance;
  }

  // Teams that share a barrier, or a wave, make the same turns.
  static FLYDSL_DEVICE bool nobody_turns_again(bool small) {
    if constexpr (kThreads == Tile::kTeam) return small;
    if constexpr (Tile::kTeam > kWaveSize) return false;
    return lanes_where(!small) == 0;
  }

  // correction_, the mean deviation from shift_, and the mean square of it.
  FLYDSL_DEVICE float deviations(float inverse) {
    float totals[2] = {};  // of deviations and of their squares
    for_tiles([&](u32 first, u32 count) {
      if constexpr (kLooped) fetch(first, count, false);
      Floats sums = {}, square_sums = {};
#pragma unroll
      for (u32 v = 0; v < Tile::kVectors; ++v) {
        Floats x;
        unpack_reals<Element>(vector(v), x);
#pragma unroll
        for (u32 i = 0; i < kOfVector; ++i) {
          const float of = Tile::inside(rank_, v, i, count) ? x[i] - shift_ : 0.0f;
          sums[i] = __builtin_fmaf(of, inverse, sums[i]);
          square_sums[i] = __builtin_fmaf(of, of, square_sums[i]);
        }
        if (v % kPart == kPart - 1) schedule_fence();
      }
#pragma unroll
      for (u32 i = 0; i < kOfVector; ++i) {
        totals[0] += sums[i];
        totals[1] += square_sums[i];
      }
    });
    team_.sums(totals);
    correction_ = totals[0];
    return totals[1] * inverse;
  }

  template <class Byte>
  static FLYDSL_DEVICE global_ptr<Byte> at(global_ptr<Byte> row, u32 first) {
    return row + u64{first} * kRealBytes<Element>;
  }

  // What is normalised. `first_time`: the sum with the residual is written, too; later it may have taken the place of
  // what it was made of.
  FLYDSL_DEVICE void fetch(u32 first, u32 count, bool first_time) {
    if (!args_->residual) {
      if constexpr (!kHeld) tile_.load(at(x_, first), rank_, count);
      return;
    }
    if (kLooped && !first_time && args_->sum) {
      tile_.load(at((global_ptr<const char>)sum_, first), rank_, count);
      return;
    }
    if (!Tile::takes_part(rank_, count)) return tile_.clear();
#pragma unroll
    for (u32 part = 0; part < Tile::kVectors; part += kPart) {
      Floats others[kPart];
#pragma unroll
      for (u32 v = 0; v < kPart; ++v) {
        if constexpr (!kHeld) tile_.load_vector(at(x_, first), rank_, part + v, count);
        Tile::template operand<Element>(at(residual_, first), rank_, part + v, count, others[v]);
      }
#pragma unroll
      for (u32 v = 0; v < kPart; ++v) {
        Floats x;
        unpack_reals<Element>(vector(part + v), x);
#pragma unroll
        for (u32 i = 0; i < kOfVector; ++i) x[i] += others[v][i];
        const u32x4 sum = pack_reals<Element>(x);
        set_vector(part + v, sum);
        if (args_->sum) Tile::store(at(sum_, first), rank_, part + v, count, sum);
      }
      compiler_fence();
    }
  }

  // use(v, vector v of the result in fp32) for the vectors of the tile.
  template <class Use>
  FLYDSL_DEVICE void results(u32 first, u32 count, Use use) {
    if constexpr (kCentred)
      centred_results(first, count, use);
    else
      scaled_results(first, count, use);
  }

  template <class Use>
  FLYDSL_DEVICE void scaled_results(u32 first, u32 count, Use use) {
    const auto with_weights = [&](auto weights_of) FLYDSL_INLINED {
#pragma unroll
      for (u32 v = 0; v < Tile::kVectors; ++v) {
        Floats values, weights;
        weights_of(v, weights);
        floats(v, count, values);
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
          unpack_reals<Element>(own_weights(v), weights);
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

  // Weights and biases are any types; the products are in no branch of those.
  template <class Use>
  FLYDSL_DEVICE void centred_results(u32 first, u32 count, Use use) {
    if (!Tile::takes_part(rank_, count)) return;
    const float offset = args_->weight ? args_->weight_offset : 0.0f;
#pragma unroll
    for (u32 part = 0; part < Tile::kVectors; part += kPart) {
      Floats weights[kPart], biases[kPart];
      if (!has_weights_) {
        column_vectors((global_ptr<const char>)args_->weight, args_->weight_dtype, 1.0f, first,
                       part, count, weights);
      } else if constexpr (!kLooped) {
#pragma unroll
        for (u32 v = 0; v < kPart; ++v) unpack_reals<Element>(own_weights(part + v), weights[v]);
      }
      if (!has_biases_) {
        column_vectors((global_ptr<const char>)args_->bias, args_->bias_dtype, 0.0f, first, part,
                       count, biases);
      } else if constexpr (kKeeps || kHeld) {
#pragma unroll
        for (u32 v = 0; v < kPart; ++v)
          unpack_reals<Element>(own_operand(1, part + v, args_->bias, biases_), biases[v]);
      }
#pragma unroll
      for (u32 v = 0; v < kPart; ++v) {
        Floats values;  // past the end they are not stored
        unpack_reals<Element>(vector(part + v), values);
#pragma unroll
        for (u32 i = 0; i < kOfVector; ++i) {
          values[i] = __builtin_fmaf((values[i] - shift_ - correction_) * rstd_,
                                     weights[v][i] + offset, biases[v][i]);
        }
        use(part + v, values);
      }
      compiler_fence();
    }
  }

  // Vectors from `part` on of an operand with a place for each column, or `absent` where there is none.
  FLYDSL_DEVICE void column_vectors(global_ptr<const char> from, u32 dtype, float absent, u32 first,
                                    u32 part, u32 count, Floats (&values)[kPart]) {
    if (!from) {
#pragma unroll
      for (u32 v = 0; v < kPart; ++v) {
#pragma unroll
        for (u32 i = 0; i < kOfVector; ++i) values[v][i] = absent;
      }
      return;
    }
    with_real(static_cast<Real>(dtype), [&](auto type) FLYDSL_INLINED {
      using Other = typename decltype(type)::type;
#pragma unroll
      for (u32 v = 0; v < kPart; ++v)
        Tile::template operand<Other>(from + u64{first} * kRealBytes<Other>, rank_, part + v, count,
                                      values[v]);
    });
  }

  FLYDSL_DEVICE void write() {
    if constexpr (kHeld) return write_held();
    for_tiles([&](u32 first, u32 count) FLYDSL_INLINED {
      if constexpr (kLooped) fetch(first, count, false);
      results(first, count, [&](u32 v, const Floats &values) FLYDSL_INLINED {
        tile_.set(v, values);
        tile_.forget_floats(v);  // or branches of results() share their rounding, after all of them
      });
      rank_ = opaque(rank_);
#pragma unroll
      for (u32 v = 0; v < Tile::kVectors; ++v)
        Tile::store(at(out_, first), rank_, v, count, tile_.vectors[v]);
    });
  }

  // The next row comes vector by vector.
  FLYDSL_DEVICE void write_held() {
    for_tiles([&](u32 first, u32 count) FLYDSL_INLINED {
      results(first, count, [&](u32 v, const Floats &values) FLYDSL_INLINED {
        u32x4 packed = pack_reals<Element>(values);
        // The row's own has been read before its place is written to.
        packed[0] = opaque(packed[0]);
        if (more_) begin_vector(v);
        Tile::store(out_, rank_, v, count, packed);
        access_fence(lanes_);
      });
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

  ArgumentsOf<Arguments> args_;
  Team<kThreads, Tile::kTeam> team_;
  Tile tile_, weights_, biases_;
  HeldRow<kThreads, Tile::kVectors, 1, kInAll> held_;  // kHeld
  u64 lanes_;                                          // that take part
  global_ptr<const char> next_x_;
  bool stored_ = false, whole_;
  u32x4 next_[Tile::kVectors];
  bool has_weights_ = false, has_biases_ = false, fetched_ = false, more_;
  u64 next_row_;
  global_ptr<const char> x_, residual_;
  global_ptr<char> sum_, out_;
  u32 rank_, length_;
  float rstd_;
  float shift_, correction_;  // centred: the mean is their sum
};

// `args.tiles` times as many rows as the work-group has teams, shared by `args.groups` work-groups.
template <bool kCentred, u32 kThreads, class Tile, RowIn kIn, bool kQuantised, class Arguments>
FLYDSL_DEVICE void norm_rows(const Arguments &args) {
  constexpr u32 kTeams = kThreads / Tile::kTeam;
  static_assert(kIn != RowIn::memory || kTeams == 1,
                "all threads of a work-group go round as often");
  NormRow<Arguments, kCentred, kThreads, Tile, kIn, kQuantised> row;
  row.begin(arguments_here(args));
  for (u64 tile = group_index(); tile < args.tiles; tile += args.groups) {
    const ArgumentsOf<Arguments> here = arguments_here(args);
    const u64 number = tile * kTeams + thread_index() / Tile::kTeam;
    const bool real = number < here->rows;
    // A team without a row reads the last one, and writes nothing.
    const u64 after = tile + here->groups;
    row.compute(here, real ? number : here->rows - 1, real,
                after * kTeams + thread_index() / Tile::kTeam, after < here->tiles);
  }
}

}  // namespace flydsl::kernels
