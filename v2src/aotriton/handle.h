// The opened library that this process's calls share.
#pragma once

#include "flydsl_aot/library.h"

namespace flydsl::aotriton {

enum class Backend { kAny, kNative, kAiter };

// Opens at the first call of a backend, with what the environment says; never closed. A failure is not kept: the next call tries
// again.
flydsl_aot_status shared_handle(Backend backend, flydsl_aot_handle **handle);

}  // namespace flydsl::aotriton
