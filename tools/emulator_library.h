// The functions of the emulator that are no HIP functions, from the library that an opened handle
// uses.
#pragma once

#include <string>

#include "emulator/hip/flydsl_emu.h"
#include "tools/library_handle.h"

namespace flydsl::tools {

class EmulatorLibrary {
 public:
  // Throws ToolError if the handle is not on the emulator.
  explicit EmulatorLibrary(const LibraryHandle &library);
  ~EmulatorLibrary();
  EmulatorLibrary(const EmulatorLibrary &) = delete;
  EmulatorLibrary &operator=(const EmulatorLibrary &) = delete;

  // Throws ToolError if the library has no such function.
  template <typename Function>
  Function *find(const char *name) const {
    return reinterpret_cast<Function *>(find_symbol(name));
  }
  const std::string &path() const { return path_; }

 private:
  void *find_symbol(const char *name) const;

  std::string path_;
  void *library_ = nullptr;
};

#define FLYDSL_EMULATOR_FUNCTION(emulator, name) (emulator).find<decltype(name)>(#name)

}  // namespace flydsl::tools
