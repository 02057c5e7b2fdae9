// A call of attention_forward on a case, on whatever device the handle has.
#pragma once

#include "tools/verify/attention_device_case.h"

namespace flydsl::verify {

class ForwardOnDevice : public DeviceCase {
 public:
  ForwardOnDevice(flydsl_aot_handle *handle, const AttentionCase &c);

  void refill(const AttentionCase &c);
  void set(flydsl_aot_attention_forward_params *params) const;
  AttentionResult finish(flydsl_aot_status status);

 private:
  DeviceTensor used_, kept_;  // seed and offset that were used; weights that were kept
};

// Queries, calls, waits, downloads. Outputs and workspace are poisoned before. Throws DeviceError if memory
// cannot be had, written or read.
AttentionResult call_attention_forward(flydsl_aot_handle *handle, const AttentionCase &c);

}  // namespace flydsl::verify
