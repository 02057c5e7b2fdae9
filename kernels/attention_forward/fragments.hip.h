// Fragments of K and V are read from LDS a few matrix instructions before they are needed. Left to itself clang 22
// reads them all at once where registers allow, and just before their use where they are scarce.
#pragma once

#include "common/lds.hip.h"

namespace flydsl::kernels {

constexpr int kFragmentsAhead = 3;

// Nothing is moved across.
FLYDSL_DEVICE void fragment_slot() {
  __builtin_amdgcn_sched_barrier(0);
}

}  // namespace flydsl::kernels
