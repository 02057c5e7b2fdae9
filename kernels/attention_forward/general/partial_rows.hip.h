// Eight elements of a row that may end among them: nothing past the end is read or written, what is
// not there is 0.
#pragma once

#include "common/memory.hip.h"

namespace flydsl::kernels {

// Elements first .. first + 7 of a row of `count`.
FLYDSL_DEVICE u32x4 load_elements(global_ptr<const char> row, i32 first, i32 count) {
  if (first + 8 <= count) return load_16_bytes(row + 2 * first);
  u32x4 result = {};
#pragma unroll 1
  for (i32 element = count - 1; element >= first; --element) {
    const u32 value = ((global_ptr<const u16>)row)[element];
    result = u32x4{result[0] << 16 | value, result[1] << 16 | result[0] >> 16,
                   result[2] << 16 | result[1] >> 16, result[3] << 16 | result[2] >> 16};
  }
  return result;
}

FLYDSL_DEVICE void store_elements(global_ptr<char> row, i32 first, i32 count, u32x4 values) {
  if (first + 8 <= count) return store_16_bytes(row + 2 * first, values);
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    if (first + i < count)
      ((global_ptr<u16>)row)[first + i] = static_cast<u16>(values[i / 2] >> (i % 2 * 16));
  }
}

}  // namespace flydsl::kernels
