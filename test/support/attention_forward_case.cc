#include "test/support/attention_forward_case.h"

#include <gtest/gtest.h>

#include <cstring>

#include "test/support/float16.h"
#include "test/support/library.h"

namespace flydsl::test {

std::vector<uint16_t> AttentionCase::filled(int64_t heads, int64_t positions, int64_t channels,
                                            const Fill &fill) const {
  std::vector<uint16_t> values;
  values.reserve(static_cast<size_t>(batches * heads * positions * channels));
  for (int64_t b = 0; b < batches; ++b) {
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t s = 0; s < positions; ++s) {
        for (int64_t d = 0; d < channels; ++d)
          values.push_back(from_float(dtype, fill(b, h, s, d)));
      }
    }
  }
  return values;
}

void AttentionCase::fill_random(Random &random) {
  const Fill normal = [&](int64_t, int64_t, int64_t, int64_t) { return random.normal(); };
  fill_q(normal);
  fill_k(normal);
  fill_v(normal);
}

AttentionResult run_attention(const AttentionCase &c) {
  flydsl_aot_handle *handle = c.handle ? c.handle : emulator();
  DeviceTensor q(handle, c.dtype, {c.batches, c.heads_q, c.seq_q, c.head_dim}, c.place_q,
                 c.input_poison);
  DeviceTensor k(handle, c.dtype, {c.batches, c.heads_kv, c.seq_k, c.head_dim}, c.place_k,
                 c.input_poison);
  DeviceTensor v(handle, c.dtype, {c.batches, c.heads_kv, c.seq_k, c.value_dim()}, c.place_v,
                 c.input_poison);
  DeviceTensor out(handle, c.dtype, {c.batches, c.heads_q, c.seq_q, c.value_dim()}, c.place_out,
                   0xabababab);
  DeviceTensor lse(handle, FLYDSL_AOT_FP32, {c.batches, c.heads_q, c.seq_q}, c.place_lse,
                   0xabababab);
  q.set(c.q);
  k.set(c.k);
  v.set(c.v);

  flydsl_aot_attention_forward_params params{};
  params.struct_size = sizeof params;
  params.scale = c.scale;
  params.q = q.tensor();
  params.k = k.tensor();
  params.v = v.tensor();
  params.out = out.tensor();
  if (c.want_lse) params.lse = lse.tensor();
  params.mask = c.mask;

  AttentionResult result;
  flydsl_aot_query_result query{};
  query.struct_size = sizeof query;
  const flydsl_aot_status query_status =
      flydsl_aot_attention_forward_query(handle, &params, &query);
  EXPECT_EQ(query_status, query.status) << describe(c);
  EXPECT_EQ(query.workspace_bytes, 0u) << describe(c);
  result.kernel = query.kernel;
  result.status = flydsl_aot_attention_forward(handle, &params, nullptr);
  if (result.status != FLYDSL_AOT_OK) result.message = flydsl_aot_last_error();
  EXPECT_EQ(result.status, query_status)
      << describe(c) << ": call: " << result.message << "; query: " << query.reason;
  const flydsl_aot_status finished = flydsl_aot_device_synchronize(handle);
  EXPECT_EQ(finished, FLYDSL_AOT_OK) << describe(c) << ": " << flydsl_aot_last_error();

  result.out = out.get<uint16_t>();
  result.lse = lse.get<float>();
  result.outputs_untouched = out.untouched() && lse.untouched();
  result.stray_write = out.changed_outside();
  if (result.stray_write.empty()) result.stray_write = lse.changed_outside();
  if (!c.want_lse) {
    if (!lse.untouched()) result.stray_write = "an LSE that was not asked for was written";
    result.lse.clear();
  }
  for (DeviceTensor *input : {&q, &k, &v}) {
    input->get<uint16_t>();
    if (!input->untouched()) result.stray_write = "an input was changed";
  }
  return result;
}

AttentionReference reference_of(const AttentionCase &c) {
  const auto dense = [&](const std::vector<uint16_t> &values, int64_t heads, int64_t positions,
                         int64_t channels) {
    return HostView{values.data(),
                    {c.batches, heads, positions, channels},
                    {heads * positions * channels, positions * channels, channels, 1}};
  };
  return attention_forward_reference(c.dtype, dense(c.q, c.heads_q, c.seq_q, c.head_dim),
                                     dense(c.k, c.heads_kv, c.seq_k, c.head_dim),
                                     dense(c.v, c.heads_kv, c.seq_k, c.value_dim()), c.scale,
                                     c.mask);
}

AttentionResult check_attention(const AttentionCase &c, AttentionReference *reference_out) {
  AttentionResult result = run_attention(c);
  AttentionReference reference = reference_of(c);
  EXPECT_EQ(result.status, FLYDSL_AOT_OK) << describe(c) << ": " << result.message;
  EXPECT_EQ(result.stray_write, "") << describe(c);
  const Judgement out = judge_out(c.dtype, result.out, reference, c.value_dim());
  EXPECT_TRUE(out.ok) << describe(c) << ": out: " << out.text;
  if (c.want_lse) {
    const Judgement lse = judge_lse(result.lse, reference);
    EXPECT_TRUE(lse.ok) << describe(c) << ": lse: " << lse.text;
  }
  if (reference_out) *reference_out = std::move(reference);
  return result;
}

bool same_bits(const AttentionResult &a, const AttentionResult &b) {
  return a.out == b.out && a.lse.size() == b.lse.size() &&
         (a.lse.empty() ||
          std::memcmp(a.lse.data(), b.lse.data(), a.lse.size() * sizeof(float)) == 0);
}

namespace {

bool left_hides(const AttentionCase &c) {
  const bool top_left = c.mask.anchor == FLYDSL_AOT_ANCHOR_TOP_LEFT;
  return c.mask.left != FLYDSL_AOT_UNLIMITED && c.mask.left < (top_left ? c.seq_q : c.seq_k) - 1;
}

std::string class_name(int64_t head_dim, int64_t value_dim) {
  constexpr int64_t kClasses[][2] = {{32, 32},   {64, 64},   {96, 96},   {128, 128}, {160, 160},
                                     {192, 128}, {192, 192}, {224, 224}, {256, 256}};
  for (const auto &[qk, v] : kClasses) {
    if (head_dim > qk || value_dim > v) continue;
    std::string name = std::to_string(qk);
    if (qk != v) name.append("x").append(std::to_string(v));
    return name;
  }
  return "none";
}

}  // namespace

std::string instance_name(const AttentionCase &c, bool staged) {
  const int64_t diagonal = c.mask.anchor == FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT ? c.seq_k - c.seq_q : 0;
  const bool masked = c.mask.right != FLYDSL_AOT_UNLIMITED && diagonal + c.mask.right < c.seq_k - 1;
  const bool exact = c.value_dim() == c.head_dim && (c.head_dim == 64 || c.head_dim == 128);
  const std::string kind = !exact || left_hides(c) ? "_general"
                                                   : std::string(masked ? "_causal" : "_none") +
                                                         (staged ? "_staged" : "_direct");
  return std::string("attention_forward_") + flydsl_aot_dtype_name(c.dtype) + "_d" +
         class_name(c.head_dim, c.value_dim()) + kind + "_m128n64";
}

std::string describe(const AttentionCase &c) {
  std::string text = std::string(flydsl_aot_dtype_name(c.dtype)) + " B" +
                     std::to_string(c.batches) + " H" + std::to_string(c.heads_q) + "/" +
                     std::to_string(c.heads_kv) + " Sq" + std::to_string(c.seq_q) + " Sk" +
                     std::to_string(c.seq_k) + " D" + std::to_string(c.head_dim) + "/" +
                     std::to_string(c.value_dim()) + " scale " + std::to_string(c.scale);
  if (c.mask.left != FLYDSL_AOT_UNLIMITED || c.mask.right != FLYDSL_AOT_UNLIMITED) {
    text += " window " + std::to_string(c.mask.left) + "," + std::to_string(c.mask.right) +
            (c.mask.anchor == FLYDSL_AOT_ANCHOR_TOP_LEFT ? " top-left" : " bottom-right");
  }
  return text + (c.want_lse ? "" : " without lse");
}

}  // namespace flydsl::test
