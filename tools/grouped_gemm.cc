#include "tools/grouped_gemm.h"

#include <algorithm>
#include <utility>

#include "tools/arguments.h"
#include "tools/attention_arguments.h"
#include "tools/exit_status.h"

namespace flydsl::tools {
namespace {

using GroupedGemmCalls = ProblemOf<flydsl_aot_grouped_gemm_params, flydsl_aot_grouped_gemm_query,
                                   flydsl_aot_grouped_gemm_explain,
                                   flydsl_aot_grouped_gemm_prefetch, flydsl_aot_grouped_gemm>;

class GroupedGemmProblem final : public GroupedGemmCalls {
 public:
  std::vector<int64_t> offsets;  // if they are told
  std::string a_order, b_order, d_order;

  bool shares_rows() const { return params.a.rank == 2 && params.b.rank == 3; }
  bool shares_columns() const { return params.a.rank == 3 && params.b.rank == 2; }
  bool shares_k() const { return params.a.rank == 2 && params.b.rank == 2; }
  int64_t m() const { return params.a.sizes[params.a.rank - 2]; }
  int64_t n() const { return params.b.sizes[params.b.rank - 1]; }
  int64_t k() const { return params.a.sizes[params.a.rank - 1]; }
  int64_t groups() const {
    return params.offsets.rank ? params.offsets.sizes[0] : params.a.sizes[0];
  }

  // Of the axis that the groups share what they have of it; without offsets all of it.
  double flops() const override {
    const double all =
        2.0 * static_cast<double>(m()) * static_cast<double>(n()) * static_cast<double>(k());
    if (!params.offsets.rank) return all * static_cast<double>(groups());
    const int64_t axis = shares_rows() ? m() : shares_columns() ? n() : k();
    if (offsets.empty() || axis == 0) return all;
    int64_t end = 0;
    for (const int64_t offset : offsets) end = std::max(end, std::min(offset, axis));
    return all / static_cast<double>(axis) * static_cast<double>(end);
  }

  std::vector<std::pair<std::string, std::string>> description() const override {
    return {{"dtype", flydsl_aot_dtype_name(params.a.dtype)},
            {"d_dtype", flydsl_aot_dtype_name(params.d.dtype)},
            {"axis", shares_rows()      ? "rows"
                     : shares_columns() ? "columns"
                     : shares_k()       ? "k"
                                        : "none"},
            {"groups", std::to_string(groups())},
            {"m", std::to_string(m())},
            {"n", std::to_string(n())},
            {"k", std::to_string(k())},
            {"offsets", format_numbers(offsets)},
            {"a_order", a_order},
            {"b_order", b_order},
            {"d_order", d_order},
            {"dtype_b", flydsl_aot_dtype_name(params.b.dtype)},
            {"scales", !params.a_scale.rank                                     ? "none"
                       : params.scale_layout == FLYDSL_AOT_SCALES_SHUFFLED_32_8 ? "shuffled"
                                                                                : "plain"},
            {"bias", params.bias.rank ? flydsl_aot_dtype_name(params.bias.dtype) : "none"}};
  }
};

// The order of a matrix's axes in its file; `rows_first` is the one of the mathematical sizes.
std::string order_of(const Settings &settings, const char *name, const char *rows_first,
                     const char *columns_first) {
  const auto found = settings.find(name);
  if (found == settings.end()) return rows_first;
  return parse_choice(name, found->second, {{rows_first, 0}, {columns_first, 1}}) ? columns_first
                                                                                  : rows_first;
}

void swap_last_axes(flydsl_aot_tensor *tensor) {
  const int last = tensor->rank - 1;
  std::swap(tensor->sizes[last - 1], tensor->sizes[last]);
  std::swap(tensor->strides[last - 1], tensor->strides[last]);
}

std::unique_ptr<Problem> bind(const HostArrays &inputs, const std::vector<std::string> &,
                              const Settings &settings) {
  auto problem = std::make_unique<GroupedGemmProblem>();
  flydsl_aot_grouped_gemm_params &params = problem->params;
  problem->a_order = order_of(settings, "a_order", "mk", "km");
  problem->b_order = order_of(settings, "b_order", "kn", "nk");
  problem->d_order = order_of(settings, "d_order", "mn", "nm");
  InputBinder binder(inputs, problem.get());
  binder.bind("a", &params.a, 2, 3, "row, k, or group, row, k (or as a_order says)");
  binder.bind("b", &params.b, 2, 3, "k, column, or group, k, column (or as b_order says)");
  binder.bind("a_scale", &params.a_scale, 2, 3, "row, block of k, or group, row, block of k");
  binder.bind("b_scale", &params.b_scale, 2, 3, "column, block of k, or group, column, block of k");
  binder.bind("offsets", &params.offsets, 1, 1, "group");
  binder.bind("bias", &params.bias, 1, 2, "column, or group, column");
  if (problem->a_order == "km") swap_last_axes(&params.a);
  if (problem->b_order == "nk") swap_last_axes(&params.b);
  problem->offsets = binder.numbers("offsets");

  std::vector<int64_t> shape = {problem->m(), problem->n()};
  if (problem->d_order == "nm") std::swap(shape[0], shape[1]);
  if (params.a.rank == params.b.rank) shape.insert(shape.begin(), problem->groups());
  const bool scaled = params.a.dtype == FLYDSL_AOT_E4M3 || params.a.dtype == FLYDSL_AOT_E5M2;
  params.d =
      view_of(dtype_setting("out_dtype", settings, scaled ? FLYDSL_AOT_BF16 : params.a.dtype),
              shape, kBhsd);
  if (problem->d_order == "nm") swap_last_axes(&params.d);
  problem->outputs.push_back({"d", &params.d, shape});
  const auto layout = settings.find("scales");
  if (layout != settings.end())
    params.scale_layout = parse_choice(
        "scales", layout->second,
        {{"plain", FLYDSL_AOT_SCALES_PLAIN}, {"shuffled", FLYDSL_AOT_SCALES_SHUFFLED_32_8}});

  problem->settings = {std::string("dtype = ") + flydsl_aot_dtype_name(params.a.dtype),
                       std::string("dtype_b = ") + flydsl_aot_dtype_name(params.b.dtype),
                       std::string("out_dtype = ") + flydsl_aot_dtype_name(params.d.dtype),
                       "a_order = " + problem->a_order,
                       "b_order = " + problem->b_order,
                       "d_order = " + problem->d_order};
  if (params.a_scale.rank)
    problem->settings.push_back(
        std::string("scales = ") +
        (params.scale_layout == FLYDSL_AOT_SCALES_SHUFFLED_32_8 ? "shuffled" : "plain"));
  if (params.offsets.rank) {
    problem->settings.push_back("offsets = " + (problem->offsets.empty()
                                                    ? std::string("from a file")
                                                    : format_numbers(problem->offsets)));
  }
  return problem;
}

}  // namespace

const Operator &grouped_gemm_operator() {
  static const Operator op = {
      "grouped_gemm",
      "A B of many groups that share an axis, cut where offsets say, in one launch",
      {{"a", "(M, K), or (G, M, K)", true, "dtype"},
       {"b", "(K, N), or (G, K, N)", true, "dtype_b"},
       {"a_scale",
        "of e4m3 and e5m2: (M, K / 32), or (G, M, K / 32), E8M0 as uint8; shuffled: both padded",
        false, nullptr, Content::kScales},
       {"b_scale", "the same for b, with N rows", false, nullptr, Content::kScales},
       {"offsets",
        "(G), int32 or int64: where the groups end on the axis they share; absent where a and b "
        "have three axes",
        false, nullptr, Content::kNumbers},
       {"bias", "(N) or (G, N)", false, "bias_dtype"}},
      {{"d", "(M, N); (G, M, N) where a and b have equally many axes", true}},
      {{"dtype",
        "bf16 (default of shapes) | fp16 | e4m3 | e5m2: what arrays of a and b hold, and what "
        "shapes "
        "stand for"},
       {"dtype_b", "the same for b; default dtype"},
       {"out_dtype", "bf16 | fp16 | fp32; default dtype, of e4m3 and e5m2 bf16"},
       {"scales", "plain (default) | shuffled: in blocks of 32 rows and 8 columns"},
       {"bias_dtype", "bf16 | fp16 | fp32: the same for bias; default of shapes fp32"},
       {"a_order", "mk (default) | km: order of the last two axes of a in its file"},
       {"b_order", "kn (default) | nk: nk is that of the weight of a linear layer"},
       {"d_order", "mn (default) | nm"}},
      bind,
  };
  return op;
}

}  // namespace flydsl::tools
