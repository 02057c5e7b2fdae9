#include "tools/attention_forward.h"

#include <algorithm>
#include <utility>

#include "tools/attention_arguments.h"

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

std::unique_ptr<Problem> bind(const HostArrays &inputs, const std::vector<std::string> &outputs,
                              const Settings &settings) {
  auto problem = std::make_unique<AttentionForwardProblem>();
  flydsl_aot_attention_forward_params &params = problem->params;
  const Layout layout = layout_of(settings);

  for (const auto &[name, tensor] :
       {std::pair{"q", &params.q}, std::pair{"k", &params.k}, std::pair{"v", &params.v}}) {
    const HostArray &array = inputs.at(name);
    check_axes(
        name, array, 4,
        layout == kBhsd ? "batch, head, sequence, head dim" : "batch, sequence, head, head dim");
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

  problem->settings.push_back(std::string("dtype = ") + flydsl_aot_dtype_name(params.q.dtype));
  params.scale = scale_of(settings, params.q.sizes[3], problem->settings);
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
