// What attention_forward makes of its optional features: kernel and arguments.
#include <cmath>

#include "test/v2src/attention_features.h"

namespace flydsl::test {
namespace {

TEST_F(AttentionTest, ScoreArguments) {
  Params params = valid_params();
  params.scale = -0.5f;
  params.softcap = 4;
  params.bias = term(FLYDSL_AOT_FP32, {1, 6, 300, 500});
  params.visible = term(FLYDSL_AOT_BOOL, {2, 1, 1, 500});
  params.alibi_slopes = term(FLYDSL_AOT_FP32, {2, 6});
  params.sinks = term(FLYDSL_AOT_FP32, {6});
  auto kernarg = launch(params);
  EXPECT_EQ(launched(), "attention_forward_bf16_d64_general_symbol");
  EXPECT_EQ(kernarg.score_terms, 1u);
  EXPECT_EQ(kernarg.softcap_ratio, 0.125f);
  EXPECT_EQ(kernarg.softcap_log2, static_cast<float>(4 * M_LOG2E));
  EXPECT_EQ(kernarg.bias, address(kTerms));
  EXPECT_EQ(kernarg.bias_is_fp32, 1u);
  EXPECT_EQ(kernarg.bias_stride_b, 0);
  EXPECT_EQ(kernarg.bias_stride_h, 300 * 500);
  EXPECT_EQ(kernarg.bias_stride_q, 500);
  EXPECT_EQ(kernarg.bias_stride_k, 1);
  EXPECT_EQ(kernarg.visible, address(kTerms));
  EXPECT_EQ(kernarg.visible_stride_b, 500);
  EXPECT_EQ(kernarg.visible_stride_h, 0);
  EXPECT_EQ(kernarg.visible_stride_q, 0);
  EXPECT_EQ(kernarg.visible_stride_k, 1);
  EXPECT_EQ(kernarg.alibi_stride_b, 6);
  EXPECT_EQ(kernarg.alibi_stride_h, 1);
  EXPECT_EQ(kernarg.sinks_stride_h, 1);
  // A boolean mask alone changes no score.
  params = valid_params();
  params.visible = term(FLYDSL_AOT_BOOL, {2, 6, 300, 500});
  EXPECT_EQ(launch(params).score_terms, 0u);
  EXPECT_EQ(launched(), "attention_forward_bf16_d64_features_symbol");
  // A scale of 0 or a tiny cap leaves the ratio finite.
  params.scale = 1e30f;
  params.softcap = 1e-30f;
  EXPECT_TRUE(std::isfinite(launch(params).softcap_ratio));
  params.scale = 0;
  EXPECT_GT(launch(params).softcap_ratio, 0.0f);
}

// What instances for features leave to the general ones, each against its neighbour that they take.
TEST_F(AttentionTest, FeaturesThatTheGeneralInstanceTakes) {
  const std::string features = "attention_forward_bf16_d64_features_symbol";
  const std::string general = "attention_forward_bf16_d64_general_symbol";
  const auto taken = [&](const Params &params) {
    launch(params);
    return launched();
  };
  Params params = valid_params();
  params.softcap = 128;
  EXPECT_EQ(taken(params), features);
  params.softcap = 128.5f;
  EXPECT_EQ(taken(params), general);

  params = valid_params();
  params.softcap = 4;
  params.bias = term(FLYDSL_AOT_FP32, {1, 6, 300, 500});
  EXPECT_EQ(taken(params), features);
  params.visible = term(FLYDSL_AOT_BOOL, {2, 1, 1, 500});
  EXPECT_EQ(taken(params), general);
  params.bias = {};
  EXPECT_EQ(taken(params), features);

  params = valid_params();
  page_k(params);
  params.alibi_slopes = term(FLYDSL_AOT_FP32, {6});
  params.dropout_p = 0.5f;
  EXPECT_EQ(taken(params), features);
  params.bias = term(FLYDSL_AOT_FP32, {1, 1, 1, 1});
  EXPECT_EQ(taken(params), general);

  // A row that begins at 2 bytes past a multiple of 16.
  params = valid_params();
  params.sinks = term(FLYDSL_AOT_FP32, {6});
  EXPECT_EQ(taken(params), features);
  params.k.data = address(kK + 2);
  EXPECT_EQ(taken(params), general);
}

TEST_F(AttentionTest, DropoutArguments) {
  Params params = valid_params();
  params.dropout_p = 0.25f;
  params.dropout_seed = 0x123456789abcdef0;
  params.dropout_offset = 42;
  params.dropout_offset_device = random_numbers(kRandom);
  params.dropout_seed_out = static_cast<uint64_t *>(address(kRandom + 8));
  const auto kernarg = launch(params);
  EXPECT_EQ(launched(), "attention_forward_bf16_d64_features_symbol");
  EXPECT_EQ(kernarg.dropout_threshold, 1u << 30);
  EXPECT_EQ(kernarg.dropout_scale, static_cast<float>(1 / 0.75));
  EXPECT_EQ(kernarg.dropout_seed, 0x123456789abcdef0u);
  EXPECT_EQ(kernarg.dropout_offset, 42u);
  EXPECT_EQ(kernarg.dropout_seed_device, nullptr);
  EXPECT_EQ(kernarg.dropout_offset_device, address(kRandom));
  EXPECT_EQ(kernarg.dropout_seed_out, address(kRandom + 8));
  EXPECT_EQ(kernarg.kept, nullptr);
  // None: the exact instance, whatever the seed.
  params = valid_params();
  params.dropout_seed = 1;
  EXPECT_EQ(launch(params).dropout_scale, 1.0f);
  EXPECT_EQ(launched(), "attention_forward_bf16_d64_none_direct_symbol");
}

TEST_F(AttentionTest, Float8Arguments) {
  Params params = valid_params();
  params.q.dtype = FLYDSL_AOT_E5M2;
  narrow_kv(params);
  params.out.dtype = FLYDSL_AOT_FP16;
  params.k.data = address(kK + 1);
  params.q_descale = term(FLYDSL_AOT_FP32, {2, 2});
  params.k_descale = term(FLYDSL_AOT_FP32, {1});
  params.v_descale = term(FLYDSL_AOT_FP32, {2});
  auto kernarg = launch(params);
  EXPECT_EQ(launched(), "attention_forward_fp16_d64_general_symbol");
  EXPECT_EQ(kernarg.q_format, 2u);
  EXPECT_EQ(kernarg.kv_format, 1u);
  EXPECT_EQ(kernarg.q_descale_by_kv, 1u);
  EXPECT_EQ(kernarg.q_descale_stride_b, 2);
  EXPECT_EQ(kernarg.q_descale_stride_h, 1);
  EXPECT_EQ(kernarg.k_descale, address(kTerms));
  EXPECT_EQ(kernarg.k_descale_stride_h, 0);
  EXPECT_EQ(kernarg.v_descale_stride_b, 0);
  EXPECT_EQ(kernarg.v_descale_stride_h, 1);
  EXPECT_EQ(kernarg.score_terms, 1u);
  params.q_descale = term(FLYDSL_AOT_FP32, {6});
  kernarg = launch(params);
  EXPECT_EQ(kernarg.q_descale_by_kv, 0u);
  params.q_descale = params.k_descale = {};
  EXPECT_EQ(launch(params).score_terms, 0u);
}

TEST_F(AttentionTest, PagedArguments) {
  Params params = valid_params();
  page_k(params);
  params.block_table.strides[0] = 100;
  auto kernarg = launch(params);
  EXPECT_EQ(launched(), "attention_forward_bf16_d64_features_symbol");
  EXPECT_EQ(kernarg.block_table, address(kNumbers + 256));
  EXPECT_EQ(kernarg.block_table_stride_b, 100);
  EXPECT_EQ(kernarg.block_shift, 4u);
  EXPECT_EQ(kernarg.last_block, 39);
  EXPECT_EQ(kernarg.k_stride_b, 2 * 16 * 64);
  EXPECT_EQ(kernarg.seq_k, 512);
  params.max_seqlen_k = 300;
  EXPECT_EQ(launch(params).seq_k, 300);
  // A pool without blocks has no keys, whatever the lengths say.
  params.k.sizes[0] = params.v.sizes[0] = 0;
  EXPECT_EQ(launch(params).seq_k, 0);
}

TEST_F(AttentionTest, PackedArguments) {
  Params params = valid_params();
  pack_q(params);
  pack_k(params);
  params.seqused_k = numbers(2, kNumbers + 128);
  const auto kernarg = launch(params);
  EXPECT_EQ(launched(), "attention_forward_bf16_d64_none_direct_symbol");
  EXPECT_EQ(kernarg.q_stride_b, 0);
  EXPECT_EQ(kernarg.q_stride_h, 600 * 64);
  EXPECT_EQ(kernarg.q_stride_s, 64);
  EXPECT_EQ(kernarg.k_stride_h, 900 * 64);
  EXPECT_EQ(kernarg.lse_stride_b, 0);
  EXPECT_EQ(kernarg.lse_stride_h, 600);
  EXPECT_EQ(kernarg.lse_stride_s, 1);
  EXPECT_EQ(kernarg.batches, 2);
  EXPECT_EQ(kernarg.seq_q, 400);
  EXPECT_EQ(kernarg.seq_k, 500);
  EXPECT_EQ(kernarg.total_q, 600);
  EXPECT_EQ(kernarg.total_k, 900);
  // Of both sequences: 600 rows fill 4 tiles of 128, and each sequence may begin one more.
  EXPECT_EQ(kernarg.row_tiles, 6u);
  EXPECT_EQ(kernarg.cu_seqlens_q, address(kNumbers));
  EXPECT_EQ(kernarg.cu_seqlens_k, address(kNumbers + 64));
  EXPECT_EQ(kernarg.seqused_q, nullptr);
  EXPECT_EQ(kernarg.seqused_k, address(kNumbers + 128));
  params.max_seqlen_q = 100;
  EXPECT_EQ(launch(params).row_tiles, 2u);
  params.max_seqlen_q = 400;
  // With lengths that the host does not know, any bound may hide something.
  params.mask = {-1, 1000, FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT, 0};
  launch(params);
  EXPECT_EQ(launched(), "attention_forward_bf16_d64_causal_direct_symbol");
  params.mask = {1000, 0, FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT, 0};
  launch(params);
  EXPECT_EQ(launched(), "attention_forward_bf16_d64_window_direct_symbol");
}

TEST_F(AttentionTest, PackedAndEmptyLaunchesNothing) {
  Params params = valid_params();
  pack_q(params);
  params.max_seqlen_q = 0;
  EXPECT_TRUE(library_.attention_forward(params, nullptr).ok());
  params.cu_seqlens_q = numbers(1);
  params.max_seqlen_q = 400;
  params.k.sizes[0] = params.v.sizes[0] = 0;
  EXPECT_TRUE(library_.attention_forward(params, nullptr).ok());
  EXPECT_EQ(fake_->launches, 0);
}

}  // namespace
}  // namespace flydsl::test
