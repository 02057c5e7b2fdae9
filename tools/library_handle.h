// An opened library and device memory that free themselves.
#pragma once

#include <cstddef>
#include <string>

#include "flydsl_aot/flydsl_aot.h"
#include "tools/arguments.h"

namespace flydsl::tools {

class LibraryHandle {
 public:
  LibraryHandle() = default;
  ~LibraryHandle() { flydsl_aot_close(handle_); }
  LibraryHandle(const LibraryHandle &) = delete;
  LibraryHandle &operator=(const LibraryHandle &) = delete;

  // The library's status; the message is in flydsl_aot_last_error().
  flydsl_aot_status try_open(const OpenArguments &arguments);
  void open(const OpenArguments &arguments);  // throws ToolError
  flydsl_aot_handle *get() const { return handle_; }
  flydsl_aot_info info() const;

 private:
  flydsl_aot_handle *handle_ = nullptr;
};

// Of queries without a device, unless --arch names another.
inline constexpr const char *kDefaultArch = "gfx950";

class DeviceMemory {
 public:
  DeviceMemory(const LibraryHandle &library, size_t bytes, const std::string &what);
  ~DeviceMemory() { flydsl_aot_device_free(library_.get(), data_); }
  DeviceMemory(const DeviceMemory &) = delete;
  DeviceMemory &operator=(const DeviceMemory &) = delete;
  void *data() const { return data_; }

 private:
  const LibraryHandle &library_;
  void *data_ = nullptr;
};

// "EMULATED gfx950 on this CPU (no GPU involved)", "HIP device ...", "none (queries only)".
std::string describe_device(const flydsl_aot_info &info);

}  // namespace flydsl::tools
