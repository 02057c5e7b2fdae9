#include "v2src/aotriton/handle.h"

#include <atomic>
#include <cstddef>
#include <mutex>

namespace flydsl::aotriton {
namespace {

constexpr const char *kNames[] = {nullptr, "native", "aiter"};  // of Backend
// Without destructors: the device's work may outlast the program's main().
std::atomic<flydsl_aot_handle *> handles[std::size(kNames)];
std::mutex opening;

}  // namespace

flydsl_aot_status shared_handle(Backend backend, flydsl_aot_handle **handle) {
  std::atomic<flydsl_aot_handle *> &shared = handles[static_cast<size_t>(backend)];
  *handle = shared.load(std::memory_order_acquire);
  if (*handle) return FLYDSL_AOT_OK;
  const std::lock_guard<std::mutex> lock(opening);
  *handle = shared.load(std::memory_order_relaxed);
  if (*handle) return FLYDSL_AOT_OK;
  flydsl_aot_open_options options{};
  options.struct_size = sizeof options;
  options.backends = kNames[static_cast<size_t>(backend)];
  const flydsl_aot_status status = flydsl_aot_open(&options, handle);
  if (status == FLYDSL_AOT_OK) shared.store(*handle, std::memory_order_release);
  return status;
}

}  // namespace flydsl::aotriton
