// A problem from the --in, --set and --out arguments of the commands that take shapes in place of data.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tools/arguments.h"

namespace flydsl::tools {

struct ProblemArguments {
  std::string op;
  std::vector<std::string> inputs;    // NAME=FILE
  std::vector<std::string> settings;  // PARAM=VALUE, NAME=SHAPE or NAME=LIST
  std::vector<std::string> outputs;   // NAME
};

struct BoundProblem {
  const Operator *op = nullptr;
  std::unique_ptr<Problem> problem;
  std::map<std::string, NpyArray> files;                // of the inputs that were given with --in
  std::map<std::string, std::vector<int64_t>> numbers;  // of those that were given as lists
};

BoundProblem bind_problem(const ProblemArguments &arguments);

}  // namespace flydsl::tools
