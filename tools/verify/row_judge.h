// Numbers of a result beside those they must be, each with its bound: the first fault, and the worst error over its bound.
#pragma once

#include <cmath>
#include <cstdio>
#include <string>

#include "tools/verify/reals.h"

namespace flydsl::verify {

class RowJudge {
 public:
  explicit RowJudge(size_t length) : length_(length) {}

  const std::string &fault() const { return fault_; }

  static std::string text_of(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", value);
    return text;
  }

  void fail(const char *what, size_t element, const std::string &why) {
    if (!fault_.empty()) return;
    fault_ = std::string(what) + " of row " + std::to_string(element / length_) + ", element " +
             std::to_string(element % length_) + ": " + why;
  }

  // Equal where either is not finite, else no further apart than `bound`.
  void compare(const char *what, size_t element, double got, double wanted, double bound,
               double &worst) {
    if (std::isnan(wanted) ? std::isnan(got) : got == wanted) return;
    const double error = std::fabs(got - wanted);
    if (std::isfinite(error) && !(error / bound <= worst)) worst = error / bound;
    if (error <= bound) return;
    fail(what, element,
         text_of(got) + ", must be " + text_of(wanted) + " within " + text_of(bound));
  }

  // Of a number that was computed within `error` and then rounded to `dtype`.
  void compare_rounded(const char *what, size_t element, flydsl_aot_dtype dtype, double got,
                       double wanted, double error, double &worst) {
    const double bound = error + half_ulp(dtype, std::fabs(wanted) + error);
    // What rounds to more than the largest number is infinite.
    if (std::isinf(got) && !std::isnan(wanted) && std::signbit(got) == std::signbit(wanted) &&
        std::fabs(wanted) + bound > largest_number(dtype))
      return;
    compare(what, element, got, wanted, bound, worst);
  }

 private:
  size_t length_;
  std::string fault_;
};

}  // namespace flydsl::verify
