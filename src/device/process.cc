#include "src/device/process.h"

#include <pthread.h>

#include <atomic>

namespace flydsl::device {
namespace {

std::atomic<bool> in_use{false}, forked{false};

void note_fork_in_child() {
  if (in_use.load(std::memory_order_relaxed)) forked.store(true, std::memory_order_relaxed);
}

// glibc ties the handler to this library, so that it goes with dlclose.
__attribute__((constructor)) void watch_forks() {
  pthread_atfork(nullptr, nullptr, note_fork_in_child);
}

}  // namespace

void note_device_use() noexcept {
  in_use.store(true, std::memory_order_relaxed);
}

bool forked_after_use() noexcept {
  return forked.load(std::memory_order_relaxed);
}

Status check_process() {
  if (!forked_after_use()) return {};
  return error(FLYDSL_AOT_PROCESS_FORKED,
               "this process was forked after its parent had opened a device, which does not survive that: fork before the "
               "first flydsl_aot_open, or start the child anew (spawn, exec)");
}

}  // namespace flydsl::device
