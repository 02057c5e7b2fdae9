// Failures: a status of the C ABI as hipError_t, and the text of faults that are found here.
#pragma once

#include <hip/hip_runtime.h>

#include "flydsl_aot/status.h"

namespace flydsl::aotriton {

hipError_t hip_error(flydsl_aot_status status);

// The message becomes flydsl_aot_last_error(), as that of `function`. Returns `status`.
__attribute__((format(printf, 3, 4))) flydsl_aot_status refuse(const char *function,
                                                               flydsl_aot_status status,
                                                               const char *format, ...);

}  // namespace flydsl::aotriton
