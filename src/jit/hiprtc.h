// hipRTC: HIP source to a code object, by a library that is loaded when it is first needed.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "src/device/api.h"
#include "src/jit/key.h"
#include "src/status/status.h"

namespace flydsl::jit {

class Hiprtc {
 public:
  // Finds the library: the one that FLYDSL_AOT_HIPRTC_LIBRARY names, and no other if it does; with the emulator the emulator; else
  // one that is already in the process, then the one beside the HIP runtime, then libhiprtc.so of its major version, then the
  // runtime itself, where hipRTC was until HIP 6. It stays loaded. COMPILER_NOT_FOUND, with all that was tried; COMPILE_FAILED if
  // it does not compile a few lines that say its version.
  static Status open(const device::Api &device, Hiprtc *hiprtc);

  const std::string &path() const { return path_; }
  // Versions of hipRTC and of the compiler in it.
  const std::string &version() const { return version_; }

  // Compiles the first source; the others are its headers. COMPILE_FAILED, with the beginning of the compiler's messages.
  Status compile(std::span<const Source> sources, std::span<const char *const> options,
                 std::vector<unsigned char> *image) const;

 private:
  using Program = struct HiprtcProgram *;
  using Result = int;

  Status load(const char *path, int mode);
  Status read_version(const device::Api &device);

  const char *(*get_error_string_)(Result) = nullptr;
  Result (*get_version_)(int *, int *) = nullptr;
  Result (*create_program_)(Program *, const char *, const char *, int, const char *const *,
                            const char *const *) = nullptr;
  Result (*destroy_program_)(Program *) = nullptr;
  Result (*compile_program_)(Program, int, const char *const *) = nullptr;
  Result (*get_code_size_)(Program, size_t *) = nullptr;
  Result (*get_code_)(Program, char *) = nullptr;
  Result (*get_log_size_)(Program, size_t *) = nullptr;
  Result (*get_log_)(Program, char *) = nullptr;
  std::string path_, version_;
};

}  // namespace flydsl::jit
