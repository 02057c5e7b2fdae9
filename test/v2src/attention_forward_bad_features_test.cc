// Bad input of attention_forward's optional features.
#include "test/v2src/attention_bad_input.h"

namespace flydsl::test {
namespace {

using Params = flydsl_aot_attention_forward_params;
using AttentionForwardBadFeatures = AttentionBadInputTest;

constexpr uint64_t kNumbers = 0x600000000;

flydsl_aot_tensor numbers(int64_t count, uint64_t where = kNumbers) {
  return flydsl_aot::tensor(address(where), FLYDSL_AOT_INT32, {count});
}

// q and out, and lse, packed: two sequences over 600 rows.
void pack_q(Params &p) {
  p.q = flydsl_aot::tensor(address(kQ), FLYDSL_AOT_BF16, {6, 600, 64});
  p.out = flydsl_aot::tensor(address(kOut), FLYDSL_AOT_BF16, {6, 600, 64});
  p.lse = flydsl_aot::tensor(address(kLse), FLYDSL_AOT_FP32, {6, 600});
  p.cu_seqlens_q = numbers(3);
  p.max_seqlen_q = 400;
}
void pack_k(Params &p) {
  p.k = flydsl_aot::tensor(address(kK), FLYDSL_AOT_BF16, {2, 900, 64});
  p.v = flydsl_aot::tensor(address(kV), FLYDSL_AOT_BF16, {2, 900, 64});
  p.cu_seqlens_k = numbers(3, kNumbers + 64);
  p.max_seqlen_k = 500;
}

const BadInput kLengths[] = {
    {"q_dense",
     FLYDSL_AOT_INVALID_SHAPE,
     {"q has rank 4", "expected 3", "total_q"},
     [](Params &p) {
       p.cu_seqlens_q = numbers(3);
       p.max_seqlen_q = 300;
     }},
    {"k_packed_without_cu_seqlens",
     FLYDSL_AOT_INVALID_SHAPE,
     {"k has rank 3", "(B, Hkv, Sk, D)"},
     [](Params &p) {
       pack_k(p);
       p.cu_seqlens_k = {};
     }},
    {"lse_dense",
     FLYDSL_AOT_INVALID_SHAPE,
     {"lse has rank 3", "(Hq, total_q)"},
     [](Params &p) {
       pack_q(p);
       p.lse = flydsl_aot::tensor(address(kLse), FLYDSL_AOT_FP32, {2, 6, 300});
     }},
    {"out_total",
     FLYDSL_AOT_INVALID_SHAPE,
     {"q has total_q = 600", "out has total_q = 601"},
     [](Params &p) {
       pack_q(p);
       p.out = flydsl_aot::tensor(address(kOut), FLYDSL_AOT_BF16, {6, 601, 64});
     }},
    {"gqa_packed",
     FLYDSL_AOT_INVALID_SHAPE,
     {"Hq = 6", "Hkv = 4"},
     [](Params &p) {
       pack_q(p);
       pack_k(p);
       p.k.sizes[0] = p.v.sizes[0] = 4;
     }},
    {"starts_dtype",
     FLYDSL_AOT_INVALID_DTYPE,
     {"cu_seqlens_q is int64", "int32"},
     [](Params &p) {
       pack_q(p);
       p.cu_seqlens_q.dtype = FLYDSL_AOT_INT64;
     }},
    {"used_rank",
     FLYDSL_AOT_INVALID_SHAPE,
     {"seqused_k has rank 2"},
     [](Params &p) {
       p.seqused_k = flydsl_aot::tensor(address(kNumbers), FLYDSL_AOT_INT32, {2, 1});
     }},
    {"used_size",
     FLYDSL_AOT_INVALID_SHAPE,
     {"seqused_q has 3 elements", "B = 2"},
     [](Params &p) { p.seqused_q = numbers(3); }},
    {"starts_size",
     FLYDSL_AOT_INVALID_SHAPE,
     {"cu_seqlens_k has 4 elements", "B + 1 = 3"},
     [](Params &p) {
       pack_q(p);
       pack_k(p);
       p.cu_seqlens_k = numbers(4, kNumbers + 64);
     }},
    {"starts_empty",
     FLYDSL_AOT_INVALID_SHAPE,
     {"cu_seqlens_q", "at least 1"},
     [](Params &p) {
       pack_q(p);
       p.cu_seqlens_q = numbers(0);
     }},
    {"batches",
     FLYDSL_AOT_INVALID_SHAPE,
     {"k has B = 2", "B = 3"},
     [](Params &p) {
       pack_q(p);
       p.cu_seqlens_q = numbers(4);
     }},
    {"starts_stride",
     FLYDSL_AOT_INVALID_STRIDE,
     {"seqused_k has stride 2"},
     [](Params &p) {
       p.seqused_k = numbers(2);
       p.seqused_k.strides[0] = 2;
     }},
    {"longest_missing",
     FLYDSL_AOT_INVALID_ARGUMENT,
     {"max_seqlen_q is 300", "0 without"},
     [](Params &p) { p.max_seqlen_q = 300; }},
    {"longest_negative",
     FLYDSL_AOT_INVALID_ARGUMENT,
     {"max_seqlen_k is -1", "0 or more"},
     [](Params &p) {
       pack_k(p);
       p.max_seqlen_k = -1;
     }},
    {"longest_large",
     FLYDSL_AOT_UNSUPPORTED_SIZE,
     {"Sq = 1073741825", "2^30"},
     [](Params &p) {
       pack_q(p);
       p.max_seqlen_q = (int64_t{1} << 30) + 1;
     }},
    {"starts_null",
     FLYDSL_AOT_INVALID_POINTER,
     {"cu_seqlens_q has data NULL"},
     [](Params &p) {
       pack_q(p);
       p.cu_seqlens_q.data = nullptr;
     },
     true},
    {"used_misaligned",
     FLYDSL_AOT_INVALID_POINTER,
     {"seqused_q", "4 bytes"},
     [](Params &p) { p.seqused_q = numbers(2, kNumbers + 2); }},
    {"used_in_out",
     FLYDSL_AOT_INVALID_POINTER,
     {"out overlaps seqused_q"},
     [](Params &p) { p.seqused_q = numbers(2, kOut + 64); },
     true},
};

TEST_F(AttentionForwardBadFeatures, Lengths) {
  expect_refused(kLengths);
}

TEST_F(AttentionTest, PackedArguments) {
  Params params = valid_params();
  pack_q(params);
  pack_k(params);
  params.seqused_k = numbers(2, kNumbers + 128);
  const auto kernarg = launch(params);
  EXPECT_EQ(launched(), "attention_forward_bf16_d64_general_symbol");
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
  EXPECT_EQ(kernarg.row_tiles, 4u);
  EXPECT_EQ(kernarg.cu_seqlens_q, address(kNumbers));
  EXPECT_EQ(kernarg.cu_seqlens_k, address(kNumbers + 64));
  EXPECT_EQ(kernarg.seqused_q, nullptr);
  EXPECT_EQ(kernarg.seqused_k, address(kNumbers + 128));
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
