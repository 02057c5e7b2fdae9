#include "tools/attention_decode.h"

#include <algorithm>
#include <utility>

#include "tools/attention_arguments.h"

namespace flydsl::tools {
namespace {

class AttentionDecodeProblem final : public Problem {
 public:
  flydsl_aot_attention_decode_params params{};

  AttentionDecodeProblem() { params.struct_size = sizeof params; }

  flydsl_aot_status query(flydsl_aot_handle *handle,
                          flydsl_aot_query_result *result) const override {
    return flydsl_aot_attention_decode_query(handle, &params, result);
  }
  flydsl_aot_status explain(flydsl_aot_handle *handle, flydsl_aot_candidate_callback callback,
                            void *user) const override {
    return flydsl_aot_attention_decode_explain(handle, &params, callback, user);
  }
  flydsl_aot_status launch(flydsl_aot_handle *handle) const override {
    return flydsl_aot_attention_decode(handle, &params, nullptr);
  }
  void set_workspace(void *data, uint64_t bytes) override {
    params.workspace = data;
    params.workspace_bytes = bytes;
  }
  // Two products over the pairs of query and key that a mask leaves of whole sequences.
  double flops() const override {
    const double keys = static_cast<double>(params.block_table.rank
                                                ? params.block_table.sizes[1] * params.k.sizes[2]
                                                : params.k.sizes[2]);
    const double left =
        params.mask.left == FLYDSL_AOT_UNLIMITED ? keys : static_cast<double>(params.mask.left) + 1;
    return 2.0 * static_cast<double>(params.q.sizes[0] * params.q.sizes[1] * params.q.sizes[2]) *
           std::min(keys, left) * static_cast<double>(params.q.sizes[3] + params.v.sizes[3]);
  }
};

std::unique_ptr<Problem> bind(const HostArrays &inputs, const std::vector<std::string> &outputs,
                              const Settings &settings) {
  auto problem = std::make_unique<AttentionDecodeProblem>();
  flydsl_aot_attention_decode_params &params = problem->params;
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
  if (const auto table = inputs.find("block_table"); table != inputs.end()) {
    check_axes("block_table", table->second, 2, "batch, block");
    params.block_table = view_of(table->second.dtype, table->second.shape, kBhsd);
    problem->inputs.push_back({"block_table", &params.block_table, table->second.shape});
  }
  if (const auto used = inputs.find("seqused_k"); used != inputs.end()) {
    check_axes("seqused_k", used->second, 1, "batch");
    params.seqused_k = view_of(used->second.dtype, used->second.shape, kBhsd);
    problem->inputs.push_back({"seqused_k", &params.seqused_k, used->second.shape});
  }

  std::vector<int64_t> out_shape(params.q.sizes, params.q.sizes + 3);
  if (std::find(outputs.begin(), outputs.end(), "lse") != outputs.end()) {
    params.lse = view_of(FLYDSL_AOT_FP32, out_shape, kBhsd);
    problem->outputs.push_back({"lse", &params.lse, out_shape});
  }
  out_shape.push_back(params.v.sizes[3]);
  if (layout == kBshd) std::swap(out_shape[1], out_shape[2]);
  params.out = view_of(params.q.dtype, out_shape, layout);
  problem->outputs.insert(problem->outputs.begin(), {"out", &params.out, out_shape});

  problem->settings.push_back(std::string("dtype = ") + flydsl_aot_dtype_name(params.q.dtype));
  params.scale = scale_of(settings, params.q.sizes[3], problem->settings);
  params.mask = mask_of(settings, problem->settings);
  if (const auto softcap = settings.find("softcap"); softcap != settings.end()) {
    params.softcap = parse_float("softcap", softcap->second);
    problem->settings.push_back("softcap = " + softcap->second);
  }
  problem->settings.push_back(layout == kBhsd ? "layout = bhsd" : "layout = bshd");
  return problem;
}

}  // namespace

const Operator &attention_decode_operator() {
  static const Operator op = {
      "attention_decode",
      "softmax(scale * Q K^T, masked) V of a few queries over a long key-value cache",
      {{"q", "(B, Hq, Sq, D), Sq up to 16", true},
       {"k", "(B, Hkv, Sk, D), or with block_table (blocks, Hkv, block size, D)", true},
       {"v", "(B, Hkv, Sk, Dv), or with block_table (blocks, Hkv, block size, Dv)", true},
       {"seqused_k", "(B), int32: keys of each sequence; default all", false},
       {"block_table", "(B, blocks of a sequence), int32: paged keys; needs seqused_k", false}},
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
       {"softcap", "number; default 0, none"},
       {"layout", "bhsd (default) | bshd: axis order of q, k, v and out in their files"}},
      bind,
  };
  return op;
}

}  // namespace flydsl::tools
