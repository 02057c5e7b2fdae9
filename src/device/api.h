// The device API table: every HIP function this library calls, resolved at run time from one
// library.
#pragma once

#include <cstddef>
#include <string>

#include "flydsl_aot/library.h"
#include "src/device/hip_abi.h"
#include "src/status/status.h"

namespace flydsl::device {

struct Api {
  HipError (*runtime_get_version)(int *) = nullptr;
  HipError (*get_device_count)(int *) = nullptr;
  HipError (*get_device)(int *) = nullptr;
  HipError (*set_device)(int) = nullptr;
  HipError (*get_device_properties)(void *, int) = nullptr;   // fills `layout`
  HipError (*stream_get_device)(HipStream, int *) = nullptr;  // null on HIP 5, which lacks it
  HipError (*stream_is_capturing)(HipStream, int *) = nullptr;
  HipError (*exchange_capture_mode)(int *) = nullptr;  // may be null
  HipError (*module_load_data)(HipModule *, const void *) = nullptr;
  HipError (*module_unload)(HipModule) = nullptr;
  HipError (*module_get_function)(HipFunction *, HipModule, const char *) = nullptr;
  HipError (*module_launch_kernel)(HipFunction, unsigned, unsigned, unsigned, unsigned, unsigned,
                                   unsigned, unsigned, HipStream, void **, void **) = nullptr;
  HipError (*malloc)(void **, size_t) = nullptr;
  HipError (*free)(void *) = nullptr;
  HipError (*malloc_async)(void **, size_t,
                           HipStream) = nullptr;  // null before HIP 5.2, as free_async
  HipError (*free_async)(void *, HipStream) = nullptr;
  HipError (*memcpy)(void *, const void *, size_t, int) = nullptr;
  HipError (*device_synchronize)() = nullptr;
  HipError (*get_last_error)() = nullptr;
  const char *(*get_error_name)(HipError) = nullptr;
  const char *(*get_error_string)(HipError) = nullptr;

  // Only the emulator has these (emulator/hip/flydsl_emu.h): why a call was refused, and what a
  // kernel did wrong.
  const char *(*emulator_last_error)() = nullptr;
  const char *(*emulator_last_fault)() = nullptr;
  bool emulator() const { return emulator_last_error != nullptr; }

  const PropertiesLayout *layout = nullptr;
  int runtime_version = 0;
  std::string library_path;  // as the loader names it
};

// Finds a device library and fills the table (order: library.h,
// flydsl_aot_open_options::device_library). `kind` is HIP or EMULATOR. A library once loaded stays
// loaded: HIP runtimes own threads and exit handlers and do not survive dlclose. Errors:
// DEVICE_LIBRARY_NOT_FOUND, NO_DEVICE, DEVICE_*, each with every path tried; PROCESS_FORKED.
Status load_api(flydsl_aot_device_kind kind, const char *option_path, Api *api);

}  // namespace flydsl::device
