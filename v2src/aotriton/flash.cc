// The functions that libaotriton_v2.so exports: those of aotriton/flash.h.
#include "aotriton/flash.h"

#include <new>

#include "flydsl_aot/device.h"
#include "v2src/aotriton/error.h"
#include "v2src/aotriton/lazy.h"
#include "v2src/aotriton/operators.h"

namespace flydsl::aotriton {
namespace {

using ::aotriton::v3::flash::attn_options;

// `assembly`: the number of that backend; those below it are native.
flydsl_aot_status backend_of(const char *function, const attn_options *options, int assembly,
                             Backend *backend) {
  const int index = options ? options->force_backend_index : -1;
  *backend = index < 0 ? Backend::kAny : index < assembly ? Backend::kNative : Backend::kAiter;
  if (index <= assembly) return FLYDSL_AOT_OK;
  return refuse(function, FLYDSL_AOT_INVALID_ARGUMENT,
                "force_backend_index is %d; allowed: -1 (any) to %d", index, assembly);
}

flydsl_aot_status refuse_version(const char *function, int32_t version, const char *allowed) {
  return refuse(function, FLYDSL_AOT_INVALID_STRUCT_SIZE, "params_version is %d; allowed: %s",
                version, allowed);
}

// What a caller's callback throws goes on to the caller.
template <typename Body>
hipError_t guarded(const char *function, Body &&body) {
  try {
    return hip_error(body());
  } catch (const std::bad_alloc &) {
    return hip_error(refuse(function, FLYDSL_AOT_OUT_OF_HOST_MEMORY, "host memory is exhausted"));
  }
}

}  // namespace
}  // namespace flydsl::aotriton

namespace aotriton::v2::flash {

using namespace flydsl::aotriton;

hipError_t check_gpu(Stream stream) {
  flydsl_aot_handle *handle = nullptr;
  flydsl_aot_status status = shared_handle(Backend::kAny, &handle);
  if (status != FLYDSL_AOT_OK) return hip_error(status);
  flydsl_aot_stream_info info{};
  info.struct_size = sizeof info;
  status = flydsl_aot_device_stream_info(handle, stream.native(), &info);
  if (status == FLYDSL_AOT_OK && !info.served) {
    status = refuse("check_gpu", FLYDSL_AOT_UNSUPPORTED_ARCH, "no kernels for device %d, %s",
                    info.device, info.target_id);
  }
  return hip_error(status);
}

hipError_t debug_simulate_encoded_softmax(TensorView<4> r, float dropout_p,
                                          TensorView<0> philox_seed, TensorView<0> philox_offset1,
                                          uint64_t philox_offset2, Stream stream) {
  constexpr const char *kName = "debug_simulate_encoded_softmax";
  return guarded(kName, [&] {
    return write_kept(kName, r, dropout_p, philox_seed, philox_offset1, philox_offset2,
                      stream.native());
  });
}

}  // namespace aotriton::v2::flash

namespace aotriton::v3::flash {

using namespace flydsl::aotriton;

hipError_t attn_fwd(const attn_fwd_params &params, int32_t params_version, Stream stream,
                    const attn_options *options) {
  return guarded("attn_fwd", [&] {
    if (params_version != 3 && params_version != 4)
      return refuse_version("attn_fwd", params_version, "3 (AOTriton 0.12, 0.13), 4 (0.14)");
    const ForwardCall call = params_version == 3 ? read_forward_3(&params) : read_forward_4(&params);
    Backend backend = Backend::kAny;
    const flydsl_aot_status status = backend_of(call.function, options, 1, &backend);
    return status == FLYDSL_AOT_OK ? forward(call, backend, stream.native()) : status;
  });
}

hipError_t attn_bwd(const attn_bwd_params &params, int32_t params_version, Stream stream,
                    const attn_options *options) {
  return guarded("attn_bwd", [&] {
    if (params_version != 6 && params_version != 7)
      return refuse_version("attn_bwd", params_version, "6 (AOTriton 0.12, 0.13), 7 (0.14)");
    const BackwardCall call =
        params_version == 6 ? read_backward_6(&params) : read_backward_7(&params);
    const Lazy<2> row_sums(call.row_sums);  // not needed, but to be disposed of
    Lazy<4> accumulator(call.dq_accumulator);
    Backend backend = Backend::kAny;
    const flydsl_aot_status status = backend_of(call.function, options, 2, &backend);
    return status == FLYDSL_AOT_OK ? backward(call, &accumulator, backend, stream.native()) : status;
  });
}

}  // namespace aotriton::v3::flash
