#include "test/support/attention_forward_case.h"

#include <gtest/gtest.h>

#include "test/support/library.h"

namespace flydsl::test {

AttentionResult run_attention(const AttentionCase &c, flydsl_aot_handle *handle) {
  AttentionResult result = call_attention_forward(handle ? handle : emulator(), c);
  EXPECT_EQ(result.contradiction, "") << describe(c);
  return result;
}

AttentionResult check_attention(const AttentionCase &c, AttentionReference *reference_out,
                                flydsl_aot_handle *handle) {
  AttentionResult result = run_attention(c, handle);
  EXPECT_EQ(result.status, FLYDSL_AOT_OK) << describe(c) << ": " << result.message;
  AttentionReference reference = reference_of(c);
  if (result.status == FLYDSL_AOT_OK) {
    EXPECT_EQ(judge(c, result, reference).fault, "") << describe(c);
  }
  if (reference_out) *reference_out = std::move(reference);
  return result;
}

namespace {

bool left_hides(const AttentionCase &c) {
  const bool top_left = c.mask.anchor == FLYDSL_AOT_ANCHOR_TOP_LEFT;
  return c.mask.left != FLYDSL_AOT_UNLIMITED && c.mask.left < (top_left ? c.seq_q : c.seq_k) - 1;
}

bool right_hides(const AttentionCase &c) {
  const bool top_left = c.mask.anchor == FLYDSL_AOT_ANCHOR_TOP_LEFT;
  return c.mask.right != FLYDSL_AOT_UNLIMITED && c.mask.right < (top_left ? c.seq_k : c.seq_q) - 1;
}

std::string class_name(int64_t head_dim, int64_t value_dim) {
  constexpr int64_t kClasses[][2] = {{32, 32},   {64, 64},   {96, 96},   {128, 128},
                                     {160, 160}, {192, 128}, {192, 192}, {224, 224},
                                     {256, 256}, {512, 512}, {576, 512}};
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
  const bool exact = c.value_dim() == c.head_dim && (c.head_dim == 64 || c.head_dim == 128);
  const bool lengths = c.lengths_q_as != Lengths::kDense || c.lengths_k_as != Lengths::kDense;
  const bool terms = c.softcap > 0 || !c.bias.empty() || !c.visible.empty() ||
                     !c.alibi_slopes.empty() || !c.sinks.empty() || c.dropout_p > 0 ||
                     c.random_on_device || c.want_kept;
  const bool bytes =
      c.q_dtype != FLYDSL_AOT_DTYPE_INVALID || c.kv_dtype != FLYDSL_AOT_DTYPE_INVALID;
  const bool float8 = c.q_dtype == FLYDSL_AOT_E4M3 && c.kv_dtype == FLYDSL_AOT_E4M3;
  const bool window = c.mask.left != FLYDSL_AOT_UNLIMITED && (lengths || left_hides(c));
  const bool causal = c.mask.right != FLYDSL_AOT_UNLIMITED && (lengths || right_hides(c));
  const std::string mask = window ? "_window" : causal ? "_causal" : "_none";
  const bool featureless = exact && !terms && c.lengths_k_as != Lengths::kPaged;
  if (featureless && float8 && !window && !staged) {
    return std::string("attention_forward_e4m3_") + flydsl_aot_dtype_name(c.dtype) + "_d" +
           class_name(c.head_dim, c.value_dim()) + mask + "_m256n64";
  }
  const std::string kind =
      featureless && !bytes ? mask + (staged ? "_staged" : "_direct") : "_general";
  // Long rows (_FROM of codegen/describe/attention_forward/pipelined.py).
  const bool pipelined = (c.head_dim == 128 || c.head_dim == 192) && c.value_dim() == 128 &&
                         !window && c.seq_q >= (causal ? 4096 : 2048) && !staged && !terms &&
                         !bytes && c.lengths_k_as != Lengths::kPaged;
  return std::string("attention_forward_") + flydsl_aot_dtype_name(c.dtype) + "_d" +
         class_name(c.head_dim, c.value_dim()) +
         (pipelined ? mask + "_pipelined_m256n64" : kind + "_m128n64");
}

}  // namespace flydsl::test
