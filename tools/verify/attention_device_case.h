// A case of the forward pass in device memory: inputs, out and lse.
#pragma once

#include "tools/verify/attention_device_inputs.h"

namespace flydsl::verify {

class DeviceCase : public DeviceInputs {
 public:
  // The case must outlive this.
  DeviceCase(flydsl_aot_handle *handle, const AttentionCase &c);

  // As DeviceInputs, outputs too.
  void refill(const AttentionCase &c);

  // The fields that both operators have; `params` is else zero.
  template <typename Params>
  void set(Params *params) const {
    DeviceInputs::set(params);
    params->out = out_.tensor();
    if (on_device().want_lse) params->lse = lse_.tensor();
  }

  // Once a call returned `status`: waits and takes the outputs; says what else was written. Fills all of the result
  // but what only one operator has.
  AttentionResult finish(flydsl_aot_status status);

 private:
  DeviceTensor out_, lse_;
};

}  // namespace flydsl::verify
