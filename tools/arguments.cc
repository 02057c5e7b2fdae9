#include "tools/arguments.h"

#include <algorithm>

#include "tools/exit_status.h"

namespace flydsl::tools {
namespace {

std::string join(const std::vector<std::string> &words) {
  std::string text;
  for (const std::string &word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

template <typename Spec>
std::vector<std::string> names(const std::vector<Spec> &specs) {
  std::vector<std::string> result;
  for (const Spec &spec : specs) result.push_back(spec.name);
  return result;
}

}  // namespace

std::map<std::string, std::string> parse_assignments(const char *option,
                                                     const std::vector<std::string> &texts,
                                                     const std::vector<std::string> &allowed) {
  std::map<std::string, std::string> result;
  for (const std::string &text : texts) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
      bad_input(std::string(option) + " " + text + ": must be NAME=VALUE");
    }
    const std::string name = text.substr(0, equals);
    if (std::find(allowed.begin(), allowed.end(), name) == allowed.end()) {
      bad_input(std::string(option) + " " + text + ": '" + name + "' is unknown; there is " +
                join(allowed));
    }
    if (!result.emplace(name, text.substr(equals + 1)).second) {
      bad_input(std::string(option) + " " + text + ": '" + name + "' is given twice");
    }
  }
  return result;
}

std::vector<std::string> names_of(const std::vector<TensorSpec> &tensors) {
  return names(tensors);
}
std::vector<std::string> names_of(const std::vector<ParameterSpec> &parameters) {
  return names(parameters);
}

void require_tensors(const char *option, const std::vector<TensorSpec> &tensors,
                     const std::map<std::string, std::string> &given) {
  for (const TensorSpec &tensor : tensors) {
    if (tensor.required && !given.count(tensor.name)) {
      bad_input(std::string(option) + " " + tensor.name + "=... is missing: " + tensor.help);
    }
  }
}

std::map<std::string, NpyArray> read_inputs(const std::map<std::string, std::string> &files) {
  std::map<std::string, NpyArray> arrays;
  for (const auto &[name, file] : files) {
    try {
      arrays[name] = read_npy(file);
    } catch (const std::bad_alloc &) {
      bad_input("--in " + name + "=" + file + ": does not fit into memory");
    } catch (const std::runtime_error &error) {
      bad_input("--in " + name + "=" + file + ": " + error.what());
    }
  }
  return arrays;
}

flydsl_aot_dtype dtype_setting(const Settings &settings, flydsl_aot_dtype fallback) {
  const auto found = settings.find("dtype");
  if (found == settings.end()) return fallback;
  return parse_choice("dtype", found->second,
                      {{"bf16", FLYDSL_AOT_BF16}, {"fp16", FLYDSL_AOT_FP16}});
}

flydsl_aot_dtype array_dtype(const std::string &name, const std::string &descr,
                             const Settings &settings) {
  const flydsl_aot_dtype patterns = dtype_setting(settings, FLYDSL_AOT_DTYPE_INVALID);
  if (descr == "<u2") {
    if (patterns == FLYDSL_AOT_DTYPE_INVALID) {
      bad_input("--in " + name +
                ": a uint16 array holds bit patterns; say which with --set dtype=bf16 or --set "
                "dtype=fp16");
    }
    return patterns;
  }
  if (descr == "<f2") {
    if (patterns == FLYDSL_AOT_BF16) {
      bad_input("--in " + name +
                ": is a float16 array, but --set dtype=bf16 was given; bf16 travels as uint16 bit "
                "patterns");
    }
    return FLYDSL_AOT_FP16;
  }
  if (descr == "<f4") return FLYDSL_AOT_FP32;
  if (descr == "<f8") return FLYDSL_AOT_FP64;
  if (descr == "<i4") return FLYDSL_AOT_INT32;
  if (descr == "<i8") return FLYDSL_AOT_INT64;
  if (descr == "|b1") return FLYDSL_AOT_BOOL;
  bad_input("--in " + name + ": arrays of NumPy type '" + descr + "' are not taken");
}

std::string descr_of(flydsl_aot_dtype dtype) {
  switch (dtype) {
    case FLYDSL_AOT_FP16:
      return "<f2";
    case FLYDSL_AOT_FP32:
      return "<f4";
    case FLYDSL_AOT_FP64:
      return "<f8";
    case FLYDSL_AOT_BF16:
      return "<u2";
    case FLYDSL_AOT_INT32:
      return "<i4";
    case FLYDSL_AOT_INT64:
      return "<i8";
    case FLYDSL_AOT_BOOL:
      return "|b1";
    default:
      return "|u1";
  }
}

std::vector<int64_t> parse_shape(const std::string &name, const std::string &text) {
  std::vector<int64_t> shape;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('x', begin), text.size());
    const std::string size = text.substr(begin, end - begin);
    const bool digits = !size.empty() && size.find_first_not_of("0123456789") == std::string::npos;
    if (!digits || shape.size() == FLYDSL_AOT_MAX_RANK) {
      bad_input("--set " + name + "=" + text + ": must be a shape such as 1x9x509x64");
    }
    shape.push_back(parse_integer(name, size));
    begin = end + 1;
  }
  return shape;
}

}  // namespace flydsl::tools
