// Elements of any type that the operators over rows take, as they lie in memory, and as numbers.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "tools/verify/device_tensor.h"
#include "tools/verify/float16.h"
#include "tools/verify/float8.h"

namespace flydsl::verify {

inline double decoded(flydsl_aot_dtype dtype, uint32_t bits) {
  switch (dtype) {
    case FLYDSL_AOT_FP32:
      return std::bit_cast<float>(bits);
    case FLYDSL_AOT_FP16:
    case FLYDSL_AOT_BF16:
      return to_float(dtype, static_cast<uint16_t>(bits));
    case FLYDSL_AOT_E4M3:
    case FLYDSL_AOT_E5M2:
      return float8_to_float(dtype, static_cast<uint8_t>(bits));
    case FLYDSL_AOT_E8M0:
      return bits == 0xff ? NAN : std::ldexp(1.0, static_cast<int>(bits) - 127);
    default:
      return static_cast<int32_t>(bits);
  }
}

// Of a real or 8-bit type, rounded to nearest even.
inline uint32_t encoded(flydsl_aot_dtype dtype, float value) {
  if (flydsl_aot_dtype_bytes(dtype) == 1) return float_to_float8(dtype, value);
  return dtype == FLYDSL_AOT_FP32 ? std::bit_cast<uint32_t>(value) : from_float(dtype, value);
}

// Half a unit in the last place of a real or 8-bit type at `value`, subnormal where that is.
inline double half_ulp(flydsl_aot_dtype dtype, double value) {
  struct Format {
    int mantissa, least_exponent;
  };
  const Format format = dtype == FLYDSL_AOT_FP32   ? Format{23, -126}
                        : dtype == FLYDSL_AOT_FP16 ? Format{10, -14}
                        : dtype == FLYDSL_AOT_BF16 ? Format{7, -126}
                        : dtype == FLYDSL_AOT_E4M3 ? Format{3, -6}
                                                   : Format{2, -14};
  const int exponent = value == 0 ? format.least_exponent : std::ilogb(value);
  return std::ldexp(1.0, std::max(exponent, format.least_exponent) - format.mantissa - 1);
}
inline double largest_number(flydsl_aot_dtype dtype) {
  switch (dtype) {
    case FLYDSL_AOT_FP32:
      return 0x1.fffffep127;
    case FLYDSL_AOT_FP16:
      return 65504;
    case FLYDSL_AOT_BF16:
      return 0x1.fep127;
    case FLYDSL_AOT_E4M3:
      return 448;
    default:
      return 57344;
  }
}

// The bits of all elements in axis order.
class Elements {
 public:
  Elements() = default;
  Elements(flydsl_aot_dtype type, size_t count) : dtype(type), bits(count) {}

  flydsl_aot_dtype dtype = FLYDSL_AOT_FP32;
  std::vector<uint64_t> bits;

  double operator[](size_t i) const { return decoded(dtype, static_cast<uint32_t>(bits[i])); }
  void set(size_t i, float value) { bits[i] = encoded(dtype, value); }

  void put(DeviceTensor &tensor) const {
    if (flydsl_aot_dtype_bytes(dtype) == 8) return tensor.set(bits);
    if (flydsl_aot_dtype_bytes(dtype) == 4)
      return tensor.set(std::vector<uint32_t>(bits.begin(), bits.end()));
    if (flydsl_aot_dtype_bytes(dtype) == 2)
      return tensor.set(std::vector<uint16_t>(bits.begin(), bits.end()));
    tensor.set(std::vector<uint8_t>(bits.begin(), bits.end()));
  }
  static Elements taken_from(DeviceTensor &tensor) {
    Elements all;
    all.dtype = tensor.tensor().dtype;
    const auto take = [&](const auto &values) { all.bits.assign(values.begin(), values.end()); };
    if (flydsl_aot_dtype_bytes(all.dtype) == 8)
      take(tensor.get<uint64_t>());
    else if (flydsl_aot_dtype_bytes(all.dtype) == 4)
      take(tensor.get<uint32_t>());
    else if (flydsl_aot_dtype_bytes(all.dtype) == 2)
      take(tensor.get<uint16_t>());
    else
      take(tensor.get<uint8_t>());
    return all;
  }
};

}  // namespace flydsl::verify
