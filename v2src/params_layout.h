// Where in an operator's parameters its tensors, addresses and seeds are, as include/flydsl_aot/fields.h lists them; found by the
// compiler.
#pragma once

#include <cstddef>
#include <cstdint>

#include "flydsl_aot/fields.h"
#include "flydsl_aot/flydsl_aot.h"

namespace flydsl {

template <size_t kMost>
class Offsets {
 public:
  constexpr void add(size_t offset) { at_[count_++] = static_cast<uint16_t>(offset); }
  constexpr const uint16_t *begin() const { return at_; }
  constexpr const uint16_t *end() const { return at_ + count_; }
  constexpr size_t size() const { return count_; }

 private:
  uint16_t at_[kMost] = {};
  size_t count_ = 0;
};

// Everything is at multiples of a word.
constexpr size_t kWordBytes = sizeof(uint64_t);

struct ParamsLayout {
  static constexpr size_t kMostTensors = 24, kMostPointers = 8, kMostSeeds = 4, kMostRest = 64;

  size_t bytes = 0;  // of this version's struct
  Offsets<kMostTensors> tensors;
  Offsets<kMostPointers> pointers;  // each to a word of device memory
  Offsets<kMostSeeds> seeds;        // numbers that kernels get as they are
  Offsets<kMostRest> rest;          // all other words
  size_t workspace = 0;             // 0: none; its bytes are the next word
};

// layout_of<Params>: of one operator's parameters.
template <class Params>
inline constexpr ParamsLayout layout_of = {};

namespace params_layout {

// With `rest`, which is all that the lists do not have.
template <class Params>
constexpr ParamsLayout completed(ParamsLayout layout) {
  bool listed[sizeof(Params) / kWordBytes] = {};
  const auto list = [&](size_t offset, size_t bytes) {
    for (size_t at = offset; at < offset + bytes; at += kWordBytes) listed[at / kWordBytes] = true;
  };
  if constexpr (requires(Params params) { params.workspace; }) {
    static_assert(offsetof(Params, workspace_bytes) == offsetof(Params, workspace) + kWordBytes);
    layout.workspace = offsetof(Params, workspace);
    list(layout.workspace, kWordBytes);
  }
  for (const size_t offset : layout.tensors) list(offset, sizeof(flydsl_aot_tensor));
  for (const size_t offset : layout.pointers) list(offset, kWordBytes);
  for (const size_t offset : layout.seeds) list(offset, kWordBytes);
  layout.bytes = sizeof(Params);
  for (size_t word = 0; word < sizeof(Params) / kWordBytes; ++word)
    if (!listed[word]) layout.rest.add(word * kWordBytes);
  return layout;
}

#define FLYDSL_AOT_PLACE_tensor(member) layout.tensors.add(offsetof(Params, member));
#define FLYDSL_AOT_PLACE_in64(member) layout.pointers.add(offsetof(Params, member));
#define FLYDSL_AOT_PLACE_out64(member) layout.pointers.add(offsetof(Params, member));
// Of 64 bits without a sign are seeds and their offsets only.
#define FLYDSL_AOT_PLACE_u64(member) layout.seeds.add(offsetof(Params, member));
#define FLYDSL_AOT_PLACE_f32(member)
#define FLYDSL_AOT_PLACE_i32(member)
#define FLYDSL_AOT_PLACE_u32(member)
#define FLYDSL_AOT_PLACE_i64(member)
#define FLYDSL_AOT_PLACE(kind, member) FLYDSL_AOT_PLACE_##kind(member)
#define FLYDSL_AOT_LAYOUT_OF(name, fields)             \
  constexpr ParamsLayout of_##name() {                 \
    using Params = flydsl_aot_##name##_params;         \
    static_assert(sizeof(Params) % kWordBytes == 0);   \
    ParamsLayout layout;                               \
    fields(FLYDSL_AOT_PLACE) return completed<Params>(layout); \
  }
FLYDSL_AOT_OPERATORS(FLYDSL_AOT_LAYOUT_OF)
#undef FLYDSL_AOT_LAYOUT_OF
#undef FLYDSL_AOT_PLACE

}  // namespace params_layout

#define FLYDSL_AOT_LAYOUT_OF(name, fields) \
  template <>                              \
  inline constexpr ParamsLayout layout_of<flydsl_aot_##name##_params> = params_layout::of_##name();
FLYDSL_AOT_OPERATORS(FLYDSL_AOT_LAYOUT_OF)
#undef FLYDSL_AOT_LAYOUT_OF

}  // namespace flydsl
