// hipModule*, hipFunc*.
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "emulator/hip/api_call.h"
#include "emulator/hip/device.h"
#include "emulator/hip/module.h"
#include "emulator/hip/occupancy.h"
#include "emulator/hip/readable_memory.h"
#include "emulator/hip/stream.h"
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

std::shared_ptr<Function> function_or_fail(const void *handle, hipError_t *error) {
  std::shared_ptr<Function> function = functions().find(handle);
  if (!function) *error = fail(hipErrorInvalidHandle, "function %p does not exist", handle);
  return function;
}

namespace {

constexpr size_t kLargestFileBytes = size_t{1} << 30;  // as the loader's limit on images

hipError_t load(hipModule_t *handle, const void *data, size_t bytes) {
  hipError_t error = hipSuccess;
  const Device *device = current_device_or_fail(&error);
  if (device == nullptr) return error;
  LoadResult loaded = load_code_object(data, bytes, device->target);
  switch (loaded.status) {
    case LoadStatus::kOk:
      break;
    case LoadStatus::kInvalidImage:
      return fail(hipErrorInvalidImage, "code object: %s", loaded.error.c_str());
    case LoadStatus::kWrongTarget:
      return fail(hipErrorNoBinaryForGpu, "code object: %s", loaded.error.c_str());
  }
  auto module = std::make_shared<Module>();
  module->object = std::move(loaded.object);
  *handle = static_cast<hipModule_t>(const_cast<void *>(modules().add(std::move(module))));
  return hipSuccess;
}

hipError_t load_data(hipModule_t *handle, const void *image) {
  if (handle == nullptr || image == nullptr)
    return fail(hipErrorInvalidValue, "module or image is null");
  const size_t readable = readable_bytes(image);
  const size_t bytes = looks_like_offload_bundle(image, readable)
                           ? offload_bundle_bytes(image, readable)
                           : elf_bytes_by_header(image, readable);
  if (bytes == 0)
    return fail(hipErrorInvalidImage, "the image is neither an ELF file nor an offload bundle");
  return load(handle, image, bytes);
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
    std::unique_lock<LaunchGate> alone(launch_gate());
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

FLYDSL_EMU_EXPORT hipError_t hipFuncGetAttribute(int *value, hipFunction_attribute attribute,
                                                 hipFunction_t handle) {
  return api_call([&] {
    if (value == nullptr) return fail(hipErrorInvalidValue, "value is null");
    hipError_t error = hipSuccess;
    const Device *device = current_device_or_fail(&error);
    if (device == nullptr) return error;
    const std::shared_ptr<Function> function = function_or_fail(handle, &error);
    if (!function) return error;
    const LoadedKernel &loaded = *function->kernel;
    switch (attribute) {
      case HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = loaded.metadata.max_workgroup_size;
        break;
      case HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *value = loaded.kernel.lds_bytes;
        break;
      case HIP_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
        *value = 0;
        break;
      case HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        *value = loaded.kernel.private_bytes;
        break;
      case HIP_FUNC_ATTRIBUTE_NUM_REGS:
        *value = loaded.metadata.vgpr_count;
        break;
      case HIP_FUNC_ATTRIBUTE_PTX_VERSION:
      case HIP_FUNC_ATTRIBUTE_BINARY_VERSION:
        *value = device->model->major * 10 + device->model->minor;
        break;
      case HIP_FUNC_ATTRIBUTE_CACHE_MODE_CA:
      case HIP_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        *value = 0;
        break;
      case HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = device->model->lds_bytes - static_cast<int>(loaded.kernel.lds_bytes);
        break;
      default:
        return fail(hipErrorInvalidValue, "function attribute %u is not known",
                    static_cast<unsigned>(attribute));
    }
    return hipSuccess;
  });
}

// AMD hardware needs no permission for large LDS, so a valid setting changes nothing. `handle` is a
// hipFunction_t: the host-side stubs that HIP's compiler would register do not exist here.
FLYDSL_EMU_EXPORT hipError_t hipFuncSetAttribute(const void *handle,
                                                 hipFunction_attribute attribute, int value) {
  return api_call([&] {
    hipError_t error = hipSuccess;
    const Device *device = current_device_or_fail(&error);
    if (device == nullptr) return error;
    const std::shared_ptr<Function> function = function_or_fail(handle, &error);
    if (!function) return error;
    const int most_lds =
        device->model->lds_bytes - static_cast<int>(function->kernel->kernel.lds_bytes);
    if (attribute == HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
      if (value >= 0 && value <= most_lds) return hipSuccess;
      return fail(hipErrorInvalidValue, "%d bytes of dynamic LDS, 0 to %d are allowed", value,
                  most_lds);
    }
    if (attribute == HIP_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) return hipSuccess;
    return fail(hipErrorInvalidValue, "function attribute %u cannot be set",
                static_cast<unsigned>(attribute));
  });
}

FLYDSL_EMU_EXPORT hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(
    int *blocks, hipFunction_t handle, int block_items, size_t dynamic_lds_bytes) {
  return api_call([&] {
    if (blocks == nullptr) return fail(hipErrorInvalidValue, "the result is null");
    if (block_items <= 0 || block_items > kMaxBlockItems)
      return fail(hipErrorInvalidValue, "%d work-items per block, 1 to %d are allowed", block_items,
                  kMaxBlockItems);
    hipError_t error = hipSuccess;
    const Device *device = current_device_or_fail(&error);
    if (device == nullptr) return error;
    const std::shared_ptr<Function> function = function_or_fail(handle, &error);
    if (!function) return error;
    *blocks =
        groups_per_compute_unit(*device->model, *function->kernel, block_items, dynamic_lds_bytes);
    return hipSuccess;
  });
}
