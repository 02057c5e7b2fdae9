// The calls of libaotriton_v2.so, on parameters of any version.
#pragma once

#include <hip/hip_runtime.h>

#include "flydsl_aot/status.h"
#include "v2src/aotriton/call.h"
#include "v2src/aotriton/handle.h"
#include "v2src/aotriton/lazy.h"

namespace flydsl::aotriton {

flydsl_aot_status forward(const ForwardCall &call, Backend backend, hipStream_t stream);

// `accumulator`: the call's DQ_ACC.
flydsl_aot_status backward(const BackwardCall &call, Lazy<4> *accumulator, Backend backend,
                           hipStream_t stream);

// 0.5 where dropout keeps a weight, else -0.5.
flydsl_aot_status write_kept(const char *function, const TensorView<4> &to, float dropout_p,
                             const TensorView<0> &seed, const TensorView<0> &offset,
                             uint64_t offset_beyond, hipStream_t stream);

}  // namespace flydsl::aotriton
