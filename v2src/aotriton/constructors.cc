// Constructors of the parameters for programs that were compiled with AOTriton's own headers, which take them from the library; those
// of this project's headers are inline. They initialise what AOTriton's do: of the version that the library was configured for,
// since the memory of one of version 6 ends before varlen_bits, which one of version 7 relies on.
#define AOTRITON_VERSION_MINOR FLYDSL_AOT_AOTRITON_MINOR
#include <new>

#include "aotriton/flash.h"

namespace {

using aotriton::v3::flash::attn_bwd_params;
using aotriton::v3::flash::attn_fwd_params;

}  // namespace

// The names that a C++ compiler gives to the complete and the base object's constructor (Itanium C++ ABI, 5.1.4.3).
#define FLYDSL_EXPORT extern "C" __attribute__((visibility("default")))
FLYDSL_EXPORT void construct_forward(void *self) __asm__("_ZN8aotriton2v35flash15attn_fwd_paramsC1Ev");
FLYDSL_EXPORT void construct_forward_base(void *self) __asm__(
    "_ZN8aotriton2v35flash15attn_fwd_paramsC2Ev");
FLYDSL_EXPORT void construct_backward(void *self) __asm__(
    "_ZN8aotriton2v35flash15attn_bwd_paramsC1Ev");
FLYDSL_EXPORT void construct_backward_base(void *self) __asm__(
    "_ZN8aotriton2v35flash15attn_bwd_paramsC2Ev");

void construct_forward(void *self) {
  new (self) attn_fwd_params;
}
void construct_forward_base(void *self) {
  construct_forward(self);
}
void construct_backward(void *self) {
  new (self) attn_bwd_params;
}
void construct_backward_base(void *self) {
  construct_backward(self);
}
