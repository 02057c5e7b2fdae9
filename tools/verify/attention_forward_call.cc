#include "tools/verify/attention_forward_call.h"

namespace flydsl::verify {

ForwardOnDevice::ForwardOnDevice(flydsl_aot_handle *handle, const AttentionCase &c)
    : DeviceCase(handle, c),
      used_(handle, FLYDSL_AOT_INT64, {2}, {}, 0),
      kept_(handle, FLYDSL_AOT_BOOL,
            c.want_kept ? std::vector<int64_t>{c.batches, c.heads_q, c.seq_q, c.seq_k}
                        : std::vector<int64_t>(4),
            c.place_kept, kOutputPoison) {}

void ForwardOnDevice::refill(const AttentionCase &c) {
  DeviceCase::refill(c);
  used_.upload();
  kept_.upload();
}

void ForwardOnDevice::set(flydsl_aot_attention_forward_params *params) const {
  const AttentionCase &c = on_device();
  DeviceCase::set(params);
  if (c.random_on_device) {
    params->dropout_seed_out = static_cast<uint64_t *>(used_.tensor().data);
    params->dropout_offset_out = params->dropout_seed_out + 1;
  }
  if (c.want_kept) params->kept = kept_.tensor();
}

AttentionResult ForwardOnDevice::finish(flydsl_aot_status status) {
  const AttentionCase &c = on_device();
  AttentionResult result = DeviceCase::finish(status);
  if (result.device_failed) return result;
  if (c.want_kept) {
    result.kept = kept_.get<uint8_t>();
    if (result.stray_write.empty()) result.stray_write = kept_.changed_outside();
  }
  if (c.random_on_device) result.used = used_.get<uint64_t>();
  return result;
}

AttentionResult call_attention_forward(flydsl_aot_handle *handle, const AttentionCase &c) {
  ForwardOnDevice on_device(handle, c);
  flydsl_aot_attention_forward_params params{};
  on_device.set(&params);
  on_device.prepare(&params, flydsl_aot_attention_forward_query);
  return on_device.finish(flydsl_aot_attention_forward(handle, &params, nullptr));
}

}  // namespace flydsl::verify
