// Bad input of attention_forward: each row is a change of a valid problem, the status it must give,
// and what the message must say. A refused call launches nothing.
#include <cmath>
#include <cstddef>

#include "test/v2src/attention_bad_input.h"

namespace flydsl::test {
namespace {

using Params = flydsl_aot_attention_forward_params;
using Row = BadInput;

flydsl_aot_tensor with_stride(flydsl_aot_tensor tensor, int axis, int64_t stride) {
  tensor.strides[axis] = stride;
  return tensor;
}

void set_dtype(Params &p, flydsl_aot_dtype dtype) {
  p.q.dtype = p.k.dtype = p.v.dtype = p.out.dtype = dtype;
}

constexpr int64_t kBig = int64_t{1} << 30;

const Row kRows[] = {
    // dtypes
    {"fp32",
     FLYDSL_AOT_UNSUPPORTED_DTYPE,
     {"q is fp32", "fp16, bf16"},
     [](Params &p) { set_dtype(p, FLYDSL_AOT_FP32); }},
    {"fp64",
     FLYDSL_AOT_UNSUPPORTED_DTYPE,
     {"q is fp64", "fp16, bf16"},
     [](Params &p) { set_dtype(p, FLYDSL_AOT_FP64); }},
    {"fp32_first",
     FLYDSL_AOT_UNSUPPORTED_DTYPE,
     {"fp16, bf16"},
     [](Params &p) {
       // Named before anything else is looked at, however wrong that is.
       set_dtype(p, FLYDSL_AOT_FP32);
       p.q.rank = 7;
       p.k.data = nullptr;
       p.scale = NAN;
     }},
    {"e4m3_out",
     FLYDSL_AOT_INVALID_DTYPE,
     {"out is e4m3", "fp16 or bf16"},
     [](Params &p) { set_dtype(p, FLYDSL_AOT_E4M3); }},
    {"e4m3_fnuz",
     FLYDSL_AOT_UNSUPPORTED_DTYPE,
     {"q is e4m3_fnuz", "e4m3"},
     [](Params &p) { p.q.dtype = FLYDSL_AOT_E4M3_FNUZ; }},
    {"e4m3_under_bf16",
     FLYDSL_AOT_INVALID_DTYPE,
     {"q is e4m3, but k is bf16"},
     [](Params &p) { p.q.dtype = FLYDSL_AOT_E4M3; }},
    {"kv_differ",
     FLYDSL_AOT_INVALID_DTYPE,
     {"k e4m3, but v is e5m2"},
     [](Params &p) {
       p.k.dtype = FLYDSL_AOT_E4M3;
       p.v.dtype = FLYDSL_AOT_E5M2;
     }},
    {"out_with_8_bit_kv",
     FLYDSL_AOT_INVALID_DTYPE,
     {"out is fp16", "q's dtype"},
     [](Params &p) {
       p.k.dtype = p.v.dtype = FLYDSL_AOT_E4M3;
       p.out.dtype = FLYDSL_AOT_FP16;
     }},
    {"int32",
     FLYDSL_AOT_UNSUPPORTED_DTYPE,
     {"q is int32"},
     [](Params &p) { set_dtype(p, FLYDSL_AOT_INT32); }},
    {"unknown",
     FLYDSL_AOT_INVALID_DTYPE,
     {"number 99", "fp16, bf16"},
     [](Params &p) { set_dtype(p, 99); }},
    {"zeroed", FLYDSL_AOT_INVALID_SHAPE, {"q is absent (rank 0)"}, [](Params &p) { p.q = {}; }},
    {"k_mixed",
     FLYDSL_AOT_INVALID_DTYPE,
     {"q is bf16", "k is fp16"},
     [](Params &p) { p.k.dtype = FLYDSL_AOT_FP16; }},
    {"v_fp32",
     FLYDSL_AOT_INVALID_DTYPE,
     {"q is bf16", "v is fp32"},
     [](Params &p) { p.v.dtype = FLYDSL_AOT_FP32; }},
    {"out_mixed",
     FLYDSL_AOT_INVALID_DTYPE,
     {"out is fp32"},
     [](Params &p) { p.out.dtype = FLYDSL_AOT_FP32; }},
    {"out_unknown",
     FLYDSL_AOT_INVALID_DTYPE,
     {"out is invalid", "-5"},
     [](Params &p) { p.out.dtype = -5; }},
    {"lse_bf16",
     FLYDSL_AOT_INVALID_DTYPE,
     {"lse is bf16", "fp32"},
     [](Params &p) { p.lse.dtype = FLYDSL_AOT_BF16; }},
    // shapes
    {"q_rank",
     FLYDSL_AOT_INVALID_SHAPE,
     {"q has rank 3", "(B, Hq, Sq, D)"},
     [](Params &p) { p.q.rank = 3; }},
    {"k_absent",
     FLYDSL_AOT_INVALID_SHAPE,
     {"k is absent (rank 0)"},
     [](Params &p) { p.k.rank = 0; }},
    {"v_rank_huge",
     FLYDSL_AOT_INVALID_SHAPE,
     {"v has rank 1000000"},
     [](Params &p) { p.v.rank = 1000000; }},
    {"out_rank_negative",
     FLYDSL_AOT_INVALID_SHAPE,
     {"out has rank -1"},
     [](Params &p) { p.out.rank = -1; }},
    {"lse_rank",
     FLYDSL_AOT_INVALID_SHAPE,
     {"lse has rank 4", "(B, Hq, Sq)"},
     [](Params &p) { p.lse.rank = 4; }},
    {"negative_size",
     FLYDSL_AOT_INVALID_SHAPE,
     {"k has size -1", "(Sk)"},
     [](Params &p) { p.k.sizes[2] = -1; }},
    {"batch",
     FLYDSL_AOT_INVALID_SHAPE,
     {"q has B = 2", "k has B = 3"},
     [](Params &p) { p.k.sizes[0] = 3; }},
    {"dim_k",
     FLYDSL_AOT_INVALID_SHAPE,
     {"q has D = 64", "k has D = 128"},
     [](Params &p) { p.k.sizes[3] = 128; }},
    {"heads_v",
     FLYDSL_AOT_INVALID_SHAPE,
     {"k has Hkv = 2", "v has Hkv = 3"},
     [](Params &p) { p.v.sizes[1] = 3; }},
    {"seq_v",
     FLYDSL_AOT_INVALID_SHAPE,
     {"k has Sk = 500", "v has Sk = 501"},
     [](Params &p) { p.v.sizes[2] = 501; }},
    {"seq_out",
     FLYDSL_AOT_INVALID_SHAPE,
     {"q has Sq = 300", "out has Sq = 299"},
     [](Params &p) { p.out.sizes[2] = 299; }},
    {"dim_out",
     FLYDSL_AOT_INVALID_SHAPE,
     {"v has Dv = 64", "out has Dv = 32"},
     [](Params &p) { p.out.sizes[3] = 32; }},
    {"lse_heads",
     FLYDSL_AOT_INVALID_SHAPE,
     {"q has Hq = 6", "lse has Hq = 2"},
     [](Params &p) { p.lse.sizes[1] = 2; }},
    {"gqa",
     FLYDSL_AOT_INVALID_SHAPE,
     {"Hq = 6", "Hkv = 4", "multiple"},
     [](Params &p) { p.k.sizes[1] = p.v.sizes[1] = 4; }},
    {"gqa_zero",
     FLYDSL_AOT_INVALID_SHAPE,
     {"Hkv = 0", "multiple"},
     [](Params &p) { p.k.sizes[1] = p.v.sizes[1] = 0; }},
    // head dims
    {"dim_577",
     FLYDSL_AOT_UNSUPPORTED_HEAD_DIM,
     {"D = 577", "from 1", "576/512"},
     [](Params &p) { p.q.sizes[3] = p.k.sizes[3] = p.v.sizes[3] = p.out.sizes[3] = 577; }},
    {"dim_alias",
     FLYDSL_AOT_UNSUPPORTED_HEAD_DIM,
     {"D = 4160"},  // 64 in the key's 12 bits
     [](Params &p) { p.q.sizes[3] = p.k.sizes[3] = p.v.sizes[3] = p.out.sizes[3] = 4096 + 64; }},
    {"dim_v",
     FLYDSL_AOT_UNSUPPORTED_HEAD_DIM,
     {"D = 64", "Dv = 513", "576/512"},
     [](Params &p) { p.v.sizes[3] = p.out.sizes[3] = 513; }},
    {"dim_qk_0",
     FLYDSL_AOT_UNSUPPORTED_HEAD_DIM,
     {"D = 0", "Dv = 64"},
     [](Params &p) { p.q.sizes[3] = p.k.sizes[3] = 0; }},
    {"dim_0_with_lse",
     FLYDSL_AOT_UNSUPPORTED_HEAD_DIM,
     {"D = 0"},
     [](Params &p) { p.q.sizes[3] = p.k.sizes[3] = p.v.sizes[3] = p.out.sizes[3] = 0; }},
    // limits
    {"sq_limit",
     FLYDSL_AOT_UNSUPPORTED_SIZE,
     {"Sq", "2^30"},
     [](Params &p) { p.q.sizes[2] = p.out.sizes[2] = p.lse.sizes[2] = kBig + 1; }},
    {"sk_limit",
     FLYDSL_AOT_UNSUPPORTED_SIZE,
     {"Sk", "2^30"},
     [](Params &p) { p.k.sizes[2] = p.v.sizes[2] = kBig + 1; }},
    {"batch_limit",
     FLYDSL_AOT_UNSUPPORTED_SIZE,
     {"B = ", "2^30"},
     [](Params &p) {
       p.q.sizes[0] = p.k.sizes[0] = p.v.sizes[0] = p.out.sizes[0] = p.lse.sizes[0] = INT64_MAX;
     }},
    {"tiles_limit",
     FLYDSL_AOT_UNSUPPORTED_SIZE,
     {"2^31"},
     [](Params &p) {
       p.q.sizes[0] = p.k.sizes[0] = p.v.sizes[0] = p.out.sizes[0] = p.lse.sizes[0] = kBig;
     }},
    {"tiles_overflow",
     FLYDSL_AOT_UNSUPPORTED_SIZE,
     {"2^31"},
     [](Params &p) {
       p.q.sizes[0] = p.k.sizes[0] = p.v.sizes[0] = p.out.sizes[0] = p.lse.sizes[0] = kBig;
       p.q.sizes[1] = p.out.sizes[1] = p.lse.sizes[1] = kBig;
       p.q.sizes[2] = p.out.sizes[2] = p.lse.sizes[2] = kBig;
     }},
    // strides
    {"last_axis",
     FLYDSL_AOT_INVALID_STRIDE,
     {"k has stride 2", "last axis", "must be 1"},
     [](Params &p) { p.k = with_stride(p.k, 3, 2); }},
    {"last_axis_0",
     FLYDSL_AOT_INVALID_STRIDE,
     {"q has stride 0", "last axis"},
     [](Params &p) { p.q = with_stride(p.q, 3, 0); }},
    {"negative",
     FLYDSL_AOT_INVALID_STRIDE,
     {"v has stride -64", "(Sk)"},
     [](Params &p) { p.v = with_stride(p.v, 2, -64); }},
    {"overflow",
     FLYDSL_AOT_INVALID_STRIDE,
     {"q has stride 4611686018427387904", "63 bits"},
     [](Params &p) { p.q = with_stride(p.q, 0, int64_t{1} << 62); }},
    {"overflow_sum",
     FLYDSL_AOT_INVALID_STRIDE,
     {"k has stride", "63 bits"},
     [](Params &p) {
       p.k = with_stride(p.k, 0, (int64_t{1} << 61) + (int64_t{1} << 60));
       p.k = with_stride(p.k, 1, int64_t{1} << 60);
     }},
    {"out_broadcast",
     FLYDSL_AOT_INVALID_STRIDE,
     {"out overlaps itself", "stride 0", "(Hq"},
     [](Params &p) { p.out = with_stride(p.out, 1, 0); }},
    {"out_self_overlap",
     FLYDSL_AOT_INVALID_STRIDE,
     {"out overlaps itself", "stride 63", "span 64"},
     [](Params &p) { p.out = with_stride(p.out, 2, 63); }},
    {"out_batch_overlap",
     FLYDSL_AOT_INVALID_STRIDE,
     {"out overlaps itself", "axis 0"},
     [](Params &p) { p.out = with_stride(p.out, 0, 6 * 300 * 64 - 1); }},
    {"lse_broadcast",
     FLYDSL_AOT_INVALID_STRIDE,
     {"lse overlaps itself", "stride 0"},
     [](Params &p) { p.lse = with_stride(p.lse, 2, 0); }},
    {"lse_negative",
     FLYDSL_AOT_INVALID_STRIDE,
     {"lse has stride -1"},
     [](Params &p) { p.lse = with_stride(p.lse, 2, -1); }},
    // pointers
    {"q_null",
     FLYDSL_AOT_INVALID_POINTER,
     {"q has data NULL"},
     [](Params &p) { p.q.data = nullptr; },
     true},
    {"v_null",
     FLYDSL_AOT_INVALID_POINTER,
     {"v has data NULL"},
     [](Params &p) { p.v.data = nullptr; },
     true},
    {"out_null",
     FLYDSL_AOT_INVALID_POINTER,
     {"out has data NULL"},
     [](Params &p) { p.out.data = nullptr; },
     true},
    {"lse_null",
     FLYDSL_AOT_INVALID_POINTER,
     {"lse has data NULL"},
     [](Params &p) { p.lse.data = nullptr; },
     true},
    {"q_odd",
     FLYDSL_AOT_INVALID_POINTER,
     {"q has data 0x100000001", "2 bytes"},
     [](Params &p) { p.q.data = address(kQ + 1); }},
    {"lse_misaligned",
     FLYDSL_AOT_INVALID_POINTER,
     {"lse", "4 bytes"},
     [](Params &p) { p.lse.data = address(kLse + 2); }},
    {"wraps",
     FLYDSL_AOT_INVALID_POINTER,
     {"k", "past the end"},
     [](Params &p) { p.k.data = address(~uint64_t{0} - 4095); }},
    {"in_place",
     FLYDSL_AOT_INVALID_POINTER,
     {"out overlaps q"},
     [](Params &p) { p.out.data = p.q.data; },
     true},
    {"in_place_padded",
     FLYDSL_AOT_INVALID_POINTER,
     {"out overlaps q"},
     [](Params &p) {
       // Both have gaps, so only the shared first element is certain.
       const std::vector<int64_t> sizes = {2, 6, 300, 64},
                                  strides = {6 * 300 * 80, 300 * 80, 80, 1};
       p.q = p.out = flydsl_aot::tensor(address(kQ), FLYDSL_AOT_BF16, sizes, strides);
     },
     true},
    {"out_tail_in_k",
     FLYDSL_AOT_INVALID_POINTER,
     {"out overlaps k"},
     [](Params &p) { p.out.data = address(kK - 2 * 6 * 300 * 64 * 2 + 2); },
     true},
    {"out_inside_v",
     FLYDSL_AOT_INVALID_POINTER,
     {"out overlaps v"},
     [](Params &p) { p.out.data = address(kV + 4096); },
     true},
    {"lse_in_out",
     FLYDSL_AOT_INVALID_POINTER,
     {"lse overlaps out"},
     [](Params &p) { p.lse.data = address(kOut + 8); },
     true},
    {"lse_in_q",
     FLYDSL_AOT_INVALID_POINTER,
     {"lse overlaps q"},
     [](Params &p) { p.lse.data = address(kQ + 8); },
     true},
    // mask
    {"zeroed_mask", FLYDSL_AOT_INVALID_MASK, {"without an anchor"}, [](Params &p) { p.mask = {}; }},
    {"causal_no_anchor",
     FLYDSL_AOT_INVALID_MASK,
     {"without an anchor", "TOP_LEFT"},
     [](Params &p) {
       p.mask = {-1, 0, 0, 0};
     }},
    {"left_below",
     FLYDSL_AOT_INVALID_MASK,
     {"mask.left is -2"},
     [](Params &p) {
       p.mask = {-2, -1, 1, 0};
     }},
    {"right_below",
     FLYDSL_AOT_INVALID_MASK,
     {"mask.right -9223372036854775808"},
     [](Params &p) {
       p.mask = {-1, INT64_MIN, 1, 0};
     }},
    {"anchor_unknown",
     FLYDSL_AOT_INVALID_MASK,
     {"mask.anchor is 3"},
     [](Params &p) {
       p.mask = {-1, 0, 3, 0};
     }},
    {"anchor_unknown_unused",
     FLYDSL_AOT_INVALID_MASK,
     {"mask.anchor is -1"},
     [](Params &p) {
       p.mask = {-1, -1, -1, 0};
     }},
    {"mask_reserved",
     FLYDSL_AOT_INVALID_MASK,
     {"mask.reserved is 1"},
     [](Params &p) {
       p.mask = {-1, -1, 0, 1};
     }},
    // scale, workspace
    {"scale_nan", FLYDSL_AOT_INVALID_SCALE, {"nan"}, [](Params &p) { p.scale = NAN; }},
    {"scale_inf", FLYDSL_AOT_INVALID_SCALE, {"-inf"}, [](Params &p) { p.scale = -INFINITY; }},
    {"scale_range", FLYDSL_AOT_INVALID_SCALE, {"2.358e38"}, [](Params &p) { p.scale = 3e38f; }},
    {"workspace",
     FLYDSL_AOT_INVALID_WORKSPACE,
     {"workspace_bytes is 64"},
     [](Params &p) { p.workspace_bytes = 64; }},
    // struct_size
    {"size_0",
     FLYDSL_AOT_INVALID_STRUCT_SIZE,
     {"struct_size is 0"},
     [](Params &p) { p.struct_size = 0; }},
    {"size_small",
     FLYDSL_AOT_INVALID_STRUCT_SIZE,
     {"params.struct_size"},
     [](Params &p) { p.struct_size = offsetof(Params, workspace_bytes); }},
    {"size_garbage",
     FLYDSL_AOT_INVALID_STRUCT_SIZE,
     {"params.struct_size"},
     [](Params &p) { p.struct_size = 0xCCCCCCCC; }},
};

using AttentionForwardBadInput = AttentionBadInputTest;

TEST_F(AttentionForwardBadInput, EveryRow) {
  expect_refused(kRows);
}

TEST_F(AttentionTest, NullArguments) {
  Params params = valid_params();
  flydsl_aot_query_result result{};
  result.struct_size = sizeof result;
  flydsl_aot_handle *handle = library_.get();
  const auto nothing = [](void *, const flydsl_aot_candidate *) {};
  EXPECT_EQ(flydsl_aot_attention_forward(nullptr, &params, nullptr), FLYDSL_AOT_INVALID_ARGUMENT);
  EXPECT_EQ(flydsl_aot_attention_forward(handle, nullptr, nullptr), FLYDSL_AOT_INVALID_ARGUMENT);
  EXPECT_EQ(flydsl_aot_attention_forward_query(nullptr, &params, &result),
            FLYDSL_AOT_INVALID_ARGUMENT);
  EXPECT_EQ(flydsl_aot_attention_forward_query(handle, nullptr, &result),
            FLYDSL_AOT_INVALID_ARGUMENT);
  EXPECT_EQ(flydsl_aot_attention_forward_query(handle, &params, nullptr),
            FLYDSL_AOT_INVALID_ARGUMENT);
  EXPECT_EQ(flydsl_aot_attention_forward_explain(nullptr, &params, nothing, nullptr),
            FLYDSL_AOT_INVALID_ARGUMENT);
  EXPECT_EQ(flydsl_aot_attention_forward_explain(handle, &params, nullptr, nullptr),
            FLYDSL_AOT_INVALID_ARGUMENT);
  EXPECT_EQ(flydsl_aot_attention_forward_prefetch(nullptr, &params), FLYDSL_AOT_INVALID_ARGUMENT);
  EXPECT_EQ(flydsl_aot_attention_forward_prefetch(handle, nullptr), FLYDSL_AOT_INVALID_ARGUMENT);
  result.struct_size = 12;
  EXPECT_EQ(flydsl_aot_attention_forward_query(handle, &params, &result),
            FLYDSL_AOT_INVALID_STRUCT_SIZE);
  EXPECT_EQ(fake_->launches, 0);
}

// A struct of the first version, which ended at workspace_bytes: what follows it is not read.
TEST_F(AttentionTest, FirstStruct) {
  Params params = valid_params();
  params.struct_size = offsetof(Params, cu_seqlens_q);
  std::memset(&params.cu_seqlens_q, 0xCC, sizeof params - params.struct_size);
  EXPECT_EQ(flydsl_aot_attention_forward(library_.get(), &params, nullptr), FLYDSL_AOT_OK)
      << flydsl_aot_last_error();
  EXPECT_EQ(fake_->launches, 1);
}

// A struct of a later version: its unknown tail must be zero, and an output's is zeroed.
TEST_F(AttentionTest, LargerStructs) {
  struct {
    Params params;
    uint64_t later[3];
  } larger{};
  larger.params = valid_params();
  larger.params.struct_size = sizeof larger;
  EXPECT_EQ(flydsl_aot_attention_forward(library_.get(), &larger.params, nullptr), FLYDSL_AOT_OK);
  EXPECT_EQ(fake_->launches, 1);
  larger.later[2] = uint64_t{1} << 63;
  EXPECT_EQ(flydsl_aot_attention_forward(library_.get(), &larger.params, nullptr),
            FLYDSL_AOT_INVALID_STRUCT_SIZE);
  EXPECT_NE(std::string(flydsl_aot_last_error()).find("is not zero"), std::string::npos);
  EXPECT_EQ(fake_->launches, 1);

  struct {
    flydsl_aot_query_result result;
    uint64_t later;
  } output;
  std::memset(&output, 0xCC, sizeof output);
  output.result.struct_size = sizeof output;
  const Params params = valid_params();
  EXPECT_EQ(flydsl_aot_attention_forward_query(library_.get(), &params, &output.result),
            FLYDSL_AOT_OK);
  EXPECT_EQ(output.result.struct_size, sizeof output);
  EXPECT_EQ(output.later, 0u);
}

}  // namespace
}  // namespace flydsl::test
