// Kernels that are compiled when a call needs them: what codegen put into the library, hipRTC and the disk cache together.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "src/archive/reader.h"
#include "src/device/api.h"
#include "src/jit/disk_cache.h"
#include "src/jit/hiprtc.h"
#include "src/jit/sources.h"
#include "src/module/cache.h"
#include "src/status/status.h"

namespace flydsl::jit {

class Compiler : public module::ImageSource {
 public:
  // Adds the instances of the archive's architecture to its index. `device`: null without one; it and the archive outlive the
  // compiler. hipRTC is not looked for yet.
  static Status open(std::span<const unsigned char> sources, const device::Api *device,
                     archive::Archive *archive, std::unique_ptr<Compiler> *compiler);
  // Whether there is an instance to compile for an architecture at all.
  static Status knows(std::span<const unsigned char> sources, const std::string &arch, bool *known);

  // Whether a kernel could be compiled: loads hipRTC at the first call. Always without a device.
  Status available();

  // The code object of an entry that was added: compiled, or compiled before. Threads that need the same one wait for one
  // compilation. COMPILER_NOT_FOUND, COMPILE_FAILED.
  Status image(uint32_t entry, std::vector<unsigned char> *image) override;

 private:
  Compiler(const device::Api *device, const archive::Archive &archive)
      : device_(device), archive_(archive), cache_(DiskCacheOptions::from_environment()) {}

  const device::Api *device_;
  const archive::Archive &archive_;
  std::unique_ptr<Sources> sources_;
  DiskCache cache_;
  std::atomic<bool> loaded_{false};
  std::mutex mutex_;  // guards hiprtc_ until it is loaded, and the map
  Hiprtc hiprtc_;
  std::map<uint32_t, std::mutex> at_work_;  // by entry
};

}  // namespace flydsl::jit
