/* The HIP stream that a call is given to. */
#ifndef AOTRITON_V2_API_RUNTIME_H
#define AOTRITON_V2_API_RUNTIME_H

#include <hip/hip_runtime.h>

#include "aotriton/config.h"

namespace AOTRITON_NS {

class AOTRITON_API Stream {
 public:
  Stream() = default;
  /* Implicit: callers pass their hipStream_t. */
  Stream(hipStream_t stream) : stream_(stream) {}

  hipStream_t native() const { return stream_; }

 private:
  hipStream_t stream_ = nullptr;
};

}  // namespace AOTRITON_NS

#endif
