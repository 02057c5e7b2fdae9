// Opening and closing the library, and what it found.
#include "flydsl_aot/library.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "flydsl_aot_generated/abi.h"
#include "src/archive/finder.h"
#include "src/device/process.h"
#include "src/jit/compiler.h"
#include "src/status/status.h"
#include "v2src/handle.h"
#include "v2src/head_dim_classes.h"
#include "v2src/struct_size.h"

namespace flydsl {
namespace {

Status environment_kind(flydsl_aot_device_kind *kind) {
  const char *value = std::getenv("FLYDSL_AOT_DEVICE");
  *kind = FLYDSL_AOT_DEVICE_HIP;
  if (!value || !*value || std::strcmp(value, "hip") == 0) return {};
  *kind = FLYDSL_AOT_DEVICE_EMULATOR;
  if (std::strcmp(value, "emulator") == 0) return {};
  *kind = FLYDSL_AOT_DEVICE_NONE;
  if (std::strcmp(value, "none") == 0) return {};
  return error(FLYDSL_AOT_INVALID_ARGUMENT,
               "environment FLYDSL_AOT_DEVICE is '%.64s'; allowed: hip, emulator, none", value);
}

Status resolve_kind(flydsl_aot_device_kind asked, flydsl_aot_device_kind *kind) {
  switch (asked) {
    case FLYDSL_AOT_DEVICE_DEFAULT:
      return environment_kind(kind);
    case FLYDSL_AOT_DEVICE_HIP:
    case FLYDSL_AOT_DEVICE_EMULATOR:
    case FLYDSL_AOT_DEVICE_NONE:
      *kind = asked;
      return {};
    default:
      return error(
          FLYDSL_AOT_INVALID_ARGUMENT,
          "open_options.device is %d; allowed: DEFAULT (0), HIP (1), EMULATOR (2), NONE (3)",
          asked);
  }
}

Status parse_arch(const char *arch, archive::TargetId *target) {
  std::optional<archive::TargetId> parsed = archive::parse_target_id(arch);
  if (!parsed) {
    return error(FLYDSL_AOT_INVALID_ARGUMENT,
                 "open_options.arch is '%.64s'; expected a target id such as gfx950", arch);
  }
  *target = std::move(*parsed);
  return {};
}

Status open_without_device(const flydsl_aot_open_options &options, flydsl_aot_handle *handle) {
  if (!options.arch) {
    return error(FLYDSL_AOT_INVALID_ARGUMENT,
                 "open_options.arch is NULL; without a device it must name one, e.g. gfx950");
  }
  FLYDSL_RETURN_IF_ERROR(parse_arch(options.arch, &handle->named_target));
  handle->target_id = options.arch;
  handle->arch = handle->named_target.processor;
  return {};
}

Status check_device_arch(const flydsl_aot_open_options &options, const std::string &device_id,
                         const archive::TargetId &device) {
  if (!options.arch) return {};
  archive::TargetId asked;
  FLYDSL_RETURN_IF_ERROR(parse_arch(options.arch, &asked));
  std::string reason;
  if (archive::compatible(asked, device, &reason)) return {};
  return error(FLYDSL_AOT_UNSUPPORTED_ARCH, "open_options.arch is '%s', but the device is %s: %s",
               options.arch, device_id.c_str(), reason.c_str());
}

void note_device_targets(flydsl_aot_handle *handle) {
  for (const device::DeviceInfo &info : handle->runtime->devices()) {
    std::optional<archive::TargetId> target = archive::parse_target_id(info.target_id);
    if (target && target->processor != handle->arch) target.reset();
    handle->device_targets.push_back(std::move(target));
  }
}

Status open_with_device(const flydsl_aot_open_options &options, flydsl_aot_handle *handle) {
  FLYDSL_RETURN_IF_ERROR(
      device::Runtime::open(handle->kind, options.device_library, &handle->runtime));
  // However it was asked for, results of the emulator are never passed off as a device's.
  if (handle->runtime->api().emulator()) handle->kind = FLYDSL_AOT_DEVICE_EMULATOR;
  int current = 0;
  FLYDSL_RETURN_IF_ERROR(handle->runtime->current_device(&current));
  const device::DeviceInfo &info = handle->runtime->devices()[current];
  const std::optional<archive::TargetId> target = archive::parse_target_id(info.target_id);
  if (!target) {
    return error(FLYDSL_AOT_UNSUPPORTED_ARCH,
                 "device %d ('%s') has target id '%.64s', which is not an AMD GPU's", current,
                 info.name.c_str(), info.target_id.c_str());
  }
  FLYDSL_RETURN_IF_ERROR(check_device_arch(options, info.target_id, *target));
  handle->device_name = info.name;
  handle->target_id = info.target_id;
  handle->arch = target->processor;
  handle->compute_units = info.compute_units;
  note_device_targets(handle);
  return {};
}

// `on` or `off` in the environment; neither: as before.
Status read_switch(const char *variable, bool *on) {
  const char *value = std::getenv(variable);
  if (!value || !*value) return {};
  *on = std::strcmp(value, "on") == 0;
  if (*on || std::strcmp(value, "off") == 0) return {};
  return error(FLYDSL_AOT_INVALID_ARGUMENT, "environment %s is '%.64s'; allowed: on, off", variable,
               value);
}

// Whether kernels that were never executed may run.
Status experimental_allowed(bool *allowed) {
  const char *value = std::getenv("FLYDSL_AOT_ENABLE_EXPERIMENTAL");
  *allowed = value && std::strcmp(value, "1") == 0;
  if (*allowed || !value || !*value || std::strcmp(value, "0") == 0) return {};
  return error(FLYDSL_AOT_INVALID_ARGUMENT,
               "environment FLYDSL_AOT_ENABLE_EXPERIMENTAL is '%.64s'; allowed: 0, 1", value);
}

bool was_executed(const std::string &arch) {
  static constexpr const char *kExecuted[] = {FLYDSL_AOT_GENERATED_EXECUTED_ARCHITECTURES};
  return std::find(std::begin(kExecuted), std::end(kExecuted), arch) != std::end(kExecuted);
}

Status resolve_jit(flydsl_aot_jit asked, bool *allowed) {
  *allowed = asked == FLYDSL_AOT_JIT_ON;
  if (asked == FLYDSL_AOT_JIT_ON || asked == FLYDSL_AOT_JIT_OFF) return {};
  if (asked != FLYDSL_AOT_JIT_DEFAULT) {
    return error(FLYDSL_AOT_INVALID_ARGUMENT,
                 "open_options.jit is %u; allowed: DEFAULT (0), OFF (1), ON (2)", asked);
  }
  return read_switch("FLYDSL_AOT_JIT", allowed);
}

// The archive of the architecture and, where they are allowed, the kernels that can be compiled; these alone where the places
// looked at hold nothing for the architecture: where they are not allowed, the message says so. A place that was named and is not
// there stays an error.
Status open_kernels(const flydsl_aot_open_options &options, flydsl_aot_handle *handle) {
  bool jit = false;
  FLYDSL_RETURN_IF_ERROR(resolve_jit(options.jit, &jit));
  const Status found = archive::find_archive(handle->arch, options.archive_path,
                                             FLYDSL_AOT_GENERATED_ABI_ID, &handle->archive);
  if (!found.ok()) {
    const bool nothing_there = found.code() == FLYDSL_AOT_UNSUPPORTED_ARCH ||
                               (found.code() == FLYDSL_AOT_ARCHIVE_NOT_FOUND &&
                                !archive::names_absent_place(options.archive_path));
    if (!nothing_there) return found;
    bool known = false;
    FLYDSL_RETURN_IF_ERROR(jit::Compiler::knows(jit::embedded_sources(), handle->arch, &known));
    if (!known) return found;
    if (!jit) return {found.code(), found.message() + kCouldBeCompiled};
    handle->archive = archive::Archive::without_file(handle->arch, was_executed(handle->arch));
  }
  if (!jit) return {};
  return jit::Compiler::open(jit::embedded_sources(),
                             handle->runtime ? &handle->runtime->api() : nullptr,
                             handle->archive.get(), &handle->jit);
}

// An option, or what the environment says in its place.
select::NameList name_list(const char *option, const char *value, const char *variable) {
  if (value) return {option, value};
  return {variable, std::getenv(variable)};
}

Status open(const flydsl_aot_open_options *caller, flydsl_aot_handle **out) {
  flydsl_aot_open_options options{};
  // The struct's first version ended before max_loaded_kernels.
  if (caller) {
    FLYDSL_RETURN_IF_ERROR(read_struct("open_options", caller, &options,
                                       offsetof(flydsl_aot_open_options, max_loaded_kernels)));
  }
  auto handle = std::make_unique<flydsl_aot_handle>();
  FLYDSL_RETURN_IF_ERROR(resolve_kind(options.device, &handle->kind));
  const bool with_device = handle->kind != FLYDSL_AOT_DEVICE_NONE;
  FLYDSL_RETURN_IF_ERROR(with_device ? open_with_device(options, handle.get())
                                     : open_without_device(options, handle.get()));
  FLYDSL_RETURN_IF_ERROR(open_kernels(options, handle.get()));
  bool experimental = false;
  FLYDSL_RETURN_IF_ERROR(experimental_allowed(&experimental));
  handle->refuses_calls = !experimental && !handle->archive->executed();
  bool tuning = true;
  FLYDSL_RETURN_IF_ERROR(read_switch("FLYDSL_AOT_TUNING", &tuning));
  if (!tuning) handle->archive->ignore_tuning();
  FLYDSL_RETURN_IF_ERROR(select::make_policy(
      *handle->archive,
      name_list("open_options.force_kernel", options.force_kernel, "FLYDSL_AOT_FORCE_KERNEL"),
      name_list("open_options.backends", options.backends, "FLYDSL_AOT_BACKENDS"),
      &handle->policy));
  handle->has_aiter = handle->archive->has_backend("aiter");
  if (const char *where = std::getenv("FLYDSL_AOT_VERBOSE"); where && *where)
    FLYDSL_RETURN_IF_ERROR(CallLog::open(where, &handle->calls));
  if (with_device) {
    // A call that is repeated without selection would not be recorded.
    if (!handle->calls)
      handle->recent_calls = std::make_unique<RecentCalls>(handle->archive->most_alignment());
    handle->modules = std::make_unique<module::ModuleCache>(
        *handle->runtime, *handle->archive, options.max_loaded_kernels, handle->jit.get());
  }
  *out = handle.release();
  return {};
}

Status get_info(const flydsl_aot_handle *handle, flydsl_aot_info *caller) {
  if (!handle) return error(FLYDSL_AOT_INVALID_ARGUMENT, "handle is NULL");
  FLYDSL_RETURN_IF_ERROR(check_output_struct("info", caller));
  flydsl_aot_info info{};
  info.device = handle->kind;
  info.device_library = handle->runtime ? handle->runtime->api().library_path.c_str() : "";
  info.device_name = handle->device_name.c_str();
  info.arch = handle->arch.c_str();
  info.target_id = handle->target_id.c_str();
  info.archive_path = handle->archive->path().c_str();
  info.runtime_version =
      handle->runtime ? static_cast<uint32_t>(handle->runtime->api().runtime_version) : 0;
  info.compute_units = handle->compute_units;
  info.kernel_count = static_cast<uint32_t>(handle->archive->file_entries());
  info.device_count =
      handle->runtime ? static_cast<uint32_t>(handle->runtime->devices().size()) : 0;
  write_struct(info, caller);
  return {};
}

}  // namespace

Status require_runtime(const flydsl_aot_handle *handle) {
  if (!handle) return error(FLYDSL_AOT_INVALID_ARGUMENT, "handle is NULL");
  if (handle->runtime) return device::check_process();
  return error(FLYDSL_AOT_NO_DEVICE,
               "the library was opened without a device (DEVICE_NONE): only queries work");
}

Status query_target(const flydsl_aot_handle *handle, const archive::TargetId **target) {
  *target = &handle->named_target;
  if (!handle->runtime) return {};
  FLYDSL_RETURN_IF_ERROR(device::check_process());
  int device = 0;
  FLYDSL_RETURN_IF_ERROR(handle->runtime->current_device(&device));
  return device_target(handle, device, target);
}

Status device_target(const flydsl_aot_handle *handle, int device,
                     const archive::TargetId **target) {
  if (const auto &found = handle->device_targets[device]) {
    *target = &*found;
    if (!handle->refuses_calls) return {};
    return error(FLYDSL_AOT_NEVER_EXECUTED,
                 "the kernels for %s were compiled, but never executed, neither on such a device nor on "
                 "the emulator; FLYDSL_AOT_ENABLE_EXPERIMENTAL=1 allows them",
                 handle->arch.c_str());
  }
  const std::string &id = handle->runtime->devices()[device].target_id;
  return error(FLYDSL_AOT_UNSUPPORTED_ARCH, "device %d %s%s; this handle's kernels are for %s", device,
               id.empty() ? "has an empty target id" : "is ", id.c_str(), handle->arch.c_str());
}

}  // namespace flydsl

extern "C" {

flydsl_aot_status flydsl_aot_open(const flydsl_aot_open_options *options,
                                  flydsl_aot_handle **handle) {
  if (!handle) return flydsl::publish(__func__, FLYDSL_AOT_INVALID_ARGUMENT, "handle is NULL");
  *handle = nullptr;
  return flydsl::guarded(__func__, [&] { return flydsl::open(options, handle); });
}

void flydsl_aot_close(flydsl_aot_handle *handle) {
  delete handle;
}

uint32_t flydsl_aot_version(void) {
  return FLYDSL_AOT_VERSION;
}

flydsl_aot_status flydsl_aot_get_info(const flydsl_aot_handle *handle, flydsl_aot_info *info) {
  return flydsl::guarded(__func__, [&] { return flydsl::get_info(handle, info); });
}

}  // extern "C"
