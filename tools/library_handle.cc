#include "tools/library_handle.h"

#include <cstdlib>
#include <string_view>

#include "tools/exit_status.h"

namespace flydsl::tools {

flydsl_aot_status LibraryHandle::try_open(const OpenArguments &arguments) {
  flydsl_aot_open_options options{};
  options.struct_size = sizeof options;
  options.device = arguments.device == "hip"        ? FLYDSL_AOT_DEVICE_HIP
                   : arguments.device == "emulator" ? FLYDSL_AOT_DEVICE_EMULATOR
                   : arguments.device == "none"     ? FLYDSL_AOT_DEVICE_NONE
                                                    : FLYDSL_AOT_DEVICE_DEFAULT;
  const char *environment = std::getenv("FLYDSL_AOT_DEVICE");
  const std::string_view device = !arguments.device.empty() ? std::string_view(arguments.device)
                                  : environment             ? std::string_view(environment)
                                                            : std::string_view();
  // Without a device the library must be told an architecture.
  options.arch = !arguments.arch.empty() ? arguments.arch.c_str()
                 : device == "none"      ? kDefaultArch
                                         : nullptr;
  if (!arguments.device_library.empty()) options.device_library = arguments.device_library.c_str();
  options.archive_path = arguments.archive.empty() ? nullptr : arguments.archive.c_str();
  if (!arguments.force_kernel.empty()) options.force_kernel = arguments.force_kernel.c_str();
  if (!arguments.backends.empty()) options.backends = arguments.backends.c_str();
  if (!arguments.jit.empty())
    options.jit = arguments.jit == "on" ? FLYDSL_AOT_JIT_ON : FLYDSL_AOT_JIT_OFF;
  return flydsl_aot_open(&options, &handle_);
}

void LibraryHandle::open(const OpenArguments &arguments) {
  check(try_open(arguments), "cannot open the library");
}

flydsl_aot_info LibraryHandle::info() const {
  flydsl_aot_info info{};
  info.struct_size = sizeof info;
  check(flydsl_aot_get_info(handle_, &info), "flydsl_aot_get_info");
  return info;
}

DeviceMemory::DeviceMemory(const LibraryHandle &library, size_t bytes, const std::string &what)
    : library_(library) {
  check(flydsl_aot_device_malloc(library.get(), bytes, &data_), "device memory for " + what);
}

std::string describe_device(const flydsl_aot_info &info) {
  switch (info.device) {
    case FLYDSL_AOT_DEVICE_EMULATOR:
      return std::string("EMULATED ") + info.target_id + " on the CPU (" + info.device_library +
             "); no GPU is involved";
    case FLYDSL_AOT_DEVICE_HIP:
      return std::string("HIP ") + info.device_name + ", " + info.target_id + " (" +
             info.device_library + ")";
    default:
      return std::string("none (queries for ") + info.arch + " only)";
  }
}

}  // namespace flydsl::tools
