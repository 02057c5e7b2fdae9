#include "tools/verify/gemm_verify.h"

#include <algorithm>
#include <set>

#include "tools/verify/matrix_verdict.h"
#include "tools/verify/operator_call.h"

namespace flydsl::verify {
namespace {

Placement place_of(const GemmTensor &tensor, Random &random, int rank, const std::string &axes) {
  // `axes` names those with batches; a tensor without has the last ones.
  const std::string own = axes.substr(axes.size() - static_cast<size_t>(rank));
  Placement placement =
      place(tensor.place, random, rank, rank, own, flydsl_aot_dtype_bytes(tensor.dtype));
  if (tensor.layout == GemmTensor::kApart) placement.step = 3;
  if (tensor.layout == GemmTensor::kColumns && rank >= 2) {
    if (placement.order.empty())
      for (int axis = 0; axis < rank; ++axis) placement.order.push_back(axis);
    std::swap(placement.order[static_cast<size_t>(rank - 1)],
              placement.order[static_cast<size_t>(rank - 2)]);
  }
  return placement;
}

// NaN in every type: an output that is read shows, which a small number might not.
constexpr uint32_t kNanPoison = 0xffffffff;

// The tensors of a call in device memory.
class Call {
 public:
  Call(flydsl_aot_handle *handle, const GemmSpec &spec)
      : call_(handle, spec.seed), random_(spec.seed * 31 + 11), spec_(spec) {}

  flydsl_aot_tensor input(const char *name, const GemmTensor &tensor, const Elements &elements,
                          const std::vector<int64_t> &last_axes, const std::string &axes) {
    if (!tensor.present) return {};
    const std::vector<int64_t> sizes = gemm_sizes(spec_, tensor, last_axes);
    return call_
        .input(name, elements, sizes,
               place_of(tensor, random_, static_cast<int>(sizes.size()), axes))
        .tensor();
  }
  DeviceTensor *output(const char *name, const GemmTensor &tensor,
                       const std::vector<int64_t> &last_axes, const std::string &axes) {
    if (!tensor.present) return nullptr;
    const std::vector<int64_t> sizes = gemm_sizes(spec_, tensor, last_axes);
    return &call_.output(name, tensor.dtype, sizes,
                         place_of(tensor, random_, static_cast<int>(sizes.size()), axes),
                         kNanPoison);
  }
  OperatorCall &call() { return call_; }

 private:
  OperatorCall call_;
  Random random_;
  const GemmSpec &spec_;
};

flydsl_aot_tensor view(const DeviceTensor *tensor) {
  return tensor ? tensor->tensor() : flydsl_aot_tensor{};
}

}  // namespace

GemmResult call_gemm(flydsl_aot_handle *handle, const GemmSpec &spec, const GemmNumbers &numbers) {
  Call call(handle, spec);
  flydsl_aot_gemm_params params{};
  params.alpha = spec.alpha;
  params.beta = spec.beta;
  params.epilogue.activation = spec.activation;
  params.a = call.input("a", spec.a, numbers.a, {spec.m, spec.k}, "bmk");
  params.b = call.input("b", spec.b, numbers.b, {spec.k, spec.n}, "bkn");
  DeviceTensor *const d = call.output("d", spec.d, {spec.m, spec.n}, "bmn");
  DeviceTensor *const aux = call.output("aux", spec.aux, {spec.m, spec.n}, "bmn");
  flydsl_aot_tensor *const members[] = {&params.d_sum_m, &params.d_sum_n, &params.a_sum_m,
                                        &params.b_sum_n};
  DeviceTensor *sums[std::size(kGemmSums)];
  for (size_t kind = 0; kind < std::size(kGemmSums); ++kind) {
    const bool of_rows = kGemmSums[kind].of_rows;
    sums[kind] = call.output(kGemmSums[kind].name, spec.sums[kind], {of_rows ? spec.m : spec.n},
                             of_rows ? "bm" : "bn");
    *members[kind] = view(sums[kind]);
  }
  params.d = view(d);
  params.epilogue.aux = view(aux);
  // An input that is an output's memory.
  const auto shared = [&](bool in_d, bool in_aux, const char *name, const GemmTensor &tensor,
                          const Elements &elements) {
    if (!in_d && !in_aux) return call.input(name, tensor, elements, {spec.m, spec.n}, "bmn");
    DeviceTensor *const output = in_d ? d : aux;
    elements.put(*output);
    return output->tensor();
  };
  params.c = shared(spec.c_in_d, spec.c_in_aux, "c", spec.c, numbers.c);
  params.epilogue.residual =
      shared(spec.residual_in_d, false, "residual", spec.residual, numbers.residual);
  if (spec.z.present) {
    params.epilogue.gradient = 1;
    params.epilogue.aux = shared(spec.z_in_d, false, "z", spec.z, numbers.z);
  }
  params.epilogue.bias_m = call.input("bias_m", spec.bias_m, numbers.bias_m, {spec.m}, "bm");
  params.epilogue.bias_n = call.input("bias_n", spec.bias_n, numbers.bias_n, {spec.n}, "bn");
  params.a_descale = call.input("a_descale", spec.a_descale, numbers.a_descale,
                                {spec.a_descale_one ? 1 : spec.m}, "bm");
  params.b_descale = call.input("b_descale", spec.b_descale, numbers.b_descale,
                                {spec.b_descale_one ? 1 : spec.n}, "bn");
  params.d_scale = call.input("d_scale", spec.d_scale, numbers.d_scale, {1}, "b");
  GemmResult result;
  call.call().run(&params, flydsl_aot_gemm_query, flydsl_aot_gemm, &result);
  if (result.device_failed) return result;
  if (d) result.d = Elements::taken_from(*d);
  if (aux) result.aux = Elements::taken_from(*aux);
  for (size_t kind = 0; kind < std::size(kGemmSums); ++kind)
    if (sums[kind]) result.sums[kind] = Elements::taken_from(*sums[kind]);
  return result;
}

namespace {

// Rows, or columns, that are judged where not all are: some at random, and the last.
std::set<int64_t> some_of(int64_t all, int64_t count, Random *random) {
  std::set<int64_t> some = {all - 1};
  while (static_cast<int64_t>(some.size()) < std::min(count, all)) some.insert(random->below(all));
  return some;
}

class Judge {
 public:
  Judge(const GemmSpec &spec, const GemmNumbers &numbers, const GemmResult &result)
      : spec_(spec),
        numbers_(numbers),
        result_(result),
        d_("d", spec.d.dtype),
        aux_("aux", spec.aux.dtype) {}

  void judge() {
    Random random(spec_.seed + 99);
    for (int64_t batch = 0; batch < spec_.batches; ++batch) {
      if (spec_.judged == 0) {
        judge_all(batch);
      } else if (spec_.m > 0 && spec_.n > 0) {
        judge_rows(batch, some_of(spec_.m, spec_.judged, &random));
        judge_columns(batch, some_of(spec_.n, spec_.judged, &random));
      }
    }
    for (size_t kind = 0; kind < std::size(kGemmSums); ++kind)
      if (spec_.sums[kind].present) judge_sums(kind);
  }
  std::string fault() const {
    std::string fault = d_.fault();
    if (fault.empty() && spec_.aux.present) fault = aux_.fault();
    if (fault.empty()) fault = sums_fault_;
    return fault.empty() ? wanted_ : fault;
  }
  std::string numbers() const {
    return d_.numbers() + (spec_.aux.present ? "; " + aux_.numbers() : "");
  }

 private:
  void judge_all(int64_t batch) {
    std::vector<std::vector<double>> columns;
    for (int64_t column = 0; column < spec_.n; ++column)
      columns.push_back(gemm_column_of_b(spec_, numbers_, batch, column));
    for (int64_t row = 0; row < spec_.m; ++row) {
      const std::vector<double> a = gemm_row_of_a(spec_, numbers_, batch, row);
      for (int64_t column = 0; column < spec_.n; ++column)
        element(a, columns[static_cast<size_t>(column)], batch, row, column);
    }
  }
  void judge_rows(int64_t batch, const std::set<int64_t> &rows) {
    std::vector<std::vector<double>> of_a;
    for (const int64_t row : rows) of_a.push_back(gemm_row_of_a(spec_, numbers_, batch, row));
    for (int64_t column = 0; column < spec_.n; ++column) {
      const std::vector<double> b = gemm_column_of_b(spec_, numbers_, batch, column);
      size_t n = 0;
      for (const int64_t row : rows) element(of_a[n++], b, batch, row, column);
    }
  }
  void judge_columns(int64_t batch, const std::set<int64_t> &columns) {
    std::vector<std::vector<double>> of_b;
    for (const int64_t column : columns)
      of_b.push_back(gemm_column_of_b(spec_, numbers_, batch, column));
    for (int64_t row = 0; row < spec_.m; ++row) {
      const std::vector<double> a = gemm_row_of_a(spec_, numbers_, batch, row);
      size_t n = 0;
      for (const int64_t column : columns) element(a, of_b[n++], batch, row, column);
    }
  }

  void element(const std::vector<double> &a, const std::vector<double> &b, int64_t batch,
               int64_t row, int64_t column) {
    const GemmElement right = gemm_element(spec_, numbers_, a, b, batch, row, column);
    const auto at = static_cast<size_t>((batch * spec_.m + row) * spec_.n + column);
    d_.judge(batch, row, column, result_.d[at], right.d, right.d_error);
    if (spec_.aux.present) aux_.judge(batch, row, column, result_.aux[at], right.z, right.z_error);
    if (spec_.want_d.empty() || !wanted_.empty()) return;
    const double want = spec_.want_d[spec_.want_d.size() == 1 ? 0 : static_cast<size_t>(row)];
    if (std::fabs(right.d - want) > 1e-9 * std::fabs(want))
      wanted_ = "the oracle's d of row " + std::to_string(row) + " is " + std::to_string(right.d) +
                ", but the case says " + std::to_string(want) + ": one is wrong";
  }

  void judge_sums(size_t kind) {
    MatrixVerdict verdict(kGemmSums[kind].name, spec_.sums[kind].dtype);
    const Elements &sums = result_.sums[kind];
    const int64_t of_matrix = kGemmSums[kind].of_rows ? spec_.m : spec_.n;
    for (size_t at = 0; at < sums.bits.size(); ++at) {
      const int64_t batch = static_cast<int64_t>(at) / of_matrix,
                    place = static_cast<int64_t>(at) % of_matrix;
      const GemmSumValue right = gemm_sum(spec_, numbers_, result_.d, kind, batch, place);
      verdict.judge(batch, place, 0, sums[at], right.sum, right.error);
    }
    if (sums_fault_.empty()) sums_fault_ = verdict.fault();
  }

  const GemmSpec &spec_;
  const GemmNumbers &numbers_;
  const GemmResult &result_;
  std::string sums_fault_;
  MatrixVerdict d_, aux_;
  std::string wanted_;
};

}  // namespace

Outcome verify_gemm_case(flydsl_aot_handle *handle, const GemmSpec &spec) {
  Outcome outcome;
  if (spec.want_d.size() > 1 && static_cast<int64_t>(spec.want_d.size()) != spec.m) {
    outcome.fault = "want_d must have one number, or one a row";
    return outcome;
  }
  const GemmNumbers numbers = gemm_numbers(spec);
  const GemmResult result = call_gemm(handle, spec, numbers);
  outcome.device_failed = result.device_failed;
  if (!call_is_to_be_judged(spec.expect, result, &outcome.fault)) return outcome;
  if (!ran_wanted_kernel(handle, spec.kernel, result, &outcome.fault)) return outcome;
  Judge judge(spec, numbers, result);
  judge.judge();
  outcome.numbers = judge.numbers() + "  " + result.kernel;
  outcome.fault = judge.fault();
  for (int64_t n = 1; n < spec.repeat && outcome.fault.empty(); ++n) {
    const GemmResult again = call_gemm(handle, spec, numbers);
    bool same = again.d.bits == result.d.bits && again.aux.bits == result.aux.bits;
    for (size_t kind = 0; kind < std::size(kGemmSums); ++kind)
      same &= again.sums[kind].bits == result.sums[kind].bits;
    if (!same) outcome.fault = "call " + std::to_string(n + 1) + " gave other bits than the first";
  }
  return outcome;
}

}  // namespace flydsl::verify
