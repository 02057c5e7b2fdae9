#include "tools/verify/attention_forward_call.h"

#include <cstring>

#include "tools/verify/attention_device_case.h"
#include "tools/verify/float16.h"

namespace flydsl::verify {
namespace {

std::vector<uint16_t> rounded(flydsl_aot_dtype dtype, const std::vector<float> &values) {
  std::vector<uint16_t> bits;
  for (const float value : values) bits.push_back(from_float(dtype, value));
  return bits;
}

// Those terms of the scores in device memory that attention_forward alone has.
class ScoreTerms {
 public:
  ScoreTerms(flydsl_aot_handle *handle, const AttentionCase &c)
      : case_(c),
        sizes_(c.bias.empty() && c.visible.empty()
                   ? std::vector<int64_t>{0, 0, 0, 0}
                   : std::vector<int64_t>{c.batches, c.heads_q, c.seq_q, c.seq_k}),
        wide_(c.bias_dtype == FLYDSL_AOT_FP32),
        bias_wide_(handle, FLYDSL_AOT_FP32, sizes_, c.place_bias,
                   wide_ ? c.bias : std::vector<float>()),
        bias_narrow_(handle, c.dtype, sizes_, c.place_bias,
                     rounded(c.dtype, wide_ ? std::vector<float>() : c.bias)),
        visible_(handle, FLYDSL_AOT_BOOL, sizes_, c.place_visible, c.visible) {}

  void set(flydsl_aot_attention_forward_params *params) const {
    params->bias = wide_ ? bias_wide_.optional(!case_.bias.empty())
                         : bias_narrow_.optional(!case_.bias.empty());
    params->visible = visible_.optional(!case_.visible.empty());
  }

 private:
  const AttentionCase &case_;
  std::vector<int64_t> sizes_;
  bool wide_;
  Numbers<float> bias_wide_;
  Numbers<uint16_t> bias_narrow_;
  Numbers<uint8_t> visible_;
};

}  // namespace

AttentionResult call_attention_forward(flydsl_aot_handle *handle, const AttentionCase &c) {
  DeviceCase on_device(handle, c);
  const Side &rows = on_device.rows, &keys = on_device.keys;
  flydsl_aot_attention_forward_params params{};
  on_device.set(&params);
  const Numbers<int32_t> starts_q(handle, FLYDSL_AOT_INT32, rows.packing.starts),
      starts_k(handle, FLYDSL_AOT_INT32, keys.packing.starts),
      used_q(handle, FLYDSL_AOT_INT32, rows.packing.lengths);
  params.cu_seqlens_q = starts_q.optional(rows.packed);
  params.cu_seqlens_k = starts_k.optional(keys.packed);
  params.seqused_q = used_q.optional(rows.used);
  if (rows.packed) params.max_seqlen_q = c.seq_q;
  if (keys.packed) params.max_seqlen_k = c.seq_k;
  const Numbers<float> q_descale = descale_numbers(handle, c.q_descale);
  params.q_descale = q_descale.optional(!c.q_descale.values.empty());
  const ScoreTerms terms(handle, c);
  terms.set(&params);
  // Seed and offset in device memory: two that are read, two that are written.
  DeviceTensor numbers(handle, FLYDSL_AOT_INT64, {4}, {}, 0);
  numbers.set(std::vector<uint64_t>{c.seed, c.offset - 1000, 0, 0});
  DeviceTensor kept(handle, FLYDSL_AOT_BOOL,
                    c.want_kept ? std::vector<int64_t>{c.batches, c.heads_q, c.seq_q, c.seq_k}
                                : std::vector<int64_t>{0, 0, 0, 0},
                    c.place_kept, kOutputPoison);
  params.dropout_p = c.dropout_p;
  params.dropout_seed = c.random_on_device ? 77 : c.seed;
  params.dropout_offset = c.random_on_device ? 1000 : c.offset;
  if (c.random_on_device) {
    uint64_t *const first = static_cast<uint64_t *>(numbers.tensor().data);
    params.dropout_seed_device = first;
    params.dropout_offset_device = first + 1;
    params.dropout_seed_out = first + 2;
    params.dropout_offset_out = first + 3;
  }
  if (c.want_kept) params.kept = kept.tensor();

  AttentionResult result =
      on_device.run(&params, flydsl_aot_attention_forward_query, flydsl_aot_attention_forward);
  if (result.device_failed) return result;
  if (c.want_kept) {
    result.kept = kept.get<uint8_t>();
    if (result.stray_write.empty()) result.stray_write = kept.changed_outside();
  }
  if (c.random_on_device) {
    const std::vector<uint64_t> all = numbers.get<uint64_t>();
    result.used = {all[2], all[3]};
    if (all[0] != c.seed || all[1] != c.offset - 1000) result.stray_write = "the seed was changed";
  }
  return result;
}

bool same_bits(const AttentionResult &a, const AttentionResult &b) {
  return a.out == b.out && a.lse.size() == b.lse.size() &&
         (a.lse.empty() ||
          std::memcmp(a.lse.data(), b.lse.data(), a.lse.size() * sizeof(float)) == 0);
}

}  // namespace flydsl::verify
