#include "tools/verify/attention_decode_call.h"

#include "tools/verify/attention_device_case.h"

namespace flydsl::verify {

AttentionResult call_attention_decode(flydsl_aot_handle *handle, const AttentionCase &c) {
  DeviceCase on_device(handle, c);
  flydsl_aot_attention_decode_params params{};
  on_device.set(&params);
  on_device.prepare(&params, flydsl_aot_attention_decode_query);
  return on_device.finish(flydsl_aot_attention_decode(handle, &params, nullptr));
}

}  // namespace flydsl::verify
