// Global loads and stores at element alignment.
#pragma once

#include "common/vectors.hip.h"

namespace flydsl::kernels {

// 16-byte accesses that promise 2-byte alignment only: one instruction each, since amdhsa runs with
// unaligned access enabled (LLVM AMDGPU User Guide, "unaligned-access-mode").
struct __attribute__((packed, aligned(2))) Unaligned16 {
  u32 words[4];
};

FLYDSL_DEVICE u32x4 load_16_bytes(global_ptr<const char> from) {
  u32x4 result;
  __builtin_memcpy(&result, (global_ptr<const Unaligned16>)from, 16);
  return result;
}

// The same at 1-byte alignment.
struct __attribute__((packed, aligned(1))) Unaligned8 {
  u32 words[2];
};

FLYDSL_DEVICE u32x2 load_8_bytes(global_ptr<const char> from) {
  u32x2 result;
  __builtin_memcpy(&result, (global_ptr<const Unaligned8>)from, 8);
  return result;
}

struct __attribute__((packed, aligned(1))) Unaligned4 {
  u32 word;
};

FLYDSL_DEVICE u32 load_4_bytes(global_ptr<const char> from) {
  return ((global_ptr<const Unaligned4>)from)->word;
}

FLYDSL_DEVICE void store_16_bytes(global_ptr<char> to, u32x4 value) {
  __builtin_memcpy((global_ptr<Unaligned16>)to, &value, 16);
}

// At 2-byte alignment.
struct __attribute__((packed, aligned(2))) HalfAligned8 {
  u32 words[2];
};

FLYDSL_DEVICE void store_8_bytes(global_ptr<char> to, u32x2 value) {
  __builtin_memcpy((global_ptr<HalfAligned8>)to, &value, 8);
}

}  // namespace flydsl::kernels
