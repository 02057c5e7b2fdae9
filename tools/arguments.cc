#include "tools/arguments.h"

#include <algorithm>
#include <charconv>

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

flydsl_aot_dtype dtype_setting(const char *parameter, const Settings &settings,
                               flydsl_aot_dtype fallback) {
  const auto found = settings.find(parameter);
  if (found == settings.end()) return fallback;
  return parse_choice(parameter, found->second,
                      {{"bf16", FLYDSL_AOT_BF16},
                       {"fp16", FLYDSL_AOT_FP16},
                       {"e4m3", FLYDSL_AOT_E4M3},
                       {"e5m2", FLYDSL_AOT_E5M2},
                       {"e2m1", FLYDSL_AOT_E2M1X2},
                       {"fp32", FLYDSL_AOT_FP32}});
}

namespace {

// What the input's own parameter says, or where that is not set --set dtype.
flydsl_aot_dtype pattern_dtype(const TensorSpec &input, const Settings &settings) {
  if (!input.dtype_parameter) return FLYDSL_AOT_DTYPE_INVALID;
  const flydsl_aot_dtype dtype = dtype_setting("dtype", settings, FLYDSL_AOT_DTYPE_INVALID);
  return dtype_setting(input.dtype_parameter, settings, dtype);
}

[[noreturn]] void refuse_patterns(const TensorSpec &input, const char *array, const char *first,
                                  const char *second) {
  if (!input.dtype_parameter) {
    bad_input(std::string("--in ") + input.name + ": is a " + array +
              " array, whose bit patterns are not taken here: " + input.help);
  }
  const std::string set = std::string("--set ") + input.dtype_parameter + "=";
  bad_input(std::string("--in ") + input.name + ": a " + array +
            " array holds bit patterns; say which with " + set + first + " or " + set + second);
}

}  // namespace

flydsl_aot_dtype array_dtype(const TensorSpec &input, const std::string &descr,
                             const Settings &settings) {
  const flydsl_aot_dtype patterns = pattern_dtype(input, settings);
  if (descr == "<u2") {
    if (patterns == FLYDSL_AOT_BF16 || patterns == FLYDSL_AOT_FP16) return patterns;
    refuse_patterns(input, "uint16", "bf16", "fp16");
  }
  if (descr == "|u1") {
    if (input.content == Content::kScales) return FLYDSL_AOT_E8M0;
    if (patterns == FLYDSL_AOT_E4M3 || patterns == FLYDSL_AOT_E5M2 ||
        patterns == FLYDSL_AOT_E2M1X2)
      return patterns;
    refuse_patterns(input, "uint8", "e4m3", "e5m2");
  }
  if (descr == "<f2") {
    if (patterns == FLYDSL_AOT_BF16) {
      bad_input(std::string("--in ") + input.name +
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
  bad_input(std::string("--in ") + input.name + ": arrays of NumPy type '" + descr +
            "' are not taken");
}

flydsl_aot_dtype shape_dtype(const TensorSpec &input, const Settings &settings) {
  switch (input.content) {
    case Content::kNumbers:
    case Content::kBlocks:
      return FLYDSL_AOT_INT32;
    case Content::kOneNumber:
      return FLYDSL_AOT_INT64;
    case Content::kBooleans:
      return FLYDSL_AOT_BOOL;
    case Content::kScales:
      return FLYDSL_AOT_E8M0;
    default:
      break;
  }
  // A bias is fp32 unless it is said to be of out's type.
  const std::string parameter = input.dtype_parameter ? input.dtype_parameter : "";
  if (parameter.empty()) return FLYDSL_AOT_FP32;
  if (parameter == "bias_dtype") return dtype_setting("bias_dtype", settings, FLYDSL_AOT_FP32);
  const flydsl_aot_dtype dtype = dtype_setting("dtype", settings, FLYDSL_AOT_BF16);
  return dtype_setting(parameter.c_str(), settings, dtype);
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

std::vector<int64_t> parse_numbers(const std::string &name, const std::string &text) {
  std::vector<int64_t> numbers;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string number = text.substr(begin, end - begin);
    int32_t value = 0;
    const auto [stop, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (error != std::errc() || stop != number.data() + number.size()) {
      bad_input("--set " + name + "=" + text + ": must be 32-bit integers such as 5,9,1");
    }
    numbers.push_back(value);
    begin = end + 1;
  }
  return numbers;
}

}  // namespace flydsl::tools
