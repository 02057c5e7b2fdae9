// rms_norm_backward and layer_norm_backward from the definitions in their headers in include/flydsl_aot/, and whether a result is within
// its bounds.
#include "tools/verify/norm_backward_case.h"
#include "tools/verify/row_judge.h"

namespace flydsl::verify {
namespace {

constexpr double kRowError = 0x1p-18, kSumError = 0x1p-23, kColumnError = 0x1p-17;

bool has(flydsl_aot_dtype dtype) {
  return dtype != FLYDSL_AOT_DTYPE_INVALID;
}

}  // namespace

NormBackwardReference norm_backward_reference(const NormBackwardSpec &spec,
                                              const NormBackwardNumbers &numbers) {
  const auto rows = static_cast<size_t>(spec.all_rows()), length = static_cast<size_t>(spec.length);
  NormBackwardReference reference;
  reference.dx.resize(rows * length);
  reference.dx_error.resize(rows * length);
  for (auto *columns :
       {&reference.dweight, &reference.dbias, &reference.dweight_error, &reference.dbias_error})
    columns->resize(length);
  std::vector<double> weights(length, 1.0);
  for (size_t n = 0; has(spec.weight_dtype) && n < length; ++n)
    weights[n] = numbers.weight[n] + (spec.unit_offset ? 1 : 0);
  std::vector<double> z(length), g(length);
  for (size_t row = 0; row < rows; ++row) {
    const size_t first = row * length;
    const double rstd = numbers.rstd[row], mean = spec.centred ? numbers.mean[row] : 0;
    double c1 = 0, c2 = 0, c1_size = 0, c2_size = 0;
    for (size_t n = 0; n < length; ++n) {
      const double dout = numbers.dout[first + n];
      z[n] = (numbers.x[first + n] - mean) * rstd;
      g[n] = dout * weights[n];
      c1 += g[n];
      c1_size += std::fabs(g[n]);
      c2 += g[n] * z[n];
      c2_size += std::fabs(g[n] * z[n]);
      reference.dweight[n] += dout * z[n];
      reference.dweight_error[n] += kColumnError * std::fabs(dout * z[n]);
      reference.dbias[n] += dout;
      reference.dbias_error[n] += kColumnError * std::fabs(dout);
    }
    const double of_each = 1 / static_cast<double>(length);
    for (size_t n = 0; n < length; ++n) {
      const double dsum = spec.dsum ? numbers.dsum[first + n] : 0;
      reference.dx[first + n] =
          rstd * (g[n] - (spec.centred ? c1 * of_each : 0) - z[n] * (c2 * of_each)) + dsum;
      reference.dx_error[first + n] =
          kRowError * rstd *
              (std::fabs(g[n]) + (spec.centred ? c1_size * of_each : 0) +
               std::fabs(z[n]) * (c2_size * of_each)) +
          kSumError * std::fabs(dsum);
    }
  }
  return reference;
}

NormBackwardVerdict judge_norm_backward(const NormBackwardSpec &spec,
                                        const NormBackwardReference &reference,
                                        const NormBackwardResult &result) {
  NormBackwardVerdict verdict;
  RowJudge judge(static_cast<size_t>(spec.length));
  const auto compare = [&](const char *what, const Elements &got, const std::vector<double> &wanted,
                           const std::vector<double> &errors, double &worst) {
    for (size_t i = 0; i < wanted.size() && judge.fault().empty(); ++i)
      judge.compare_rounded(what, i, got.dtype, got[i], wanted[i], errors[i], worst);
  };
  if (spec.dx != GradientPlace::kNone)
    compare("dx", result.dx, reference.dx, reference.dx_error, verdict.dx);
  if (has(spec.dweight_dtype)) {
    compare("dweight", result.dweight, reference.dweight, reference.dweight_error, verdict.dweight);
  }
  if (has(spec.dbias_dtype))
    compare("dbias", result.dbias, reference.dbias, reference.dbias_error, verdict.dbias);
  verdict.fault = judge.fault();
  return verdict;
}

}  // namespace flydsl::verify
