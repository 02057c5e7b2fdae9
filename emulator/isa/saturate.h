// Integer instructions whose clamp bit saturates (CDNA3 ISA, "VOP3: clamp"): F gives the exact
// result, which is cut to its low bits or clamped.
#pragma once

#include "emulator/isa/lanes.h"

namespace flydsl::emu::FLYDSL_EMU_LEVEL {
namespace {

inline uint32_t saturate_i32(int64_t x) {
  return uint32_t(x > 0x7fffffff ? 0x7fffffff : x < -0x7fffffffll - 1 ? -0x7fffffffll - 1 : x);
}
inline uint32_t saturate_u32(uint64_t x) {
  return x >> 32 ? ~0u : uint32_t(x);
}

template <auto F>
void signed2(Wave &w, const Op &op) {
  if (op.flags & kClamp)
    u_uu<[](uint32_t a, uint32_t b) { return saturate_i32(F(a, b)); }>(w, op);
  else
    u_uu<[](uint32_t a, uint32_t b) { return uint32_t(F(a, b)); }>(w, op);
}
template <auto F>
void unsigned2(Wave &w, const Op &op) {
  if (op.flags & kClamp)
    u_uu<[](uint32_t a, uint32_t b) { return saturate_u32(F(a, b)); }>(w, op);
  else
    u_uu<[](uint32_t a, uint32_t b) { return uint32_t(F(a, b)); }>(w, op);
}
template <auto F>
void signed3(Wave &w, const Op &op) {
  if (op.flags & kClamp)
    u_uuu<[](uint32_t a, uint32_t b, uint32_t c) { return saturate_i32(F(a, b, c)); }>(w, op);
  else
    u_uuu<[](uint32_t a, uint32_t b, uint32_t c) { return uint32_t(F(a, b, c)); }>(w, op);
}
template <auto F>
void unsigned3(Wave &w, const Op &op) {
  if (op.flags & kClamp)
    u_uuu<[](uint32_t a, uint32_t b, uint32_t c) { return saturate_u32(F(a, b, c)); }>(w, op);
  else
    u_uuu<[](uint32_t a, uint32_t b, uint32_t c) { return uint32_t(F(a, b, c)); }>(w, op);
}

// 16-bit results of sign- or zero-extended sources.
template <bool kSigned>
inline int64_t extend16(uint32_t x) {
  return kSigned ? int64_t(int16_t(x)) : int64_t(x & 0xffff);
}
template <bool kSigned>
inline uint32_t saturate16(int64_t x) {
  const int64_t low = kSigned ? -0x8000 : 0, high = kSigned ? 0x7fff : 0xffff;
  return uint32_t(x < low ? low : x > high ? high : x) & 0xffff;
}
template <auto F, bool kSigned>
void short2(Wave &w, const Op &op) {
  if (op.flags & kClamp)
    u_uu<[](uint32_t a, uint32_t b) {
      return saturate16<kSigned>(F(extend16<kSigned>(a), extend16<kSigned>(b)));
    }>(w, op);
  else
    u_uu<[](uint32_t a, uint32_t b) {
      return uint32_t(F(extend16<kSigned>(a), extend16<kSigned>(b))) & 0xffff;
    }>(w, op);
}
template <auto F, bool kSigned>
void short3(Wave &w, const Op &op) {
  if (op.flags & kClamp)
    u_uuu<[](uint32_t a, uint32_t b, uint32_t c) {
      return saturate16<kSigned>(
          F(extend16<kSigned>(a), extend16<kSigned>(b), extend16<kSigned>(c)));
    }>(w, op);
  else
    u_uuu<[](uint32_t a, uint32_t b, uint32_t c) {
      return uint32_t(F(extend16<kSigned>(a), extend16<kSigned>(b), extend16<kSigned>(c))) & 0xffff;
    }>(w, op);
}

}  // namespace
}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
