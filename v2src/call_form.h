// A caller's parameters, looked through once: what they say beside addresses and seeds, which calls of one form have alike, and these.
#pragma once

#include <cstring>
#include <utility>

#include "v2src/params_layout.h"

namespace flydsl {

// Up to `most`, a power of two.
constexpr uint64_t alignment_up_to(uint64_t most, uint64_t address) {
  return (address | most) & (~(address | most) + 1);
}

struct CallForm {
  static constexpr size_t kMostAddresses =
      ParamsLayout::kMostTensors + ParamsLayout::kMostPointers + 1;
  static constexpr size_t kMostWords =
      ParamsLayout::kMostRest + ParamsLayout::kMostTensors * (1 + 2 * FLYDSL_AOT_MAX_RANK) +
      ParamsLayout::kMostPointers + 1 + kMostAddresses;

  const ParamsLayout *layout;  // tells operators apart
  const unsigned char *params;
  int device;
  uint64_t hash;
  // Of the tensors that are there, the pointers and the workspace that are not NULL; then seeds.
  size_t addresses;
  static constexpr size_t kNothing = kMostAddresses + ParamsLayout::kMostSeeds;
  uint64_t sources[kNothing + 1];  // the last one is 0
  // All else; alignments of addresses, too, unless they are all of the most that is told apart.
  size_t words;
  uint64_t word[kMostWords];
};

namespace call_form {

// Kept in registers while parameters are read.
struct Reader {
  uint64_t hash, all_addresses, *word, *source;

  void add(uint64_t value) {
    hash = hash * 0x9E3779B97F4A7C15 + value;
    *word++ = value;
  }
  void add_address(uint64_t address) {
    all_addresses |= address;
    *source++ = address;
  }
  // `count` neighbouring axes, from `sizes` on; strides follow behind the sizes of all axes.
  template <size_t count>
  void add_axes(const int64_t *&sizes) {
    std::memcpy(word, sizes, count * kWordBytes);
    std::memcpy(word + count, sizes + FLYDSL_AOT_MAX_RANK, count * kWordBytes);
    for (size_t axis = 0; axis < count; ++axis)
      hash = hash * 0x9E3779B97F4A7C15 + static_cast<uint64_t>(sizes[axis]);
    word += 2 * count;
    sizes += count;
  }
  // Without loops, whose counting costs as much as what they do.
  void add_axes(const int64_t *sizes, uint32_t rank) {
    static_assert(FLYDSL_AOT_MAX_RANK == 8);
    if (rank & 4) add_axes<4>(sizes);
    if (rank & 2) add_axes<2>(sizes);
    if (rank & 1) add_axes<1>(sizes);
    if (rank & 8) add_axes<8>(sizes);
  }
};

inline uint64_t word_at(const unsigned char *bytes, size_t offset) {
  uint64_t value;
  std::memcpy(&value, bytes + offset, sizeof value);
  return value;
}

// visit(offset, its number) for each of some offsets, unrolled.
template <const auto &offsets, class Visit, size_t... index>
[[gnu::always_inline]] inline void each([[maybe_unused]] Visit visit,
                                        std::index_sequence<index...>) {
  (visit(size_t{offsets.begin()[index]}, index), ...);
}

template <class Params>
struct Parts {
  static constexpr auto tensors = layout_of<Params>.tensors;
  static constexpr auto pointers = layout_of<Params>.pointers;
  static constexpr auto seeds = layout_of<Params>.seeds;
  static constexpr auto rest = layout_of<Params>.rest;
};

}  // namespace call_form

// False: parameters of another version, or such as no call takes.
template <class Params>
bool read_form(const Params *caller, int device, uint64_t most_alignment, CallForm *form) {
  using call_form::each, call_form::word_at;
  using Parts = call_form::Parts<Params>;
  constexpr const ParamsLayout &layout = layout_of<Params>;
  const auto *bytes = reinterpret_cast<const unsigned char *>(caller);
  if (caller->struct_size != sizeof(Params)) return false;
  call_form::Reader reader{reinterpret_cast<uint64_t>(&layout) + static_cast<uint64_t>(device), 0,
                           form->word, form->sources};
  each<Parts::rest>([&](size_t at, size_t) { reader.add(word_at(bytes, at)); },
                    std::make_index_sequence<Parts::rest.size()>());
  bool wrong_rank = false;
  each<Parts::tensors>(
      [&](size_t at, size_t number) {
        const auto &tensor = *reinterpret_cast<const flydsl_aot_tensor *>(bytes + at);
        const auto rank = static_cast<uint32_t>(tensor.rank);
        if (rank == 0 || wrong_rank) return;
        // Rank and dtype, and which tensor it is, in the bits that no right rank has.
        reader.add(word_at(bytes, at + offsetof(flydsl_aot_tensor, dtype)) + (number << 40));
        wrong_rank = rank > FLYDSL_AOT_MAX_RANK;
        if (wrong_rank) return;
        reader.add_axes(tensor.sizes, rank);
        reader.add_address(reinterpret_cast<uint64_t>(tensor.data));
      },
      std::make_index_sequence<Parts::tensors.size()>());
  if (wrong_rank) return false;
  const auto add_pointer = [&](size_t at, size_t number) {
    const uint64_t address = word_at(bytes, at);
    if (address == 0) return;
    reader.add(number);
    reader.add_address(address);
  };
  each<Parts::pointers>(add_pointer, std::make_index_sequence<Parts::pointers.size()>());
  if constexpr (layout.workspace != 0) add_pointer(layout.workspace, ParamsLayout::kMostPointers);
  form->addresses = static_cast<size_t>(reader.source - form->sources);
  if (reader.all_addresses % most_alignment != 0)
    for (size_t i = 0; i < form->addresses; ++i)
      reader.add(alignment_up_to(most_alignment, form->sources[i]));
  each<Parts::seeds>([&](size_t at, size_t) { *reader.source++ = word_at(bytes, at); },
                     std::make_index_sequence<Parts::seeds.size()>());
  form->sources[CallForm::kNothing] = 0;
  form->layout = &layout;
  form->params = bytes;
  form->device = device;
  form->words = static_cast<size_t>(reader.word - form->word);
  form->hash = (reader.hash ^ reader.hash >> 32) * 0xD6E8FEB86659FD93;
  return true;
}

}  // namespace flydsl
