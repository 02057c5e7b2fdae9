// What every exported function does: no exception leaves it, and its error becomes the thread's
// last error.
#pragma once

#include <new>

#include "emulator/hip/hip_abi.h"

namespace flydsl::emu::hip {

// Keeps a sentence about why the current call is refused (flydsl_emu_last_error) and returns
// `code`.
[[gnu::format(printf, 2, 3)]] hipError_t fail(hipError_t code, const char *format, ...);

// Records a call's result as HIP does: an error stays until hipGetLastError takes it; success and
// "not ready" change nothing.
hipError_t record(hipError_t code);
// The thread's last error, without and with resetting it.
hipError_t peek_last_error();
hipError_t take_last_error();
const char *last_explanation();

template <typename Body>
hipError_t api_call(Body &&body) noexcept {
  try {
    return record(body());
  } catch (const std::bad_alloc &) {
    return record(fail(hipErrorOutOfMemory, "out of host memory"));
  } catch (...) {
    return record(fail(hipErrorUnknown, "internal error"));
  }
}

}  // namespace flydsl::emu::hip
