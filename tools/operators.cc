#include "tools/operators.h"

#include <algorithm>
#include <charconv>

#include "tools/attention_backward.h"
#include "tools/attention_decode.h"
#include "tools/attention_forward.h"
#include "tools/exit_status.h"
#include "tools/grouped_gemm.h"
#include "tools/gemm.h"
#include "tools/layer_norm.h"
#include "tools/layer_norm_backward.h"
#include "tools/mx_quantise.h"
#include "tools/rms_norm.h"
#include "tools/rms_norm_backward.h"
#include "tools/scaled_gemm.h"
#include "tools/topk.h"
#include "tools/topk_softmax.h"

namespace flydsl::tools {

const std::vector<const Operator *> &all_operators() {
  static const std::vector<const Operator *> operators = {
      &attention_backward_operator(),
      &attention_decode_operator(),
      &attention_forward_operator(),
      &grouped_gemm_operator(),
      &gemm_operator(),
      &layer_norm_operator(),
      &layer_norm_backward_operator(),
      &mx_quantise_operator(),
      &rms_norm_operator(),
      &rms_norm_backward_operator(),
      &scaled_gemm_operator(),
      &topk_operator(),
      &topk_softmax_operator(),
  };
  return operators;
}

const Operator &find_operator(const std::string &name) {
  std::string known;
  for (const Operator *op : all_operators()) {
    if (name == op->name) return *op;
    if (!known.empty()) known += ", ";
    known += op->name;
  }
  bad_input("operator '" + name + "' is unknown; there is " + known);
}

std::string describe_operator(const Operator &op) {
  std::string text = op.name;
  text.append(": ").append(op.summary).append("\n");
  const auto line = [&](const char *option, const std::string &name, const char *help) {
    text.append("  ").append(option).append(" ").append(name);
    text.append(name.size() < 19 ? 19 - name.size() : 1, ' ').append(help).append("\n");
  };
  for (const TensorSpec &input : op.inputs) line("--in ", input.name, input.help);
  for (const TensorSpec &output : op.outputs) line("--out", output.name, output.help);
  for (const ParameterSpec &parameter : op.parameters)
    line("--set", parameter.name, parameter.help);
  return text;
}

uint64_t bytes_of(const BoundTensor &tensor) {
  uint64_t bytes = flydsl_aot_dtype_bytes(tensor.tensor->dtype);
  for (const int64_t size : tensor.file_shape) {
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes))
      bad_input(tensor.name + " of shape " + format_shape(tensor.file_shape) + " is too large");
  }
  return bytes;
}

namespace {

template <typename Number>
Number parse_number(const std::string &name, const std::string &text, const char *kind) {
  Number value{};
  const char *end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) {
    bad_input("--set " + name + "=" + text + ": not " + kind);
  }
  return value;
}

}  // namespace

float parse_float(const std::string &name, const std::string &text) {
  return parse_number<float>(name, text, "a number within the range of fp32");
}

int64_t parse_integer(const std::string &name, const std::string &text) {
  return parse_number<int64_t>(name, text, "a 64-bit integer");
}

int parse_choice(const std::string &name, const std::string &text,
                 const std::vector<std::pair<std::string, int>> &choices) {
  std::string allowed;
  for (const auto &[choice, value] : choices) {
    if (text == choice) return value;
    allowed += (allowed.empty() ? "" : ", ") + choice;
  }
  bad_input("--set " + name + "=" + text + ": must be one of " + allowed);
}

std::string format_shape(const std::vector<int64_t> &shape) {
  std::string text;
  for (const int64_t size : shape) {
    if (!text.empty()) text += 'x';
    text += std::to_string(size);
  }
  return text.empty() ? "scalar" : text;
}

std::string format_numbers(const std::vector<int64_t> &numbers) {
  std::string text;
  for (const int64_t number : numbers) {
    if (!text.empty()) text += ',';
    text += std::to_string(number);
  }
  return text;
}

}  // namespace flydsl::tools
