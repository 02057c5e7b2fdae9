// Bad input of attention_forward's optional features.
#include <cmath>

#include "test/v2src/attention_bad_input.h"
#include "test/v2src/attention_features.h"

namespace flydsl::test {
namespace {

using AttentionForwardBadFeatures = AttentionBadInputTest;

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

const BadInput kScores[] = {
    {"softcap_negative",
     FLYDSL_AOT_INVALID_ARGUMENT,
     {"softcap is -1"},
     [](Params &p) { p.softcap = -1; }},
    {"softcap_nan",
     FLYDSL_AOT_INVALID_ARGUMENT,
     {"softcap is", "0 (none) or more"},
     [](Params &p) { p.softcap = NAN; }},
    {"softcap_large",
     FLYDSL_AOT_INVALID_ARGUMENT,
     {"finite in fp32"},
     [](Params &p) { p.softcap = 3e38f; }},
    {"bias_dtype",
     FLYDSL_AOT_INVALID_DTYPE,
     {"bias is fp16", "fp32 or, as out, bf16"},
     [](Params &p) {
       p.bias = term(FLYDSL_AOT_FP16, {2, 6, 300, 500});
     }},
    {"bias_rank",
     FLYDSL_AOT_INVALID_SHAPE,
     {"bias has rank 2", "(B, Hq, Sq, Sk)"},
     [](Params &p) {
       p.bias = term(FLYDSL_AOT_FP32, {300, 500});
     }},
    {"bias_size",
     FLYDSL_AOT_INVALID_SHAPE,
     {"bias has Hq = 2", "it must be 6, or 1"},
     [](Params &p) {
       p.bias = term(FLYDSL_AOT_FP32, {2, 2, 300, 500});
     }},
    {"bias_packed_size",
     FLYDSL_AOT_INVALID_SHAPE,
     {"bias has Sq = 300", "it must be 400, or 1"},
     [](Params &p) {
       pack_q(p);
       p.bias = term(FLYDSL_AOT_FP32, {2, 6, 300, 500});
     }},
    {"bias_stride",
     FLYDSL_AOT_INVALID_STRIDE,
     {"bias has stride -500"},
     [](Params &p) {
       p.bias = term(FLYDSL_AOT_FP32, {2, 6, 300, 500});
       p.bias.strides[2] = -500;
     }},
    {"bias_null",
     FLYDSL_AOT_INVALID_POINTER,
     {"bias has data NULL"},
     [](Params &p) {
       p.bias = term(FLYDSL_AOT_BF16, {1, 1, 300, 500});
       p.bias.data = nullptr;
     },
     true},
    {"bias_in_out",
     FLYDSL_AOT_INVALID_POINTER,
     {"out overlaps bias"},
     [](Params &p) {
       p.bias = term(FLYDSL_AOT_FP32, {1, 1, 1, 500});
       p.bias.data = address(kOut + 128);
     },
     true},
    {"visible_dtype",
     FLYDSL_AOT_INVALID_DTYPE,
     {"visible is fp32", "must be bool"},
     [](Params &p) {
       p.visible = term(FLYDSL_AOT_FP32, {2, 6, 300, 500});
     }},
    {"visible_size",
     FLYDSL_AOT_INVALID_SHAPE,
     {"visible has Sk = 499"},
     [](Params &p) {
       p.visible = term(FLYDSL_AOT_BOOL, {2, 6, 300, 499});
     }},
    {"slopes_rank",
     FLYDSL_AOT_INVALID_SHAPE,
     {"alibi_slopes has rank 3", "(Hq)"},
     [](Params &p) {
       p.alibi_slopes = term(FLYDSL_AOT_FP32, {2, 6, 1});
     }},
    {"slopes_size",
     FLYDSL_AOT_INVALID_SHAPE,
     {"alibi_slopes has B = 3"},
     [](Params &p) {
       p.alibi_slopes = term(FLYDSL_AOT_FP32, {3, 6});
     }},
    {"sinks_dtype",
     FLYDSL_AOT_INVALID_DTYPE,
     {"sinks is bf16", "must be fp32"},
     [](Params &p) { p.sinks = term(FLYDSL_AOT_BF16, {6}); }},
    {"sinks_size",
     FLYDSL_AOT_INVALID_SHAPE,
     {"sinks has Hq = 2"},
     [](Params &p) { p.sinks = term(FLYDSL_AOT_FP32, {2}); }},
};

TEST_F(AttentionForwardBadFeatures, Scores) {
  expect_refused(kScores);
}

const BadInput kDropout[] = {
    {"p_1",
     FLYDSL_AOT_INVALID_ARGUMENT,
     {"dropout_p is 1", "below 1"},
     [](Params &p) { p.dropout_p = 1; }},
    {"p_negative",
     FLYDSL_AOT_INVALID_ARGUMENT,
     {"dropout_p is -0.5"},
     [](Params &p) { p.dropout_p = -0.5f; }},
    {"p_nan", FLYDSL_AOT_INVALID_ARGUMENT, {"dropout_p is"}, [](Params &p) { p.dropout_p = NAN; }},
    {"seed_misaligned",
     FLYDSL_AOT_INVALID_POINTER,
     {"dropout_seed_device is 0x800000004", "8 bytes"},
     [](Params &p) { p.dropout_seed_device = random_numbers(kRandom + 4); }},
    {"offset_in_place",
     FLYDSL_AOT_INVALID_POINTER,
     {"dropout_offset_device and dropout_offset_out are the same"},
     [](Params &p) {
       p.dropout_offset_device = random_numbers(kRandom);
       p.dropout_offset_out = static_cast<uint64_t *>(address(kRandom));
     }},
    {"kept_dtype",
     FLYDSL_AOT_INVALID_DTYPE,
     {"kept is bf16", "must be bool"},
     [](Params &p) {
       p.kept = term(FLYDSL_AOT_BF16, {2, 6, 300, 500});
     }},
    {"kept_size",
     FLYDSL_AOT_INVALID_SHAPE,
     {"kept has Hq = 1", "must be 6"},
     [](Params &p) {
       p.kept = term(FLYDSL_AOT_BOOL, {2, 1, 300, 500});
     }},
    {"kept_broadcast",
     FLYDSL_AOT_INVALID_STRIDE,
     {"kept overlaps itself"},
     [](Params &p) {
       p.kept = term(FLYDSL_AOT_BOOL, {2, 6, 300, 500});
       p.kept.strides[1] = 0;
     }},
    {"kept_in_lse",
     FLYDSL_AOT_INVALID_POINTER,
     {"lse overlaps kept"},
     [](Params &p) {
       p.kept = term(FLYDSL_AOT_BOOL, {2, 6, 300, 500});
       p.kept.data = address(kLse + 4);
     },
     true},
};

TEST_F(AttentionForwardBadFeatures, Dropout) {
  expect_refused(kDropout);
}

const BadInput kDescales[] = {
    {"of_16_bits",
     FLYDSL_AOT_INVALID_ARGUMENT,
     {"q_descale is given, but q is bf16"},
     [](Params &p) {
       narrow_kv(p);
       p.q_descale = term(FLYDSL_AOT_FP32, {1});
     }},
    {"dtype",
     FLYDSL_AOT_INVALID_DTYPE,
     {"k_descale is bf16", "fp32"},
     [](Params &p) {
       narrow_kv(p);
       p.k_descale = term(FLYDSL_AOT_BF16, {1});
     }},
    {"rank",
     FLYDSL_AOT_INVALID_SHAPE,
     {"v_descale has rank 3"},
     [](Params &p) {
       narrow_kv(p);
       p.v_descale = term(FLYDSL_AOT_FP32, {2, 2, 1});
     }},
    {"heads",
     FLYDSL_AOT_INVALID_SHAPE,
     {"k_descale has H = 6", "must be 2, or 1"},
     [](Params &p) {
       narrow_kv(p);
       p.k_descale = term(FLYDSL_AOT_FP32, {2, 6});
     }},
    {"batches",
     FLYDSL_AOT_INVALID_SHAPE,
     {"v_descale has B = 3"},
     [](Params &p) {
       narrow_kv(p);
       p.v_descale = term(FLYDSL_AOT_FP32, {3, 2});
     }},
    {"null",
     FLYDSL_AOT_INVALID_POINTER,
     {"k_descale has data NULL"},
     [](Params &p) {
       narrow_kv(p);
       p.k_descale = term(FLYDSL_AOT_FP32, {1});
       p.k_descale.data = nullptr;
     },
     true},
};

TEST_F(AttentionForwardBadFeatures, Descales) {
  expect_refused(kDescales);
}

const BadInput kPaging[] = {
    {"table_dtype",
     FLYDSL_AOT_INVALID_DTYPE,
     {"block_table is int64", "int32"},
     [](Params &p) {
       page_k(p);
       p.block_table.dtype = FLYDSL_AOT_INT64;
     }},
    {"table_rank",
     FLYDSL_AOT_INVALID_SHAPE,
     {"block_table has rank 1"},
     [](Params &p) {
       page_k(p);
       p.block_table = numbers(64);
     }},
    {"table_batches",
     FLYDSL_AOT_INVALID_SHAPE,
     {"block_table has B = 3", "q has B = 2"},
     [](Params &p) {
       page_k(p);
       p.block_table = flydsl_aot::tensor(address(kNumbers), FLYDSL_AOT_INT32, {3, 32});
     }},
    {"table_stride",
     FLYDSL_AOT_INVALID_STRIDE,
     {"block_table has stride 2", "must be 1"},
     [](Params &p) {
       page_k(p);
       p.block_table.strides[1] = 2;
     }},
    {"block_size",
     FLYDSL_AOT_UNSUPPORTED_SIZE,
     {"blocks of 24 keys", "power of two"},
     [](Params &p) {
       page_k(p);
       p.k.sizes[2] = p.v.sizes[2] = 24;
     }},
    {"no_lengths",
     FLYDSL_AOT_INVALID_ARGUMENT,
     {"block_table is given without seqused_k"},
     [](Params &p) {
       page_k(p);
       p.seqused_k = {};
     }},
    {"paged_and_packed",
     FLYDSL_AOT_INVALID_ARGUMENT,
     {"block_table and cu_seqlens_k are both given"},
     [](Params &p) {
       page_k(p);
       p.cu_seqlens_k = numbers(3);
       p.k = flydsl_aot::tensor(address(kK), FLYDSL_AOT_BF16, {2, 900, 64});
       p.v = flydsl_aot::tensor(address(kV), FLYDSL_AOT_BF16, {2, 900, 64});
     }},
    {"blocks_differ",
     FLYDSL_AOT_INVALID_SHAPE,
     {"k has blocks = 40", "v has blocks = 41"},
     [](Params &p) {
       page_k(p);
       p.v.sizes[0] = 41;
     }},
    {"table_null",
     FLYDSL_AOT_INVALID_POINTER,
     {"block_table has data NULL"},
     [](Params &p) {
       page_k(p);
       p.block_table.data = nullptr;
     },
     true},
};

TEST_F(AttentionForwardBadFeatures, Paging) {
  expect_refused(kPaging);
}

}  // namespace
}  // namespace flydsl::test
