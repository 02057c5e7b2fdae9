// What an opened flydsl_aot_handle holds.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "flydsl_aot/library.h"
#include "src/archive/reader.h"
#include "src/device/runtime.h"
#include "src/jit/compiler.h"
#include "src/module/cache.h"
#include "src/select/select.h"
#include "v2src/call_log.h"
#include "v2src/recent_calls.h"

// Members are destroyed in reverse order: the cache unloads its modules while runtime and archive
// are still there.
struct flydsl_aot_handle {
  flydsl_aot_device_kind kind = FLYDSL_AOT_DEVICE_NONE;
  std::unique_ptr<flydsl::device::Runtime> runtime;  // null for DEVICE_NONE
  std::unique_ptr<flydsl::archive::Archive> archive;
  std::unique_ptr<flydsl::jit::Compiler> jit;            // null where it is not allowed
  std::unique_ptr<flydsl::module::ModuleCache> modules;  // null for DEVICE_NONE
  std::unique_ptr<flydsl::RecentCalls> recent_calls;     // null for DEVICE_NONE
  std::string device_name;
  std::string target_id;
  std::string arch;
  uint32_t compute_units = 0;
  flydsl::archive::TargetId named_target;  // of the arch option; used without a device
  // Per device; empty where the device is of another architecture than the archive.
  std::vector<std::optional<flydsl::archive::TargetId>> device_targets;
  bool refuses_calls = false;  // the architecture's kernels were never executed, and nobody allowed them
  flydsl::select::Policy policy;
  bool has_aiter = false;  // kernels that AITER's problems need keys for
  std::unique_ptr<flydsl::CallLog> calls;  // null unless it is asked for

  flydsl::select::Context context(const flydsl::archive::TargetId &target) const {
    return {*archive, target, policy,
            compute_units ? compute_units : flydsl::archive::kTuningComputeUnits};
  }
};

namespace flydsl {

Status require_runtime(const flydsl_aot_handle *handle);

// The target id that queries are about: of the current device, or the named one without a device.
Status query_target(const flydsl_aot_handle *handle, const archive::TargetId **target);

// The target id of one device; UNSUPPORTED_ARCH if the handle's archive is not for it, NEVER_EXECUTED if its kernels are not to run.
Status device_target(const flydsl_aot_handle *handle, int device, const archive::TargetId **target);

}  // namespace flydsl
