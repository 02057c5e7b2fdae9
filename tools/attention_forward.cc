#include "tools/attention_forward.h"

#include <algorithm>
#include <utility>

#include "tools/attention_sequences.h"

namespace flydsl::tools {
namespace {

using AttentionForwardCalls =
    ProblemOf<flydsl_aot_attention_forward_params, flydsl_aot_attention_forward_query,
              flydsl_aot_attention_forward_explain, flydsl_aot_attention_forward_prefetch,
              flydsl_aot_attention_forward>;

class AttentionForwardProblem final : public AttentionForwardCalls {
 public:
  flydsl_aot_tensor seed{}, offset{}, seed_out{}, offset_out{};
  int64_t batches = 0, longest_k = 0;
  std::vector<int64_t> lengths_k;  // of each sequence, if they are told
  std::vector<Sequences> sequences;

  // Two products over the pairs of query and key that mask and lengths leave, as the published figures count
  // them (a causal mask halves the work); softmax is not counted.
  double flops() const override {
    const int heads = params.q.rank - 3;
    return 2.0 * static_cast<double>(params.q.sizes[heads]) *
           visible_pairs(params.mask, sequences) *
           static_cast<double>(params.q.sizes[heads + 2] + params.v.sizes[params.v.rank - 1]);
  }
  std::vector<std::pair<std::string, std::string>> description() const override {
    const auto size = [](const flydsl_aot_tensor &tensor, int axis) {
      return std::to_string(tensor.sizes[axis - (4 - tensor.rank)]);
    };
    const int heads = params.q.rank - 3;
    std::vector<std::pair<std::string, std::string>> all = {
        {"dtype", flydsl_aot_dtype_name(params.q.dtype)},
        {"batch", std::to_string(batches)},
        {"heads_q", size(params.q, 1)},
        {"heads_kv", size(params.k, 1)},
        {"seqlen_q", size(params.q, 2)},
        {"seqlen_k", params.block_table.rank ? std::to_string(longest_k) : size(params.k, 2)},
        {"head_dim", size(params.q, 3)},
        {"head_dim_v", size(params.v, 3)},
        {"causal", causal_name(params.mask)},
        {"layout", params.q.strides[heads] < params.q.strides[heads + 1] ? "bshd" : "bhsd"},
        {"features", features()}};
    if (params.block_table.rank) {
      all.emplace_back("block_size", size(params.k, 2));
      all.emplace_back("seqused_k", format_numbers(lengths_k));
    }
    for (const BoundTensor &input : inputs) {
      if (input.name == "bias" || input.name == "visible")
        all.emplace_back(input.name, std::string(flydsl_aot_dtype_name(input.tensor->dtype)) + " " +
                                         format_shape(input.file_shape));
    }
    return all;
  }

 private:
  flydsl_aot_attention_forward_params complete() const override {
    flydsl_aot_attention_forward_params all = params;
    all.dropout_seed_device = number_at(seed, 8);
    all.dropout_offset_device = number_at(offset, 16);
    all.dropout_seed_out = const_cast<uint64_t *>(number_at(seed_out, 24));
    all.dropout_offset_out = const_cast<uint64_t *>(number_at(offset_out, 32));
    return all;
  }

  // What the description does not tell: kernels that know nothing of it compute something else.
  std::string features() const {
    std::string names;
    for (const BoundTensor &input : inputs) {
      if (input.name != "q" && input.name != "k" && input.name != "v")
        names += (names.empty() ? "" : ",") + input.name;
    }
    if (params.softcap != 0) names += names.empty() ? "softcap" : ",softcap";
    if (params.dropout_p != 0) names += names.empty() ? "dropout" : ",dropout";
    return names.empty() ? "none" : names;
  }
};

void bind_outputs(AttentionForwardProblem &problem, const std::vector<std::string> &wanted,
                  const std::vector<int64_t> &q_shape, const std::vector<int64_t> &v_shape,
                  int64_t longest_q, int64_t longest_k, Layout layout, flydsl_aot_dtype dtype) {
  flydsl_aot_attention_forward_params &params = problem.params;
  std::vector<int64_t> out_shape = q_shape;
  out_shape.back() = v_shape.back();
  params.out = view_of(dtype, out_shape, layout);
  problem.outputs.push_back({"out", &params.out, out_shape});
  const auto bind = [&](const char *name, flydsl_aot_tensor *tensor, flydsl_aot_dtype type,
                        const std::vector<int64_t> &shape) {
    if (std::find(wanted.begin(), wanted.end(), name) == wanted.end()) return;
    *tensor = view_of(type, shape, kBhsd);
    problem.outputs.push_back({name, tensor, shape});
  };
  const int64_t heads = params.q.sizes[params.q.rank - 3];
  bind("lse", &params.lse, FLYDSL_AOT_FP32, {params.q.sizes, params.q.sizes + params.q.rank - 1});
  bind("kept", &params.kept, FLYDSL_AOT_BOOL, {problem.batches, heads, longest_q, longest_k});
  bind("dropout_seed_out", &problem.seed_out, FLYDSL_AOT_INT64, {1});
  bind("dropout_offset_out", &problem.offset_out, FLYDSL_AOT_INT64, {1});
}

std::unique_ptr<Problem> bind(const HostArrays &inputs, const std::vector<std::string> &outputs,
                              const Settings &settings) {
  auto problem = std::make_unique<AttentionForwardProblem>();
  flydsl_aot_attention_forward_params &params = problem->params;
  std::vector<std::string> &used = problem->settings;
  const Layout layout = layout_of(settings);
  InputBinder binder(inputs, problem.get());
  const bool packed_q = binder.given("cu_seqlens_q"), packed_k = binder.given("cu_seqlens_k");
  const bool paged = binder.given("block_table");
  binder.bind_sequences("q", &params.q, packed_q, layout);
  binder.bind_sequences("k", &params.k, packed_k, layout);
  binder.bind_sequences("v", &params.v, packed_k, layout);
  binder.bind("cu_seqlens_q", &params.cu_seqlens_q, 1, 1, "batch + 1");
  binder.bind("cu_seqlens_k", &params.cu_seqlens_k, 1, 1, "batch + 1");
  binder.bind("seqused_q", &params.seqused_q, 1, 1, "batch");
  binder.bind("seqused_k", &params.seqused_k, 1, 1, "batch");
  binder.bind("block_table", &params.block_table, 2, 2, "batch, block");
  binder.bind("bias", &params.bias, 4, 4, "batch, head, query, key");
  binder.bind("visible", &params.visible, 4, 4, "batch, head, query, key");
  binder.bind("alibi_slopes", &params.alibi_slopes, 1, 2, "head, or batch, head");
  binder.bind("sinks", &params.sinks, 1, 1, "head");
  binder.bind("q_descale", &params.q_descale, 1, 2, "head, or batch, head");
  binder.bind("k_descale", &params.k_descale, 1, 2, "head, or batch, head");
  binder.bind("v_descale", &params.v_descale, 1, 2, "head, or batch, head");
  binder.bind("dropout_seed", &problem->seed, 1, 1, "one number");
  binder.bind("dropout_offset", &problem->offset, 1, 1, "one number");

  used.push_back(std::string("dtype = ") + flydsl_aot_dtype_name(params.q.dtype));
  params.scale = scale_of(settings, params.q.sizes[params.q.rank - 1], used);
  params.mask = mask_of(settings, used);
  params.softcap = number_of(settings, "softcap", 0, used);
  params.dropout_p = number_of(settings, "dropout_p", 0, used);
  Lengths rows = {binder.numbers("cu_seqlens_q"), binder.numbers("seqused_q")};
  Lengths keys = {binder.numbers("cu_seqlens_k"), binder.numbers("seqused_k")};
  params.max_seqlen_q = integer_of(settings, "max_seqlen_q", longest_of(rows.starts), used);
  params.max_seqlen_k = integer_of(settings, "max_seqlen_k", longest_of(keys.starts), used);
  used.push_back(layout == kBhsd ? "layout = bhsd" : "layout = bshd");

  problem->batches =
      packed_q ? std::max<int64_t>(params.cu_seqlens_q.sizes[0] - 1, 0) : params.q.sizes[0];
  rows.longest = packed_q ? params.max_seqlen_q : params.q.sizes[2];
  keys.longest = packed_k ? params.max_seqlen_k : params.k.sizes[2];
  if (paged && !packed_k)
    keys.longest = paged_room(params.block_table, params.k, params.max_seqlen_k);
  problem->longest_k = keys.longest;
  problem->lengths_k = keys.used;
  problem->sequences = sequences_of(problem->batches, rows, keys);
  bind_outputs(*problem, outputs, inputs.at("q").shape, inputs.at("v").shape, rows.longest,
               keys.longest, layout, out_dtype_of(params.q.dtype, settings));
  return problem;
}

std::vector<ParameterSpec> parameters() {
  std::vector<ParameterSpec> all = shared_parameters();
  all.push_back({"bias_dtype", "fp32 (default of shapes) | bf16 | fp16: what bias holds"});
  all.push_back({"dropout_p", "probability that a weight is dropped; default 0"});
  all.push_back(
      {"max_seqlen_q", "the longest sequence of queries; default what cu_seqlens_q says"});
  return all;
}

}  // namespace

const Operator &attention_forward_operator() {
  static const Operator op = {
      "attention_forward",
      "softmax(scale * Q K^T + bias, masked) V",
      {{"q", "(B, Hq, Sq, D), packed (Hq, total, D)", true, "dtype"},
       {"k", "(B, Hkv, Sk, D), packed (Hkv, total, D), paged (blocks, Hkv, block size, D)", true,
        "kv_dtype"},
       {"v", "as k, with head dim Dv", true, "kv_dtype"},
       {"cu_seqlens_q", "(B + 1), int32: q is packed; where its sequences begin and end", false,
        nullptr, Content::kNumbers},
       {"cu_seqlens_k", "(B + 1), int32: the same for k and v", false, nullptr, Content::kNumbers},
       {"seqused_q", "(B), int32: rows of each sequence; default all", false, nullptr,
        Content::kNumbers},
       {"seqused_k", "(B), int32: keys of each sequence; default all", false, nullptr,
        Content::kNumbers},
       {"block_table", "(B, blocks of a sequence), int32: paged keys; needs seqused_k", false,
        nullptr, Content::kBlocks},
       {"bias", "(B, Hq, Sq, Sk), added to the scores; any axis may be 1", false, "bias_dtype"},
       {"visible", "(B, Hq, Sq, Sk), bool: keys that may be seen; any axis may be 1", false,
        nullptr, Content::kBooleans},
       {"alibi_slopes", "(Hq) or (B, Hq), float32", false, nullptr, Content::kSlopes},
       {"sinks", "(Hq), float32: logits without a value", false},
       {"q_descale", "(1), (H) or (B, H), float32: what 8-bit q is multiplied by", false, nullptr,
        Content::kFactors},
       {"k_descale", "the same for k", false, nullptr, Content::kFactors},
       {"v_descale", "the same for v", false, nullptr, Content::kFactors},
       {"dropout_seed", "(1), int64: the seed", false, nullptr, Content::kOneNumber},
       {"dropout_offset", "(1), int64: the offset", false, nullptr, Content::kOneNumber}},
      {{"out", "as q, with head dim Dv", true},
       {"lse", "(B, Hq, Sq), packed (Hq, total), float32, natural logarithm", false},
       {"kept", "(B, Hq, Sq, Sk), bool: the weights that dropout kept", false},
       {"dropout_seed_out", "(1), int64: the seed that was used", false},
       {"dropout_offset_out", "(1), int64: the offset that was used", false}},
      parameters(),
      bind,
  };
  return op;
}

}  // namespace flydsl::tools
