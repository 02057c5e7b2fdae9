// A loaded code object: what hipModuleLoad makes of a file's bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "emulator/engine/dispatch.h"
#include "emulator/loader/debug_info.h"
#include "emulator/loader/image.h"
#include "emulator/loader/metadata.h"
#include "emulator/loader/target_id.h"

namespace flydsl::emu {

struct LoadedKernel {
  Kernel kernel;            // what the engine runs
  KernelMetadata metadata;  // what launching needs besides
};

enum class LoadStatus : uint8_t {
  kOk,
  kInvalidImage,  // damaged, or no AMDGPU code object
  kWrongTarget,   // a code object, but not for this device
};

struct LoadResult;

class CodeObject {
 public:
  ~CodeObject();
  CodeObject(const CodeObject &) = delete;
  CodeObject &operator=(const CodeObject &) = delete;

  const TargetId &target() const { return target_; }
  const std::map<std::string, LoadedKernel> &kernels() const { return kernels_; }  // by name
  const LoadedKernel *find_kernel(const std::string &name) const;
  // A variable's memory; false when there is no such variable.
  bool find_global(const std::string &name, void **address, size_t *bytes) const;

 private:
  friend LoadResult load_code_object(const void *data, size_t bytes, const TargetId &device);
  CodeObject() = default;
  bool add_kernels(const CodeObjectMetadata &metadata, const DebugInfo &debug,
                   const TargetId &device, std::string *error);

  TargetId target_;
  std::unique_ptr<Image> image_;
  bool remembered_ = false;  // the image's segments are in the AddressSpace
  std::map<std::string, LoadedKernel> kernels_;
};

struct LoadResult {
  LoadStatus status = LoadStatus::kOk;
  std::string error;  // why, when the status is not kOk
  std::shared_ptr<CodeObject> object;
};

// Reads an ELF code object (v3 to v6) or an offload bundle of `bytes` bytes; the memory is not
// needed afterwards. Any content is safe: what is wrong becomes LoadResult::error. While the object
// lives, its segments are regions of the AddressSpace.
LoadResult load_code_object(const void *data, size_t bytes, const TargetId &device);

}  // namespace flydsl::emu
