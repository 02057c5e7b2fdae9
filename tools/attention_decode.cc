#include "tools/attention_decode.h"

#include <algorithm>
#include <utility>

#include "tools/attention_arguments.h"
#include "tools/exit_status.h"

namespace flydsl::tools {
namespace {

using AttentionDecodeCalls =
    ProblemOf<flydsl_aot_attention_decode_params, flydsl_aot_attention_decode_query,
              flydsl_aot_attention_decode_explain, flydsl_aot_attention_decode_prefetch,
              flydsl_aot_attention_decode>;

class AttentionDecodeProblem final : public AttentionDecodeCalls {
 public:
  // Two products over the pairs of query and key that mask and lengths leave.
  double flops() const override {
    const int64_t rows = params.q.sizes[2];
    double pairs = 0;
    for (const int64_t keys : lengths_k) pairs += visible_pairs(params.mask, rows, keys);
    if (lengths_k.empty()) {
      pairs = static_cast<double>(params.q.sizes[0]) * visible_pairs(params.mask, rows, longest_k);
    }
    return 2.0 * static_cast<double>(params.q.sizes[1]) * pairs *
           static_cast<double>(params.q.sizes[3] + params.v.sizes[3]);
  }
  std::vector<std::pair<std::string, std::string>> description() const override {
    const auto size = [](const flydsl_aot_tensor &tensor, int axis) {
      return std::to_string(tensor.sizes[axis]);
    };
    return {{"dtype", flydsl_aot_dtype_name(params.q.dtype)},
            {"kv_dtype", flydsl_aot_dtype_name(params.k.dtype)},
            {"batch", size(params.q, 0)},
            {"heads_q", size(params.q, 1)},
            {"heads_kv", size(params.k, 1)},
            {"seqlen_q", size(params.q, 2)},
            {"seqlen_k", std::to_string(longest_k)},
            {"seqused_k", format_numbers(lengths_k)},
            {"block_size", params.block_table.rank ? size(params.k, 2) : "0"},
            {"head_dim", size(params.q, 3)},
            {"head_dim_v", size(params.v, 3)},
            {"causal", causal_name(params.mask)},
            {"layout", params.q.strides[1] < params.q.strides[2] ? "bshd" : "bhsd"},
            {"features", features()}};
  }

  int64_t longest_k = 0;
  std::vector<int64_t> lengths_k;  // of each sequence, if they are told
  bool v_in_k = false;

 private:
  flydsl_aot_attention_decode_params complete() const override {
    flydsl_aot_attention_decode_params all = params;
    // A query compares the two and reads neither: any address stands for keys that are not there.
    if (v_in_k && !all.k.data) all.k.data = reinterpret_cast<void *>(uintptr_t{4096});
    if (v_in_k) all.v.data = all.k.data;
    return all;
  }

  // What the description does not tell.
  std::string features() const {
    std::string names = params.softcap != 0 ? "softcap" : "";
    for (const BoundTensor &input : inputs) {
      if (input.name != "alibi_slopes" && input.name != "sinks") continue;
      names += (names.empty() ? "" : ",") + input.name;
    }
    return names.empty() ? "none" : names;
  }
};

std::unique_ptr<Problem> bind(const HostArrays &inputs, const std::vector<std::string> &outputs,
                              const Settings &settings) {
  auto problem = std::make_unique<AttentionDecodeProblem>();
  flydsl_aot_attention_decode_params &params = problem->params;
  std::vector<std::string> &used = problem->settings;
  const Layout layout = layout_of(settings);
  InputBinder binder(inputs, problem.get());
  binder.bind_sequences("q", &params.q, false, layout);
  binder.bind_sequences("k", &params.k, false, layout);
  if (const auto inside = settings.find("v_in_k"); inside == settings.end()) {
    if (!inputs.count("v")) bad_input("--in v=FILE, --set v=SHAPE or --set v_in_k=DV is missing");
    binder.bind_sequences("v", &params.v, false, layout);
  } else {
    if (inputs.count("v")) bad_input("--set v_in_k=" + inside->second + ": v is given, too");
    params.v = params.k;
    params.v.sizes[3] = parse_integer("v_in_k", inside->second);
    if (params.v.sizes[3] < 1 || params.v.sizes[3] > params.k.sizes[3])
      bad_input("--set v_in_k=" + inside->second + ": must be 1 to k's head dim, " +
                std::to_string(params.k.sizes[3]));
    problem->v_in_k = true;
    used.push_back("v_in_k = " + inside->second);
  }
  binder.bind("seqused_k", &params.seqused_k, 1, 1, "batch");
  binder.bind("block_table", &params.block_table, 2, 2, "batch, block");
  binder.bind("alibi_slopes", &params.alibi_slopes, 1, 2, "head, or batch, head");
  binder.bind("sinks", &params.sinks, 1, 1, "head");
  binder.bind("k_descale", &params.k_descale, 1, 2, "head, or batch, head");
  binder.bind("v_descale", &params.v_descale, 1, 2, "head, or batch, head");

  std::vector<int64_t> out_shape(params.q.sizes, params.q.sizes + 3);
  if (std::find(outputs.begin(), outputs.end(), "lse") != outputs.end()) {
    params.lse = view_of(FLYDSL_AOT_FP32, out_shape, kBhsd);
    problem->outputs.push_back({"lse", &params.lse, out_shape});
  }
  out_shape = inputs.at("q").shape;
  out_shape.back() = params.v.sizes[3];
  params.out = view_of(out_dtype_of(params.q.dtype, settings), out_shape, layout);
  problem->outputs.insert(problem->outputs.begin(), {"out", &params.out, out_shape});

  used.push_back(std::string("dtype = ") + flydsl_aot_dtype_name(params.q.dtype));
  params.scale = scale_of(settings, params.q.sizes[3], used);
  params.mask = mask_of(settings, used);
  params.softcap = number_of(settings, "softcap", 0, used);
  params.max_seqlen_k = integer_of(settings, "max_seqlen_k", 0, used);
  used.push_back(layout == kBhsd ? "layout = bhsd" : "layout = bshd");

  problem->longest_k = params.k.sizes[2];
  if (params.block_table.rank)
    problem->longest_k = paged_room(params.block_table, params.k, params.max_seqlen_k);
  for (const int64_t keys : binder.numbers("seqused_k"))
    problem->lengths_k.push_back(std::clamp<int64_t>(keys, 0, problem->longest_k));
  return problem;
}

std::vector<ParameterSpec> parameters() {
  std::vector<ParameterSpec> all = shared_parameters();
  all.push_back({"v_in_k", "Dv, without v: the values are the first Dv elements of the keys"});
  return all;
}

}  // namespace

const Operator &attention_decode_operator() {
  static const Operator op = {
      "attention_decode",
      "softmax(scale * Q K^T, masked) V of a few queries over a long key-value cache",
      {{"q", "(B, Hq, Sq, D), Sq up to 16", true, "dtype"},
       {"k", "(B, Hkv, Sk, D), or with block_table (blocks, Hkv, block size, D)", true, "kv_dtype"},
       {"v", "(B, Hkv, Sk, Dv), or with block_table (blocks, Hkv, block size, Dv)", false,
        "kv_dtype"},
       {"seqused_k", "(B), int32: keys of each sequence; default all", false, nullptr,
        Content::kNumbers},
       {"block_table", "(B, blocks of a sequence), int32: paged keys; needs seqused_k", false,
        nullptr, Content::kBlocks},
       {"alibi_slopes", "(Hq) or (B, Hq), float32", false, nullptr, Content::kSlopes},
       {"sinks", "(Hq), float32: logits without a value", false},
       {"k_descale", "(1), (Hkv) or (B, Hkv), float32: what 8-bit k is multiplied by", false,
        nullptr, Content::kFactors},
       {"v_descale", "the same for v", false, nullptr, Content::kFactors}},
      {{"out", "(B, Hq, Sq, Dv), dtype as q", true},
       {"lse", "(B, Hq, Sq), float32, natural logarithm", false}},
      parameters(),
      bind,
  };
  return op;
}

}  // namespace flydsl::tools
