#include "tools/problem_arguments.h"

#include <algorithm>
#include <cstring>

#include "tools/exit_status.h"

namespace flydsl::tools {
namespace {

std::vector<int64_t> numbers_of(const NpyArray &array) {
  std::vector<int64_t> numbers;
  if (array.descr != "<i4" || array.shape.size() != 1) return numbers;
  for (size_t at = 0; at + sizeof(int32_t) <= array.bytes.size(); at += sizeof(int32_t)) {
    int32_t number;
    std::memcpy(&number, array.bytes.data() + at, sizeof number);
    numbers.push_back(number);
  }
  return numbers;
}

// An input that is described in place of being given.
HostArray described(const TensorSpec &input, const std::string &text, const Settings &settings) {
  HostArray array;
  array.dtype = shape_dtype(input, settings);
  if (input.content == Content::kNumbers) {
    array.numbers = parse_numbers(input.name, text);
  } else if (input.content == Content::kOneNumber) {
    array.numbers = {parse_integer(input.name, text)};
  } else {
    array.shape = parse_shape(input.name, text);
    return array;
  }
  array.shape = {static_cast<int64_t>(array.numbers.size())};
  return array;
}

}  // namespace

BoundProblem bind_problem(const ProblemArguments &arguments) {
  BoundProblem bound;
  bound.op = &find_operator(arguments.op);
  const Operator &op = *bound.op;
  const std::vector<std::string> tensors = names_of(op.inputs);
  std::vector<std::string> settable = names_of(op.parameters);
  settable.insert(settable.end(), tensors.begin(), tensors.end());
  const auto input_files = parse_assignments("--in", arguments.inputs, tensors);
  Settings settings = parse_assignments("--set", arguments.settings, settable);
  const std::vector<std::string> outputs = names_of(op.outputs);
  for (const std::string &output : arguments.outputs) {
    if (std::find(outputs.begin(), outputs.end(), output) == outputs.end())
      bad_input("--out " + output + ": is no output of " + op.name + " (here without a file)");
  }

  bound.files = read_inputs(input_files);
  HostArrays arrays;
  for (const TensorSpec &input : op.inputs) {
    const std::string name = input.name;
    const auto file = bound.files.find(name);
    const auto text = settings.find(name);
    if (file != bound.files.end()) {
      if (text != settings.end())
        bad_input("--set " + name + "=" + text->second + ": is also given with --in");
      const NpyArray &array = file->second;
      arrays[name] = {array_dtype(input, array.descr, settings), array.shape, numbers_of(array)};
    } else if (text != settings.end()) {
      arrays[name] = described(input, text->second, settings);
      if (!arrays[name].numbers.empty()) bound.numbers[name] = arrays[name].numbers;
      settings.erase(text);
    }
  }
  for (const TensorSpec &input : op.inputs) {
    if (input.required && !arrays.count(input.name)) {
      bad_input(std::string("--in ") + input.name + "=FILE or --set " + input.name +
                "=SHAPE is missing: " + input.help);
    }
  }
  bound.problem = op.bind(arrays, arguments.outputs, settings);
  for (const TensorSpec &output : op.outputs) {
    const std::string name = output.name;
    const auto is_it = [&](const BoundTensor &computed) { return computed.name == name; };
    const std::vector<BoundTensor> &computed = bound.problem->outputs;
    if (std::count(arguments.outputs.begin(), arguments.outputs.end(), name) != 0 &&
        std::none_of(computed.begin(), computed.end(), is_it))
      bad_input("--out " + name + ": these arguments give none: " + output.help);
  }
  return bound;
}

}  // namespace flydsl::tools
