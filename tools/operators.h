// What the commands know about an operator. A new operator is one file that defines
// an Operator and one line in operators.cc.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "flydsl_aot/flydsl_aot.h"

namespace flydsl::tools {

// An input as it lies in a file or as `explain` is told: dense, in C order.
struct HostArray {
  flydsl_aot_dtype dtype = FLYDSL_AOT_DTYPE_INVALID;
  std::vector<int64_t> shape;
  std::vector<int64_t> numbers;  // the elements of one axis of int32, such as lengths
};

using Settings = std::map<std::string, std::string>;  // the --set arguments
using HostArrays = std::map<std::string, HostArray>;

// One tensor of a bound problem: the library's view of it and the shape its file has.
struct BoundTensor {
  std::string name;
  flydsl_aot_tensor *tensor = nullptr;  // points into the problem; the caller fills in `data`
  std::vector<int64_t> file_shape;
};

// Refuses a tensor of 2^64 bytes or more.
uint64_t bytes_of(const BoundTensor &tensor);

// An operator's parameters, filled from arrays and settings; only the data pointers are missing.
class Problem {
 public:
  virtual ~Problem() = default;
  virtual flydsl_aot_status query(flydsl_aot_handle *handle,
                                  flydsl_aot_query_result *result) const = 0;
  virtual flydsl_aot_status explain(flydsl_aot_handle *handle,
                                    flydsl_aot_candidate_callback callback, void *user) const = 0;
  // Loads the kernels that `launch` needs.
  virtual flydsl_aot_status prefetch(flydsl_aot_handle *handle) const = 0;
  virtual flydsl_aot_status launch(flydsl_aot_handle *handle, void *stream = nullptr) const = 0;
  virtual void set_workspace(void *data, uint64_t bytes) = 0;
  // Whether a later launch of the call takes addresses or counts from what an earlier one wrote: a model of it then has to run
  // all of that one's work-groups.
  virtual bool launches_depend_on_data() const { return false; }
  // Multiplications and additions of the definition: what a benchmark divides by the time.
  virtual double flops() const = 0;
  // Names and values that describe the problem to those who launch other kernels on it
  // (test/emulator/peers/timing.py); empty if there are none.
  virtual std::vector<std::pair<std::string, std::string>> description() const { return {}; }

  std::vector<BoundTensor> inputs;
  std::vector<BoundTensor> outputs;   // only those that are wanted
  std::vector<std::string> settings;  // every parameter as used, "name = value", defaults marked
};

// A problem of the operator that has these parameters and functions.
template <class OperatorParams, auto kQuery, auto kExplain, auto kPrefetch, auto kCall>
class ProblemOf : public Problem {
 public:
  OperatorParams params{};

  ProblemOf() { params.struct_size = sizeof params; }

  flydsl_aot_status query(flydsl_aot_handle *handle,
                          flydsl_aot_query_result *result) const override {
    const OperatorParams all = complete();
    return kQuery(handle, &all, result);
  }
  flydsl_aot_status explain(flydsl_aot_handle *handle, flydsl_aot_candidate_callback callback,
                            void *user) const override {
    const OperatorParams all = complete();
    return kExplain(handle, &all, callback, user);
  }
  flydsl_aot_status prefetch(flydsl_aot_handle *handle) const override {
    const OperatorParams all = complete();
    return kPrefetch(handle, &all);
  }
  flydsl_aot_status launch(flydsl_aot_handle *handle, void *stream) const override {
    const OperatorParams all = complete();
    return kCall(handle, &all, stream);
  }
  void set_workspace([[maybe_unused]] void *data, [[maybe_unused]] uint64_t bytes) override {
    if constexpr (requires { params.workspace; }) {
      params.workspace = data;
      params.workspace_bytes = bytes;
    }
  }

 protected:
  // The parameters as the functions are given them.
  virtual OperatorParams complete() const { return params; }
};

// What an input holds that is given by its shape (tools/input_data.cc).
enum class Content {
  kNormal,    // normally distributed numbers
  kBooleans,  // half of them true
  kFactors,   // between 1/2 and 2
  kSlopes,    // those of ALiBi: 2^(-8 (h + 1) / H) along the last axis
  kNumbers,   // int32, given as a list (5,9,1) and not by a shape
  kBlocks,    // int32: the numbers of the blocks of k, shuffled
  kOneNumber,  // int64, given as a number
  kScales      // e8m0: powers of two, varied
};

struct TensorSpec {
  const char *name;
  const char *help;
  bool required;
  // The parameter that says what the array's bit patterns are, and what a shape stands for. Without one:
  // fp32, or what `content` says.
  const char *dtype_parameter = nullptr;
  Content content = Content::kNormal;
};

struct ParameterSpec {
  const char *name;
  const char *help;
};

struct Operator {
  const char *name;
  const char *summary;
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;
  std::vector<ParameterSpec> parameters;
  // Required inputs are present and every name is known. Throws ToolError on what the tool itself
  // can tell to be wrong; what the library checks is left to the library.
  std::unique_ptr<Problem> (*bind)(const HostArrays &inputs,
                                   const std::vector<std::string> &outputs,
                                   const Settings &settings);
};

const std::vector<const Operator *> &all_operators();
// Throws ToolError that lists the operators if there is none of that name.
const Operator &find_operator(const std::string &name);
// Parameters and tensors of an operator, for --help and for `flydsl-aot run OP --help`.
std::string describe_operator(const Operator &op);

// Readers of --set values; each throws ToolError that names the parameter, the value and what is
// allowed.
float parse_float(const std::string &name, const std::string &text);
int64_t parse_integer(const std::string &name, const std::string &text);
int parse_choice(const std::string &name, const std::string &text,
                 const std::vector<std::pair<std::string, int>> &choices);
std::string format_shape(const std::vector<int64_t> &shape);
std::string format_numbers(const std::vector<int64_t> &numbers);  // "5,9,1"

}  // namespace flydsl::tools
