// hiprtc*: HIP source compiled at run time, by clang 22 in a process of its own.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "emulator/hip/current_device.h"
#include "emulator/hip/device.h"
#include "emulator/hip/handle_table.h"
#include "emulator/hip/hip_abi.h"
#include "emulator/hip/hiprtc_compiler.h"
#include "emulator/hip/hiprtc_keywords.h"
#include "emulator/loader/code_object.h"

namespace {

enum hiprtcResult : uint32_t {
  HIPRTC_SUCCESS = 0,
  HIPRTC_ERROR_OUT_OF_MEMORY = 1,
  HIPRTC_ERROR_PROGRAM_CREATION_FAILURE = 2,
  HIPRTC_ERROR_INVALID_INPUT = 3,
  HIPRTC_ERROR_INVALID_PROGRAM = 4,
  HIPRTC_ERROR_INVALID_OPTION = 5,
  HIPRTC_ERROR_COMPILATION = 6,
  HIPRTC_ERROR_BUILTIN_OPERATION_FAILURE = 7,
  HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION = 8,
  HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION = 9,
  HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID = 10,
  HIPRTC_ERROR_INTERNAL_ERROR = 11,
};

constexpr const char *kResultNames[] = {"HIPRTC_SUCCESS",
                                        "HIPRTC_ERROR_OUT_OF_MEMORY",
                                        "HIPRTC_ERROR_PROGRAM_CREATION_FAILURE",
                                        "HIPRTC_ERROR_INVALID_INPUT",
                                        "HIPRTC_ERROR_INVALID_PROGRAM",
                                        "HIPRTC_ERROR_INVALID_OPTION",
                                        "HIPRTC_ERROR_COMPILATION",
                                        "HIPRTC_ERROR_BUILTIN_OPERATION_FAILURE",
                                        "HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
                                        "HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
                                        "HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
                                        "HIPRTC_ERROR_INTERNAL_ERROR"};

using namespace flydsl::emu;
using namespace flydsl::emu::hip;

struct RtcProgram {
  std::mutex mutex;
  CompilerInput input;
  bool compiled = false;
  std::string log, code;
  std::vector<std::string> expressions;
  std::map<std::string, std::string> lowered;  // by expression
};

HandleTable<RtcProgram> &programs() {
  static auto *const table =
      new HandleTable<RtcProgram>;  // never destroyed, as with device_table()
  return *table;
}

template <typename Body>
hiprtcResult on_program(const void *handle, Body &&body) noexcept {
  try {
    const std::shared_ptr<RtcProgram> program = programs().find(handle);
    if (!program) return HIPRTC_ERROR_INVALID_PROGRAM;
    std::lock_guard<std::mutex> lock(program->mutex);
    return body(*program);
  } catch (const std::bad_alloc &) {
    return HIPRTC_ERROR_OUT_OF_MEMORY;
  } catch (...) {
    return HIPRTC_ERROR_INTERNAL_ERROR;
  }
}

bool begins(const std::string &text, const char *prefix) {
  return text.rfind(prefix, 0) == 0;
}

bool is_one_of(const std::string &text, std::initializer_list<const char *> list) {
  return std::any_of(list.begin(), list.end(), [&](const char *entry) { return text == entry; });
}

// What would make the compiler write, read or load something else than it is asked to here.
bool permitted(const std::string &option) {
  if (option[0] != '-' || is_one_of(option, {"-c", "-E", "-S", "-", "-emit-llvm", "-fsyntax-only"}))
    return false;
  for (const char *prefix :
       {"-o", "--output", "-x", "-Xclang", "-load", "-fplugin", "-fpass-plugin", "-wrapper",
        "--config", "-B", "-M", "-save-temps", "--save-temps"})
    if (begins(option, prefix)) return false;
  return true;
}

// Options as hipRTC takes them, for clang. False, with a line in the log, on one that is refused.
bool translate(int count, const char *const *options, std::vector<std::string> *words,
               std::string *log) {
  bool has_arch = false;
  for (int i = 0; i < count; ++i) {
    std::string option = options[i] == nullptr ? "" : options[i];
    if (option.empty()) continue;
    for (const char *prefix : {"--gpu-architecture=", "-arch="})
      if (begins(option, prefix)) option = "--offload-arch=" + option.substr(std::strlen(prefix));
    const bool has_next = i + 1 < count && options[i + 1] != nullptr;
    if (is_one_of(option, {"--gpu-architecture", "-arch", "--offload-arch"}) && has_next)
      option = std::string("--offload-arch=") + options[++i];
    if (!permitted(option)) {
      *log = "option \"" + option + "\" is not permitted\n";
      return false;
    }
    has_arch = has_arch || begins(option, "--offload-arch=");
    words->push_back(option);
    if (is_one_of(option, {"-I", "-D", "-U", "-isystem", "-include", "-mllvm"}) && has_next)
      words->emplace_back(options[++i]);
  }
  if (has_arch) return true;
  const auto &devices = device_table().devices;
  if (devices.empty()) {
    *log = "no --offload-arch option and no device\n";
    return false;
  }
  words->push_back(std::string("--offload-arch=") + devices[current_device()]->model->arch);
  return true;
}

std::string name_symbol(size_t index) {
  return "__flydsl_emu_name_" + std::to_string(index);
}

// Variables that hold the addresses of the named things make clang instantiate templates, and tell
// in the code object which symbols these became.
std::string with_names(const RtcProgram &program) {
  std::string source = std::string(kHiprtcKeywords) + "#line 1 \"" + program.input.name + "\"\n" +
                       program.input.source + "\n";
  for (size_t i = 0; i < program.expressions.size(); ++i)
    source +=
        "#line 1 \"name expression\"\nextern \"C\" __attribute__((device, used)) const void "
        "*const volatile " +
        name_symbol(i) + " = (const void *)(" + program.expressions[i] + ");\n";
  return source;
}

// Loads the code object as a device would and follows those variables.
bool find_lowered_names(RtcProgram *program) {
  if (program->expressions.empty()) return true;
  std::string error;
  const auto file = open_elf(program->code.data(), program->code.size(), &error);
  const std::unique_ptr<Image> image = file ? Image::load(*file, &error) : nullptr;
  if (!image) {
    program->log += error;
    return false;
  }
  for (size_t i = 0; i < program->expressions.size(); ++i) {
    const auto variable = image->symbols().find(name_symbol(i));
    uint64_t address = 0;
    if (variable == image->symbols().end() || !image->read(variable->second.offset, &address))
      return false;
    for (const auto &[name, symbol] : image->symbols())
      if (image->base() + symbol.offset == address && !begins(name, "__flydsl_emu_name_"))
        program->lowered[program->expressions[i]] = name;
    if (program->lowered.count(program->expressions[i]) == 0) return false;
  }
  return true;
}

hiprtcResult compile(RtcProgram &program, int count, const char *const *options) {
  if (count < 0 || (count > 0 && options == nullptr)) return HIPRTC_ERROR_INVALID_INPUT;
  program.compiled = false;
  program.log.clear();
  program.code.clear();
  program.lowered.clear();
  CompilerInput input = program.input;
  if (!translate(count, options, &input.options, &program.log)) return HIPRTC_ERROR_INVALID_OPTION;
  input.source = with_names(program);
  CompilerOutput output = run_device_compiler(input);
  program.log = std::move(output.log);
  if (!output.ran) return HIPRTC_ERROR_INTERNAL_ERROR;
  if (!output.ok) return HIPRTC_ERROR_COMPILATION;
  program.code = std::move(output.code);
  if (!find_lowered_names(&program)) return HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID;
  program.compiled = true;
  return HIPRTC_SUCCESS;
}

// In a #line directive.
std::string quotable(const char *name) {
  std::string text = name == nullptr || *name == 0 ? "CompileSource" : name;
  for (char &c : text)
    if (c == '"' || c == '\\' || static_cast<unsigned char>(c) < ' ') c = '_';
  return text;
}

}  // namespace

using hiprtcProgram = const void *;

FLYDSL_EMU_EXPORT const char *hiprtcGetErrorString(hiprtcResult result) {
  return result < std::size(kResultNames) ? kResultNames[result] : "HIPRTC_ERROR_UNKNOWN";
}

FLYDSL_EMU_EXPORT hiprtcResult hiprtcVersion(int *major, int *minor) {
  if (major == nullptr || minor == nullptr) return HIPRTC_ERROR_INVALID_INPUT;
  *major = 9;  // as AMD's since HIP 5
  *minor = 0;
  return HIPRTC_SUCCESS;
}

FLYDSL_EMU_EXPORT hiprtcResult hiprtcCreateProgram(hiprtcProgram *handle, const char *source,
                                                   const char *name, int header_count,
                                                   const char *const *headers,
                                                   const char *const *include_names) {
  if (handle == nullptr || source == nullptr || header_count < 0 ||
      (header_count > 0 && (headers == nullptr || include_names == nullptr)))
    return HIPRTC_ERROR_INVALID_INPUT;
  try {
    auto program = std::make_shared<RtcProgram>();
    program->input.source = source;
    program->input.name = quotable(name);
    for (int i = 0; i < header_count; ++i) {
      if (headers[i] == nullptr || include_names[i] == nullptr) return HIPRTC_ERROR_INVALID_INPUT;
      program->input.headers.emplace_back(include_names[i], headers[i]);
    }
    *handle = programs().add(std::move(program));
    return HIPRTC_SUCCESS;
  } catch (...) {
    return HIPRTC_ERROR_PROGRAM_CREATION_FAILURE;
  }
}

FLYDSL_EMU_EXPORT hiprtcResult hiprtcDestroyProgram(hiprtcProgram *handle) {
  if (handle == nullptr) return HIPRTC_ERROR_INVALID_INPUT;
  if (!programs().remove(*handle)) return HIPRTC_ERROR_INVALID_PROGRAM;
  *handle = nullptr;
  return HIPRTC_SUCCESS;
}

FLYDSL_EMU_EXPORT hiprtcResult hiprtcCompileProgram(hiprtcProgram handle, int count,
                                                    const char *const *options) {
  return on_program(handle, [&](RtcProgram &program) { return compile(program, count, options); });
}

FLYDSL_EMU_EXPORT hiprtcResult hiprtcAddNameExpression(hiprtcProgram handle,
                                                       const char *expression) {
  return on_program(handle, [&](RtcProgram &program) {
    if (expression == nullptr) return HIPRTC_ERROR_INVALID_INPUT;
    if (program.compiled) return HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION;
    program.expressions.emplace_back(expression);
    return HIPRTC_SUCCESS;
  });
}

FLYDSL_EMU_EXPORT hiprtcResult hiprtcGetLoweredName(hiprtcProgram handle, const char *expression,
                                                    const char **lowered) {
  return on_program(handle, [&](RtcProgram &program) {
    if (expression == nullptr || lowered == nullptr) return HIPRTC_ERROR_INVALID_INPUT;
    if (!program.compiled) return HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION;
    const auto found = program.lowered.find(expression);
    if (found == program.lowered.end()) return HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID;
    *lowered = found->second.c_str();
    return HIPRTC_SUCCESS;
  });
}

FLYDSL_EMU_EXPORT hiprtcResult hiprtcGetCodeSize(hiprtcProgram handle, size_t *bytes) {
  return on_program(handle, [&](RtcProgram &program) {
    if (bytes == nullptr) return HIPRTC_ERROR_INVALID_INPUT;
    if (!program.compiled) return HIPRTC_ERROR_INVALID_PROGRAM;
    *bytes = program.code.size();
    return HIPRTC_SUCCESS;
  });
}

FLYDSL_EMU_EXPORT hiprtcResult hiprtcGetCode(hiprtcProgram handle, char *code) {
  return on_program(handle, [&](RtcProgram &program) {
    if (code == nullptr) return HIPRTC_ERROR_INVALID_INPUT;
    if (!program.compiled) return HIPRTC_ERROR_INVALID_PROGRAM;
    std::memcpy(code, program.code.data(), program.code.size());
    return HIPRTC_SUCCESS;
  });
}

// With the terminating zero.
FLYDSL_EMU_EXPORT hiprtcResult hiprtcGetProgramLogSize(hiprtcProgram handle, size_t *bytes) {
  return on_program(handle, [&](RtcProgram &program) {
    if (bytes == nullptr) return HIPRTC_ERROR_INVALID_INPUT;
    *bytes = program.log.size() + 1;
    return HIPRTC_SUCCESS;
  });
}

FLYDSL_EMU_EXPORT hiprtcResult hiprtcGetProgramLog(hiprtcProgram handle, char *log) {
  return on_program(handle, [&](RtcProgram &program) {
    if (log == nullptr) return HIPRTC_ERROR_INVALID_INPUT;
    std::memcpy(log, program.log.c_str(), program.log.size() + 1);
    return HIPRTC_SUCCESS;
  });
}
