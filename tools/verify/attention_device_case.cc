#include "tools/verify/attention_device_case.h"

namespace flydsl::verify {

DeviceCase::DeviceCase(flydsl_aot_handle *handle, const AttentionCase &c)
    : DeviceInputs(handle, c),
      out_(handle, c.dtype, rows.sizes(c.heads_q, c.value_dim()), c.place_out, kOutputPoison),
      lse_(handle, FLYDSL_AOT_FP32, without_channels(rows.sizes(c.heads_q, 1)), c.place_lse,
           kOutputPoison) {}

void DeviceCase::refill(const AttentionCase &c) {
  DeviceInputs::refill(c);
  out_.upload();
  lse_.upload();
}

AttentionResult DeviceCase::finish(flydsl_aot_status status) {
  const AttentionCase &c = on_device();
  AttentionResult result;
  if (!DeviceInputs::finish(status, &result)) return result;
  std::string &stray = result.stray_write;
  result.out = rows.dense(out_.get<uint16_t>(), c.heads_q, c.value_dim(),
                          static_cast<uint16_t>(kOutputPoison), &stray);
  result.lse = rows.dense(lse_.get<float>(), c.heads_q, 1, kLsePoison, &stray);
  result.outputs_untouched = out_.untouched() && lse_.untouched();
  if (stray.empty()) stray = out_.changed_outside();
  if (stray.empty()) stray = lse_.changed_outside();
  if (!c.want_lse) {
    if (!lse_.untouched()) stray = "an LSE that was not asked for was written";
    result.lse.clear();
  }
  return result;
}

bool same_bits(const AttentionResult &a, const AttentionResult &b) {
  return a.out == b.out && a.lse.size() == b.lse.size() &&
         (a.lse.empty() ||
          std::memcmp(a.lse.data(), b.lse.data(), a.lse.size() * sizeof(float)) == 0);
}

}  // namespace flydsl::verify
