#include "tools/mx_quantise.h"

#include <limits>

#include "tools/arguments.h"
#include "tools/attention_arguments.h"
#include "tools/exit_status.h"

namespace flydsl::tools {
namespace {

using MxQuantiseCalls = ProblemOf<flydsl_aot_mx_quantise_params, flydsl_aot_mx_quantise_query,
                                  flydsl_aot_mx_quantise_explain, flydsl_aot_mx_quantise_prefetch,
                                  flydsl_aot_mx_quantise>;

class MxQuantiseProblem final : public MxQuantiseCalls {
 public:
  // A comparison and a product an element.
  double flops() const override {
    double elements = 2;
    for (int axis = 0; axis < params.x.rank; ++axis)
      elements *= static_cast<double>(params.x.sizes[axis]);
    return elements;
  }
};

std::unique_ptr<Problem> bind(const HostArrays &inputs, const std::vector<std::string> &,
                              const Settings &settings) {
  auto problem = std::make_unique<MxQuantiseProblem>();
  flydsl_aot_mx_quantise_params &params = problem->params;
  std::vector<std::string> &used = problem->settings;
  InputBinder binder(inputs, problem.get());
  binder.bind("x", &params.x, 2, 3, "row, k, or batch, row, k");
  const auto choice = [&](const char *name,
                          const std::vector<std::pair<std::string, int>> &choices) {
    const auto found = settings.find(name);
    if (found == settings.end()) return choices.front().second;
    used.push_back(std::string(name) + " = " + found->second);
    return parse_choice(name, found->second, choices);
  };
  params.rounding = choice("rounding", {{"nearest", FLYDSL_AOT_ROUND_NEAREST_EVEN},
                                        {"stochastic", FLYDSL_AOT_ROUND_STOCHASTIC}});
  params.scale_layout = choice("scales", {{"plain", FLYDSL_AOT_SCALES_PLAIN},
                                          {"shuffled", FLYDSL_AOT_SCALES_SHUFFLED_32_8}});
  params.seed = static_cast<uint64_t>(integer_of(settings, "seed", 0, used));
  params.offset = static_cast<uint64_t>(integer_of(settings, "offset", 0, used));
  const flydsl_aot_dtype out = dtype_setting("out_dtype", settings, FLYDSL_AOT_E4M3);
  used.push_back(std::string("out_dtype = ") + flydsl_aot_dtype_name(out));

  std::vector<int64_t> shape = inputs.at("x").shape, scales = shape;
  const size_t last = shape.size() - 1;
  scales[last] = shape[last] / 32;
  if (params.scale_layout == FLYDSL_AOT_SCALES_SHUFFLED_32_8) {
    // Sizes that cannot be padded are past the library's limits, which it says.
    const auto padded = [](int64_t size, int64_t to) {
      return size > std::numeric_limits<int64_t>::max() - to ? size : (size + to - 1) / to * to;
    };
    scales[last - 1] = padded(scales[last - 1], 32);
    scales[last] = padded(scales[last], 8);
  }
  if (out == FLYDSL_AOT_E2M1X2) shape[last] /= 2;
  params.out = view_of(out, shape, kBhsd);
  if (out == FLYDSL_AOT_E2M1X2) params.out.sizes[last] = params.x.sizes[last];
  params.scale = view_of(FLYDSL_AOT_E8M0, scales, kBhsd);
  problem->outputs.push_back({"out", &params.out, shape});
  problem->outputs.push_back({"scale", &params.scale, scales});
  return problem;
}

}  // namespace

const Operator &mx_quantise_operator() {
  static const Operator op = {
      "mx_quantise",
      "rows to OCP MX: elements of 8 or 4 bits, 32 neighbours share an E8M0 scale",
      {{"x", "(M, K) or (batch, M, K), K a multiple of 32", true, "dtype"}},
      {{"out", "as x, of e2m1 two a byte", true},
       {"scale", "(M, K / 32) or (batch, M, K / 32) as uint8; shuffled: both padded", true}},
      {{"dtype",
        "bf16 (default of shapes) | fp16 | fp32: what uint16 arrays hold, and what shapes stand "
        "for"},
       {"out_dtype", "e4m3 (default) | e5m2 | e2m1"},
       {"rounding", "nearest (default) | stochastic"},
       {"seed", "of stochastic rounding, default 0"},
       {"offset", "added to its counter, default 0"},
       {"scales", "plain (default) | shuffled: in blocks of 32 rows and 8 columns"}},
      bind,
  };
  return op;
}

}  // namespace flydsl::tools
