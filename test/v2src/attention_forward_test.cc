// What attention_forward makes of a valid problem: kernel, grid, arguments, stream, device.
#include <cmath>
#include <thread>

#include "test/v2src/attention_fixture.h"

namespace flydsl::test {
namespace {

using Kernarg = flydsl_aot_attention_forward_kernarg;
using Params = flydsl_aot_attention_forward_params;

TEST_F(AttentionTest, ArgumentsArrive) {
  Params params = valid_params();
  const Kernarg kernarg = launch(params, fake_stream(0));
  EXPECT_EQ(launched(), "attention_forward_bf16_d64_none_direct_symbol");
  EXPECT_EQ(kernarg.q, address(kQ));
  EXPECT_EQ(kernarg.k, address(kK));
  EXPECT_EQ(kernarg.v, address(kV));
  EXPECT_EQ(kernarg.out, address(kOut));
  EXPECT_EQ(kernarg.lse, address(kLse));
  EXPECT_EQ(kernarg.q_stride_b, 6 * 300 * 64);
  EXPECT_EQ(kernarg.q_stride_h, 300 * 64);
  EXPECT_EQ(kernarg.q_stride_s, 64);
  EXPECT_EQ(kernarg.k_stride_b, 2 * 500 * 64);
  EXPECT_EQ(kernarg.v_stride_h, 500 * 64);
  EXPECT_EQ(kernarg.out_stride_b, 6 * 300 * 64);
  EXPECT_EQ(kernarg.lse_stride_b, 6 * 300);
  EXPECT_EQ(kernarg.lse_stride_h, 300);
  EXPECT_EQ(kernarg.lse_stride_s, 1);
  EXPECT_EQ(kernarg.seq_q, 300);
  EXPECT_EQ(kernarg.seq_k, 500);
  EXPECT_EQ(kernarg.heads_q, 6);
  EXPECT_EQ(kernarg.heads_per_kv, 3);
  EXPECT_EQ(kernarg.batches, 2);
  EXPECT_EQ(kernarg.row_tiles, 3u);
  EXPECT_EQ(kernarg.grid_x, 36u);
  EXPECT_EQ(kernarg.scale_log2, static_cast<float>(0.125 * M_LOG2E));
  EXPECT_EQ(kernarg.q_and, 0xffffffffu);
  EXPECT_EQ(kernarg.q_xor, 0u);
  const FakeHip::Launch &last = fake_->last_launch;
  EXPECT_EQ(last.grid[0], 36u);
  EXPECT_EQ(last.grid[1], 1u);
  EXPECT_EQ(last.grid[2], 1u);
  EXPECT_EQ(last.block[0], 256u);
  EXPECT_EQ(last.block[1], 1u);
  EXPECT_EQ(last.lds_bytes, 512u);
  EXPECT_EQ(last.stream, fake_stream(0));

  params.lse = {};
  EXPECT_EQ(launch(params).lse, nullptr);
  // Strides of axes that are not walked do not matter, whatever they are.
  params.q =
      flydsl_aot::tensor(address(kQ), FLYDSL_AOT_BF16, {1, 1, 1, 64}, {-7, INT64_MAX, -1, 1});
  params.out = flydsl_aot::tensor(address(kOut), FLYDSL_AOT_BF16, {1, 1, 1, 64}, {0, 0, 0, 1});
  params.k.sizes[0] = params.v.sizes[0] = params.k.sizes[1] = params.v.sizes[1] = 1;
  const Kernarg single = launch(params);
  EXPECT_EQ(single.q_stride_b, 0);
  EXPECT_EQ(single.q_stride_h, 0);
  EXPECT_EQ(single.q_stride_s, 0);
}

TEST_F(AttentionTest, Scale) {
  Params params = valid_params();
  params.scale = -0.5f;
  Kernarg kernarg = launch(params);
  EXPECT_EQ(kernarg.scale_log2, static_cast<float>(0.5 * M_LOG2E));
  EXPECT_EQ(kernarg.q_xor, 0x80008000u);
  EXPECT_EQ(kernarg.q_and, 0xffffffffu);
  for (const float zero : {0.0f, -0.0f}) {
    params.scale = zero;
    kernarg = launch(params);
    EXPECT_EQ(kernarg.scale_log2, 1.0f);
    EXPECT_EQ(kernarg.q_and, 0u);
    EXPECT_EQ(kernarg.q_xor, 0u);
  }
  params.scale = 2.3e38f;
  EXPECT_TRUE(std::isfinite(launch(params).scale_log2));
}

TEST_F(AttentionTest, RightBoundThatHidesNoKeyIsNoBound) {
  struct Row {
    int64_t seq_q, seq_k, right;
    flydsl_aot_anchor anchor;
    bool bounded;
  };
  constexpr flydsl_aot_anchor kTop = FLYDSL_AOT_ANCHOR_TOP_LEFT,
                              kBottom = FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT;
  const Row rows[] = {
      {300, 500, 0, kTop, true},
      {300, 500, 0, kBottom, true},
      {500, 300, 0, kBottom, true},
      {300, 500, 7, kTop, true},
      {300, 500, 7, kBottom, true},
      {500, 300, 0, kTop, true},
      {300, 500, 498, kTop, true},
      {300, 500, 499, kTop, false},
      {300, 500, INT64_MAX, kTop, false},
      {1, 500, 0, kBottom, false},
      {1, 500, 0, kTop, true},
      {1, 1, 0, kTop, false},
      {500, 1, 0, kBottom, true},
      {300, 500, -1, kTop, false},
      {300, 500, -1, 0, false},
      {300, 500, INT64_MAX, kBottom, false},
      {300, 0, 0, kBottom, true},
      {300, 0, 0, kTop, false},
  };
  for (const Row &row : rows) {
    SCOPED_TRACE(::testing::Message()
                 << row.seq_q << " " << row.seq_k << " " << row.right << " " << row.anchor);
    Params params = valid_params();
    params.q = params.out = flydsl_aot::tensor(address(kQ), FLYDSL_AOT_BF16, {2, 6, row.seq_q, 64});
    params.out.data = address(kOut);
    params.k = params.v = flydsl_aot::tensor(address(kK), FLYDSL_AOT_BF16, {2, 2, row.seq_k, 64});
    params.v.data = address(kV);
    params.lse = {};
    params.mask = {-1, row.right, row.anchor, 0};
    launch(params);
    EXPECT_EQ(launched().find("_causal_") != std::string::npos, row.bounded) << launched();
  }
}

TEST_F(AttentionTest, KernelFollowsAlignment) {
  Params params = valid_params();
  struct Row {
    const char *kind;
    std::function<void(Params &)> edit;
  };
  const Row rows[] = {
      {"direct", [](Params &p) { p.q.data = address(kQ + 16); }},
      {"staged", [](Params &p) { p.q.data = address(kQ + 8); }},
      {"staged", [](Params &p) { p.out.data = address(kOut + 2); }},
      {"staged", [](Params &p) { p.k.strides[2] = 65; }},
      {"direct", [](Params &p) { p.k.strides[2] = 72; }},
      {"direct", [](Params &p) { p.v.strides[1] = 0; }},              // broadcast
      {"direct", [](Params &p) { p.lse.data = address(kLse + 4); }},  // lse is written by elements
      {"direct", [](Params &p) { p.q.data = address(kQ + 4096); }},
  };
  for (const Row &row : rows) {
    params = valid_params();
    row.edit(params);
    launch(params);
    EXPECT_NE(launched().find(row.kind), std::string::npos)
        << launched() << " for " << (&row - rows);
  }
  params = valid_params();
  params.q.dtype = params.k.dtype = params.v.dtype = params.out.dtype = FLYDSL_AOT_FP16;
  launch(params);
  EXPECT_EQ(launched(), "attention_forward_fp16_d64_none_direct_symbol");
}

TEST_F(AttentionTest, LegalSharingOfMemory) {
  // Packed (B, S, 3, H, D): q, k, v are slices of one buffer; out interleaves with nothing of
  // theirs in a fourth slice.
  const int64_t heads = 6, dim = 64, row = 4 * heads * dim;
  Params params = valid_params();
  const std::vector<int64_t> sizes = {2, heads, 300, dim}, strides = {300 * row, dim, row, 1};
  flydsl_aot_tensor *tensors[] = {&params.q, &params.k, &params.v, &params.out};
  for (int i = 0; i < 4; ++i) {
    *tensors[i] =
        flydsl_aot::tensor(address(kQ + i * heads * dim * 2), FLYDSL_AOT_BF16, sizes, strides);
  }
  launch(params);
  // k and v may be the same memory; the end of one tensor may be the start of another.
  params = valid_params();
  params.v.data = params.k.data;
  params.out.data = address(kK - 2 * 6 * 300 * 64 * 2);
  launch(params);
}

TEST_F(AttentionTest, EmptyOutputsLaunchNothing) {
  for (int axis = 0; axis < 4; ++axis) {
    Params params = valid_params();
    params.q.sizes[axis] = params.out.sizes[axis] = 0;
    if (axis == 0) params.k.sizes[0] = params.v.sizes[0] = 0;
    if (axis == 3) params.k.sizes[3] = params.v.sizes[3] = 0, params.lse = {};
    if (axis < 3) params.lse.sizes[axis] = 0;
    params.q.data = params.out.data = params.lse.data = nullptr;
    const auto status = library_.attention_forward(params, nullptr);
    EXPECT_TRUE(status.ok()) << axis << " " << status.message();
    flydsl_aot_query_result result;
    EXPECT_TRUE(library_.attention_forward_query(params, &result).ok());
    EXPECT_STREQ(result.kernel, "");
    EXPECT_TRUE(library_.attention_forward_prefetch(params).ok());
  }
  EXPECT_EQ(fake_->launches, 0);
  EXPECT_EQ(fake_->loads, 0);
}

TEST_F(AttentionTest, NoKeysLaunch) {
  Params params = valid_params();
  params.k.sizes[2] = params.v.sizes[2] = 0;
  params.k.data = params.v.data = nullptr;
  const Kernarg kernarg = launch(params);
  EXPECT_EQ(kernarg.seq_k, 0);
  EXPECT_EQ(kernarg.k, nullptr);
}

TEST_F(AttentionTest, LargeGrids) {
  Params params = valid_params();
  params.lse = {};
  // 2^22 + 6 tiles: two rows of the grid. Broadcast batches, so that offsets stay small.
  const int64_t batches = (1 << 22) / 6 + 1;
  params.q = flydsl_aot::tensor(address(kQ), FLYDSL_AOT_BF16, {batches, 6, 1, 64}, {0, 64, 64, 1});
  params.k = params.v =
      flydsl_aot::tensor(address(kK), FLYDSL_AOT_BF16, {batches, 1, 1, 64}, {0, 0, 0, 1});
  params.out = flydsl_aot::tensor(address(kOut), FLYDSL_AOT_BF16, {batches, 6, 1, 64});
  const Kernarg kernarg = launch(params);
  EXPECT_EQ(kernarg.grid_x, 1u << 22);
  EXPECT_EQ(fake_->last_launch.grid[0], 1u << 22);
  EXPECT_EQ(fake_->last_launch.grid[1], 2u);
}

TEST_F(AttentionTest, TheStreamsDevice) {
  const Params params = valid_params();
  launch(params, fake_stream(1));
  EXPECT_EQ(fake_->last_launch.device, 1);
  EXPECT_EQ(fake_->current_device(), 0);
  launch(params, fake_stream(0));
  EXPECT_EQ(fake_->last_launch.device, 0);
  EXPECT_EQ(fake_->loads, 2);
  fake_->make_current(1);
  launch(params);  // the null stream is the current device's
  EXPECT_EQ(fake_->last_launch.device, 1);
  EXPECT_EQ(fake_->current_device(), 1);
  EXPECT_EQ(fake_->loads, 2);
}

TEST_F(AttentionTest, CaptureNeedsPrefetchOnce) {
  const Params params = valid_params();
  void *stream = fake_stream(0, true);
  const auto status = library_.attention_forward(params, stream);
  EXPECT_EQ(status.code(), FLYDSL_AOT_CAPTURE_NEEDS_PREFETCH);
  EXPECT_NE(status.message().find("flydsl_aot_attention_forward_prefetch"), std::string::npos)
      << status.message();
  EXPECT_EQ(fake_->launches, 0);
  ASSERT_TRUE(library_.attention_forward_prefetch(params).ok());
  launch(params, stream);
}

TEST_F(AttentionTest, RuntimeErrorsAreReportedAndCleared) {
  const Params params = valid_params();
  fake_->launch_error = 719;
  const auto status = library_.attention_forward(params, nullptr);
  EXPECT_EQ(status.code(), FLYDSL_AOT_DEVICE_LOST);
  for (const char *part :
       {"hipModuleLaunchKernel", "719", "hipErrorLaunchFailure", "attention_forward_bf16_d64"}) {
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  }
  EXPECT_EQ(fake_->peek_at_last_error(), 0);
  EXPECT_EQ(fake_->launches, 0);
}

TEST_F(AttentionTest, QueryNeedsNoDevice) {
  const flydsl_aot::Library library = open_without_device();
  Params params = valid_params();
  params.mask = flydsl_aot::causal(FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT);
  params.q.data = params.k.data = params.v.data = params.out.data = params.lse.data = nullptr;
  flydsl_aot_query_result result;
  ASSERT_TRUE(library.attention_forward_query(params, &result).ok());
  EXPECT_STREQ(result.kernel, "attention_forward_bf16_d64_causal_direct");
  EXPECT_STREQ(result.backend, "native");
  EXPECT_STREQ(result.reason, "");
  EXPECT_EQ(result.workspace_bytes, 0u);
  EXPECT_EQ(library.attention_forward_prefetch(params).code(), FLYDSL_AOT_NO_DEVICE);
  EXPECT_EQ(library.attention_forward(valid_params(), nullptr).code(), FLYDSL_AOT_NO_DEVICE);
}

TEST_F(AttentionTest, ExplainListsCandidates) {
  Params params = valid_params();
  std::vector<flydsl_aot::Candidate> candidates;
  ASSERT_TRUE(library_.attention_forward_explain(params, &candidates).ok());
  ASSERT_EQ(candidates.size(), 3u);
  EXPECT_TRUE(candidates[0].taken);
  EXPECT_EQ(candidates[0].kernel, "attention_forward_bf16_d64_none_direct");
  EXPECT_EQ(candidates[0].backend, "native");
  EXPECT_FALSE(candidates[1].taken);
  EXPECT_NE(candidates[1].reason.find("fits too"), std::string::npos);
  EXPECT_EQ(candidates[2].kernel, "attention_forward_bf16_d64_general");
  EXPECT_FALSE(candidates[2].taken);
  params.q.data = address(kQ + 2);
  candidates.clear();
  ASSERT_TRUE(library_.attention_forward_explain(params, &candidates).ok());
  EXPECT_FALSE(candidates[0].taken);
  EXPECT_NE(candidates[0].reason.find("16 bytes; these are multiples of 2"), std::string::npos)
      << candidates[0].reason;
  EXPECT_TRUE(candidates[1].taken);
}

TEST_F(AttentionTest, LeftBoundThatHidesNoKeyIsNoBound) {
  const struct {
    int64_t left;
    flydsl_aot_anchor anchor;
    bool hides;
  } cases[] = {{299, FLYDSL_AOT_ANCHOR_TOP_LEFT, false},  // Sq 300: the last query sits at key 299
               {298, FLYDSL_AOT_ANCHOR_TOP_LEFT, true},
               {499, FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT, false},  // Sk 500
               {498, FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT, true},
               {INT64_MAX, FLYDSL_AOT_ANCHOR_TOP_LEFT, false}};
  for (const auto &row : cases) {
    SCOPED_TRACE(row.left);
    Params params = valid_params();
    params.mask = {row.left, FLYDSL_AOT_UNLIMITED, row.anchor, 0};
    flydsl_aot_query_result result;
    const auto status = library_.attention_forward_query(params, &result);
    EXPECT_EQ(status.code(), FLYDSL_AOT_OK);
    EXPECT_STREQ(result.kernel, row.hides ? "attention_forward_bf16_d64_window_direct"
                                          : "attention_forward_bf16_d64_none_direct");
  }
}

TEST_F(AttentionTest, HeadDimClasses) {
  const struct {
    int64_t qk, v;
    const char *kernel;
  } rows[] = {
      {64, 64, "d64_none_direct"},    {128, 128, "d128_none_direct"}, {1, 1, "d32_general"},
      {32, 32, "d32_general"},        {33, 8, "d64_general"},         {64, 63, "d64_general"},
      {72, 72, "d96_general"},        {8, 128, "d128_general"},       {128, 64, "d128_general"},
      {192, 128, "d192x128_general"}, {161, 1, "d192x128_general"},   {192, 129, "d192_general"},
      {160, 128, "d160_general"},     {200, 200, "d224_general"},     {1, 256, "d256_general"},
      {257, 8, "d512_general"},       {512, 512, "d512_general"},     {513, 1, "d576x512_general"}};
  for (const auto &row : rows) {
    Params params = valid_params();
    params.q = flydsl_aot::tensor(address(kQ), FLYDSL_AOT_BF16, {2, 6, 300, row.qk});
    params.k = flydsl_aot::tensor(address(kK), FLYDSL_AOT_BF16, {2, 2, 500, row.qk});
    params.v = flydsl_aot::tensor(address(kV), FLYDSL_AOT_BF16, {2, 2, 500, row.v});
    params.out = flydsl_aot::tensor(address(kOut), FLYDSL_AOT_BF16, {2, 6, 300, row.v});
    const Kernarg kernarg = launch(params);
    EXPECT_EQ(launched(), std::string("attention_forward_bf16_") + row.kernel + "_symbol")
        << row.qk << " " << row.v;
    EXPECT_EQ(kernarg.head_dim_qk, row.qk);
    EXPECT_EQ(kernarg.head_dim_v, row.v);
  }
}

TEST_F(AttentionTest, WindowBounds) {
  Params params = valid_params();
  params.mask = {100, 7, FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT, 0};
  Kernarg kernarg = launch(params);
  EXPECT_EQ(kernarg.window_left, 100);
  EXPECT_EQ(kernarg.window_right, 7);
  EXPECT_EQ(kernarg.bottom_right, 1u);
  params.mask = {0, INT64_MAX, FLYDSL_AOT_ANCHOR_TOP_LEFT, 0};
  kernarg = launch(params);
  EXPECT_EQ(kernarg.window_left, 0);
  EXPECT_EQ(kernarg.window_right, 1 << 30);
  EXPECT_EQ(kernarg.bottom_right, 0u);
  params.mask.right = FLYDSL_AOT_UNLIMITED;
  EXPECT_EQ(launch(params).window_right, -1);
}

TEST_F(AttentionTest, GeneralKernelWhereNoOtherFits) {
  archive::ArchiveSpec spec = attention_spec();
  for (archive::SelectionSpec &row : spec.selection) {
    if (row.candidates.size() > 1) row.candidates.resize(1);  // without those for any alignment
    if (row.candidates[0].kernel == "attention_forward_bf16_d64_none_direct")
      row.candidates[0].seq_q_min = 200;
  }
  write_bytes(archive_path_, build_or_die(spec));
  const flydsl_aot::Library library = open_without_device();
  const auto taken = [&](const Params &params) {
    flydsl_aot_query_result result;
    const auto status = library.attention_forward_query(params, &result);
    EXPECT_TRUE(status.ok()) << status.message();
    std::vector<flydsl_aot::Candidate> candidates;
    EXPECT_TRUE(library.attention_forward_explain(params, &candidates).ok());
    EXPECT_EQ(candidates.size(), 2u);
    for (const auto &candidate : candidates)
      EXPECT_EQ(candidate.taken, candidate.kernel == result.kernel) << candidate.kernel;
    return std::string(result.kernel) + ": " + candidates[0].reason + "; " + candidates[1].reason;
  };
  Params params = valid_params();
  EXPECT_EQ(taken(params),
            "attention_forward_bf16_d64_none_direct: the first that fits; fits too, but is listed "
            "after the one taken");
  params.k.data = address(kK + 2);
  EXPECT_EQ(taken(params),
            "attention_forward_bf16_d64_general: needs base addresses and strides that are "
            "multiples of 16 bytes; these are multiples of 2; the first that fits");
  params = valid_params();
  params.q.sizes[2] = params.out.sizes[2] = params.lse.sizes[2] = 199;
  EXPECT_EQ(taken(params),
            "attention_forward_bf16_d64_general: takes rows from 200 to 1073741824; these are 199; the "
            "first that fits");
}

// Kernels for problems that fill the device: 131,072 rows over all heads and sequences.
TEST_F(AttentionTest, KernelsOfManyRows) {
  archive::ArchiveSpec spec = attention_spec();
  const auto with_many_rows = [](uint64_t key) {
    return (key | flydsl_aot_attention_forward_key(0, 0, 0, 0, 0, 0, 0, 1)) &
           ~flydsl_aot_attention_forward_key(0, 0, 0, 0, 0, 0, 1, 0);
  };
  const std::string special = "attention_forward_bf16_d64_none_direct";
  for (archive::SelectionSpec &row : spec.selection) {
    if (row.candidates[0].kernel != special) continue;
    row.candidates.resize(1);
    row.functional_key = with_many_rows(row.functional_key);
  }
  for (archive::KernelSpec &kernel : spec.kernels) {
    if (kernel.name == special) kernel.functional_key = with_many_rows(kernel.functional_key);
  }
  write_bytes(archive_path_, build_or_die(spec));
  const flydsl_aot::Library library = open_without_device();
  const auto taken = [&](int64_t rows, bool packed) {
    Params params = valid_params();
    params.q = params.out = flydsl_aot::tensor(address(kQ), FLYDSL_AOT_BF16, {2, 6, rows, 64});
    params.out.data = address(kOut);
    params.lse = {};
    if (packed) {
      params.q = flydsl_aot::tensor(address(kQ), FLYDSL_AOT_BF16, {6, rows, 64});
      params.out = flydsl_aot::tensor(address(kOut), FLYDSL_AOT_BF16, {6, rows, 64});
      params.cu_seqlens_q = flydsl_aot::tensor(address(kLse), FLYDSL_AOT_INT32, {3});
      params.max_seqlen_q = rows;
    }
    flydsl_aot_query_result result;
    const auto status = library.attention_forward_query(params, &result);
    EXPECT_TRUE(status.ok()) << status.message();
    return std::string(result.kernel);
  };
  const std::string general = "attention_forward_bf16_d64_general";
  EXPECT_EQ(taken(10922, false), general);
  EXPECT_EQ(taken(10923, false), special);
  // As many rows as the packed tensor has, however long each sequence may be.
  EXPECT_EQ(taken(21845, true), general);
  EXPECT_EQ(taken(21846, true), special);
}

TEST_F(AttentionTest, NoKernel) {
  archive::ArchiveSpec spec = attention_spec();
  spec.selection.resize(1);  // fp16, D 64, no mask
  spec.selection[0].candidates.resize(1);
  write_bytes(archive_path_, build_or_die(spec));
  const flydsl_aot::Library library = open_without_device();
  flydsl_aot_query_result result;
  EXPECT_EQ(library.attention_forward_query(valid_params(), &result).code(), FLYDSL_AOT_NO_KERNEL);
  EXPECT_NE(std::string(result.reason).find("lists no kernel"), std::string::npos) << result.reason;
  Params params = valid_params();
  params.q.dtype = params.k.dtype = params.v.dtype = params.out.dtype = FLYDSL_AOT_FP16;
  params.q.data = address(kQ + 2);
  EXPECT_EQ(library.attention_forward_query(params, &result).code(), FLYDSL_AOT_NO_KERNEL);
  EXPECT_NE(std::string(result.reason).find("multiples of 16 bytes"), std::string::npos)
      << result.reason;
  std::vector<flydsl_aot::Candidate> candidates;
  EXPECT_EQ(library.attention_forward_explain(params, &candidates).code(), FLYDSL_AOT_NO_KERNEL);
  ASSERT_EQ(candidates.size(), 1u);
  EXPECT_FALSE(candidates[0].taken);
}

TEST_F(AttentionTest, ManyThreadsFirstUse) {
  constexpr int kThreads = 32, kCalls = 20;
  fake_->load_delay_us = 1000;
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      const Params params = valid_params();
      for (int call = 0; call < kCalls; ++call)
        failures += !library_.attention_forward(params, fake_stream(i % 2)).ok();
    });
  }
  for (auto &thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(fake_->launches, kThreads * kCalls);
  EXPECT_EQ(fake_->loads, 2);
}

}  // namespace
}  // namespace flydsl::test
