#include "tools/verify/matrix_verdict.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>

#include "tools/verify/float16.h"
#include "tools/verify/float8.h"

namespace flydsl::verify {
namespace {

struct Format {
  int precision;       // bits of the significand, the first among them
  int least_exponent;  // of normal numbers
  double largest;
  bool saturates;
};

Format format_of(flydsl_aot_dtype dtype) {
  switch (dtype) {
    case FLYDSL_AOT_BF16:
      return {8, -126, 0x1.fep127, false};
    case FLYDSL_AOT_FP16:
      return {11, -14, 65504, false};
    case FLYDSL_AOT_E4M3:
      return {4, -6, 448, true};
    case FLYDSL_AOT_E5M2:
      return {3, -14, 57344, true};
    default:
      return {24, -126, 0x1.fffffep127, false};
  }
}

double unit_in_last_place(const Format &format, double magnitude) {
  int exponent = format.least_exponent;
  if (std::isfinite(magnitude))
    exponent =
        std::max(exponent, static_cast<int>(std::bit_cast<uint64_t>(magnitude) >> 52) - 1023);
  return std::bit_cast<double>(static_cast<uint64_t>(exponent - format.precision + 1 + 1023) << 52);
}

std::string text(const char *format, double value) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, format, value);
  return buffer;
}

}  // namespace

double decode_element(flydsl_aot_dtype dtype, uint32_t bits) {
  switch (dtype) {
    case FLYDSL_AOT_FP32:
      return static_cast<double>(std::bit_cast<float>(bits));
    case FLYDSL_AOT_E4M3:
    case FLYDSL_AOT_E5M2:
      return static_cast<double>(float8_to_float(dtype, static_cast<uint8_t>(bits)));
    default:
      return static_cast<double>(to_float(dtype, static_cast<uint16_t>(bits)));
  }
}

double rounded_to(flydsl_aot_dtype dtype, double value) {
  if (std::isnan(value)) return value;
  const Format format = format_of(dtype);
  const double at_the_end = std::copysign(format.saturates ? format.largest : INFINITY, value);
  if (std::isinf(value)) return at_the_end;
  const double unit = unit_in_last_place(format, std::fabs(value));
  // To an integer of at most 24 bits: the last place of 2^52 is 1. All steps are exact but for this rounding.
  constexpr double kToInteger = 0x1.8p52;
  const double rounded = ((value / unit + kToInteger) - kToInteger) * unit;
  return std::fabs(rounded) > format.largest ? at_the_end : std::copysign(rounded, value);
}

uint32_t encode_element(flydsl_aot_dtype dtype, double value) {
  const bool saturates = format_of(dtype).saturates;
  auto number = static_cast<float>(value);
  // What fp32 holds is rounded once by the conversions below, too.
  if (static_cast<double>(number) != value || (saturates && std::isinf(number)))
    number = static_cast<float>(rounded_to(dtype, value));  // exact
  if (saturates) return float_to_float8(dtype, number);
  return dtype == FLYDSL_AOT_FP32 ? std::bit_cast<uint32_t>(number) : from_float(dtype, number);
}

void MatrixVerdict::judge(int64_t batch, int64_t row, int64_t column, double actual,
                          double reference, double error) {
  ++judged_;
  bool right = false;
  double share = 0;  // of what is allowed
  if (std::isfinite(reference)) {
    right = actual >= rounded_to(dtype_, reference - error) &&
            actual <= rounded_to(dtype_, reference + error);
    const double off = actual - reference;
    if (std::isfinite(off)) {
      share = std::fabs(off) /
              (error + unit_in_last_place(format_of(dtype_), std::fabs(reference)) / 2);
      difference_squared_ += off * off;
      reference_squared_ += reference * reference;
    }
    if (!right) share = std::isfinite(off) ? std::max(1.0, share) : INFINITY;
  } else {
    const double expected = rounded_to(dtype_, reference);
    right = std::isnan(expected) ? std::isnan(actual) : actual == expected;
    if (!right) share = INFINITY;
  }
  if (!right || std::fabs(reference) <= format_of(dtype_).largest)
    worst_share_ = std::max(worst_share_, share);
  if (right) return;
  ++wrong_;
  if (wrong_ > 1 && share <= worst_wrong_) return;
  worst_wrong_ = share;
  worst_ = "batch " + std::to_string(batch) + ", row " + std::to_string(row) + ", column " +
           std::to_string(column) + ": " + text("%.9g", actual) + " instead of " +
           text("%.9g", reference) + " (may be off by " + text("%.3g", error) +
           " before it is rounded)";
}

std::string MatrixVerdict::fault() const {
  if (wrong_ == 0) return "";
  return name_ + ": " + std::to_string(wrong_) + " of " + std::to_string(judged_) +
         " elements are wrong, the worst at " + worst_;
}

std::string MatrixVerdict::numbers() const {
  const double norm =
      reference_squared_ > 0 ? std::sqrt(difference_squared_ / reference_squared_) : 0;
  return name_ + " worst " + text("%.3f", worst_share_) + " of its bound, relative norm " +
         text("%.3g", norm);
}

}  // namespace flydsl::verify
