// The part of a row that one thread of a team holds in registers, as it came from memory.
#pragma once

#include "common/reals.hip.h"
#include "common/threads.hip.h"

namespace flydsl::kernels {

// `kVectors` times 16 bytes. Wide: 16 bytes are neighbours in memory and aligned to 16, and the row's length is a multiple
// of them. Else neighbours in memory belong to neighbouring threads, and nothing is asked of alignment.
template <class Element_, u32 kTeam_, u32 kVectors_, bool kWide_>
struct RowTile {
  using Element = Element_;
  static constexpr u32 kTeam = kTeam_, kVectors = kVectors_;
  static constexpr bool kWide = kWide_;
  static constexpr u32 kOfVector = kReals16<Element>;
  static constexpr u32 kCapacity = kTeam * kVectors * kOfVector;
  using Floats = float[kOfVector];

  u32x4 vectors[kVectors];

  // Element i of vector v of thread `rank` in the team.
  static FLYDSL_DEVICE u32 index(u32 rank, u32 v, u32 i) {
    return kWide ? (v * kTeam + rank) * kOfVector + i : (v * kOfVector + i) * kTeam + rank;
  }
  // Whether it is inside the row; of a wide tile the same for all i, which the compiler is not told elsewhere.
  static FLYDSL_DEVICE bool inside(u32 rank, u32 v, u32 i, u32 count) {
    return index(rank, v, kWide ? 0 : i) < count;
  }

  // Whether the thread has any element of the row.
  static FLYDSL_DEVICE bool takes_part(u32 rank, u32 count) { return inside(rank, 0, 0, count); }
  FLYDSL_DEVICE void clear() {
#pragma unroll
    for (u32 v = 0; v < kVectors; ++v) vectors[v] = u32x4{0, 0, 0, 0};
  }

  // `count` elements from `from` on, of a thread that takes part. Places past the end read its own first one, so that no load
  // waits for a branch: nobody else writes it. (Offsets within a tile fit 32 bits, which addresses in instructions have
  // beside a uniform base.)
  FLYDSL_DEVICE void load(global_ptr<const char> from, u32 rank, u32 count) {
    if (!takes_part(rank, count)) return clear();
#pragma unroll
    for (u32 v = 0; v < kVectors; ++v) load_vector(from, rank, v, count);
  }
  // In bytes, of a wide tile.
  static FLYDSL_DEVICE u32 place_of_vector(u32 rank, u32 v, u32 count) {
    return (inside(rank, v, 0, count) ? index(rank, v, 0) : index(rank, 0, 0)) *
           kRealBytes<Element>;
  }
  FLYDSL_DEVICE void load_vector(global_ptr<const char> from, u32 rank, u32 v, u32 count) {
    if constexpr (kWide) {
      vectors[v] = *(global_ptr<const u32x4>)(from + place_of_vector(rank, v, count));
    } else {
      vec<typename Element::scalar, kOfVector> elements;
#pragma unroll
      for (u32 i = 0; i < kOfVector; ++i) {
        const u32 at = inside(rank, v, i, count) ? index(rank, v, i) : index(rank, 0, 0);
        elements[i] =
            *(global_ptr<const typename Element::scalar>)(from + at * kRealBytes<Element>);
      }
      vectors[v] = bits_as<u32x4>(elements);
    }
  }

  // What was made of vector v, or it was made of, is not kept in registers beside it.
  FLYDSL_DEVICE void forget_floats(u32 v) {
#pragma unroll
    for (u32 i = 0; i < 4; ++i) vectors[v][i] = opaque(vectors[v][i]);
  }

  // Vector v as floats, 0 past `count`.
  FLYDSL_DEVICE void floats(u32 rank, u32 v, u32 count, Floats &values) const {
    unpack_reals<Element>(vectors[v], values);
#pragma unroll
    for (u32 i = 0; i < kOfVector; ++i) values[i] = inside(rank, v, i, count) ? values[i] : 0.0f;
  }
  FLYDSL_DEVICE void set(u32 v, const Floats &values) {
    vectors[v] = pack_reals<Element>(values);
  }

  // Vector v of an operand of another type with a place for each element of the row, of a thread that takes part.
  template <class Other>
  static FLYDSL_DEVICE void operand(global_ptr<const char> from, u32 rank, u32 v, u32 count,
                                    Floats &values) {
    if constexpr (kWide) {
      const u32 at = inside(rank, v, 0, count) ? index(rank, v, 0) : index(rank, 0, 0);
      load_reals<Other>(from + at * kRealBytes<Other>, values);
    } else {
#pragma unroll
      for (u32 i = 0; i < kOfVector; ++i) {
        const u32 at = inside(rank, v, i, count) ? index(rank, v, i) : index(rank, 0, 0);
        values[i] = load_real<Other>(from + at * kRealBytes<Other>);
      }
    }
  }

  // Vector v to memory, but what is past `count`.
  static FLYDSL_DEVICE void store(global_ptr<char> to, u32 rank, u32 v, u32 count, u32x4 vector) {
    if constexpr (kWide) {
      if (!inside(rank, v, 0, count)) return;
      *(global_ptr<u32x4>)(to + index(rank, v, 0) * kRealBytes<Element>) = vector;
    } else {
      const auto elements = bits_as<vec<typename Element::scalar, kOfVector>>(vector);
#pragma unroll
      for (u32 i = 0; i < kOfVector; ++i) {
        if (!inside(rank, v, i, count)) continue;
        *(global_ptr<typename Element::scalar>)(to + index(rank, v, i) * kRealBytes<Element>) =
            elements[i];
      }
    }
  }
  // The same of a byte for each element, in the order of the vector.
  static FLYDSL_DEVICE void store_bytes(global_ptr<char> to, u32 rank, u32 v, u32 count,
                                        const u8 (&bytes)[kOfVector]) {
    if constexpr (kWide) {
      if (!inside(rank, v, 0, count)) return;
      vec<u8, kOfVector> vector;
#pragma unroll
      for (u32 i = 0; i < kOfVector; ++i) vector[i] = bytes[i];
      *(global_ptr<vec<u8, kOfVector>>)(to + index(rank, v, 0)) = vector;
    } else {
#pragma unroll
      for (u32 i = 0; i < kOfVector; ++i) {
        if (inside(rank, v, i, count)) *(global_ptr<u8>)(to + index(rank, v, i)) = bytes[i];
      }
    }
  }
};

}  // namespace flydsl::kernels
