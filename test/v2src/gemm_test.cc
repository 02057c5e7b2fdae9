// What gemm launches, with which arguments; workspaces.
#include "test/v2src/gemm_fixture.h"

namespace flydsl::test {
namespace {

using Names = std::vector<std::string>;

TEST_F(GemmTest, OneLaunchWithTheProblemsArguments) {
  EXPECT_EQ(launched(full_gemm()), Names{"fp8_general"});
  const GemmKernarg k = kernarg();
  EXPECT_EQ(k.a, gemm_place(kA));
  EXPECT_EQ(k.a_stride_m, 100);
  EXPECT_EQ(k.a_stride_k, 1);
  EXPECT_EQ(k.b_stride_k, 200);
  EXPECT_EQ(k.b_stride_n, 1);
  EXPECT_EQ(k.c, gemm_place(kC));
  EXPECT_EQ(k.c_dtype, static_cast<uint32_t>(FLYDSL_AOT_FP16));
  EXPECT_EQ(k.beta, 0.5f);
  EXPECT_EQ(k.a_descale_stride_m, 1);
  EXPECT_EQ(k.b_descale_stride_n, 0);
  EXPECT_EQ(k.d_scale, gemm_place(kDScale));
  EXPECT_EQ(k.bias_m, gemm_place(kBiasM));
  EXPECT_EQ(k.bias_m_dtype, static_cast<uint32_t>(FLYDSL_AOT_BF16));
  EXPECT_EQ(k.residual, gemm_place(kResidual));
  EXPECT_EQ(k.aux, gemm_place(kAux));
  EXPECT_EQ(k.activation, static_cast<uint32_t>(FLYDSL_AOT_ACTIVATION_SILU));
  EXPECT_EQ(k.m, 300);
  EXPECT_EQ(k.n, 200);
  EXPECT_EQ(k.k, 100);
  EXPECT_EQ(k.row_tiles, 3u);
  EXPECT_EQ(k.column_tiles, 2u);
  EXPECT_EQ(k.splits, 1u);
  EXPECT_EQ(k.tiles, 6u);
  EXPECT_EQ(launches_[0].grid[0], 6u);
}

TEST_F(GemmTest, WhatIsNotReadIsNull) {
  GemmParams params = valid_gemm();
  params.c = gemm_tensor(kC, FLYDSL_AOT_FP64, {1});  // beta is 0: not looked at
  launched(params);
  const GemmKernarg k = kernarg();
  for (const void *pointer :
       {k.c, k.residual, static_cast<const void *>(k.aux), k.bias_m, k.bias_n,
        static_cast<const void *>(k.a_descale), static_cast<const void *>(k.b_descale),
        static_cast<const void *>(k.d_scale)})
    EXPECT_EQ(pointer, nullptr);
  params = valid_gemm();
  params.alpha = 0;
  launched(params);
  EXPECT_EQ(kernarg().k, 0);
}

// D stored as (N, K) is the transposed problem.
TEST_F(GemmTest, ContiguousColumnsOfDAreContiguousRowsOfTheTransposed) {
  GemmParams params = full_gemm();
  params.d.strides[0] = 1;
  params.d.strides[1] = 304;
  launched(params);
  const GemmKernarg k = kernarg();
  EXPECT_EQ(k.m, 200);
  EXPECT_EQ(k.n, 300);
  EXPECT_EQ(k.a, gemm_place(kB));
  EXPECT_EQ(k.a_stride_m, 1);
  EXPECT_EQ(k.a_stride_k, 200);
  EXPECT_EQ(k.b, gemm_place(kA));
  EXPECT_EQ(k.b_stride_k, 1);
  EXPECT_EQ(k.b_stride_n, 100);
  EXPECT_EQ(k.d_stride_m, 304);
  EXPECT_EQ(k.d_stride_n, 1);
  EXPECT_EQ(k.c_stride_m, 1);
  EXPECT_EQ(k.c_stride_n, 200);
  EXPECT_EQ(k.bias_m, gemm_place(kBiasN));
  EXPECT_EQ(k.bias_n, gemm_place(kBiasM));
  EXPECT_EQ(k.a_descale, gemm_place(kBDescale));
  EXPECT_EQ(k.b_descale, gemm_place(kADescale));
}

TEST_F(GemmTest, BatchesOfOneAndOperandsWithoutStandForAll) {
  GemmParams params = valid_gemm();
  params.a = gemm_tensor(kA, FLYDSL_AOT_BF16, {5, 300, 100});
  params.d = gemm_tensor(kD, FLYDSL_AOT_BF16, {5, 300, 200});
  params.beta = 1;
  params.c = gemm_tensor(kC, FLYDSL_AOT_BF16, {1, 300, 200});
  launched(params);
  const GemmKernarg k = kernarg();
  EXPECT_EQ(k.batches, 5u);
  EXPECT_EQ(k.a_stride_b, 30000);
  EXPECT_EQ(k.b_stride_b, 0);
  EXPECT_EQ(k.c_stride_b, 0);
  EXPECT_EQ(k.d_stride_b, 60000);
  EXPECT_EQ(k.tiles, 30u);
}

// Few tiles and a long K: parts, added by a second kernel.
TEST_F(GemmTest, PartsOfK) {
  GemmParams params = valid_gemm();
  params.a = gemm_tensor(kA, FLYDSL_AOT_BF16, {16, 16384});
  params.b = gemm_tensor(kB, FLYDSL_AOT_BF16, {16384, 1020});
  params.d = gemm_tensor(kD, FLYDSL_AOT_BF16, {16, 1020});
  EXPECT_EQ(launched(params), (Names{"bf16_general", "second_pass"}));
  const GemmKernarg first = kernarg(0), second = kernarg(1);
  EXPECT_GT(first.splits, 1u);
  EXPECT_EQ(first.split_k % 256, 0);
  EXPECT_GE(static_cast<int64_t>(first.split_k) * first.splits, 16384);
  EXPECT_LT(static_cast<int64_t>(first.split_k) * (first.splits - 1), 16384);
  EXPECT_EQ(first.tiles, 8 * first.splits);
  EXPECT_EQ(first.partials, params.workspace);
  EXPECT_EQ(workspace_of(params), uint64_t{first.splits} * 16 * 1020 * 4);
  EXPECT_EQ(second.tiles, 16u * 128);  // blocks of 8 columns, the last of a row incomplete
  EXPECT_EQ(launches_[1].grid[0], 8u);
  EXPECT_EQ(second.splits, first.splits);
  EXPECT_EQ(second.d, gemm_place(kD));
}

// More tiles than compute units by a part: those that are left are in parts, and only they have sums in the workspace.
TEST_F(GemmTest, PartsOfTheLastTiles) {
  GemmParams params = valid_gemm();
  params.a = gemm_tensor(kA, FLYDSL_AOT_BF16, {2040, 8192});
  params.b = gemm_tensor(kB, FLYDSL_AOT_BF16, {8192, 10240});
  params.b.strides[0] = 1;
  params.b.strides[1] = 8192;
  params.d = gemm_tensor(kD, FLYDSL_AOT_BF16, {2040, 10240});
  const auto units = static_cast<uint32_t>(fake_->compute_units);
  EXPECT_EQ(launched(params), (Names{"tiles", "second_pass"}));
  const GemmKernarg first = kernarg(0), second = kernarg(1);
  EXPECT_EQ(first.whole_tiles % units, 0u);
  EXPECT_EQ(first.whole_tiles + first.part_tiles, 8u * 40);
  EXPECT_LT(first.part_tiles, units);
  EXPECT_GT(first.splits, 1u);
  EXPECT_GE(static_cast<int64_t>(first.split_k) * first.splits, 8192);
  EXPECT_LT(static_cast<int64_t>(first.split_k) * (first.splits - 1), 8192);
  EXPECT_EQ(first.tiles, first.whole_tiles + first.part_tiles * first.splits);
  EXPECT_EQ(launches_[0].grid[0], units);
  const uint64_t blocks = uint64_t{first.part_tiles} * 256 * 256 / 8;
  EXPECT_EQ(workspace_of(params), blocks * 8 * 4 * first.splits);
  EXPECT_EQ(second.tiles, blocks);
  EXPECT_EQ(launches_[1].grid[0], blocks / 256);
}

// As many as compute units share evenly: no parts.
TEST_F(GemmTest, NoPartsWhereTilesAreShared) {
  GemmParams params = valid_gemm();
  params.a = gemm_tensor(kA, FLYDSL_AOT_BF16, {4096, 4096});
  params.b = gemm_tensor(kB, FLYDSL_AOT_BF16, {4096, 4096});
  params.b.strides[0] = 1;
  params.b.strides[1] = 4096;
  params.d = gemm_tensor(kD, FLYDSL_AOT_BF16, {4096, 4096});
  EXPECT_EQ(launched(params), Names{"tiles"});
  EXPECT_EQ(kernarg().whole_tiles, 0u);
  EXPECT_EQ(kernarg().splits, 1u);
  EXPECT_EQ(workspace_of(params), 0u);
}

TEST_F(GemmTest, GradientReadsAux) {
  GemmParams params = full_gemm();
  params.epilogue.gradient = 1;
  launched(params);
  EXPECT_EQ(kernarg().gradient, 1u);
  EXPECT_EQ(kernarg().aux, gemm_place(kAux));
}

// Sums of a matrix are products with ones, after D is there.
TEST_F(GemmTest, SumsFollowTheProducts) {
  GemmParams params = valid_gemm();
  params.a = gemm_tensor(kA, FLYDSL_AOT_BF16, {5, 300, 100});
  params.d = gemm_tensor(kD, FLYDSL_AOT_BF16, {5, 300, 200});
  params.d_sum_n = gemm_tensor(kSum, FLYDSL_AOT_FP32, {200});
  params.a_sum_m = gemm_tensor(kOtherSum, FLYDSL_AOT_FP16, {5, 300});
  EXPECT_EQ(launched(params), (Names{"bf16_general", "sums", "sums"}));
  const GemmKernarg of_d = kernarg(1), of_a = kernarg(2);
  EXPECT_EQ(of_d.a, gemm_place(kD));
  EXPECT_EQ(of_d.d, gemm_place(kSum));
  EXPECT_EQ(of_d.a_stride_m, 1);
  EXPECT_EQ(of_d.a_stride_k, 200);
  EXPECT_EQ(of_d.a_stride_b, 300 * 200);
  EXPECT_EQ(of_d.m, 200);
  EXPECT_EQ(of_d.k, 300);
  EXPECT_EQ(of_d.splits, 5u);
  EXPECT_EQ(of_d.batches, 1u);
  EXPECT_EQ(launches_[1].grid[0], 4u);
  EXPECT_EQ(of_a.a, gemm_place(kA));
  EXPECT_EQ(of_a.d_dtype, static_cast<uint32_t>(FLYDSL_AOT_FP16));
  EXPECT_EQ(of_a.d_stride_b, 300);
  EXPECT_EQ(of_a.m, 300);
  EXPECT_EQ(of_a.k, 100);
  EXPECT_EQ(of_a.splits, 1u);
  EXPECT_EQ(of_a.batches, 5u);
  EXPECT_EQ(of_a.tiles, 25u);
}

TEST_F(GemmTest, SumsOfNothingAreWritten) {
  GemmParams params = valid_gemm();
  params.a.sizes[0] = params.d.sizes[0] = 0;
  params.d_sum_n = gemm_tensor(kSum, FLYDSL_AOT_FP32, {200});
  params.d_sum_m = gemm_tensor(kOtherSum, FLYDSL_AOT_FP32, {0});
  EXPECT_EQ(launched(params), Names{"sums"});
  EXPECT_EQ(kernarg().k, 0);
  flydsl_aot_query_result result;
  EXPECT_TRUE(library_.gemm_query(params, &result).ok());
  EXPECT_STREQ(result.kernel, "gemm_sums");
  EXPECT_TRUE(library_.gemm_prefetch(params).ok());
}

TEST_F(GemmTest, WorkspaceIsCheckedWhereThereIsOne) {
  GemmParams params = valid_gemm();
  params.workspace = nullptr;
  params.workspace_bytes = 0;
  EXPECT_EQ(workspace_of(params), 0u);
  EXPECT_EQ(launched(params).size(), 1u);
  params.a = gemm_tensor(kA, FLYDSL_AOT_BF16, {16, 16384});
  params.b = gemm_tensor(kB, FLYDSL_AOT_BF16, {16384, 1020});
  params.d = gemm_tensor(kD, FLYDSL_AOT_BF16, {16, 1020});
  const uint64_t needed = workspace_of(params);
  ASSERT_GT(needed, 0u);
  const int before = fake_->launches;
  EXPECT_EQ(library_.gemm(params, nullptr).code(), FLYDSL_AOT_INVALID_WORKSPACE);
  params.workspace = gemm_place(kGemmWorkspace);
  params.workspace_bytes = needed - 1;
  EXPECT_EQ(library_.gemm(params, nullptr).code(), FLYDSL_AOT_INVALID_WORKSPACE);
  params.workspace = gemm_place(kGemmWorkspace, 8);
  params.workspace_bytes = needed;
  EXPECT_EQ(library_.gemm(params, nullptr).code(), FLYDSL_AOT_INVALID_WORKSPACE);
  EXPECT_EQ(fake_->launches, before);
  params.workspace = gemm_place(kGemmWorkspace);
  EXPECT_EQ(launched(params).size(), 2u);
}

TEST_F(GemmTest, EmptyResultsAreSuccessWithoutALaunch) {
  for (const int axis : {0, 1}) {
    GemmParams params = valid_gemm();
    (axis == 0 ? params.a.sizes[0] : params.b.sizes[1]) = 0;
    params.d.sizes[axis] = 0;
    params.d.data = nullptr;
    EXPECT_EQ(launched(params).size(), 0u);
    EXPECT_EQ(workspace_of(params), 0u);
  }
  // Nothing to add up is no empty result.
  GemmParams params = valid_gemm();
  params.a.sizes[1] = params.b.sizes[0] = 0;
  params.a.data = params.b.data = nullptr;
  EXPECT_EQ(launched(params), Names{"bf16_general"});
}

TEST_F(GemmTest, PrefetchLoadsWhatTheCallUses) {
  GemmParams params = valid_gemm();
  EXPECT_TRUE(library_.gemm_prefetch(params).ok());
  EXPECT_EQ(fake_->loads, 1);
  params.a = gemm_tensor(kA, FLYDSL_AOT_BF16, {16, 16384});
  params.b = gemm_tensor(kB, FLYDSL_AOT_BF16, {16384, 1020});
  params.d = gemm_tensor(kD, FLYDSL_AOT_BF16, {16, 1020});
  EXPECT_TRUE(library_.gemm_prefetch(params).ok());
  EXPECT_EQ(fake_->loads, 2);  // the first is there
  EXPECT_EQ(launched(params).size(), 2u);
  EXPECT_EQ(fake_->loads, 2);
}

TEST_F(GemmTest, ExplainNamesTheCandidates) {
  std::vector<flydsl_aot::Candidate> candidates;
  EXPECT_TRUE(library_.gemm_explain(valid_gemm(), &candidates).ok());
  ASSERT_FALSE(candidates.empty());
  EXPECT_EQ(candidates.back().kernel, "gemm_bf16_general");
  EXPECT_TRUE(candidates.back().taken);
}

}  // namespace
}  // namespace flydsl::test
