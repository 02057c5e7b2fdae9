// Atomic sums in LDS. The order of their results differs from run to run: nothing that is written may depend on it.
#pragma once

#include "common/vectors.hip.h"

namespace flydsl::kernels {

FLYDSL_DEVICE u32 atomic_add(lds_ptr<u32> to, u32 value) {
  return __scoped_atomic_fetch_add(to, value, __ATOMIC_RELAXED, __MEMORY_SCOPE_WRKGRP);
}

}  // namespace flydsl::kernels
