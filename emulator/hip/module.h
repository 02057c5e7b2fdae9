// Modules (loaded code objects) and the kernels that clients hold handles of.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "emulator/hip/device.h"
#include "emulator/hip/handle_table.h"
#include "emulator/hip/hip_abi.h"
#include "emulator/loader/code_object.h"

namespace flydsl::emu::hip {

struct Function {
  std::shared_ptr<CodeObject> object;  // keeps the code mapped
  const LoadedKernel *kernel = nullptr;
};

struct Module {
  std::shared_ptr<CodeObject> object;
  std::mutex mutex;
  std::map<std::string, const void *> function_handles;  // by kernel name: one handle each
};

HandleTable<Module> &modules();
HandleTable<Function> &functions();
// A hipFunction_t, or the host-side stub that a compiled HIP program registered, which has one kernel
// per device. nullptr after fail().
std::shared_ptr<Function> function_or_fail(const void *handle, const Device &device,
                                           hipError_t *error);

// A code object or bundle for a device; nullptr after fail().
std::shared_ptr<CodeObject> load_object(const void *data, size_t bytes, const Device &device,
                                        hipError_t *error);
// The same from an address alone (hipModuleLoadData).
std::shared_ptr<CodeObject> load_object(const void *image, const Device &device, hipError_t *error);

}  // namespace flydsl::emu::hip
