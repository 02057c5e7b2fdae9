// The kernel arguments where they are, in constant memory. The general instances have more of them
// than scalar registers: a part that needs some reads them anew through fresh(), so that none has to
// be kept (or spilled) from the start of the kernel.
#pragma once

#include "common/lanes.hip.h"
#include "flydsl_aot_generated/attention_forward_kernarg.h"

namespace flydsl::kernels {

using Arguments = const __attribute__((address_space(4))) flydsl_aot_attention_forward_kernarg *;

FLYDSL_DEVICE Arguments kernel_arguments() {
  return (Arguments)__builtin_amdgcn_kernarg_segment_ptr();
}

// The same pointer; loads through it are not moved to before this point.
FLYDSL_DEVICE Arguments fresh(Arguments args) {
  asm volatile("" : "+s"(args));
  return args;
}

}  // namespace flydsl::kernels
