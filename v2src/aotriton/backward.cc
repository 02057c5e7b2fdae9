// attn_bwd on flydsl_aot_attention_backward.
#include "flydsl_aot/attention_backward.h"

#include "flydsl_aot/device.h"
#include "v2src/aotriton/error.h"
#include "v2src/aotriton/features.h"
#include "v2src/aotriton/lengths.h"
#include "v2src/aotriton/operators.h"
#include "v2src/aotriton/window.h"

namespace flydsl::aotriton {
namespace {

using Params = flydsl_aot_attention_backward_params;

// Bytes of a tensor without gaps; 0 if it is not one of fp32.
uint64_t bytes_of(const TensorView<4> &view) {
  if (!view || view.dtype() != ::aotriton::kFloat32) return 0;
  uint64_t elements = 1, last = 0;
  for (int axis = 0; axis < 4; ++axis) {
    if (view.size(axis) == 0) return 0;
    elements *= view.size(axis);
    last += (view.size(axis) - 1) * view.stride(axis);
  }
  return last + 1 == elements ? elements * sizeof(float) : 0;
}

// The call's workspace is the caller's DQ_ACC if that is large enough. For the kernels that compute all gradients together, the
// fastest, one of DQ's shape is not: their workspace is allocated in the stream's order, but within a capture, where separate passes
// do with DQ_ACC: memory that a graph owns, which hipMallocAsync gives there, was freed too early or not there at all in several
// releases of ROCm (rocm-libraries#8105, #8401, rocm-systems#7004). (The caller's D, four bytes a row, never is enough.)
class Backward {
 public:
  Backward(const BackwardCall &call, flydsl_aot_handle *handle, hipStream_t stream,
           Lazy<4> *accumulator)
      : call_(call),
        handle_(handle),
        stream_(stream),
        accumulator_(*accumulator),
        lengths_q_(handle, stream),
        lengths_k_(handle, stream) {}

  flydsl_aot_status run() {
    flydsl_aot_status status = set_params();
    if (status != FLYDSL_AOT_OK) return status;
    flydsl_aot_query_result plan{};
    plan.struct_size = sizeof plan;
    status = flydsl_aot_attention_backward_query(handle_, &params_, &plan);
    if (status != FLYDSL_AOT_OK) return status;
    if (plan.workspace_bytes == 0 || take_accumulator(plan.workspace_bytes)) return call();
    flydsl_aot_stream_info info{};
    info.struct_size = sizeof info;
    status = flydsl_aot_device_stream_info(handle_, stream_, &info);
    if (status != FLYDSL_AOT_OK) return status;
    return info.capturing ? run_captured(plan.workspace_bytes) : run_now(plan.workspace_bytes);
  }

 private:
  flydsl_aot_status set_params() {
    Sequences sequences;
    flydsl_aot_status status = place_sequences(call_, &sequences);
    if (status == FLYDSL_AOT_OK) status = mask_of(call_, sequences, &params_.mask);
    if (status == FLYDSL_AOT_OK) status = place_lse(call_, sequences.q, &params_.lse);
    if (status == FLYDSL_AOT_OK) status = lengths_q_.separate(call_.function, &sequences.q);
    if (status == FLYDSL_AOT_OK) status = lengths_k_.separate(call_.function, &sequences.k);
    if (status != FLYDSL_AOT_OK) return status;
    set_common(call_, sequences, &params_);
    params_.dout = sequences.q.tensor(call_.dout);
    params_.dq = sequences.q.tensor(call_.dq);
    params_.dk = sequences.k.tensor(call_.dk);
    params_.dv = sequences.k.tensor(call_.dv);
    params_.dbias = scores_tensor(call_.dbias, sequences);
    return FLYDSL_AOT_OK;
  }

  flydsl_aot_status call() { return flydsl_aot_attention_backward(handle_, &params_, stream_); }

  flydsl_aot_status run_now(uint64_t needed) {
    // A later call within a capture finds its kernels loaded.
    Params separate = params_;
    separate.workspace_bytes = accumulator_bytes();
    if (separate.workspace_bytes > 0)
      (void)flydsl_aot_attention_backward_prefetch(handle_, &separate);
    StreamMemory memory(handle_, stream_);
    const flydsl_aot_status status = run_in(needed, &memory);
    const bool has_memory = memory.get() != nullptr;
    return has_memory || !take_accumulator(1) ? status : call();
  }

  flydsl_aot_status run_captured(uint64_t needed) {
    if (take_accumulator(1)) {
      const flydsl_aot_status status = call();
      if (status != FLYDSL_AOT_INVALID_WORKSPACE) return status;
    }
    StreamMemory memory(handle_, stream_);
    return run_in(needed, &memory);
  }

  flydsl_aot_status run_in(uint64_t bytes, StreamMemory *memory) {
    const flydsl_aot_status status = memory->allocate(bytes);
    if (status != FLYDSL_AOT_OK) return status;
    params_.workspace = memory->get();
    params_.workspace_bytes = bytes;
    return call();
  }

  // What DQ_ACC has, or will have once it is made.
  uint64_t accumulator_bytes() const {
    if (const TensorView<4> *made = accumulator_.made()) return bytes_of(*made);
    if (!accumulator_.available() || !call_.dq) return 0;
    uint64_t bytes = sizeof(float);
    for (int axis = 0; axis < 4; ++axis) bytes *= call_.dq.size(axis);
    return bytes;
  }

  // Makes it the workspace if it has so many bytes.
  bool take_accumulator(uint64_t least) {
    if (accumulator_bytes() < least) return false;
    params_.workspace_bytes = bytes_of(accumulator_.get());
    params_.workspace = accumulator_.get().data_ptr();
    return params_.workspace_bytes >= least;
  }

  const BackwardCall &call_;
  flydsl_aot_handle *handle_;
  hipStream_t stream_;
  Lazy<4> &accumulator_;
  Lengths lengths_q_, lengths_k_;
  Params params_{};
};

}  // namespace

flydsl_aot_status backward(const BackwardCall &call, Lazy<4> *accumulator, Backend backend,
                           hipStream_t stream) {
  flydsl_aot_handle *handle = nullptr;
  const flydsl_aot_status status = shared_handle(backend, &handle);
  return status == FLYDSL_AOT_OK ? Backward(call, handle, stream, accumulator).run() : status;
}

}  // namespace flydsl::aotriton
