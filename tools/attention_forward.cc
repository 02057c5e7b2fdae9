#include "tools/attention_forward.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "tools/exit_status.h"

namespace flydsl::tools {
namespace {

class AttentionForwardProblem final : public Problem {
 public:
  flydsl_aot_attention_forward_params params{};

  AttentionForwardProblem() { params.struct_size = sizeof params; }

  flydsl_aot_status query(flydsl_aot_handle *handle,
                          flydsl_aot_query_result *result) const override {
    return flydsl_aot_attention_forward_query(handle, &params, result);
  }
  flydsl_aot_status explain(flydsl_aot_handle *handle, flydsl_aot_candidate_callback callback,
                            void *user) const override {
    return flydsl_aot_attention_forward_explain(handle, &params, callback, user);
  }
  flydsl_aot_status launch(flydsl_aot_handle *handle) const override {
    return flydsl_aot_attention_forward(handle, &params, nullptr);
  }
  void set_workspace(void *data, uint64_t bytes) override {
    params.workspace = data;
    params.workspace_bytes = bytes;
  }
  // Two products over the visible pairs of query and key, as the published figures count them (a causal
  // mask halves the work); softmax is not counted.
  double flops() const override {
    return 2.0 * static_cast<double>(params.q.sizes[0]) * static_cast<double>(params.q.sizes[1]) *
           visible_pairs() * static_cast<double>(params.q.sizes[3] + params.v.sizes[3]);
  }
  std::vector<std::pair<std::string, std::string>> description() const override {
    const flydsl_aot_mask &mask = params.mask;
    const char *causal = mask.left == FLYDSL_AOT_UNLIMITED && mask.right == FLYDSL_AOT_UNLIMITED
                             ? "none"
                         : mask.left != FLYDSL_AOT_UNLIMITED || mask.right != 0 ? "other"
                         : mask.anchor == FLYDSL_AOT_ANCHOR_TOP_LEFT            ? "top-left"
                                                                                : "bottom-right";
    const auto size = [](const flydsl_aot_tensor &tensor, int axis) {
      return std::to_string(tensor.sizes[axis]);
    };
    return {{"dtype", flydsl_aot_dtype_name(params.q.dtype)},
            {"batch", size(params.q, 0)},
            {"heads_q", size(params.q, 1)},
            {"heads_kv", size(params.k, 1)},
            {"seqlen_q", size(params.q, 2)},
            {"seqlen_k", size(params.k, 2)},
            {"head_dim", size(params.q, 3)},
            {"head_dim_v", size(params.v, 3)},
            {"causal", causal},
            {"layout", params.q.strides[1] < params.q.strides[2] ? "bshd" : "bhsd"}};
  }

 private:
  double visible_pairs() const {
    const int64_t rows = params.q.sizes[2], keys = params.k.sizes[2];
    const flydsl_aot_mask &mask = params.mask;
    double pairs = 0;
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t diagonal =
          mask.anchor == FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT ? row + keys - rows : row;
      const int64_t first =
          mask.left == FLYDSL_AOT_UNLIMITED ? 0 : std::max<int64_t>(0, diagonal - mask.left);
      const int64_t last =
          mask.right == FLYDSL_AOT_UNLIMITED ? keys - 1 : std::min(keys - 1, diagonal + mask.right);
      pairs += static_cast<double>(std::max<int64_t>(0, last - first + 1));
    }
    return pairs;
  }
};

enum Layout { kBhsd, kBshd };

// A dense array in the given memory layout, as the library wants to see it: axes in (B, H, S, D)
// order.
flydsl_aot_tensor view_of(flydsl_aot_dtype dtype, const std::vector<int64_t> &shape,
                          Layout layout) {
  flydsl_aot_tensor tensor{};
  tensor.dtype = dtype;
  tensor.rank = static_cast<int32_t>(shape.size());
  int64_t stride = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    tensor.sizes[axis] = shape[axis];
    tensor.strides[axis] = stride;
    // Of an empty tensor the strides do not matter, but they must stay in range.
    if (__builtin_mul_overflow(stride, std::max<int64_t>(1, shape[axis]), &stride)) stride = 1;
  }
  if (layout == kBshd && tensor.rank == 4) {
    std::swap(tensor.sizes[1], tensor.sizes[2]);
    std::swap(tensor.strides[1], tensor.strides[2]);
  }
  return tensor;
}

flydsl_aot_mask mask_of(const Settings &settings, std::vector<std::string> &used) {
  const auto value = [&](const char *name) {
    const auto found = settings.find(name);
    return found == settings.end() ? nullptr : &found->second;
  };
  flydsl_aot_mask mask{FLYDSL_AOT_UNLIMITED, FLYDSL_AOT_UNLIMITED, FLYDSL_AOT_ANCHOR_NONE, 0};
  const std::string *causal = value("causal");
  if (causal) {
    if (value("left") || value("right") || value("anchor")) {
      bad_input("--set causal=" + *causal + ": give either causal or left, right and anchor");
    }
    mask.anchor = parse_choice("causal", *causal,
                               {{"none", FLYDSL_AOT_ANCHOR_NONE},
                                {"top-left", FLYDSL_AOT_ANCHOR_TOP_LEFT},
                                {"bottom-right", FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT}});
    if (mask.anchor != FLYDSL_AOT_ANCHOR_NONE) mask.right = 0;
    used.push_back("causal = " + *causal);
    return mask;
  }
  if (value("left")) mask.left = parse_integer("left", *value("left"));
  if (value("right")) mask.right = parse_integer("right", *value("right"));
  if (value("anchor")) {
    mask.anchor = parse_choice("anchor", *value("anchor"),
                               {{"top-left", FLYDSL_AOT_ANCHOR_TOP_LEFT},
                                {"bottom-right", FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT}});
  }
  if (!value("left") && !value("right")) {
    used.push_back("causal = none (default)");
  } else {
    used.push_back("left = " + std::to_string(mask.left) +
                   ", right = " + std::to_string(mask.right) +
                   ", anchor = " + (value("anchor") ? *value("anchor") : "not given"));
  }
  return mask;
}

std::unique_ptr<Problem> bind(const HostArrays &inputs, const std::vector<std::string> &outputs,
                              const Settings &settings) {
  auto problem = std::make_unique<AttentionForwardProblem>();
  flydsl_aot_attention_forward_params &params = problem->params;
  const auto layout_setting = settings.find("layout");
  const Layout layout = layout_setting == settings.end()
                            ? kBhsd
                            : static_cast<Layout>(parse_choice("layout", layout_setting->second,
                                                               {{"bhsd", kBhsd}, {"bshd", kBshd}}));

  for (const auto &[name, tensor] :
       {std::pair{"q", &params.q}, std::pair{"k", &params.k}, std::pair{"v", &params.v}}) {
    const HostArray &array = inputs.at(name);
    if (array.shape.size() != 4) {
      bad_input(std::string(name) + " has " + std::to_string(array.shape.size()) + " axes (" +
                format_shape(array.shape) + "); it must have 4: " +
                (layout == kBhsd ? "batch, head, sequence, head dim"
                                 : "batch, sequence, head, head dim"));
    }
    *tensor = view_of(array.dtype, array.shape, layout);
    problem->inputs.push_back({name, tensor, array.shape});
  }

  const int64_t batches = params.q.sizes[0], heads = params.q.sizes[1], rows = params.q.sizes[2];
  std::vector<int64_t> out_shape = {batches, heads, rows, params.v.sizes[3]};
  if (layout == kBshd) std::swap(out_shape[1], out_shape[2]);
  params.out = view_of(params.q.dtype, out_shape, layout);
  problem->outputs.push_back({"out", &params.out, out_shape});
  for (const std::string &output : outputs) {
    if (output != "lse") continue;
    const std::vector<int64_t> lse_shape = {batches, heads, rows};
    params.lse = view_of(FLYDSL_AOT_FP32, lse_shape, kBhsd);
    problem->outputs.push_back({"lse", &params.lse, lse_shape});
  }

  const auto scale = settings.find("scale");
  const int64_t head_dim = params.q.sizes[3];
  if (scale != settings.end()) {
    params.scale = parse_float("scale", scale->second);
  } else {
    params.scale =
        head_dim > 0 ? static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim))) : 1.0f;
  }
  char text[64];
  std::snprintf(text, sizeof text, "scale = %.9g%s", static_cast<double>(params.scale),
                scale == settings.end() ? " (default 1/sqrt(D))" : "");
  problem->settings.push_back(std::string("dtype = ") + flydsl_aot_dtype_name(params.q.dtype));
  problem->settings.push_back(text);
  params.mask = mask_of(settings, problem->settings);
  problem->settings.push_back(layout == kBhsd ? "layout = bhsd" : "layout = bshd");
  return problem;
}

}  // namespace

const Operator &attention_forward_operator() {
  static const Operator op = {
      "attention_forward",
      "softmax(scale * Q K^T, masked) V",
      {{"q", "(B, Hq, Sq, D)", true},
       {"k", "(B, Hkv, Sk, D)", true},
       {"v", "(B, Hkv, Sk, Dv)", true}},
      {{"out", "(B, Hq, Sq, Dv), dtype as the inputs", true},
       {"lse", "(B, Hq, Sq), float32, natural logarithm", false}},
      {{"dtype",
        "bf16 | fp16: what uint16 arrays hold (float16, float32 and float64 arrays are "
        "themselves)"},
       {"scale", "number; default 1/sqrt(D)"},
       {"causal", "none (default) | top-left | bottom-right"},
       {"left", "keys seen left of the diagonal; -1 (default) is unlimited"},
       {"right", "keys seen right of the diagonal; -1 (default) is unlimited"},
       {"anchor", "top-left | bottom-right: the diagonal that left and right count from"},
       {"layout", "bhsd (default) | bshd: axis order of q, k, v and out in their files"}},
      bind,
  };
  return op;
}

}  // namespace flydsl::tools
