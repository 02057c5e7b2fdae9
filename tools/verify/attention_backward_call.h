// A call of attention_backward on a case, on whatever device the handle has.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tools/verify/attention_backward_case.h"
#include "tools/verify/attention_device_inputs.h"

namespace flydsl::verify {

// What attention_forward gave, or would: dense (B, Hq, Sq, Dv) in the case's type and (B, Hq, Sq). Rows past a
// sequence's length may hold anything.
struct ForwardOutputs {
  std::vector<uint16_t> out;
  std::vector<float> lse;
};

struct BackwardResult : CallResult {
  // Dense, those that are wanted: bits of 16 or 32-bit numbers. Rows past a sequence's length hold the poison 0xAB..., or
  // are a stray write.
  std::array<std::vector<uint32_t>, kGradients> bits;
  std::string kernels;  // that the call launches, as explain says
};

class BackwardOnDevice : public DeviceInputs {
 public:
  // The case must outlive this.
  BackwardOnDevice(flydsl_aot_handle *handle, const BackwardCase &c, const ForwardOutputs &forward);

  void refill(const BackwardCase &c, const ForwardOutputs &forward);
  void set(flydsl_aot_attention_backward_params *params) const;
  BackwardResult finish(flydsl_aot_status status);

 private:
  void fill(const ForwardOutputs &forward);
  bool padded() const { return case_->lse_padded || !rows.packed; }

  const BackwardCase *case_;
  DeviceTensor out_, lse_, dout_;
  Numbers dq_, dk_, dv_, dbias_, dsinks_;
};

// Queries, calls, waits, downloads. Outputs and workspace are poisoned before. Throws DeviceError if memory
// cannot be had, written or read.
BackwardResult call_attention_backward(flydsl_aot_handle *handle, const BackwardCase &c,
                                       const ForwardOutputs &forward);

}  // namespace flydsl::verify
