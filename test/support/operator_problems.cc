#include "test/support/operator_problems.h"

#include <algorithm>

#include "tools/exit_status.h"
#include "tools/input_data.h"

namespace flydsl::test {

const std::vector<ProblemLine> &operator_problems() {
  static const std::vector<ProblemLine> lines = {
      {"attention_forward",
       "attention_forward",
       {"q=1x4x150x128", "k=1x2x200x128", "v=1x2x200x128", "causal=bottom-right"},
       {"lse"},
       1},
      {"attention_forward_features",
       "attention_forward",
       {"q=3x4x40x64", "k=3x2x64x64", "v=3x2x64x64", "dtype=fp16", "bias=1x4x40x64",
        "seqused_k=64,0,21", "dropout_p=0.3", "dropout_seed=7", "dropout_offset=1"},
       {"lse"},
       1},
      {"attention_decode",
       "attention_decode",
       {"q=2x8x1x128", "k=2x2x700x128", "v=2x2x700x128", "seqused_k=700,33"},
       {"lse"},
       2},
      {"attention_backward",
       "attention_backward",
       {"q=1x2x40x128", "k=1x1x64x128", "v=1x1x64x128", "out=1x2x40x128", "dout=1x2x40x128",
        "lse=1x2x40"},
       {},
       3},
      {"attention_backward_features",
       "attention_backward",
       {"q=1x2x40x64", "k=1x1x64x64", "v=1x1x64x64", "out=1x2x40x64", "dout=1x2x40x64",
        "lse=1x2x40", "bias=1x2x40x64", "sinks=2"},
       {"dq", "dk", "dv", "dbias", "dsinks"},
       5},
      {"gemm", "gemm", {"a=100x96", "b=96x200", "bias_n=200", "activation=silu"}, {}, 1},
      {"gemm_in_parts", "gemm", {"a=40x2500", "b=2500x70"}, {}, 2},
      {"grouped_gemm", "grouped_gemm", {"a=100x64", "b=3x64x72", "offsets=30,30,95"}, {}, 1},
      {"scaled_gemm",
       "scaled_gemm",
       {"a=70x128", "b=90x128", "a_scale=70x4", "b_scale=90x4", "dtype=e4m3"},
       {},
       1},
      {"mx_quantise", "mx_quantise", {"x=70x128"}, {}, 1},
      {"rms_norm", "rms_norm", {"x=30x500", "weight=500"}, {"rstd"}, 1},
      {"layer_norm", "layer_norm", {"x=30x500", "weight=500", "bias=500"}, {"mean", "rstd"}, 1},
      {"rms_norm_backward",
       "rms_norm_backward",
       {"x=30x500", "dout=30x500", "rstd=30", "weight=500"},
       {"dx", "dweight"},
       2},
      {"layer_norm_backward",
       "layer_norm_backward",
       {"x=30x500", "dout=30x500", "rstd=30", "mean=30", "weight=500"},
       {"dx", "dweight", "dbias"},
       2},
      {"topk", "topk", {"x=20x1000", "k=8"}, {}, 1},
      {"topk_in_parts", "topk", {"x=2x100000", "k=200"}, {}, 2},
      {"topk_softmax", "topk_softmax", {"x=30x128", "k=8"}, {}, 1},
  };
  return lines;
}

const std::vector<ProblemLine> &other_ways() {
  static const std::vector<ProblemLine> lines = {
      {"attention_forward_packed_paged",
       "attention_forward",
       {"q=4x48x64", "k=6x2x16x64", "v=6x2x16x64", "dtype=fp16", "cu_seqlens_q=0,1,41,48",
        "max_seqlen_q=40", "seqused_k=33,20,16", "block_table=3x3", "causal=bottom-right"},
       {"lse"},
       1},
      {"attention_decode_latent",
       "attention_decode",
       {"q=2x16x1x576", "k=2x1x130x576", "v_in_k=512", "seqused_k=130,65"},
       {},
       2},
      {"attention_backward_together",
       "attention_backward",
       {"q=1x2x128x128", "k=1x2x128x128", "v=1x2x128x128", "out=1x2x128x128", "dout=1x2x128x128",
        "lse=1x2x128"},
       {},
       3},
      {"attention_backward_of_keys",
       "attention_backward",
       {"q=1x2x40x64", "k=1x1x64x64", "v=1x1x64x64", "out=1x2x40x64", "dout=1x2x40x64",
        "lse=1x2x40"},
       {"dk", "dv"},
       2},
      {"gemm_with_sums", "gemm", {"a=100x96", "b=96x200"}, {"d_sum_m", "d_sum_n"}, 3},
      {"gemm_in_parts_with_sums", "gemm", {"a=40x2500", "b=2500x70"}, {"d_sum_n"}, 3},
      {"gemm_batched_e4m3",
       "gemm",
       {"a=3x40x128", "b=3x128x72", "dtype=e4m3", "a_descale=1", "b_descale=1"},
       {},
       1},
      {"grouped_gemm_of_k", "grouped_gemm", {"a=64x100", "b=100x72", "offsets=30,30,95"}, {}, 1},
      {"scaled_gemm_in_parts",
       "scaled_gemm",
       {"a=16x32768", "b=64x32768", "a_scale=16x1024", "b_scale=64x1024", "dtype=e4m3"},
       {},
       2},
      {"mx_quantise_stochastic",
       "mx_quantise",
       {"x=70x128", "rounding=stochastic", "seed=5"},
       {},
       1},
      {"rms_norm_quantised",
       "rms_norm",
       {"x=30x500", "residual=30x500", "out_dtype=e4m3"},
       {"sum"},
       1},
      {"rms_norm_backward_of_long_rows",
       "rms_norm_backward",
       {"x=2x40000", "dout=2x40000", "rstd=2", "weight=40000", "dsum=2x40000"},
       {"dx", "dweight"},
       3},
      {"layer_norm_backward_of_long_rows",
       "layer_norm_backward",
       {"x=2x20000", "dout=2x20000", "rstd=2", "mean=2", "weight=20000"},
       {"dx", "dweight", "dbias"},
       3},
      {"topk_in_memory", "topk", {"x=3x9000", "k=4000"}, {}, 1},
  };
  return lines;
}

std::string operators_without_problem() {
  std::string missing;
  for (const tools::Operator *op : tools::all_operators()) {
    const auto &lines = operator_problems();
    if (std::none_of(lines.begin(), lines.end(),
                     [&](const ProblemLine &line) { return std::string(line.op) == op->name; }))
      missing += std::string(missing.empty() ? "" : ", ") + op->name;
  }
  return missing;
}

DeviceProblem::DeviceProblem(const tools::LibraryHandle &library, const ProblemLine &line)
    : library_(library) {
  std::vector<std::string> outputs = line.outputs;
  for (const tools::TensorSpec &output : tools::find_operator(line.op).outputs)
    if (output.required) outputs.push_back(output.name);
  bound_ = tools::bind_problem({line.op, {}, line.settings, outputs});
  for (const auto *tensors : {&problem().inputs, &problem().outputs})
    for (const tools::BoundTensor &tensor : *tensors)
      tensor.tensor->data =
          memory_.emplace_back(library_, tools::bytes_of(tensor), tensor.name).data();
  tools::upload_inputs(library_, bound_);
  for (const tools::BoundTensor &input : problem().inputs) {
    std::vector<uint8_t> &bytes = inputs_.emplace_back(tools::bytes_of(input));
    tools::check(
        flydsl_aot_device_download(library_.get(), bytes.data(), input.tensor->data, bytes.size()),
        input.name);
  }
  flydsl_aot_query_result answer{};
  answer.struct_size = sizeof answer;
  tools::check(query(library_.get(), &answer), line.name);
  workspace_bytes_ = answer.workspace_bytes;
  if (workspace_bytes_ > 0) {
    workspace_ = memory_.emplace_back(library_, workspace_bytes_, "workspace").data();
    set_workspace(workspace_, workspace_bytes_);
  }
  poison();
}

flydsl_aot_status DeviceProblem::query(flydsl_aot_handle *handle,
                                       flydsl_aot_query_result *result) const {
  return problem().query(handle, result);
}

flydsl_aot_status DeviceProblem::query(flydsl_aot_handle *handle) const {
  flydsl_aot_query_result result{};
  result.struct_size = sizeof result;
  const flydsl_aot_status status = query(handle, &result);
  return status == result.status ? status : FLYDSL_AOT_INTERNAL;
}

void DeviceProblem::poison() {
  const auto fill = [&](void *data, uint64_t bytes) {
    const std::vector<uint8_t> ones(bytes, 0xff);
    tools::check(flydsl_aot_device_upload(library_.get(), data, ones.data(), bytes), "poison");
  };
  for (const tools::BoundTensor &output : problem().outputs)
    fill(output.tensor->data, tools::bytes_of(output));
  if (workspace_) fill(workspace_, workspace_bytes_);
}

std::vector<std::vector<uint8_t>> DeviceProblem::results() {
  tools::check(flydsl_aot_device_synchronize(library_.get()), "wait");
  std::vector<std::vector<uint8_t>> all;
  for (const tools::BoundTensor &output : problem().outputs) {
    std::vector<uint8_t> &bytes = all.emplace_back(tools::bytes_of(output));
    tools::check(
        flydsl_aot_device_download(library_.get(), bytes.data(), output.tensor->data, bytes.size()),
        output.name);
  }
  return all;
}

bool DeviceProblem::outputs_are_poison() {
  for (const std::vector<uint8_t> &bytes : results())
    if (std::any_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte != 0xff; }))
      return false;
  return true;
}

void DeviceProblem::change_inputs(unsigned turn) {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const tools::BoundTensor &input = problem().inputs[i];
    std::vector<uint8_t> bytes = inputs_[i];
    if (!bound_.numbers.count(input.name) && !bytes.empty()) {
      const size_t element = flydsl_aot_dtype_bytes(input.tensor->dtype);
      const size_t elements = bytes.size() / element;
      std::rotate(bytes.begin(),
                  bytes.begin() + static_cast<ptrdiff_t>(turn * 37 % elements * element),
                  bytes.end());
    }
    tools::check(
        flydsl_aot_device_upload(library_.get(), input.tensor->data, bytes.data(), bytes.size()),
        input.name);
  }
}

}  // namespace flydsl::test
