#include "v2src/known_call.h"


#include "v2src/launch_kernel.h"

namespace flydsl {

bool KnownCall::fits(const CallForm &form) const {
  for (const Follower &follower : followers)
    if (form.sources[follower.index] !=
        form.sources[follower.leader] + follower.distance)
      return false;
  uint64_t begins[CallForm::kMostAddresses], ends[CallForm::kMostAddresses];
  size_t count = 0;
  for (const Group &group : groups) {
    const uint64_t begin = form.sources[group.leader], end = begin + group.bytes;
    if (end - 1 < begin - 1) return false;  // NULL, or past the end of all addresses
    begins[count] = begin;
    ends[count++] = end;
  }
  for (size_t i = 0; i < apart; ++i) {
    const uint64_t begin = begins[i], end = ends[i];
#pragma GCC unroll 4
    for (size_t j = i + 1; j < count; ++j)
      if (begin < ends[j] && begins[j] < end) return false;
  }
  return true;
}

[[gnu::always_inline]] inline Status KnownCall::launch_all(
    const flydsl_aot_handle *handle, const CallForm &form, void *stream,
    const device::HipFunction *functions) const {
  uint64_t arguments[kMostKernargBytes / kWordBytes];
  std::memcpy(arguments, kernarg.data(), kernarg.size() * kWordBytes);
  const Change *change = changes.data();
  for (const Launched &launched : launches) {
    for (const Change *last = changes.data() + launched.last_change; change != last; ++change)
      arguments[change->word] =
          change->value + form.sources[change->source];
    FLYDSL_RETURN_IF_ERROR(launch_kernel(handle, launched.entry, *functions++, launched.shape,
                                         stream, arguments, launched.kernarg_bytes));
  }
  return {};
}

Status KnownCall::launch(flydsl_aot_handle *handle, const CallForm &form, void *stream) const {
  device::DeviceScope scope(*handle->runtime);
  FLYDSL_RETURN_IF_ERROR(scope.enter(device));
  // All are loaded before one is launched, as on the long way.
  device::HipFunction functions[kMostLaunches];
  size_t count = 0;
  for (const Launched &launched : launches) {
    functions[count] = handle->modules->loaded(device, launched.entry);
    if (!functions[count++]) return load_and_launch(handle, form, stream);
  }
  return launch_all(handle, form, stream, functions);
}

Status KnownCall::load_and_launch(flydsl_aot_handle *handle, const CallForm &form,
                                  void *stream) const {
  module::ModuleCache::Use kernels[kMostLaunches];
  device::HipFunction functions[kMostLaunches];
  for (size_t i = 0; i < launches.size(); ++i) {
    FLYDSL_RETURN_IF_ERROR(handle->modules->get(device, launches[i].entry, launches[i].contract,
                                                stream, &kernels[i]));
    functions[i] = kernels[i].function();
  }
  return launch_all(handle, form, stream, functions);
}

Status explain_launch(const flydsl_aot_handle *handle, uint32_t entry,
                      const device::LaunchShape &shape, Status status) {
  const char *name = handle->archive->string(handle->archive->entries()[entry].name);
  FLYDSL_LOG(Debug, "launch %s, grid %u x %u", name, shape.grid[0], shape.grid[1]);
  if (status.ok()) return status;
  return error(status.code(), "kernel '%s': %s", name, status.message().c_str());
}

}  // namespace flydsl
