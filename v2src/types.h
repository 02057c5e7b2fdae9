// Element types, for checks and messages.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "flydsl_aot/types.h"

namespace flydsl {

struct DtypeRow {
  flydsl_aot_dtype dtype;
  const char *name;
  uint32_t bytes;
};
inline constexpr DtypeRow kDtypes[] = {
    {FLYDSL_AOT_FP64, "fp64", 8},           {FLYDSL_AOT_FP32, "fp32", 4},
    {FLYDSL_AOT_FP16, "fp16", 2},           {FLYDSL_AOT_BF16, "bf16", 2},
    {FLYDSL_AOT_E4M3, "e4m3", 1},           {FLYDSL_AOT_E5M2, "e5m2", 1},
    {FLYDSL_AOT_E4M3_FNUZ, "e4m3_fnuz", 1}, {FLYDSL_AOT_E5M2_FNUZ, "e5m2_fnuz", 1},
    {FLYDSL_AOT_E8M0, "e8m0", 1},           {FLYDSL_AOT_E2M1X2, "e2m1x2", 1},
    {FLYDSL_AOT_INT32, "int32", 4},         {FLYDSL_AOT_INT64, "int64", 8},
    {FLYDSL_AOT_BOOL, "bool", 1},
};

// By number; 0 for one that is no dtype.
inline constexpr auto kDtypeBytes = [] {
  std::array<uint8_t, 32> bytes{};
  for (const DtypeRow &row : kDtypes) bytes[static_cast<size_t>(row.dtype)] = static_cast<uint8_t>(row.bytes);
  return bytes;
}();

// flydsl_aot_dtype_bytes, without a call.
constexpr uint32_t dtype_bytes(flydsl_aot_dtype dtype) {
  const auto number = static_cast<uint32_t>(dtype);
  return number < kDtypeBytes.size() ? kDtypeBytes[number] : 0;
}
constexpr bool known_dtype(flydsl_aot_dtype dtype) {
  return dtype_bytes(dtype) != 0;
}

}  // namespace flydsl
