// The kernel arguments where they are, in constant memory (codegen/describe/gemm/arguments.py): a part that needs some reads
// them anew through fresh_arguments(), so that none has to be kept in registers from the start of the kernel.
#pragma once

#include "common/lanes.hip.h"
#include "flydsl_aot_generated/gemm_kernarg.h"

namespace flydsl::kernels::gemm {

using Arguments = const __attribute__((address_space(4))) flydsl_aot_gemm_kernarg *;

// Loads through the result are not moved to before this point. (The assembly takes the builtin's value itself: a copy
// in a variable would lie in scratch memory without optimisation.)
FLYDSL_DEVICE Arguments fresh_arguments() {
  Arguments args;
  asm volatile("" : "=s"(args) : "0"(__builtin_amdgcn_kernarg_segment_ptr()));
  return args;
}

// Into vector registers: scalar ones are few where a main loop keeps its state in them.
template <class T>
FLYDSL_DEVICE T in_lanes(T value) {
  asm volatile("" : "+v"(value));
  return value;
}

}  // namespace flydsl::kernels::gemm
