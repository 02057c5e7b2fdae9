// Finding the HIP runtime or the emulator, and resolving the functions of the table.
#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "src/device/api.h"
#include "src/device/process.h"
#include "src/log/log.h"
#include "src/paths/paths.h"

namespace flydsl::device {
namespace {

// A runtime that is already in the process comes first, so that PyTorch's own is used; after that
// the newest.
constexpr const char *kHipSonames[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"};
constexpr const char *kEmulatorName = "libflydsl_emu.so";

int note_hip_library(dl_phdr_info *info, size_t, void *result) {
  if (!info->dlpi_name) return 0;
  const char *slash = std::strrchr(info->dlpi_name, '/');
  const char *base = slash ? slash + 1 : info->dlpi_name;
  // Prefix only: wheels add a hash or a version ("libamdhip64-1a2b3c.so.6").
  if (std::strncmp(base, "libamdhip64", 11) != 0) return 0;
  *static_cast<std::string *>(result) = info->dlpi_name;
  return 1;
}

// Path of a HIP runtime already in the process, loaded globally or locally; empty if there is none.
std::string loaded_hip_library() {
  std::string path;
  dl_iterate_phdr(note_hip_library, &path);
  return path;
}

std::string path_of(void *library, const char *fallback) {
  link_map *map = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name && map->l_name[0])
    return map->l_name;
  return fallback;
}

class Resolver {
 public:
  explicit Resolver(void *library) : library_(library) {}

  template <typename Function>
  void required(const char *symbol, Function *slot) {
    optional(symbol, slot);
    if (!*slot) missing_ += missing_.empty() ? symbol : std::string(", ") + symbol;
  }
  template <typename Function>
  void optional(const char *symbol, Function *slot) {
    *slot = reinterpret_cast<Function>(dlsym(library_, symbol));
  }
  const std::string &missing() const { return missing_; }

 private:
  void *library_;
  std::string missing_;
};

std::string resolve_common(void *library, Api *api) {
  Resolver resolver(library);
  resolver.required("hipRuntimeGetVersion", &api->runtime_get_version);
  resolver.required("hipGetDeviceCount", &api->get_device_count);
  resolver.required("hipGetDevice", &api->get_device);
  resolver.required("hipSetDevice", &api->set_device);
  resolver.optional("hipStreamGetDevice", &api->stream_get_device);
  resolver.required("hipStreamIsCapturing", &api->stream_is_capturing);
  resolver.optional("hipThreadExchangeStreamCaptureMode", &api->exchange_capture_mode);
  resolver.required("hipModuleLoadData", &api->module_load_data);
  resolver.required("hipModuleUnload", &api->module_unload);
  resolver.required("hipModuleGetFunction", &api->module_get_function);
  resolver.required("hipModuleLaunchKernel", &api->module_launch_kernel);
  resolver.required("hipMalloc", &api->malloc);
  resolver.required("hipFree", &api->free);
  resolver.optional("hipMallocAsync", &api->malloc_async);
  resolver.optional("hipFreeAsync", &api->free_async);
  resolver.required("hipMemcpy", &api->memcpy);
  resolver.required("hipDeviceSynchronize", &api->device_synchronize);
  resolver.required("hipGetLastError", &api->get_last_error);
  resolver.required("hipGetErrorName", &api->get_error_name);
  resolver.required("hipGetErrorString", &api->get_error_string);
  resolver.optional("flydsl_emu_last_error", &api->emulator_last_error);
  resolver.optional("flydsl_emu_last_fault", &api->emulator_last_fault);
  return resolver.missing();
}

// The shims: what differs between HIP's major versions. An unknown major is refused, since nothing
// says that its structures and enums are those of an earlier one.
Status resolve_for_version(void *library, Api *api) {
  const int major = hip_major(api->runtime_version);
  switch (major) {
    case 5:
      api->layout = &kPropertiesR0000;
      break;
    case 6:
    case 7:
      api->layout = &kPropertiesR0600;
      break;
    default:
      return error(FLYDSL_AOT_DEVICE_LIBRARY_NOT_FOUND,
                   "reports HIP runtime version %d (major %d); this library knows HIP 5, 6 and 7",
                   api->runtime_version, major);
  }
  Resolver resolver(library);
  resolver.required(api->layout->symbol, &api->get_device_properties);
  // Every 6 and 7 has it; without it a stream's device would be guessed.
  if (major >= 6) resolver.required("hipStreamGetDevice", &api->stream_get_device);
  if (resolver.missing().empty()) return {};
  return error(FLYDSL_AOT_DEVICE_LIBRARY_NOT_FOUND, "is HIP %d but lacks the function %s", major,
               resolver.missing().c_str());
}

Status read_version(Api *api) {
  const HipError code = api->runtime_get_version(&api->runtime_version);
  if (code == kHipSuccess) return {};
  api->get_last_error();
  const char *name = api->get_error_name(code);
  const bool no_device = code == kHipErrorNoDevice || code == kHipErrorNotInitialized ||
                         code == kHipErrorInsufficientDriver;
  const flydsl_aot_status status = no_device                         ? FLYDSL_AOT_NO_DEVICE
                                   : device_is_lost(code)            ? FLYDSL_AOT_DEVICE_LOST
                                   : code == kHipErrorOutOfMemory    ? FLYDSL_AOT_OUT_OF_DEVICE_MEMORY
                                                                     : FLYDSL_AOT_DEVICE_ERROR;
  return error(status, "hipRuntimeGetVersion failed: HIP error %d (%s)", code, name ? name : "?");
}

// Tries one library. `mode` adds flags to dlopen.
Status try_library(const char *path, int mode, Api *api) {
  dlerror();
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | mode);
  if (!library) {
    const char *reason = dlerror();
    return error(FLYDSL_AOT_DEVICE_LIBRARY_NOT_FOUND, "%s", reason ? reason : "dlopen failed");
  }
  Api table;
  if (const std::string missing = resolve_common(library, &table); !missing.empty()) {
    // Nothing of it was called yet, so it can be let go.
    dlclose(library);
    return error(FLYDSL_AOT_DEVICE_LIBRARY_NOT_FOUND, "lacks the HIP function(s) %s",
                 missing.c_str());
  }
  table.library_path = path_of(library, path);
  FLYDSL_RETURN_IF_ERROR(read_version(&table));
  FLYDSL_RETURN_IF_ERROR(resolve_for_version(library, &table));
  FLYDSL_LOG(Info, "device library %s, runtime version %d", table.library_path.c_str(),
             table.runtime_version);
  *api = std::move(table);
  return {};
}

struct Candidate {
  std::string path;
  std::string origin;  // for messages
  int mode = 0;
  bool decisive = false;  // named by the caller or in use already: its failure is the answer
};

std::vector<Candidate> hip_candidates(const char *option_path) {
  if (option_path) return {{option_path, "option device_library", 0, true}};
  if (const char *path = std::getenv("FLYDSL_AOT_HIP_LIBRARY"); path && *path) {
    return {{path, "FLYDSL_AOT_HIP_LIBRARY", 0, true}};
  }
  // A second runtime beside one that is already at work would fight it for the device, so no
  // fallback then.
  if (std::string path = loaded_hip_library(); !path.empty()) {
    return {{std::move(path), "already loaded in this process", RTLD_NOLOAD, true}};
  }
  std::vector<Candidate> result;
  for (const char *name : kHipSonames) result.push_back({name, "loader search", 0, false});
  return result;
}

std::vector<Candidate> emulator_candidates(const char *option_path) {
  if (option_path) return {{option_path, "option device_library", 0, true}};
  if (const char *path = std::getenv("FLYDSL_AOT_EMULATOR_LIBRARY"); path && *path) {
    return {{path, "FLYDSL_AOT_EMULATOR_LIBRARY", 0, true}};
  }
  std::vector<Candidate> result;
  for (const std::string &directory : own_directories()) {
    result.push_back({join_path(directory, kEmulatorName), "beside this library", 0, false});
  }
  result.push_back({kEmulatorName, "loader search", 0, false});
  return result;
}

}  // namespace

Status load_api(flydsl_aot_device_kind kind, const char *option_path, Api *api) {
  FLYDSL_RETURN_IF_ERROR(check_process());
  note_device_use();
  const bool emulator = kind == FLYDSL_AOT_DEVICE_EMULATOR;
  const std::vector<Candidate> candidates =
      emulator ? emulator_candidates(option_path) : hip_candidates(option_path);
  flydsl_aot_status code = FLYDSL_AOT_DEVICE_LIBRARY_NOT_FOUND;
  std::string tried;
  for (const Candidate &candidate : candidates) {
    const Status status = try_library(candidate.path.c_str(), candidate.mode, api);
    if (status.ok()) return {};
    tried += "; '" + candidate.path + "' (" + candidate.origin + "): " + status.message();
    // A runtime that works but finds no device is the answer: an older one would find none either.
    const bool found = status.code() != FLYDSL_AOT_DEVICE_LIBRARY_NOT_FOUND;
    if (found) code = status.code();
    if (found || candidate.decisive) break;
  }
  return error(code, "no usable %s%s%s", emulator ? "emulator library" : "HIP runtime",
               tried.c_str(),
               emulator ? ". Set FLYDSL_AOT_EMULATOR_LIBRARY to its path"
                        : ". Set FLYDSL_AOT_HIP_LIBRARY to the path of libamdhip64.so, or "
                          "FLYDSL_AOT_DEVICE=emulator to run on the CPU");
}

}  // namespace flydsl::device
