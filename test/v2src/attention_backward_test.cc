// What attention_backward makes of a valid problem: which kernels, in which order, grids, arguments, workspace.
#include <cmath>

#include "test/v2src/attention_backward_fixture.h"

namespace flydsl::test {
namespace {

using Names = std::vector<std::string>;

TEST_F(AttentionBackwardTest, PassesInOrder) {
  const BackwardParams params = valid_backward();
  EXPECT_EQ(launched(params, fake_stream(0)),
            (Names{"bf16_prepare", "bf16_d64_keys_plain", "bf16_d64_queries_plain"}));
  for (const FakeHip::Launch &launch : launches_) EXPECT_EQ(launch.stream, fake_stream(0));
  // 300 rows are three tiles of 128, 500 keys four of 128, 300 rows five of 64.
  EXPECT_EQ(launches_[0].grid[0], 2u * 6 * 3);
  EXPECT_EQ(launches_[1].grid[0], 2u * 2 * 4);
  EXPECT_EQ(launches_[2].grid[0], 2u * 6 * 5);
  EXPECT_EQ(kernarg(0).row_tiles, 3u);
  EXPECT_EQ(kernarg(1).row_tiles, 4u);
  EXPECT_EQ(kernarg(2).row_tiles, 5u);
}

TEST_F(AttentionBackwardTest, ArgumentsArrive) {
  BackwardParams params = valid_backward();
  params.mask = {-1, 0, FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT, 0};
  params.scale = -0.5f;
  launched(params);
  for (size_t i = 0; i < 3; ++i) {
    const BackwardKernarg k = kernarg(i);
    EXPECT_EQ(k.q, place(kQ));
    EXPECT_EQ(k.k, place(kK));
    EXPECT_EQ(k.v, place(kV));
    EXPECT_EQ(k.out, place(kOut));
    EXPECT_EQ(k.lse, place(kLse));
    EXPECT_EQ(k.dout, place(kDout));
    EXPECT_EQ(k.dq, place(kDq));
    EXPECT_EQ(k.dk, place(kDk));
    EXPECT_EQ(k.dv, place(kDv));
    EXPECT_EQ(k.q_stride_b, 6 * 300 * 64);
    EXPECT_EQ(k.q_stride_h, 300 * 64);
    EXPECT_EQ(k.q_stride_s, 64);
    EXPECT_EQ(k.dk_stride_b, 2 * 500 * 64);
    EXPECT_EQ(k.dv_stride_h, 500 * 64);
    EXPECT_EQ(k.dq_stride_s, 64);
    EXPECT_EQ(k.dout_stride_d, 1);
    EXPECT_EQ(k.dout_copy, nullptr);
    EXPECT_EQ(k.lse_stride_b, 6 * 300);
    EXPECT_EQ(k.lse_stride_s, 1);
    EXPECT_EQ(k.lse_is_padded, 0u);
    EXPECT_EQ(k.seq_q, 300);
    EXPECT_EQ(k.seq_k, 500);
    EXPECT_EQ(k.heads_q, 6);
    EXPECT_EQ(k.heads_kv, 2);
    EXPECT_EQ(k.heads_per_kv, 3);
    EXPECT_EQ(k.batches, 2);
    EXPECT_EQ(k.window_left, -1);
    EXPECT_EQ(k.window_right, 0);
    EXPECT_EQ(k.bottom_right, 1u);
    EXPECT_EQ(k.scale, -0.5f);
    EXPECT_EQ(k.scale_log2, static_cast<float>(0.5 * M_LOG2E));
    EXPECT_EQ(k.q_xor, 0x80008000u);
    EXPECT_EQ(k.head_dim_qk, 64);
    EXPECT_EQ(k.head_dim_v, 64);
    EXPECT_EQ(k.rows_stride, 384);
    EXPECT_EQ(k.row_lse, at(kWorkspace));
    EXPECT_EQ(k.row_delta, at(kWorkspace + 2 * 6 * 384 * sizeof(float)));
    EXPECT_EQ(k.score_terms, 0u);
    EXPECT_EQ(k.dq_counter_count, 0);
  }
  EXPECT_EQ(workspace_of(params), 2u * 2 * 6 * 384 * sizeof(float));
}

TEST_F(AttentionBackwardTest, OnlyWhatIsWanted) {
  const struct {
    const char *present;  // q, k, v
    Names names;
  } rows[] = {
      {"q", {"bf16_prepare", "bf16_d64_queries_plain"}},
      {"k", {"bf16_prepare", "bf16_d64_keys_plain"}},
      {"v", {"bf16_prepare", "bf16_d64_keys_plain"}},
      {"kv", {"bf16_prepare", "bf16_d64_keys_plain"}},
      {"qv", {"bf16_prepare", "bf16_d64_keys_plain", "bf16_d64_queries_plain"}},
  };
  for (const auto &row : rows) {
    SCOPED_TRACE(row.present);
    BackwardParams params = valid_backward();
    const std::string present = row.present;
    // An absent tensor's other fields mean nothing.
    if (present.find('q') == std::string::npos) params.dq.rank = 0, params.dq.data = at(1);
    if (present.find('k') == std::string::npos) params.dk.rank = 0, params.dk.data = at(1);
    if (present.find('v') == std::string::npos) params.dv.rank = 0, params.dv.data = at(1);
    EXPECT_EQ(launched(params), row.names);
    EXPECT_EQ(kernarg(0).dq != nullptr, present.find('q') != std::string::npos);
    EXPECT_EQ(kernarg(0).dk != nullptr, present.find('k') != std::string::npos);
    EXPECT_EQ(kernarg(0).dv != nullptr, present.find('v') != std::string::npos);
  }
  BackwardParams params = valid_backward();
  params.dq = params.dk = params.dv = {};
  params.bias = fp32(kTerm, {1, 6, 300, 500});
  params.dbias = bf16(kDterm, {1, 6, 300, 500});
  EXPECT_EQ(launched(params), (Names{"bf16_prepare", "bf16_d64_bias_general"}));
  params.dbias = {};
  params.sinks = fp32(kTerm, {6});
  params.bias = {};
  params.dsinks = fp32(kDterm, {6});
  EXPECT_EQ(launched(params), (Names{"bf16_prepare", "sinks"}));
  EXPECT_EQ(launches_[1].grid[0], 6u);
  EXPECT_EQ(kernarg(1).dsinks, place(kDterm));
  EXPECT_EQ(kernarg(1).sinks, place(kTerm));
}

TEST_F(AttentionBackwardTest, FeaturesRunOnGeneralKernels) {
  BackwardParams params = valid_backward();
  params.bias = fp32(kTerm, {2, 1, 1, 500});
  params.dbias = fp32(kDterm, {2, 1, 1, 500});
  params.softcap = 2;
  EXPECT_EQ(launched(params), (Names{"bf16_prepare", "bf16_d64_keys_general",
                                     "bf16_d64_queries_general", "bf16_d64_bias_general"}));
  const BackwardKernarg k = kernarg(3);
  EXPECT_EQ(k.score_terms, 1u);
  EXPECT_EQ(k.bias_is_fp32, 1u);
  EXPECT_EQ(k.bias_stride_h, 0);
  EXPECT_EQ(k.dbias, place(kDterm));
  EXPECT_EQ(k.dbias_is_fp32, 1u);
  EXPECT_EQ(k.dbias_batches, 2);
  EXPECT_EQ(k.dbias_heads, 1);
  EXPECT_EQ(k.dbias_rows, 1);
  EXPECT_EQ(k.dbias_keys, 500);
  EXPECT_EQ(k.dbias_row_tiles, 1u);
  EXPECT_EQ(k.dbias_key_tiles, 4u);
  EXPECT_EQ(launches_[3].grid[0], 2u * 4);
}

TEST_F(AttentionBackwardTest, OneKernelForAllGradientsWhereOneFits) {
  const auto wide = [] {
    BackwardParams params = valid_backward();
    for (flydsl_aot_tensor *tensor : {&params.q, &params.out, &params.dout, &params.dq})
      *tensor = flydsl_aot::tensor(tensor->data, FLYDSL_AOT_BF16, {2, 6, 300, 128});
    for (flydsl_aot_tensor *tensor : {&params.k, &params.v, &params.dk, &params.dv})
      *tensor = flydsl_aot::tensor(tensor->data, FLYDSL_AOT_BF16, {2, 2, 500, 128});
    return params;
  };
  const Names together = {"bf16_prepare", "bf16_d128_fused_none", "bf16_convert"};
  const Names apart = {"bf16_prepare", "bf16_d128_keys_plain", "bf16_d128_queries_plain"};
  // Eight key blocks that meet 900 rows each: for 256 compute units two kernels have more work-groups.
  EXPECT_EQ(launched(wide()), apart);
  fake_->compute_units = 4;
  library_ = open(FLYDSL_AOT_DEVICE_HIP);
  EXPECT_EQ(launched(wide()), together);
  const BackwardKernarg k = kernarg(1);
  EXPECT_EQ(k.row_tiles, 2u);  // of 256 keys
  EXPECT_EQ(launches_[1].grid[0], 2u * 2 * 2);
  EXPECT_EQ(launches_[2].grid[0], 2u * 6 * 3);
  const uint64_t rows = 2 * 6 * 384;
  EXPECT_EQ(k.dq_accumulator, at(kWorkspace + 2 * rows * sizeof(float)));
  EXPECT_EQ(k.dq_accumulator_stride, 128);
  EXPECT_EQ(k.dq_counters, at(kWorkspace + (2 + 128) * rows * sizeof(float)));
  EXPECT_EQ(static_cast<uint64_t>(k.dq_counter_count), 16 + rows / 8);
  // `prepare` sets one counter to 0 for each of its work-items.
  EXPECT_LE(k.dq_counter_count, int64_t{launches_[0].grid[0]} * launches_[0].block[0]);
  EXPECT_EQ(workspace_of(wide()), ((2 + 128) * rows + 16 + rows / 8 + 31) / 32 * 128);

  BackwardParams params = wide();
  params.mask = flydsl_aot::causal(FLYDSL_AOT_ANCHOR_TOP_LEFT);
  EXPECT_EQ(launched(params)[1], "bf16_d128_fused_causal");

  // In a workspace that holds no more than what separate passes need, those run; in a smaller one nothing.
  params = wide();
  params.workspace = at(kWorkspace);
  params.workspace_bytes = 2 * rows * sizeof(float);
  EXPECT_EQ(launched(params), apart);
  --params.workspace_bytes;
  EXPECT_EQ(library_.attention_backward(params, nullptr).code(), FLYDSL_AOT_INVALID_WORKSPACE);
  EXPECT_NE(std::string(flydsl_aot_last_error()).find(std::to_string(workspace_of(wide()))),
            std::string::npos)
      << flydsl_aot_last_error();

  // What the user says, then tuning rows, come before what is thought to be faster.
  constexpr uint64_t kFused = 5;
  const struct {
    uint32_t compute_units;
    const char *tuned;
    const Names &expected;
  } rows_of_tables[] = {{4, "keys_plain", apart}, {256, "fused_none", together}};
  for (const auto &row : rows_of_tables) {
    archive::ArchiveSpec spec = backward_spec();
    const std::string kernel = std::string("backward_bf16_d128_") + row.tuned;
    spec.tuning = {{"attention_backward",
                    flydsl_aot_attention_backward_key(FLYDSL_AOT_BF16, 128, 128, 0, kFused, 1, 0),
                    {{kernel, 300, 500, 12, 256, 256, 1000, "model:x"}}}};
    write_bytes(archive_path_, build_or_die(spec));
    fake_->compute_units = row.compute_units;
    library_ = open(FLYDSL_AOT_DEVICE_HIP);
    EXPECT_EQ(launched(wide()), row.expected);
    for (const Names &forced : {together, apart}) {
      library_ = open(FLYDSL_AOT_DEVICE_HIP, ("backward_" + forced[1]).c_str());
      EXPECT_EQ(launched(wide()), forced);
    }
  }
  write_bytes(archive_path_, build_or_die(backward_spec()));
  fake_->compute_units = 4;
  library_ = open(FLYDSL_AOT_DEVICE_HIP);

  const struct {
    const char *name;
    void (*edit)(BackwardParams &);
    const char *keys;  // the kernel that takes its place
  } rows_apart[] = {
      {"alignment", [](BackwardParams &p) { p.dk.data = place(kDk, 8); }, "general"},
      {"no_dv", [](BackwardParams &p) { p.dv = {}; }, "plain"},
      {"window",
       [](BackwardParams &p) {
         p.mask = {5, 0, FLYDSL_AOT_ANCHOR_TOP_LEFT, 0};
       },
       "plain"},
      {"lengths", [](BackwardParams &p) { p.seqused_k = lengths(2); }, "plain"},
      {"scale", [](BackwardParams &p) { p.scale = 0; }, "plain"},
      {"large_scale", [](BackwardParams &p) { p.scale = 0x1p61f; }, "plain"},
      {"long_rows", [](BackwardParams &p) { p.q.strides[2] = 1 << 25; }, "plain"},
      {"softcap", [](BackwardParams &p) { p.softcap = 1; }, "general"},
  };
  for (const auto &row : rows_apart) {
    SCOPED_TRACE(row.name);
    params = wide();
    row.edit(params);
    const Names names = launched(params);
    ASSERT_GE(names.size(), 2u);
    EXPECT_EQ(names[1], std::string("bf16_d128_keys_") + row.keys);
    EXPECT_LT(workspace_of(params), workspace_of(wide()));
  }
  // Head dims of the class, not below it, are what it takes.
  params = wide();
  for (flydsl_aot_tensor *tensor : {&params.q, &params.k, &params.v, &params.out, &params.dout,
                                    &params.dq, &params.dk, &params.dv})
    tensor->sizes[3] = 120;
  EXPECT_EQ(launched(params), apart);
  params = wide();
  params.mask = {-1, 0, FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT, 0};
  for (flydsl_aot_tensor *tensor : {&params.k, &params.v, &params.dk, &params.dv})
    tensor->sizes[2] = 0;  // no keys: nothing but zeros in dq
  EXPECT_EQ(launched(params), (Names{"bf16_prepare", "bf16_d128_queries_plain"}));
}

TEST_F(AttentionBackwardTest, HeadDimClasses) {
  const struct {
    int64_t qk, v;
    const char *kernel;
  } rows[] = {{64, 64, "d64_keys_plain"},          {56, 40, "d64_keys_plain"},
              {63, 64, "d64_keys_general"},        {1, 1, "d32_keys_general"},
              {128, 104, "d128_keys_plain"},       {128, 96, "d128_keys_general"},
              {192, 128, "d192x128_keys_general"}, {192, 129, "d192_keys_general"},
              {161, 1, "d192x128_keys_general"},   {1, 256, "d256_keys_general"},
              {257, 1, "d512_keys_general"},       {512, 512, "d512_keys_general"},
              {513, 16, "d576x512_keys_general"},  {576, 512, "d576x512_keys_general"}};
  for (const auto &row : rows) {
    BackwardParams params = valid_backward();
    for (flydsl_aot_tensor *tensor : {&params.q, &params.k, &params.dk}) tensor->sizes[3] = row.qk;
    params.dq = {};
    for (flydsl_aot_tensor *tensor : {&params.v, &params.out, &params.dout, &params.dv})
      tensor->sizes[3] = row.v;
    for (flydsl_aot_tensor *tensor :
         {&params.q, &params.k, &params.v, &params.out, &params.dout, &params.dk, &params.dv})
      *tensor =
          flydsl_aot::tensor(tensor->data, FLYDSL_AOT_BF16, {tensor->sizes, tensor->sizes + 4});
    EXPECT_EQ(launched(params).back(), std::string("bf16_") + row.kernel) << row.qk << " " << row.v;
    EXPECT_EQ(kernarg(1).head_dim_qk, row.qk);
    EXPECT_EQ(kernarg(1).head_dim_v, row.v);
  }
}

// Gradients are written also where there is nothing to sum.
TEST_F(AttentionBackwardTest, EmptyInputs) {
  BackwardParams params = valid_backward();
  params.bias = fp32(kTerm, {2, 6, 1, 500});
  params.dbias = fp32(kDterm, {2, 6, 1, 500});
  for (flydsl_aot_tensor *tensor : {&params.q, &params.out, &params.dout, &params.dq, &params.lse})
    tensor->sizes[2] = 0, tensor->data = nullptr;
  params.workspace = nullptr;
  params.workspace_bytes = 0;
  EXPECT_EQ(launched(params), (Names{"bf16_d64_keys_general", "bf16_d64_bias_general"}));
  EXPECT_EQ(kernarg(0).seq_q, 0);

  params = valid_backward();
  params.sinks = fp32(kTerm, {6});
  params.dsinks = fp32(kDterm, {6});
  for (flydsl_aot_tensor *tensor : {&params.k, &params.v, &params.dk, &params.dv})
    tensor->sizes[2] = 0, tensor->data = nullptr;
  EXPECT_EQ(launched(params), (Names{"bf16_prepare", "bf16_d64_queries_general", "sinks"}));
  EXPECT_EQ(kernarg(0).seq_k, 0);

  // No sequences: nothing but what is summed over them.
  for (flydsl_aot_tensor *tensor : {&params.q, &params.k, &params.v, &params.out, &params.lse,
                                    &params.dout, &params.dq, &params.dk, &params.dv})
    tensor->sizes[0] = 0;
  EXPECT_EQ(launched(params), (Names{"sinks"}));
  EXPECT_EQ(kernarg(0).rows_stride, 0);
  params.sinks = params.dsinks = {};
  EXPECT_EQ(launched(params), Names{});
  EXPECT_EQ(workspace_of(params), 0u);
}

TEST_F(AttentionBackwardTest, PackedSequences) {
  BackwardParams params = valid_backward();
  pack_backward(params);
  EXPECT_EQ(launched(params),
            (Names{"bf16_prepare", "bf16_d64_keys_plain", "bf16_d64_queries_plain"}));
  const BackwardKernarg k = kernarg(1);
  // 600 rows rounded up to 128, two tiles more a sequence, and one.
  EXPECT_EQ(k.rows_stride, 640 + 2 * 256 + 128);
  EXPECT_EQ(k.row_delta, at(kWorkspace + 6 * static_cast<uint64_t>(k.rows_stride) * sizeof(float)));
  EXPECT_EQ(launches_[0].grid[0], 6u * 10);
  EXPECT_EQ(k.cu_seqlens_q, place(kNumbers));
  EXPECT_EQ(k.cu_seqlens_k, place(kNumbers, 64));
  EXPECT_EQ(k.total_q, 600);
  EXPECT_EQ(k.total_k, 900);
  EXPECT_EQ(k.q_stride_b, 0);
  EXPECT_EQ(k.q_stride_h, 600 * 64);
  EXPECT_EQ(k.lse_stride_h, 600);
  EXPECT_EQ(k.lse_stride_b, 0);
  // Each sequence begins at most one tile more than its rows or keys fill: 7 + 2 of 128 keys, 9 + 2 of 64 rows.
  EXPECT_EQ(k.row_tiles, 9u - 1);  // no more than two of the longest, 500 keys
  EXPECT_EQ(kernarg(2).row_tiles, 9u + 2);

  params.lse = fp32(kLse, {2, 6, 400});
  launched(params);
  EXPECT_EQ(kernarg(0).lse_is_padded, 1u);
  EXPECT_EQ(kernarg(0).lse_stride_b, 6 * 400);
  EXPECT_EQ(kernarg(0).lse_stride_h, 400);
}

TEST_F(AttentionBackwardTest, GradientsOfAnyStrides) {
  BackwardParams params = valid_backward();
  params.dout.strides[0] = params.dout.strides[1] = params.dout.strides[2] = 0;
  EXPECT_EQ(launched(params)[1], "bf16_d64_keys_plain");
  EXPECT_EQ(kernarg(1).dout, place(kDout));
  EXPECT_EQ(kernarg(1).dout_stride_s, 0);
  const uint64_t before = workspace_of(params);
  // All of it one number: copied, and read from the copy.
  params.dout.strides[3] = 0;
  params.dout.data = place(kDout, 2);
  EXPECT_EQ(launched(params)[1], "bf16_d64_keys_plain");
  const void *copy = at(kWorkspace + before);
  EXPECT_EQ(kernarg(0).dout, place(kDout, 2));
  EXPECT_EQ(kernarg(0).dout_stride_d, 0);
  EXPECT_EQ(kernarg(0).dout_copy, copy);
  EXPECT_EQ(kernarg(0).dout_copy_stride_b, 6 * 300 * 64);
  EXPECT_EQ(kernarg(0).dout_copy_stride_h, 300 * 64);
  EXPECT_EQ(kernarg(0).dout_copy_stride_s, 64);
  for (const size_t i : {1, 2}) {
    EXPECT_EQ(kernarg(i).dout, copy);
    EXPECT_EQ(kernarg(i).dout_stride_b, 6 * 300 * 64);
    EXPECT_EQ(kernarg(i).dout_stride_h, 300 * 64);
    EXPECT_EQ(kernarg(i).dout_stride_s, 64);
    EXPECT_EQ(kernarg(i).dout_stride_d, 1);
  }
  EXPECT_EQ(workspace_of(params), before + uint64_t{2} * 6 * 300 * 64 * 2);
  // (B, S, H, D) in memory.
  params = valid_backward();
  params.dq = flydsl_aot::tensor(place(kDq), FLYDSL_AOT_BF16, {2, 6, 300, 64},
                                 {300 * 6 * 64, 64, 6 * 64, 1});
  launched(params);
  EXPECT_EQ(kernarg(2).dq_stride_s, 6 * 64);
}

TEST_F(AttentionBackwardTest, Workspace) {
  BackwardParams params = valid_backward();
  const uint64_t needed = workspace_of(params);
  ASSERT_GT(needed, 0u);
  params.workspace_bytes = needed;
  EXPECT_EQ(launched(params).size(), 3u);
  const auto refused = [&](const char *part) {
    const int before = fake_->launches;
    const auto status = library_.attention_backward(params, nullptr);
    EXPECT_EQ(status.code(), FLYDSL_AOT_INVALID_WORKSPACE);
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("workspace"), std::string::npos) << status.message();
    EXPECT_EQ(fake_->launches, before);
    EXPECT_EQ(workspace_of(params), needed);  // a query does not look at it
    EXPECT_TRUE(library_.attention_backward_prefetch(params).ok());
  };
  params.workspace_bytes = needed - 1;
  refused(std::to_string(needed).c_str());
  params.workspace_bytes = needed;
  params.workspace = at(kWorkspace + 8);
  refused("16-byte aligned");
  params.workspace = nullptr;
  refused("NULL");
}

// What is loaded is not launched before all is.
TEST_F(AttentionBackwardTest, CaptureNeedsPrefetchOnce) {
  BackwardParams params = valid_backward();
  params.sinks = fp32(kTerm, {6});
  params.dsinks = fp32(kDterm, {6});
  void *stream = fake_stream(0, true);
  const auto status = library_.attention_backward(params, stream);
  EXPECT_EQ(status.code(), FLYDSL_AOT_CAPTURE_NEEDS_PREFETCH);
  EXPECT_NE(status.message().find("flydsl_aot_attention_backward_prefetch"), std::string::npos)
      << status.message();
  EXPECT_EQ(fake_->launches, 0);
  BackwardParams part = params;
  part.sinks = part.dsinks = {};
  ASSERT_TRUE(library_.attention_backward_prefetch(part).ok());
  EXPECT_EQ(library_.attention_backward(params, stream).code(), FLYDSL_AOT_CAPTURE_NEEDS_PREFETCH);
  EXPECT_EQ(fake_->launches, 0);
  ASSERT_TRUE(library_.attention_backward_prefetch(params).ok());
  EXPECT_EQ(launched(params, stream).size(), 4u);
}

TEST_F(AttentionBackwardTest, TheStreamsDevice) {
  const BackwardParams params = valid_backward();
  launched(params, fake_stream(1));
  for (const FakeHip::Launch &launch : launches_) EXPECT_EQ(launch.device, 1);
  EXPECT_EQ(fake_->current_device(), 0);
}

TEST_F(AttentionBackwardTest, RuntimeErrorsAreReportedAndCleared) {
  fake_->launch_error = 719;
  const auto status = library_.attention_backward(valid_backward(), nullptr);
  EXPECT_EQ(status.code(), FLYDSL_AOT_DEVICE_LOST);
  EXPECT_NE(status.message().find("bf16_prepare"), std::string::npos) << status.message();
  EXPECT_EQ(fake_->peek_at_last_error(), 0);
  EXPECT_EQ(fake_->launches, 0);
}

TEST_F(AttentionBackwardTest, QueryNeedsNoDevice) {
  const flydsl_aot::Library library = open(FLYDSL_AOT_DEVICE_NONE);
  BackwardParams params = valid_backward();
  const uint64_t with_pointers = workspace_of(params);
  for (flydsl_aot_tensor *tensor : {&params.q, &params.k, &params.v, &params.out, &params.lse,
                                    &params.dout, &params.dq, &params.dk, &params.dv})
    tensor->data = nullptr;
  params.workspace = nullptr;
  params.workspace_bytes = 0;
  flydsl_aot_query_result result;
  ASSERT_TRUE(library.attention_backward_query(params, &result).ok());
  EXPECT_STREQ(result.kernel, "backward_bf16_d64_keys_plain");
  EXPECT_STREQ(result.backend, "native");
  EXPECT_EQ(result.workspace_bytes, with_pointers);
  EXPECT_EQ(library.attention_backward_prefetch(params).code(), FLYDSL_AOT_NO_DEVICE);
  EXPECT_EQ(library.attention_backward(valid_backward(), nullptr).code(), FLYDSL_AOT_NO_DEVICE);
  params.dk = params.dv = {};
  ASSERT_TRUE(library.attention_backward_query(params, &result).ok());
  EXPECT_STREQ(result.kernel, "backward_bf16_d64_queries_plain");
}

TEST_F(AttentionBackwardTest, ExplainListsCandidatesOfEveryPass) {
  BackwardParams params = valid_backward();
  params.k.data = place(kK, 2);
  std::vector<flydsl_aot::Candidate> candidates;
  ASSERT_TRUE(library_.attention_backward_explain(params, &candidates).ok());
  const struct {
    const char *kernel;
    bool taken;
  } expected[] = {{"backward_bf16_prepare", true},
                  {"backward_bf16_d64_keys_plain", false},
                  {"backward_bf16_d64_keys_general", true},
                  {"backward_bf16_d64_queries_plain", false},
                  {"backward_bf16_d64_queries_general", true}};
  ASSERT_EQ(candidates.size(), std::size(expected));
  for (size_t i = 0; i < candidates.size(); ++i) {
    EXPECT_EQ(candidates[i].kernel, expected[i].kernel);
    EXPECT_EQ(candidates[i].taken, expected[i].taken) << candidates[i].kernel;
    EXPECT_FALSE(candidates[i].reason.empty());
  }
  // One for all gradients that does not fit comes before those that take its place. (Of few compute units it is the faster one.)
  fake_->compute_units = 4;
  library_ = open(FLYDSL_AOT_DEVICE_HIP);
  for (flydsl_aot_tensor *tensor : {&params.q, &params.out, &params.dout, &params.dq})
    *tensor = flydsl_aot::tensor(tensor->data, FLYDSL_AOT_BF16, {2, 6, 300, 128});
  for (flydsl_aot_tensor *tensor : {&params.k, &params.v, &params.dk, &params.dv})
    *tensor = flydsl_aot::tensor(tensor->data, FLYDSL_AOT_BF16, {2, 2, 500, 128});
  candidates.clear();
  ASSERT_TRUE(library_.attention_backward_explain(params, &candidates).ok());
  ASSERT_EQ(candidates.size(), 6u);
  EXPECT_EQ(candidates[0].kernel, "backward_bf16_d128_fused_none");
  EXPECT_FALSE(candidates[0].taken);
  EXPECT_NE(candidates[0].reason.find("16 bytes"), std::string::npos) << candidates[0].reason;
  params.k.data = place(kK);
  candidates.clear();
  ASSERT_TRUE(library_.attention_backward_explain(params, &candidates).ok());
  ASSERT_EQ(candidates.size(), 7u);
  EXPECT_EQ(candidates[1].kernel, "backward_bf16_d128_fused_none");
  EXPECT_TRUE(candidates[1].taken);
  EXPECT_EQ(candidates[2].kernel, "backward_bf16_convert");
  // Those that could take its place.
  for (size_t i = 3; i < candidates.size(); ++i) {
    EXPECT_FALSE(candidates[i].taken);
    EXPECT_TRUE(candidates[i].fits);
    EXPECT_EQ(candidates[i].reason, "one kernel computes dq, dk and dv") << candidates[i].kernel;
  }
  EXPECT_TRUE(candidates[3].main);
  EXPECT_FALSE(candidates[6].main);
  // Of many compute units it is not: it comes last.
  fake_->compute_units = 256;
  library_ = open(FLYDSL_AOT_DEVICE_HIP);
  candidates.clear();
  ASSERT_TRUE(library_.attention_backward_explain(params, &candidates).ok());
  ASSERT_EQ(candidates.size(), 6u);
  EXPECT_TRUE(candidates[1].taken);
  EXPECT_EQ(candidates[5].kernel, "backward_bf16_d128_fused_none");
  EXPECT_TRUE(candidates[5].fits);
  EXPECT_EQ(candidates[5].reason, "several kernels compute dq, dk and dv");
}

TEST_F(AttentionBackwardTest, NoKernel) {
  archive::ArchiveSpec spec = backward_spec();
  std::erase_if(spec.selection, [](const archive::SelectionSpec &row) {
    return row.candidates[0].kernel == "backward_bf16_d64_queries_plain" ||
           row.candidates[0].kernel == "backward_bf16_d64_queries_general";
  });
  std::erase_if(spec.kernels, [](const archive::KernelSpec &kernel) {
    return kernel.name.find("bf16_d64_queries") != std::string::npos;
  });
  write_bytes(archive_path_, build_or_die(spec));
  library_ = open(FLYDSL_AOT_DEVICE_HIP);
  BackwardParams params = valid_backward();
  EXPECT_EQ(library_.attention_backward(params, nullptr).code(), FLYDSL_AOT_NO_KERNEL);
  flydsl_aot_query_result result;
  EXPECT_EQ(library_.attention_backward_query(params, &result).code(), FLYDSL_AOT_NO_KERNEL);
  EXPECT_EQ(fake_->launches, 0);
  params.dq = {};
  EXPECT_EQ(launched(params), (Names{"bf16_prepare", "bf16_d64_keys_plain"}));
}

}  // namespace
}  // namespace flydsl::test
