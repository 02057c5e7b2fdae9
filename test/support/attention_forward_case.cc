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

struct HeadDims {
  int64_t qk, v;
};
HeadDims class_of(const AttentionCase &c) {
  constexpr HeadDims kClasses[] = {{32, 32},   {64, 64},   {96, 96},   {128, 128},
                                   {160, 160}, {192, 128}, {192, 192}, {224, 224},
                                   {256, 256}, {512, 512}, {576, 512}};
  for (const HeadDims &dims : kClasses) {
    if (c.head_dim <= dims.qk && c.value_dim() <= dims.v) return dims;
  }
  return {};
}

// How the problem's kernel is told apart from others of its class, without a mask's or tile's name.
std::string family_name(const AttentionCase &c, const HeadDims &dims, bool window, bool causal,
                        bool staged) {
  const bool terms = c.softcap > 0 || !c.bias.empty() || !c.visible.empty() ||
                     !c.alibi_slopes.empty() || !c.sinks.empty() || c.dropout_p > 0 ||
                     c.random_on_device || c.want_kept;
  const auto nearly = [](int64_t dim, int64_t of_class) {
    return dim % 8 == 0 && of_class - dim < 32;
  };
  const bool nearly_class = nearly(c.head_dim, dims.qk) && nearly(c.value_dim(), dims.v);
  const bool paged = c.lengths_k_as == Lengths::kPaged;
  if (terms || paged) {
    // codegen/describe/attention_forward/features.py, and needs_general_instance of v2src/attention_forward_describe.cc.
    const bool bias = !c.bias.empty(), visible = !c.visible.empty();
    const bool wide = c.q_dtype == FLYDSL_AOT_DTYPE_INVALID && c.kv_dtype == FLYDSL_AOT_DTYPE_INVALID;
    const bool left_out =
        !wide || c.softcap > 128 || (bias && visible) || ((bias || visible) && paged);
    return nearly_class && dims.qk <= 128 && !staged && !left_out ? "features" : "general";
  }
  const bool exact = c.head_dim == dims.qk && c.value_dim() == dims.v;
  const bool halves = dims.qk == dims.v && (dims.qk == 64 || dims.qk == 128);
  if (c.q_dtype != FLYDSL_AOT_DTYPE_INVALID || c.kv_dtype != FLYDSL_AOT_DTYPE_INVALID) {
    const bool float8 = c.q_dtype == FLYDSL_AOT_E4M3 && c.kv_dtype == FLYDSL_AOT_E4M3;
    if (!float8 || !exact || !halves || staged) return "general";
    // codegen/describe/attention_forward/float8.py
    const int64_t pipelined_from = !causal ? 2048 : dims.qk == 64 ? 8192 : 4096;
    return !window && c.seq_q >= pipelined_from ? "pipelined" : "direct";
  }
  // Long rows (codegen/describe/attention_forward/pipelined.py), of many heads and sequences if causal, which no test has here.
  if (exact && (dims.qk == 128 || dims.qk == 192) && dims.v == 128 && !window && !staged && !causal &&
      c.seq_q >= 2048)
    return "pipelined";
  // codegen/describe/attention_forward/exact.py
  const bool classed = nearly_class && dims.qk <= 256;
  if (!classed) return "general";
  return !staged ? "direct" : halves ? "staged" : "general";
}

}  // namespace

std::string instance_name(const AttentionCase &c, bool staged) {
  const HeadDims dims = class_of(c);
  const bool lengths = c.lengths_q_as != Lengths::kDense || c.lengths_k_as != Lengths::kDense;
  const bool window = c.mask.left != FLYDSL_AOT_UNLIMITED && (lengths || left_hides(c));
  const bool causal = c.mask.right != FLYDSL_AOT_UNLIMITED && (lengths || right_hides(c));
  const std::string mask = window ? "_window" : causal ? "_causal" : "_none";
  const std::string family = family_name(c, dims, window, causal, staged);

  const bool float8 = family != "general" && c.q_dtype == FLYDSL_AOT_E4M3;
  std::string name = float8 ? "attention_forward_e4m3_" : "attention_forward_";
  name += std::string(flydsl_aot_dtype_name(c.dtype)) + "_d" + std::to_string(dims.qk);
  if (dims.qk != dims.v) name.append("x").append(std::to_string(dims.v));
  if (family != "general" && family != "features") name += mask;
  name.append("_").append(family);
  const bool large_tile = family == "pipelined" || (family == "direct" && dims.v > 160);
  return name + (large_tile ? "_m256n64" : "_m128n64");
}

}  // namespace flydsl::test
