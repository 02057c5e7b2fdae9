// Modules (loaded code objects) and the kernels that clients hold handles of.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

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
// nullptr after fail().
std::shared_ptr<Function> function_or_fail(const void *handle, hipError_t *error);

}  // namespace flydsl::emu::hip
