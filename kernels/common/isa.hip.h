// What the gfx9 architecture that is compiled for has. gfx90a (CDNA2 ISA), gfx942 (CDNA3 ISA) and gfx950 (CDNA4 ISA) share waves of 64
// lanes, 512 registers a lane, 32x32 and 16x16 matrix products with one layout of C and D; what gfx950 adds has a second form in the
// building blocks, from instructions of all three.
#pragma once

#include "common/keywords.hip.h"

#if defined(__gfx950__)
#define FLYDSL_GFX950 1
#else
#define FLYDSL_GFX950 0
#endif

namespace flydsl::kernels {

constexpr bool kGfx950 = FLYDSL_GFX950;
// Matrix instructions of 16 bits count subnormal elements as zeros.
#if defined(__gfx90a__)
constexpr bool kFlushesSubnormals = true;
#else
constexpr bool kFlushesSubnormals = false;
#endif
// Of a work-group.
constexpr int kLdsBytes = kGfx950 ? 160 * 1024 : 64 * 1024;

}  // namespace flydsl::kernels
