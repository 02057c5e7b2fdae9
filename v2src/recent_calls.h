// Calls that a handle has made, to be made again at once when the same parameters come to the byte: what a call launches depends on them,
// the device and the handle only, so checks, selection and kernel arguments need not be found a second time.
//
// A fixed table, each call in the one place that its addresses lead to. Threads do not wait: who finds the place taken goes the
// long way. Memory is allocated where a place is used for the first time, or by a larger call than before.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "src/device/runtime.h"
#include "src/module/cache.h"
#include "src/status/status.h"

struct flydsl_aot_handle;

namespace flydsl {

// Launches a loaded kernel; the message of a failure names it.
Status launch_kernel(const flydsl_aot_handle *handle, uint32_t entry, device::HipFunction function,
                     const device::LaunchShape &shape, void *stream, void *kernarg,
                     size_t kernarg_bytes);

class RecentCalls {
 private:
  struct Place;

 public:
  RecentCalls();
  ~RecentCalls();

  // Makes the call again. False: it is not here, and nothing was done. `op` tells operators apart.
  bool repeat(flydsl_aot_handle *handle, const void *op, const void *params, uint32_t params_bytes,
              void *stream, Status *status);

  // While a call goes the long way: what it launches is noted, and kept if it ends well.
  class Recording {
   public:
    Recording(RecentCalls *calls, const void *op, const void *params, uint32_t params_bytes);
    ~Recording();
    Recording(const Recording &) = delete;
    Recording &operator=(const Recording &) = delete;
    void keep() { kept_ = true; }

   private:
    Place *place_;  // null where another thread has it
    bool kept_ = false;
  };
  // Of the thread's call that is being recorded.
  static void note(int device, uint32_t entry, const module::KernargContract &contract,
                   const device::LaunchShape &shape, const void *kernarg,
                   size_t kernarg_bytes) noexcept;

 private:
  Place *take(const void *op, const void *params, uint32_t params_bytes);

  std::unique_ptr<Place[]> places_;
};

}  // namespace flydsl
