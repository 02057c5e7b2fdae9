// rms_norm and layer_norm from the definitions in include/flydsl_aot/rms_norm.h and layer_norm.h, and whether a result is within its bounds.
#include <algorithm>

#include "tools/verify/norm_case.h"
#include "tools/verify/row_judge.h"

namespace flydsl::verify {
namespace {

constexpr double kRowError = 0x1p-19, kMeanError = 0x1p-23, kError = 0x1p-18;

class Judge : RowJudge {
 public:
  Judge(const NormSpec &spec, const NormReference &reference, const NormResult &result)
      : RowJudge(static_cast<size_t>(spec.length)),
        spec_(spec),
        reference_(reference),
        result_(result) {}

  NormVerdict verdict() {
    for (int64_t row = 0; row < spec_.all_rows() && fault().empty(); ++row) {
      const auto at = static_cast<size_t>(row);
      if (spec_.mean) judge_mean(at);
      if (spec_.rstd) judge_rstd(at);
      if (spec_.sum != SumPlace::kNone) judge_sum(at);
      if (!spec_.quantised()) {
        for (size_t n = 0; n < length(); ++n) judge_number(at * length() + n);
        continue;
      }
      const size_t block = spec_.block_scales ? 32 : length();
      for (size_t n = 0; n < length(); n += block)
        judge_block(at, n, std::min(n + block, length()));
    }
    verdict_.fault = fault();
    return verdict_;
  }

 private:
  size_t length() const { return static_cast<size_t>(spec_.length); }

  void judge_rstd(size_t row) {
    const double wanted = reference_.rstd[row];
    compare("rstd", row * length(), result_.rstd[row], wanted, kRowError * std::fabs(wanted),
            verdict_.rstd);
  }

  void judge_mean(size_t row) {
    const double wanted = reference_.mean[row];
    compare("mean", row * length(), result_.mean[row], wanted,
            kMeanError * std::fabs(wanted) + kRowError * reference_.spread[row], verdict_.mean);
  }

  void judge_sum(size_t row) {
    for (size_t i = row * length(); i < (row + 1) * length(); ++i) {
      const double wanted = reference_.sum[i], got = result_.sum[i];
      if (std::isnan(wanted) ? std::isnan(got) : result_.sum.bits[i] == reference_.sum.bits[i])
        continue;
      fail("sum", i, text_of(got) + ", must be " + text_of(wanted) + " exactly");
    }
  }

  void judge_number(size_t i) {
    compare_rounded("out", i, spec_.dtype, result_.out[i], reference_.y[i], reference_.error[i],
                    verdict_.out);
  }

  // Elements `begin` to `end` - 1 of a row have one scale.
  void judge_block(size_t row, size_t begin, size_t end) {
    const size_t first = row * length() + begin;
    const size_t at =
        row * static_cast<size_t>(spec_.scales_of_row()) + (spec_.block_scales ? begin / 32 : 0);
    const double scale = result_.scale[at];
    double largest = 0, error = 0;
    bool finite = true;
    for (size_t i = first; i < first + end - begin; ++i) {
      finite &= std::isfinite(reference_.y[i]);
      largest = std::max(largest, std::fabs(reference_.y[i]));
      error = std::max(error, reference_.error[i]);
    }
    if (!finite) {
      if (!std::isnan(scale)) fail("out_scale", first, text_of(scale) + ", must be NaN");
      for (size_t i = first; i < first + end - begin; ++i)
        if (!std::isnan(result_.out[i])) fail("out", i, text_of(result_.out[i]) + ", must be NaN");
      return;
    }
    if (!scale_is_right(scale, largest, error, first)) return;
    for (size_t i = first; i < first + end - begin; ++i) judge_byte(i, scale);
  }

  // `largest` magnitude of what it stands for, known within `error`.
  bool scale_is_right(double scale, double largest, double error, size_t element) {
    const double least = std::max(largest - error, 0.0), most = largest + error;
    if (spec_.block_scales) {
      if (scale == block_scale(least) || scale == block_scale(most)) return true;
      fail("out_scale", element, text_of(scale) + ", must be " + text_of(block_scale(largest)));
      return false;
    }
    const double limit = largest_number(spec_.out_dtype);
    const double wanted = std::max(largest / limit, 0x1p-126);
    if (std::fabs(scale - wanted) <= wanted * kError + error / limit) return true;
    fail("out_scale", element, text_of(scale) + ", must be " + text_of(wanted));
    return false;
  }

  double block_scale(double largest) const {
    const int exponent = spec_.out_dtype == FLYDSL_AOT_E4M3 ? 8 : 15;
    if (largest == 0) return 0x1p-127;
    return std::ldexp(1.0, std::max(std::ilogb(largest) - exponent, -127));
  }

  void judge_byte(size_t i, double scale) {
    const double limit = largest_number(spec_.out_dtype);
    const double quotient = reference_.y[i] / scale;
    const double wanted = std::clamp(quotient, -limit, limit);
    const double error = std::max(reference_.error[i] / scale, kError * std::fabs(quotient));
    const double bound =
        error + half_ulp(spec_.out_dtype, std::min(std::fabs(quotient) + error, limit));
    compare("out", i, result_.out[i], wanted, bound, verdict_.out);
  }

  const NormSpec &spec_;
  const NormReference &reference_;
  const NormResult &result_;
  NormVerdict verdict_;
};

// NaN with an infinity in the row.
double mean_of(const Elements &h, size_t first, size_t length) {
  double sum = 0;
  for (size_t i = first; i < first + length; ++i) sum += h[i];
  return std::isfinite(sum) ? sum / static_cast<double>(length) : NAN;
}

}  // namespace

NormReference norm_reference(const NormSpec &spec, const NormNumbers &numbers) {
  const auto rows = static_cast<size_t>(spec.all_rows()), length = static_cast<size_t>(spec.length);
  NormReference reference;
  reference.sum = numbers.x;
  if (spec.residual) {
    for (size_t i = 0; i < rows * length; ++i)
      reference.sum.set(i,
                        static_cast<float>(numbers.x[i]) + static_cast<float>(numbers.residual[i]));
  }
  reference.y.resize(rows * length);
  reference.error.resize(rows * length);
  for (size_t row = 0; row < rows; ++row) {
    const size_t first = row * length;
    const double mean = spec.centred ? mean_of(reference.sum, first, length) : 0;
    double squares = 0;
    for (size_t i = first; i < first + length; ++i)
      squares += (reference.sum[i] - mean) * (reference.sum[i] - mean);
    if (squares > largest_number(FLYDSL_AOT_FP32)) squares = INFINITY;
    const double variance = squares / static_cast<double>(length);
    const double rstd = 1 / std::sqrt(variance + static_cast<double>(spec.eps));
    const double spread = spec.centred ? std::sqrt(variance) : 0;
    reference.mean.push_back(mean);
    reference.spread.push_back(spread);
    reference.rstd.push_back(rstd);
    for (size_t n = 0; n < length; ++n) {
      double weight = 1, bias = 0;
      if (spec.weight_dtype != FLYDSL_AOT_DTYPE_INVALID)
        weight = numbers.weight[n] + (spec.unit_offset ? 1 : 0);
      if (spec.bias_dtype != FLYDSL_AOT_DTYPE_INVALID) bias = numbers.bias[n];
      const double deviation = reference.sum[first + n] - mean;
      reference.y[first + n] = deviation * rstd * weight + bias;
      reference.error[first + n] =
          kError * ((std::fabs(deviation) + (rstd > 0 ? spread : 0)) * rstd * std::fabs(weight) +
                    std::fabs(bias));
    }
  }
  return reference;
}

NormVerdict judge_norm(const NormSpec &spec, const NormReference &reference,
                       const NormResult &result) {
  return Judge(spec, reference, result).verdict();
}

}  // namespace flydsl::verify
