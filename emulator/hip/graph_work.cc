#include "emulator/hip/graph_work.h"

#include "emulator/hip/api_call.h"
#include "emulator/hip/copy.h"
#include "emulator/hip/launch.h"

namespace flydsl::emu::hip {
namespace {

hipError_t no_parameters() {
  return fail(hipErrorInvalidValue, "the parameters are null");
}

}  // namespace

hipError_t make_kernel_work(const hipKernelNodeParams *p, Work *work) {
  if (p == nullptr) return no_parameters();
  hipError_t error = hipSuccess;
  Device *device = current_device_or_fail(&error);
  if (device == nullptr) return error;
  const std::shared_ptr<Function> function = function_or_fail(p->func, *device, &error);
  if (!function) return error;
  return make_launch(
      function,
      launch_request(p->gridDim, p->blockDim, p->sharedMemBytes, p->kernelParams, p->extra),
      *device, nullptr, work);
}

hipError_t make_fill_work(const hipMemsetParams *p, Work *work) {
  if (p == nullptr) return no_parameters();
  if (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4)
    return fail(hipErrorInvalidValue, "elements of %u bytes, 1, 2 and 4 are allowed",
                p->elementSize);
  return make_fill({p->dst, p->pitch, 0}, p->value, p->elementSize, {p->width, p->height, 1}, work);
}

hipError_t make_copy_work(void *to, const void *from, size_t bytes, hipMemcpyKind kind,
                          Work *work) {
  bool pageable = false;
  return make_copy({to, 0, 0}, {const_cast<void *>(from), 0, 0}, {bytes, 1, 1}, kind, work,
                   &pageable);
}

hipError_t make_copy_work(const hipMemcpy3DParms *p, Work *work) {
  Box to, from;
  const hipError_t error = boxes_of(p, &to, &from);
  if (error != hipSuccess) return error;
  bool pageable = false;
  return make_copy(to, from, p->extent, p->kind, work, &pageable);
}

hipError_t make_host_work(const hipHostNodeParams *p, Work *work) {
  if (p == nullptr || p->fn == nullptr) return fail(hipErrorInvalidValue, "the function is null");
  work->type = hipGraphNodeTypeHost;
  work->run = [p = *p] {
    p.fn(p.userData);
    return hipSuccess;
  };
  return hipSuccess;
}

}  // namespace flydsl::emu::hip
