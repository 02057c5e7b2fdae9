// The kernel arguments where they are, in constant memory. The general instances have more of them
// than scalar registers: a part that needs some reads them anew through fresh_arguments(), so that
// none has to be kept (or spilled) from the start of the kernel.
#pragma once

#include "common/lanes.hip.h"
// Parts that attention_backward shares read its arguments (attention_backward/arguments.hip.h); names that both have mean the same.
#ifndef FLYDSL_KERNEL_ARGUMENTS
#include "flydsl_aot_generated/attention_forward_kernarg.h"
#define FLYDSL_KERNEL_ARGUMENTS flydsl_aot_attention_forward_kernarg
#endif

namespace flydsl::kernels {

using Arguments = const __attribute__((address_space(4))) FLYDSL_KERNEL_ARGUMENTS *;

// Loads through the result are not moved to before this point. (The assembly takes the builtin's
// value itself: a copy in a variable would lie in scratch memory without optimisation, and come back
// in a vector register.)
FLYDSL_DEVICE Arguments fresh_arguments() {
  Arguments args;
  asm volatile("" : "=s"(args) : "0"(__builtin_amdgcn_kernarg_segment_ptr()));
  return args;
}

}  // namespace flydsl::kernels
