// The HIP names that libaotriton_v2.so is built with have the numbers of HIP's own headers, which this file is compiled with.
#include <hip/hip_runtime_api.h>

#include <cstdint>

namespace own {
#include "v2src/aotriton/hip_types/hip/hip_runtime.h"
}

#define SAME(name) \
  static_assert(static_cast<int>(::name) == static_cast<int>(own::name), #name " differs")

SAME(hipSuccess);
SAME(hipErrorInvalidValue);
SAME(hipErrorOutOfMemory);
SAME(hipErrorNotInitialized);
SAME(hipErrorNoDevice);
SAME(hipErrorInvalidImage);
SAME(hipErrorNoBinaryForGpu);
SAME(hipErrorInvalidKernelFile);
SAME(hipErrorFileNotFound);
SAME(hipErrorSharedObjectInitFailed);
SAME(hipErrorOperatingSystem);
SAME(hipErrorLaunchFailure);
SAME(hipErrorNotSupported);
SAME(hipErrorStreamCaptureUnsupported);
SAME(hipErrorUnknown);
static_assert(sizeof(::hipStream_t) == sizeof(own::hipStream_t));
