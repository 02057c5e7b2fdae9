#include "tools/problem_arguments.h"

#include <algorithm>

#include "tools/exit_status.h"

namespace flydsl::tools {

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
  for (const auto &[name, file] : bound.files)
    arrays[name] = {array_dtype(name, file.descr, settings), file.shape};
  for (const std::string &name : tensors) {
    const auto shape = settings.find(name);
    if (shape == settings.end()) continue;
    if (arrays.count(name))
      bad_input("--set " + name + "=" + shape->second + ": is also given with --in");
    arrays[name] = {dtype_setting(settings, FLYDSL_AOT_BF16), parse_shape(name, shape->second)};
    settings.erase(shape);
  }
  for (const TensorSpec &input : op.inputs) {
    if (input.required && !arrays.count(input.name)) {
      bad_input(std::string("--in ") + input.name + "=FILE or --set " + input.name +
                "=SHAPE is missing: " + input.help);
    }
  }
  bound.problem = op.bind(arrays, arguments.outputs, settings);
  return bound;
}

}  // namespace flydsl::tools
