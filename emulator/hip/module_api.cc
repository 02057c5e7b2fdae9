// hipModule*, but for launches (launch_api.cc).
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "emulator/hip/api_call.h"
#include "emulator/hip/capture.h"
#include "emulator/hip/device.h"
#include "emulator/hip/module.h"
#include "emulator/hip/readable_memory.h"
#include "emulator/hip/registration.h"
#include "emulator/hip/stream.h"
#include "emulator/loader/compressed_bundle.h"
#include "emulator/loader/elf_file.h"
#include "emulator/loader/offload_bundle.h"

namespace flydsl::emu::hip {

HandleTable<Module> &modules() {
  static auto *const table = new HandleTable<Module>;  // never destroyed, as with device_table()
  return *table;
}

HandleTable<Function> &functions() {
  static auto *const table = new HandleTable<Function>;
  return *table;
}

std::shared_ptr<Function> function_or_fail(const void *handle, const Device &device,
                                           hipError_t *error) {
  if (handle == nullptr) {
    *error = fail(hipErrorInvalidHandle, "the function is null");
    return nullptr;
  }
  std::shared_ptr<Function> function = functions().find(handle);
  return function ? function : registered_function(handle, device, error);
}

std::shared_ptr<CodeObject> load_object(const void *data, size_t bytes, const Device &device,
                                        hipError_t *error) {
  LoadResult loaded = load_code_object(data, bytes, device.target);
  switch (loaded.status) {
    case LoadStatus::kOk:
      break;
    case LoadStatus::kInvalidImage:
      *error = fail(hipErrorInvalidImage, "code object: %s", loaded.error.c_str());
      return nullptr;
    case LoadStatus::kWrongTarget:
      *error = fail(hipErrorNoBinaryForGpu, "code object: %s", loaded.error.c_str());
      return nullptr;
  }
  // Whoever lets go of it last, a launch in flight perhaps, unmaps it under no running kernel.
  CodeObject *const object = loaded.object.get();
  return {object, [keep = std::move(loaded.object)](CodeObject *) mutable {
            std::unique_lock<LaunchGate> alone(launch_gate());
            keep.reset();
          }};
}

std::shared_ptr<CodeObject> load_object(const void *image, const Device &device,
                                        hipError_t *error) {
  const size_t readable = readable_bytes(image);
  // One that its header does not describe goes on as it is, to be refused with the reason.
  if (looks_like_compressed_bundle(image, readable)) {
    const size_t stated = compressed_bundle_bytes(image, readable);
    return load_object(image, stated != 0 ? stated : readable, device, error);
  }
  const size_t bytes = looks_like_offload_bundle(image, readable)
                           ? offload_bundle_bytes(image, readable)
                           : elf_bytes_by_header(image, readable);
  if (bytes != 0) return load_object(image, bytes, device, error);
  *error = fail(hipErrorInvalidImage, "the image is neither an ELF file nor an offload bundle");
  return nullptr;
}

namespace {

constexpr size_t kLargestFileBytes = size_t{1} << 30;  // as the loader's limit on images

hipError_t add_module(std::shared_ptr<CodeObject> object, hipModule_t *handle) {
  auto module = std::make_shared<Module>();
  module->object = std::move(object);
  *handle = static_cast<hipModule_t>(const_cast<void *>(modules().add(std::move(module))));
  return hipSuccess;
}

hipError_t load(hipModule_t *handle, const void *data, size_t bytes) {
  hipError_t error = hipSuccess;
  const Device *device = current_device_or_fail(&error);
  if (device == nullptr) return error;
  std::shared_ptr<CodeObject> object = load_object(data, bytes, *device, &error);
  return object ? add_module(std::move(object), handle) : error;
}

hipError_t load_data(hipModule_t *handle, const void *image) {
  if (handle == nullptr || image == nullptr)
    return fail(hipErrorInvalidValue, "module or image is null");
  hipError_t error = hipSuccess;
  const Device *device = current_device_or_fail(&error);
  if (device == nullptr) return error;
  std::shared_ptr<CodeObject> object = load_object(image, *device, &error);
  return object ? add_module(std::move(object), handle) : error;
}

hipError_t load_file(hipModule_t *handle, const char *path) {
  if (handle == nullptr || path == nullptr)
    return fail(hipErrorInvalidValue, "module or path is null");
  std::FILE *file = std::fopen(path, "rbe");
  if (file == nullptr) return fail(hipErrorFileNotFound, "%s: %s", path, std::strerror(errno));
  std::vector<char> contents;
  char block[65536];
  size_t got = 0;
  while (contents.size() <= kLargestFileBytes &&
         (got = std::fread(block, 1, sizeof block, file)) > 0)
    contents.insert(contents.end(), block, block + got);
  const bool failed = std::ferror(file) != 0;
  std::fclose(file);
  if (failed) return fail(hipErrorFileNotFound, "%s cannot be read", path);
  if (contents.size() > kLargestFileBytes)
    return fail(hipErrorInvalidImage, "%s is larger than 1 GiB", path);
  return load(handle, contents.data(), contents.size());
}

std::shared_ptr<Module> module_or_fail(hipModule_t handle, hipError_t *error) {
  std::shared_ptr<Module> module = modules().find(handle);
  if (!module)
    *error = fail(hipErrorInvalidHandle, "module %p does not exist", static_cast<void *>(handle));
  return module;
}

}  // namespace
}  // namespace flydsl::emu::hip

using namespace flydsl::emu::hip;
using flydsl::emu::LoadedKernel;

FLYDSL_EMU_EXPORT hipError_t hipModuleLoad(hipModule_t *module, const char *path) {
  return api_call([&] { return load_file(module, path); });
}

FLYDSL_EMU_EXPORT hipError_t hipModuleLoadData(hipModule_t *module, const void *image) {
  return api_call([&] { return load_data(module, image); });
}

// The options are for a just-in-time compiler, which code objects do not meet.
FLYDSL_EMU_EXPORT hipError_t hipModuleLoadDataEx(hipModule_t *module, const void *image, unsigned,
                                                 int *, void **) {
  return api_call([&] { return load_data(module, image); });
}

FLYDSL_EMU_EXPORT hipError_t hipModuleUnload(hipModule_t handle) {
  return api_call([&] {
    if (const hipError_t error = refuse_while_capturing("hipModuleUnload"); error != hipSuccess)
      return error;
    const std::shared_ptr<Module> module = modules().remove(handle);
    if (!module)
      return fail(hipErrorInvalidHandle, "module %p does not exist", static_cast<void *>(handle));
    std::lock_guard<std::mutex> lock(module->mutex);
    for (const auto &[name, function] : module->function_handles) functions().remove(function);
    return hipSuccess;
  });
}

FLYDSL_EMU_EXPORT hipError_t hipModuleGetFunction(hipFunction_t *function, hipModule_t handle,
                                                  const char *name) {
  return api_call([&] {
    if (function == nullptr || name == nullptr)
      return fail(hipErrorInvalidValue, "function or name is null");
    hipError_t error = hipSuccess;
    const std::shared_ptr<Module> module = module_or_fail(handle, &error);
    if (!module) return error;
    const LoadedKernel *kernel = module->object->find_kernel(name);
    if (kernel == nullptr)
      return fail(hipErrorNotFound, "the module has no kernel \"%.200s\"", name);
    std::lock_guard<std::mutex> lock(module->mutex);
    const void *&known = module->function_handles[name];
    if (known == nullptr)
      known = functions().add(std::make_shared<Function>(Function{module->object, kernel}));
    *function = static_cast<hipFunction_t>(const_cast<void *>(known));
    return hipSuccess;
  });
}

FLYDSL_EMU_EXPORT hipError_t hipModuleGetGlobal(hipDeviceptr_t *address, size_t *bytes,
                                                hipModule_t handle, const char *name) {
  return api_call([&] {
    if (name == nullptr) return fail(hipErrorInvalidValue, "name is null");
    hipError_t error = hipSuccess;
    const std::shared_ptr<Module> module = module_or_fail(handle, &error);
    if (!module) return error;
    void *found = nullptr;
    size_t found_bytes = 0;
    if (!module->object->find_global(name, &found, &found_bytes))
      return fail(hipErrorNotFound, "the module has no variable \"%.200s\"", name);
    if (address != nullptr) *address = found;
    if (bytes != nullptr) *bytes = found_bytes;
    return hipSuccess;
  });
}
