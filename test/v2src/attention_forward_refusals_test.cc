// What attention_forward refuses: the list of include/flydsl_aot/attention_forward.h, in its order.
#include <cmath>

#include "test/v2src/attention_bad_input.h"
#include "test/v2src/attention_features.h"

namespace flydsl::test {
namespace {

constexpr int64_t kLimit = int64_t{1} << 30;

void of_type(Params &p, flydsl_aot_dtype dtype) {
  p.q.dtype = p.k.dtype = p.v.dtype = p.out.dtype = dtype;
}

const BadInput kTypes[] = {
    {"fp32",
     FLYDSL_AOT_UNSUPPORTED_DTYPE,
     {"q is fp32", "fp16, bf16, e4m3, e5m2"},
     [](Params &p) { of_type(p, FLYDSL_AOT_FP32); }},
    {"fp64",
     FLYDSL_AOT_UNSUPPORTED_DTYPE,
     {"q is fp64"},
     [](Params &p) { of_type(p, FLYDSL_AOT_FP64); }},
    {"e4m3_fnuz",
     FLYDSL_AOT_UNSUPPORTED_DTYPE,
     {"q is e4m3_fnuz"},
     [](Params &p) { of_type(p, FLYDSL_AOT_E4M3_FNUZ); }},
    {"e5m2_fnuz",
     FLYDSL_AOT_UNSUPPORTED_DTYPE,
     {"q is e5m2_fnuz"},
     [](Params &p) { of_type(p, FLYDSL_AOT_E5M2_FNUZ); }},
    {"e4m3_fnuz_keys",
     FLYDSL_AOT_INVALID_DTYPE,
     {"k is e4m3_fnuz"},
     [](Params &p) { p.k.dtype = p.v.dtype = FLYDSL_AOT_E4M3_FNUZ; }},
    {"bool",
     FLYDSL_AOT_UNSUPPORTED_DTYPE,
     {"q is bool"},
     [](Params &p) { of_type(p, FLYDSL_AOT_BOOL); }},
    {"16_bit_keys_under_8_bit_queries",
     FLYDSL_AOT_INVALID_DTYPE,
     {"q is e5m2, but k is bf16"},
     [](Params &p) { p.q.dtype = FLYDSL_AOT_E5M2; }},
    {"values_of_another_type",
     FLYDSL_AOT_INVALID_DTYPE,
     {"v is bf16", "k's dtype"},
     [](Params &p) { p.k.dtype = FLYDSL_AOT_E4M3; }},
    {"out_of_8_bits",
     FLYDSL_AOT_INVALID_DTYPE,
     {"out is e5m2", "fp16 or bf16"},
     [](Params &p) { of_type(p, FLYDSL_AOT_E5M2); }},
    {"64_bit_lengths",
     FLYDSL_AOT_INVALID_DTYPE,
     {"seqused_k is int64", "int32"},
     [](Params &p) {
       p.seqused_k = numbers(2);
       p.seqused_k.dtype = FLYDSL_AOT_INT64;
     }},
    {"64_bit_block_numbers",
     FLYDSL_AOT_INVALID_DTYPE,
     {"block_table is int64", "int32"},
     [](Params &p) {
       page_k(p);
       p.block_table.dtype = FLYDSL_AOT_INT64;
     }},
};

const BadInput kShapes[] = {
    {"head_dim",
     FLYDSL_AOT_UNSUPPORTED_HEAD_DIM,
     {"D = 577"},
     [](Params &p) { p.q.sizes[3] = p.k.sizes[3] = 577; }},
    {"head_dim_v",
     FLYDSL_AOT_UNSUPPORTED_HEAD_DIM,
     {"Dv = 513"},
     [](Params &p) { p.v.sizes[3] = p.out.sizes[3] = 513; }},
    // vllm-project/vllm#34570, #36855, ROCm/aiter#2273: heads that a kernel was not built for.
    {"vllm_36855_heads_of_k_and_v",
     FLYDSL_AOT_INVALID_SHAPE,
     {"k has Hkv = 2", "v has Hkv = 1"},
     [](Params &p) { p.v.sizes[1] = 1; }},
    {"heads",
     FLYDSL_AOT_INVALID_SHAPE,
     {"Hq = 6", "Hkv = 4", "multiple"},
     [](Params &p) { p.k.sizes[1] = p.v.sizes[1] = 4; }},
    {"blocks_of_24",
     FLYDSL_AOT_UNSUPPORTED_SIZE,
     {"blocks of 24 keys", "power of two"},
     [](Params &p) {
       page_k(p);
       p.k.sizes[2] = p.v.sizes[2] = 24;
     }},
    {"blocks_without_lengths",
     FLYDSL_AOT_INVALID_ARGUMENT,
     {"without seqused_k"},
     [](Params &p) {
       page_k(p);
       p.seqused_k = {};
     }},
    {"blocks_and_starts",
     FLYDSL_AOT_INVALID_ARGUMENT,
     {"either paged or packed"},
     [](Params &p) {
       page_k(p);
       pack_k(p);
     }},
};

const BadInput kStrides[] = {
    {"negative",
     FLYDSL_AOT_INVALID_STRIDE,
     {"k has stride -64", "(Sk)"},
     [](Params &p) { p.k.strides[2] = -64; }},
    {"last_axis",
     FLYDSL_AOT_INVALID_STRIDE,
     {"v has stride 2", "must be 1"},
     [](Params &p) { p.v.strides[3] = 2; }},
    {"last_axis_of_starts",
     FLYDSL_AOT_INVALID_STRIDE,
     {"cu_seqlens_q has stride 3", "must be 1"},
     [](Params &p) {
       pack_q(p);
       p.cu_seqlens_q.strides[0] = 3;
     }},
    {"last_axis_of_the_table",
     FLYDSL_AOT_INVALID_STRIDE,
     {"block_table has stride 0", "must be 1"},
     [](Params &p) {
       page_k(p);
       p.block_table.strides[1] = 0;
     }},
    {"not_nested",
     FLYDSL_AOT_INVALID_STRIDE,
     {"out overlaps itself"},
     [](Params &p) { p.out.strides[2] = 32; }},
};

const BadInput kLimits[] = {
    {"keys",
     FLYDSL_AOT_UNSUPPORTED_SIZE,
     {"Sk = 1073741825", "2^30"},
     [](Params &p) { p.k.sizes[2] = p.v.sizes[2] = kLimit + 1; }},
    {"tiles",
     FLYDSL_AOT_UNSUPPORTED_SIZE,
     {"2^31"},
     [](Params &p) {
       p.q.sizes[2] = p.out.sizes[2] = p.lse.sizes[2] = kLimit;
       p.q.sizes[0] = p.k.sizes[0] = p.v.sizes[0] = p.out.sizes[0] = p.lse.sizes[0] = 64;
     }},
    {"alignment",
     FLYDSL_AOT_INVALID_POINTER,
     {"q has data", "2 bytes"},
     [](Params &p) { p.q.data = address(kQ + 1); }},
    {"overlap",
     FLYDSL_AOT_INVALID_POINTER,
     {"out overlaps v"},
     [](Params &p) { p.out.data = p.v.data; },
     true},
};

const BadInput kNumbersWithoutMeaning[] = {
    {"scale", FLYDSL_AOT_INVALID_SCALE, {"scale is nan"}, [](Params &p) { p.scale = NAN; }},
    {"softcap", FLYDSL_AOT_INVALID_ARGUMENT, {"softcap is -1"}, [](Params &p) { p.softcap = -1; }},
    {"softcap_nan",
     FLYDSL_AOT_INVALID_ARGUMENT,
     {"softcap is"},
     [](Params &p) { p.softcap = NAN; }},
    {"dropout",
     FLYDSL_AOT_INVALID_ARGUMENT,
     {"dropout_p is 1"},
     [](Params &p) { p.dropout_p = 1; }},
    {"bound",
     FLYDSL_AOT_INVALID_MASK,
     {"mask.left is -2"},
     [](Params &p) {
       p.mask = {-2, 0, FLYDSL_AOT_ANCHOR_TOP_LEFT, 0};
     }},
    {"anchor",
     FLYDSL_AOT_INVALID_MASK,
     {"without an anchor"},
     [](Params &p) {
       p.mask = {-1, 0, FLYDSL_AOT_ANCHOR_NONE, 0};
     }},
};

using AttentionForwardRefusals = AttentionBadInputTest;

TEST_F(AttentionForwardRefusals, OfTheHeader) {
  expect_refused(kTypes);
  expect_refused(kShapes);
  expect_refused(kStrides);
  expect_refused(kLimits);
  expect_refused(kNumbersWithoutMeaning);
}

}  // namespace
}  // namespace flydsl::test
