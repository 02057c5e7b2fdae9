#include "tools/attention_backward.h"

#include <algorithm>
#include <utility>

#include "tools/arguments.h"
#include "tools/attention_sequences.h"
#include "tools/exit_status.h"

namespace flydsl::tools {
namespace {

using AttentionBackwardCalls =
    ProblemOf<flydsl_aot_attention_backward_params, flydsl_aot_attention_backward_query,
              flydsl_aot_attention_backward_explain, flydsl_aot_attention_backward_prefetch,
              flydsl_aot_attention_backward>;

class AttentionBackwardProblem final : public AttentionBackwardCalls {
 public:
  flydsl_aot_tensor seed{}, offset{};
  int64_t batches = 0;
  std::vector<Sequences> sequences;

  // Of the five products over the pairs of query and key that mask and lengths leave, those that the wanted
  // gradients need: q k and dout v, then one for each of dq, dk and dv. All of them are 2.5 times the forward call's, as
  // the published figures count (the second and third computation of a product is not counted).
  double flops() const override {
    const double dim = static_cast<double>(params.q.sizes[params.q.rank - 1]);
    const double dim_v = static_cast<double>(params.v.sizes[params.v.rank - 1]);
    double products = dim + dim_v;
    if (params.dq.rank) products += dim;
    if (params.dk.rank) products += dim;
    if (params.dv.rank) products += dim_v;
    const double heads = static_cast<double>(params.q.sizes[params.q.rank - 3]);
    return 2.0 * heads * visible_pairs(params.mask, sequences) * products;
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
        {"seqlen_k", size(params.k, 2)},
        {"head_dim", size(params.q, 3)},
        {"head_dim_v", size(params.v, 3)},
        {"causal", causal_name(params.mask)},
        {"layout", params.q.strides[heads] < params.q.strides[heads + 1] ? "bshd" : "bhsd"},
        {"features", features()}};
    for (const BoundTensor &input : inputs) {
      if (input.name == "bias" || input.name == "visible")
        all.emplace_back(input.name, std::string(flydsl_aot_dtype_name(input.tensor->dtype)) + " " +
                                         format_shape(input.file_shape));
    }
    return all;
  }

 private:
  flydsl_aot_attention_backward_params complete() const override {
    flydsl_aot_attention_backward_params all = params;
    all.dropout_seed_device = number_at(seed, 8);
    all.dropout_offset_device = number_at(offset, 16);
    return all;
  }

  // What the description does not tell: kernels that know nothing of it compute something else.
  std::string features() const {
    std::string names;
    const auto add = [&](const std::string &name) { names += (names.empty() ? "" : ",") + name; };
    const char *told[] = {"q", "k", "v", "out", "lse", "dout"};
    for (const BoundTensor &input : inputs) {
      if (std::find(std::begin(told), std::end(told), input.name) == std::end(told))
        add(input.name);
    }
    if (params.softcap != 0) add("softcap");
    if (params.dropout_p != 0) add("dropout");
    for (const BoundTensor &output : outputs)
      if (output.name == "dbias" || output.name == "dsinks") add(output.name);
    if (!params.dq.rank || !params.dk.rank || !params.dv.rank) add("some gradients");
    return names.empty() ? "none" : names;
  }
};

// dbias has bias's shape: summed wherever bias is broadcast.
void bind_outputs(AttentionBackwardProblem &problem, std::vector<std::string> wanted,
                  const HostArrays &inputs, const Settings &settings, Layout layout) {
  flydsl_aot_attention_backward_params &params = problem.params;
  if (wanted.empty()) wanted = {"dq", "dk", "dv"};
  const auto bind = [&](const char *name, flydsl_aot_tensor *tensor, const char *of,
                        flydsl_aot_dtype dtype, Layout order) {
    if (std::find(wanted.begin(), wanted.end(), name) == wanted.end()) return;
    const auto like = inputs.find(of);
    if (like == inputs.end()) bad_input("--out " + std::string(name) + ": there is no " + of);
    *tensor = view_of(dtype, like->second.shape, order);
    problem.outputs.push_back({name, tensor, like->second.shape});
  };
  const flydsl_aot_dtype dtype = params.q.dtype;
  bind("dq", &params.dq, "q", dtype, layout);
  bind("dk", &params.dk, "k", dtype, layout);
  bind("dv", &params.dv, "v", dtype, layout);
  bind("dbias", &params.dbias, "bias", dtype_setting("dbias_dtype", settings, FLYDSL_AOT_FP32),
       kBhsd);
  bind("dsinks", &params.dsinks, "sinks", FLYDSL_AOT_FP32, kBhsd);
}

std::unique_ptr<Problem> bind(const HostArrays &inputs, const std::vector<std::string> &outputs,
                              const Settings &settings) {
  auto problem = std::make_unique<AttentionBackwardProblem>();
  flydsl_aot_attention_backward_params &params = problem->params;
  std::vector<std::string> &used = problem->settings;
  const Layout layout = layout_of(settings);
  InputBinder binder(inputs, problem.get());
  const bool packed_q = binder.given("cu_seqlens_q"), packed_k = binder.given("cu_seqlens_k");
  binder.bind_sequences("q", &params.q, packed_q, layout);
  binder.bind_sequences("k", &params.k, packed_k, layout);
  binder.bind_sequences("v", &params.v, packed_k, layout);
  binder.bind_sequences("out", &params.out, packed_q, layout);
  binder.bind_sequences("dout", &params.dout, packed_q, layout);
  binder.bind("lse", &params.lse, packed_q ? 2 : 3, 3, "batch, head, query; packed head, token");
  binder.bind("cu_seqlens_q", &params.cu_seqlens_q, 1, 1, "batch + 1");
  binder.bind("cu_seqlens_k", &params.cu_seqlens_k, 1, 1, "batch + 1");
  binder.bind("seqused_q", &params.seqused_q, 1, 1, "batch");
  binder.bind("seqused_k", &params.seqused_k, 1, 1, "batch");
  binder.bind("bias", &params.bias, 4, 4, "batch, head, query, key");
  binder.bind("visible", &params.visible, 4, 4, "batch, head, query, key");
  binder.bind("alibi_slopes", &params.alibi_slopes, 1, 2, "head, or batch, head");
  binder.bind("sinks", &params.sinks, 1, 1, "head");
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
  problem->sequences = sequences_of(problem->batches, rows, keys);
  bind_outputs(*problem, outputs, inputs, settings, layout);
  return problem;
}

std::vector<ParameterSpec> parameters() {
  std::vector<ParameterSpec> all = {
      {"dtype",
       "bf16 (default of shapes) | fp16: what uint16 arrays hold, and what shapes stand for "
       "(float16 arrays are themselves)"},
      {"bias_dtype", "fp32 (default of shapes) | bf16 | fp16: what bias holds"},
      {"dbias_dtype", "fp32 (default) | bf16 | fp16"},
      {"dropout_p", "probability that a weight is dropped; default 0"},
      {"max_seqlen_q", "the longest sequence of queries; default what cu_seqlens_q says"}};
  for (const ParameterSpec &shared : shared_parameters()) {
    const std::string name = shared.name;
    if (name != "dtype" && name != "kv_dtype" && name != "out_dtype") all.push_back(shared);
  }
  return all;
}

}  // namespace

const Operator &attention_backward_operator() {
  static const Operator op = {
      "attention_backward",
      "the gradients of attention_forward",
      {{"q", "(B, Hq, Sq, D), packed (Hq, total, D)", true, "dtype"},
       {"k", "(B, Hkv, Sk, D), packed (Hkv, total, D)", true, "dtype"},
       {"v", "as k, with head dim Dv", true, "dtype"},
       {"out", "as q, with head dim Dv: the forward call's", true, "dtype"},
       {"lse", "(B, Hq, Sq), packed (Hq, total) or (B, Hq, max_seqlen_q), float32: the same", true},
       {"dout", "as out: its gradient", true, "dtype"},
       {"cu_seqlens_q", "(B + 1), int32: q is packed; where its sequences begin and end", false,
        nullptr, Content::kNumbers},
       {"cu_seqlens_k", "(B + 1), int32: the same for k and v", false, nullptr, Content::kNumbers},
       {"seqused_q", "(B), int32: rows of each sequence; default all", false, nullptr,
        Content::kNumbers},
       {"seqused_k", "(B), int32: keys of each sequence; default all", false, nullptr,
        Content::kNumbers},
       {"bias", "(B, Hq, Sq, Sk), added to the scores; any axis may be 1", false, "bias_dtype"},
       {"visible", "(B, Hq, Sq, Sk), bool: keys that may be seen; any axis may be 1", false,
        nullptr, Content::kBooleans},
       {"alibi_slopes", "(Hq) or (B, Hq), float32", false, nullptr, Content::kSlopes},
       {"sinks", "(Hq), float32: logits without a value", false},
       {"dropout_seed", "(1), int64: the forward call's", false, nullptr, Content::kOneNumber},
       {"dropout_offset", "(1), int64: the same", false, nullptr, Content::kOneNumber}},
      {{"dq", "as q", false},
       {"dk", "as k", false},
       {"dv", "as v", false},
       {"dbias", "as bias: summed over the axes that are 1", false},
       {"dsinks", "(Hq), float32", false}},
      parameters(),
      bind,
  };
  return op;
}

}  // namespace flydsl::tools
