#include "tools/emulator_library.h"

#include <dlfcn.h>

#include "tools/exit_status.h"

namespace flydsl::tools {

EmulatorLibrary::EmulatorLibrary(const LibraryHandle &library) {
  const flydsl_aot_info info = library.info();
  if (info.device != FLYDSL_AOT_DEVICE_EMULATOR)
    bad_input("this needs --device emulator; the device is " + describe_device(info));
  path_ = info.device_library;
  // The one that the handle has loaded already.
  library_ = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library_) throw ToolError(kExitFailure, dlerror());
}

EmulatorLibrary::~EmulatorLibrary() {
  if (library_) dlclose(library_);
}

void *EmulatorLibrary::find_symbol(const char *name) const {
  void *found = dlsym(library_, name);
  if (!found)
    throw ToolError(kExitFailure,
                    path_ + ": has no " + name + "; another version of the emulator?");
  return found;
}

}  // namespace flydsl::tools
