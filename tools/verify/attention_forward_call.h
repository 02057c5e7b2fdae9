// A call of attention_forward on a case, on whatever device the handle has.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/verify/attention_device_case.h"

namespace flydsl::verify {

class ForwardOnDevice : public DeviceCase {
 public:
  ForwardOnDevice(flydsl_aot_handle *handle, const AttentionCase &c);

  void refill(const AttentionCase &c);
  void set(flydsl_aot_attention_forward_params *params) const;
  AttentionResult finish(flydsl_aot_status status);

 private:
  void fill();
  bool wide_bias() const { return on_device().bias_dtype == FLYDSL_AOT_FP32; }

  Numbers starts_q_, starts_k_, used_q_, q_descale_, bias_, visible_;
  // Seed and offset in device memory: two that are read, two that are written.
  DeviceTensor random_, kept_;
};

// Queries, calls, waits, downloads. Outputs and workspace are poisoned before. Throws DeviceError if memory
// cannot be had, written or read.
AttentionResult call_attention_forward(flydsl_aot_handle *handle, const AttentionCase &c);

}  // namespace flydsl::verify
