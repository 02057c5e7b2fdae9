// The kernel's arguments, read where they are needed: none has to be kept in registers from the start of the kernel, or
// round a loop.
#pragma once

#include "common/keywords.hip.h"

namespace flydsl::kernels {

#if defined(__NVPTX__)

// They are in a constant bank that instructions take operands from.
template <class Struct>
using ArgumentsOf = const Struct *;
template <class Struct>
FLYDSL_DEVICE ArgumentsOf<Struct> arguments_here(const Struct &args) {
  return &args;
}

#else

template <class Struct>
using ArgumentsOf = const __attribute__((address_space(4))) Struct *;
// Loads through the result are not moved to before this point.
template <class Struct>
FLYDSL_DEVICE ArgumentsOf<Struct> arguments_here(const Struct &) {
  ArgumentsOf<Struct> args;
  asm volatile("" : "=s"(args) : "0"(__builtin_amdgcn_kernarg_segment_ptr()));
  return args;
}

#endif

}  // namespace flydsl::kernels
