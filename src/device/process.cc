#include "src/device/process.h"

#include <pthread.h>
#include <sys/mman.h>

#include <atomic>

namespace flydsl::device {
namespace {

constexpr size_t kPageBytes = 4096;  // x86-64's

// Its own page, which the kernel hands to a child full of zeros (MADV_WIPEONFORK, Linux 4.14), however the child is made: _Fork() and
// clone() call no handlers. Where the kernel does not do that, a handler does it for fork().
struct alignas(kPageBytes) ProcessPage {
  std::atomic<bool> opened_a_device;
  char rest[kPageBytes - sizeof(std::atomic<bool>)];
};
static_assert(sizeof(ProcessPage) == kPageBytes);

ProcessPage this_process;
std::atomic<bool> in_use{false};  // here, or in the parent

void wipe_in_child() {
  this_process.opened_a_device.store(false, std::memory_order_relaxed);
}

// glibc ties the handler to this library, so that it goes with dlclose.
__attribute__((constructor)) void watch_forks() {
  madvise(&this_process, sizeof this_process, MADV_WIPEONFORK);
  pthread_atfork(nullptr, nullptr, wipe_in_child);
}

}  // namespace

void note_device_use() noexcept {
  this_process.opened_a_device.store(true, std::memory_order_relaxed);
  in_use.store(true, std::memory_order_release);
}

bool forked_after_use() noexcept {
  return in_use.load(std::memory_order_acquire) &&
         !this_process.opened_a_device.load(std::memory_order_relaxed);
}

Status check_process() {
  if (!forked_after_use()) return {};
  return error(FLYDSL_AOT_PROCESS_FORKED,
               "this process was forked after its parent had opened a device, which does not "
               "survive that: fork before the "
               "first flydsl_aot_open, or start the child anew (spawn, exec)");
}

}  // namespace flydsl::device
