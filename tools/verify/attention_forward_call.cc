#include "tools/verify/attention_forward_call.h"

#include "tools/verify/float16.h"

namespace flydsl::verify {
namespace {

std::vector<uint16_t> rounded(flydsl_aot_dtype dtype, const std::vector<float> &values) {
  std::vector<uint16_t> bits;
  for (const float value : values) bits.push_back(from_float(dtype, value));
  return bits;
}

std::vector<int64_t> score_sizes(const AttentionCase &c) {
  return {c.batches, c.heads_q, c.seq_q, c.seq_k};
}

}  // namespace

ForwardOnDevice::ForwardOnDevice(flydsl_aot_handle *handle, const AttentionCase &c)
    : DeviceCase(handle, c),
      starts_q_(handle, FLYDSL_AOT_INT32, rows.packed, {c.batches + 1}),
      starts_k_(handle, FLYDSL_AOT_INT32, keys.packed, {c.batches + 1}),
      used_q_(handle, FLYDSL_AOT_INT32, rows.used, {c.batches}),
      q_descale_(descale_numbers(handle, c.q_descale)),
      bias_(handle, c.bias_dtype, !c.bias.empty(), score_sizes(c), c.place_bias),
      visible_(handle, FLYDSL_AOT_BOOL, !c.visible.empty(), score_sizes(c), c.place_visible),
      random_(handle, FLYDSL_AOT_INT64, {4}, {}, 0),
      kept_(handle, FLYDSL_AOT_BOOL, c.want_kept ? score_sizes(c) : std::vector<int64_t>(4),
            c.place_kept, kOutputPoison) {
  fill();
}

void ForwardOnDevice::fill() {
  const AttentionCase &c = on_device();
  starts_q_.set(rows.packing.starts);
  starts_k_.set(keys.packing.starts);
  used_q_.set(rows.packing.lengths);
  q_descale_.set(c.q_descale.values);
  if (wide_bias())
    bias_.set(c.bias);
  else
    bias_.set(rounded(c.dtype, c.bias));
  visible_.set(c.visible);
  random_.set(std::vector<uint64_t>{c.seed, c.offset - 1000, 0, 0});
}

void ForwardOnDevice::refill(const AttentionCase &c) {
  DeviceCase::refill(c);
  fill();
  kept_.upload();
}

void ForwardOnDevice::set(flydsl_aot_attention_forward_params *params) const {
  const AttentionCase &c = on_device();
  DeviceCase::set(params);
  params->cu_seqlens_q = starts_q_.view();
  params->cu_seqlens_k = starts_k_.view();
  params->seqused_q = used_q_.view();
  if (rows.packed) params->max_seqlen_q = c.seq_q;
  if (keys.packed) params->max_seqlen_k = c.seq_k;
  params->q_descale = q_descale_.view();
  params->bias = bias_.view();
  params->visible = visible_.view();
  params->dropout_p = c.dropout_p;
  params->dropout_seed = c.random_on_device ? 77 : c.seed;
  params->dropout_offset = c.random_on_device ? 1000 : c.offset;
  if (c.random_on_device) {
    uint64_t *const first = static_cast<uint64_t *>(random_.tensor().data);
    params->dropout_seed_device = first;
    params->dropout_offset_device = first + 1;
    params->dropout_seed_out = first + 2;
    params->dropout_offset_out = first + 3;
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
  if (c.random_on_device) {
    const std::vector<uint64_t> all = random_.get<uint64_t>();
    result.used = {all[2], all[3]};
    if (all[0] != c.seed || all[1] != c.offset - 1000) result.stray_write = "the seed was changed";
  }
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
