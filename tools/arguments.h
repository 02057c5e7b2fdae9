// The command line's NAME=VALUE arguments, checked against an operator.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/npy.h"
#include "tools/operators.h"

namespace flydsl::tools {

// Options of every command that opens the library.
struct OpenArguments {
  // "" where nothing is given.
  std::string device{};  // "hip", "emulator" or "none"
  std::string device_library{};  // that HIP's functions are taken from
  std::string arch{};
  std::string archive{};
  std::string force_kernel{};  // names with commas
  std::string backends{};      // names with commas
  std::string jit{};           // "on" or "off"
};

// Splits NAME=VALUE texts; refuses a missing name or value, a name that is not `allowed`, and a
// name given twice. `option` is the option they came from, for the message.
std::map<std::string, std::string> parse_assignments(const char *option,
                                                     const std::vector<std::string> &texts,
                                                     const std::vector<std::string> &allowed);

std::vector<std::string> names_of(const std::vector<TensorSpec> &tensors);
std::vector<std::string> names_of(const std::vector<ParameterSpec> &parameters);
// Refuses if a required one is absent.
void require_tensors(const char *option, const std::vector<TensorSpec> &tensors,
                     const std::map<std::string, std::string> &given);

// Reads the files of --in arguments; the message names argument and file.
std::map<std::string, NpyArray> read_inputs(const std::map<std::string, std::string> &files);

// The element type of an input's array: its own if NumPy has it, else what the input's parameter says its bit
// patterns are.
flydsl_aot_dtype array_dtype(const TensorSpec &input, const std::string &descr,
                             const Settings &settings);
// The element type of an input that is given by its shape.
flydsl_aot_dtype shape_dtype(const TensorSpec &input, const Settings &settings);
// The NumPy type in which elements of `dtype` are written.
std::string descr_of(flydsl_aot_dtype dtype);
// --set `parameter`, or `fallback` if it is not set.
flydsl_aot_dtype dtype_setting(const char *parameter, const Settings &settings,
                               flydsl_aot_dtype fallback);

// "1x9x509x64"
std::vector<int64_t> parse_shape(const std::string &name, const std::string &text);
// "5,9,1": each within int32
std::vector<int64_t> parse_numbers(const std::string &name, const std::string &text);

}  // namespace flydsl::tools
