// Elements of a row tile, number e of those that a thread has: bits, numbers, and which of them may be among the best.
#pragma once

#include "common/row_tile.hip.h"
#include "topk/screen.hip.h"

namespace flydsl::kernels {

template <class Tile>
constexpr u32 kElementsOf = Tile::kVectors *kReals16<typename Tile::Element>;

template <class Tile>
FLYDSL_DEVICE u32 bits_in(const Tile &tile, u32 e) {
  using Element = typename Tile::Element;
  const u32 i = e % kReals16<Element>;
  const u32 word = tile.vectors[e / kReals16<Element>][i * kRealBytes<Element> / 4];
  return kRealBytes<Element> == 2 ? word >> i % 2 * 16 & 0xffff : word;
}
template <class Tile>
FLYDSL_DEVICE auto number_in(const Tile &tile, u32 e, u32 flip) {
  return Screen<typename Tile::Element>::number(bits_in(tile, e), flip);
}
template <class Tile>
FLYDSL_DEVICE u32 index_in(const Tile &, u32 thread, u32 e) {
  constexpr u32 kOfVector = kReals16<typename Tile::Element>;
  return Tile::index(thread, e / kOfVector, e % kOfVector);
}

// Bit e: element e is inside the row.
template <class Tile>
FLYDSL_DEVICE u32 elements_inside(const Tile &, u32 thread, u32 count) {
  constexpr u32 kElements = kElementsOf<Tile>;
  constexpr u32 kNeighbours = Tile::kWide ? kReals16<typename Tile::Element> : 1;
  static_assert(kElements <= 32);
  const u32 own = thread * kNeighbours;
  if (count <= own) return 0;
  const u32 elements = ((count - own - 1) / (Tile::kTeam * kNeighbours) + 1) * kNeighbours;
  return elements >= kElements ? ~0u >> (32 - kElements) : (1u << elements) - 1;
}

// use(flip) with `flip`, as a constant where the elements have 16 bits: of fp32 the registers that this takes cost more than it saves
// (NOTES.md).
template <class Element, class Use>
FLYDSL_DEVICE auto with_flip(u32 flip, Use use) {
  if constexpr (kRealBytes<Element> == 2)
    return flip == 0 ? use(0u) : use(~0u);
  else
    return use(flip);
}

// Bit e: element e may reach `least`.
template <class Tile, class Number>
FLYDSL_DEVICE u32 reaching(const Tile &tile, Number least, u32 flip) {
  return with_flip<typename Tile::Element>(flip, [&](u32 its_flip) FLYDSL_INLINED {
    u32 mask = 0;
#pragma unroll
    for (u32 e = 0; e < kElementsOf<Tile>; ++e) {
      if (Screen<typename Tile::Element>::may_reach(number_in(tile, e, its_flip), least))
        mask |= 1u << e;
    }
    return mask;
  });
}

// The largest of all elements.
template <class Tile>
FLYDSL_DEVICE auto largest_number(const Tile &tile, u32 flip) {
  return with_flip<typename Tile::Element>(flip, [&](u32 its_flip) FLYDSL_INLINED {
    using Its = Screen<typename Tile::Element>;
    // Several, so that not each waits for the one before.
    typename Its::Number largest[4] = {Its::kLeast, Its::kLeast, Its::kLeast, Its::kLeast};
#pragma unroll
    for (u32 e = 0; e < kElementsOf<Tile>; ++e)
      largest[e % 4] = Its::larger(largest[e % 4], number_in(tile, e, its_flip));
    return Its::larger(Its::larger(largest[0], largest[1]), Its::larger(largest[2], largest[3]));
  });
}

}  // namespace flydsl::kernels
