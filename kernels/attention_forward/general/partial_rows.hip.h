// Eight elements of a row that may end among them: nothing past the end is read or written, what is
// not there is 0.
#pragma once

#include "common/float8.hip.h"
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

// The same of a row stored in any format: what `widened` takes then, where it is not wide.
FLYDSL_DEVICE u32x4 load_stored(global_ptr<const char> row, i32 first, i32 count, Format format) {
  if (format == Format::wide) return load_elements(row, first, count);
  if (first + 8 <= count) {
    const u32x2 bytes = load_8_bytes(row + first);
    return u32x4{bytes[0], bytes[1], 0, 0};
  }
  u32x2 bytes = {};
#pragma unroll 1
  for (i32 element = count - 1; element >= first; --element) {
    const u32 value = ((global_ptr<const u8>)row)[element];
    bytes = u32x2{bytes[0] << 8 | value, bytes[1] << 8 | bytes[0] >> 24};
  }
  return u32x4{bytes[0], bytes[1], 0, 0};
}

template <class Element>
FLYDSL_DEVICE u32x4 load_widened(global_ptr<const char> row, i32 first, i32 count, Format format) {
  const u32x4 stored = load_stored(row, first, count, format);
  return format == Format::wide ? stored : widened<Element>(stored, format);
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
