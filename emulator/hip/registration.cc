// The calls that Clang writes into the start-up code of HIP programs: clang/lib/CodeGen/CGCUDANV.cpp
// (CGNVCUDARuntime::makeModuleCtorFunction, makeRegisterGlobalsFn).
#include "emulator/hip/registration.h"

#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "emulator/hip/allocations.h"
#include "emulator/hip/api_call.h"

namespace flydsl::emu::hip {
namespace {

constexpr uint32_t kFatBinaryMagic = 0x48495046;  // "HIPF"

struct FatBinaryWrapper {
  uint32_t magic, version;
  const void *binary;
  const void *unused;
};

struct ManagedVariable {
  void **pointer;  // of the host
  std::string name;
  size_t bytes;
  std::vector<char> initial;
};

struct FatBinary {
  const void *image = nullptr;
  std::vector<ManagedVariable> managed;
  std::map<int, std::shared_ptr<CodeObject>> objects;  // by device
  std::map<std::pair<int, std::string>, std::shared_ptr<Function>> functions;
};

struct Symbol {
  FatBinary *binary;
  std::string name;
};

struct Registry {
  std::mutex mutex;
  std::map<FatBinary *, std::unique_ptr<FatBinary>> binaries;
  std::map<const void *, Symbol> kernels, variables;
};
Registry &registry() {
  static auto *const all = new Registry;  // never destroyed, as with device_table()
  return *all;
}

// A managed variable lives in memory of its own; the host's pointer and every device's variable of
// that name hold its address.
bool connect_managed(FatBinary &binary, const CodeObject &object, const Device &device) {
  for (ManagedVariable &variable : binary.managed) {
    if (*variable.pointer == nullptr) {
      *variable.pointer = Allocations::instance().allocate(
          {nullptr, variable.bytes, device_table().devices[device.ordinal].get(),
           Allocation::Kind::kManaged, 1, nullptr, false});
      if (*variable.pointer == nullptr) return false;
      std::memcpy(*variable.pointer, variable.initial.data(), variable.bytes);
    }
    void *address = nullptr;
    size_t bytes = 0;
    if (object.find_global(variable.name, &address, &bytes) && bytes >= sizeof(void *))
      std::memcpy(address, variable.pointer, sizeof(void *));
  }
  return true;
}

// The registry's mutex is held.
std::shared_ptr<CodeObject> object_on(FatBinary &binary, const Device &device, hipError_t *error) {
  std::shared_ptr<CodeObject> &object = binary.objects[device.ordinal];
  if (!object) {
    object = load_object(binary.image, device, error);
    if (object && !connect_managed(binary, *object, device)) {
      *error = fail(hipErrorOutOfMemory, "no memory for managed variables");
      object.reset();
    }
  }
  return object;
}

template <typename Map>
void drop(Map *map, const FatBinary *binary) {
  for (auto entry = map->begin(); entry != map->end();)
    entry = entry->second.binary == binary ? map->erase(entry) : std::next(entry);
}

}  // namespace

std::shared_ptr<Function> registered_function(const void *stub, const Device &device,
                                              hipError_t *error) {
  Registry &all = registry();
  std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.kernels.find(stub);
  if (found == all.kernels.end()) {
    *error = fail(hipErrorInvalidHandle, "function %p does not exist", stub);
    return nullptr;
  }
  const auto &[binary, name] = found->second;
  std::shared_ptr<Function> &function = binary->functions[{device.ordinal, name}];
  if (function) return function;
  std::shared_ptr<CodeObject> object = object_on(*binary, device, error);
  if (!object) return nullptr;
  const LoadedKernel *kernel = object->find_kernel(name);
  if (kernel == nullptr) {
    *error = fail(hipErrorInvalidDeviceFunction,
                  "the program's code object has no kernel \"%.200s\"", name.c_str());
    return nullptr;
  }
  function = std::make_shared<Function>(Function{object, kernel});
  return function;
}

hipError_t registered_variable(const void *shadow, const Device &device, void **address,
                               size_t *bytes) {
  Registry &all = registry();
  std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.variables.find(shadow);
  if (found == all.variables.end())
    return fail(hipErrorInvalidSymbol, "%p is not the symbol of a device variable", shadow);
  const auto &[binary, name] = found->second;
  hipError_t error = hipSuccess;
  const std::shared_ptr<CodeObject> object = object_on(*binary, device, &error);
  if (!object) return error;
  if (object->find_global(name, address, bytes)) return hipSuccess;
  return fail(hipErrorInvalidSymbol, "the program's code object has no variable \"%.200s\"",
              name.c_str());
}

}  // namespace flydsl::emu::hip

using namespace flydsl::emu::hip;

// The program's own start-up code calls these: a refusal shows when a kernel is used.
FLYDSL_EMU_EXPORT void **__hipRegisterFatBinary(const void *data) {
  auto binary = std::make_unique<FatBinary>();
  FatBinaryWrapper wrapper = {};
  if (data != nullptr) std::memcpy(&wrapper, data, sizeof wrapper);
  if (wrapper.magic == kFatBinaryMagic) binary->image = wrapper.binary;
  FatBinary *const handle = binary.get();
  std::lock_guard<std::mutex> lock(registry().mutex);
  registry().binaries.emplace(handle, std::move(binary));
  return reinterpret_cast<void **>(handle);
}

FLYDSL_EMU_EXPORT void __hipUnregisterFatBinary(void **handle) {
  auto *const binary = reinterpret_cast<FatBinary *>(handle);
  std::unique_ptr<FatBinary> last;
  Registry &all = registry();
  std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.binaries.find(binary);
  if (found == all.binaries.end()) return;
  drop(&all.kernels, binary);
  drop(&all.variables, binary);
  last = std::move(found->second);
  all.binaries.erase(found);
}

FLYDSL_EMU_EXPORT void __hipRegisterFunction(void **handle, const void *stub, char *,
                                             const char *name, unsigned, void *, void *, void *,
                                             void *, int *) {
  std::lock_guard<std::mutex> lock(registry().mutex);
  registry().kernels[stub] = {reinterpret_cast<FatBinary *>(handle), name};
}

FLYDSL_EMU_EXPORT void __hipRegisterVar(void **handle, void *shadow, char *, char *name, int,
                                        size_t, int, int) {
  std::lock_guard<std::mutex> lock(registry().mutex);
  registry().variables[shadow] = {reinterpret_cast<FatBinary *>(handle), name};
}

FLYDSL_EMU_EXPORT void __hipRegisterManagedVar(void *handle, void **pointer, void *initial,
                                               const char *name, size_t bytes, unsigned) {
  const char *const first = static_cast<const char *>(initial);
  auto *const binary = reinterpret_cast<FatBinary *>(handle);
  std::lock_guard<std::mutex> lock(registry().mutex);
  *pointer = nullptr;
  binary->managed.push_back({pointer, name, bytes, {first, first + bytes}});
  // The host uses it without a call to HIP before: now, on the first device.
  hipError_t error = hipSuccess;
  const Device *device = device_or_fail(0, &error);
  if (device != nullptr) object_on(*binary, *device, &error);
}
