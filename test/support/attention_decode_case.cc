#include "test/support/attention_decode_case.h"

#include <gtest/gtest.h>

#include "test/support/library.h"

namespace flydsl::test {
namespace {

constexpr uint32_t kPoison = 0xabababab;

// A dense tensor of these numbers, which is absent if there are none.
template <typename Number>
struct Optional {
  bool wanted;
  DeviceTensor tensor;
  Optional(flydsl_aot_dtype dtype, const std::vector<int64_t> &sizes,
           const std::vector<Number> &values)
      : wanted(!values.empty()),
        tensor(emulator(), dtype, wanted ? sizes : std::vector<int64_t>(sizes.size(), 0), {},
               kPoison) {
    if (wanted) tensor.set(values);
  }
  flydsl_aot_tensor view() const { return wanted ? tensor.tensor() : flydsl_aot_tensor{}; }
};

}  // namespace

AttentionResult run_decode(const AttentionCase &c) {
  flydsl_aot_handle *handle = emulator();
  const int64_t value_dim = c.value_dim();
  const bool paged = c.lengths_k_as == Lengths::kPaged;
  const Paging paging = paged ? paging_of(c.lengths_k, c.seq_k, c.block_size, 1) : Paging{};
  const auto key_sizes = [&](int64_t channels) {
    return paged ? std::vector<int64_t>{paging.blocks, c.heads_kv, paging.block_size, channels}
                 : std::vector<int64_t>{c.batches, c.heads_kv, c.seq_k, channels};
  };
  const auto placed = [&](const std::vector<uint16_t> &dense, int64_t channels) {
    return paged ? page(paging, c.lengths_k, dense, c.heads_kv, c.seq_k, channels, c.input_poison)
                 : dense;
  };
  DeviceTensor q(handle, c.dtype, {c.batches, c.heads_q, c.seq_q, c.head_dim}, c.place_q,
                 c.input_poison);
  DeviceTensor k(handle, c.dtype, key_sizes(c.head_dim), c.place_k, c.input_poison);
  DeviceTensor v(handle, c.dtype, key_sizes(value_dim), c.place_v, c.input_poison);
  DeviceTensor out(handle, c.dtype, {c.batches, c.heads_q, c.seq_q, value_dim}, c.place_out,
                   kPoison);
  DeviceTensor lse(handle, FLYDSL_AOT_FP32, {c.batches, c.heads_q, c.seq_q}, c.place_lse, kPoison);
  q.set(c.q);
  k.set(placed(c.k, c.head_dim));
  v.set(placed(c.v, value_dim));
  const Optional<int32_t> lengths(
      FLYDSL_AOT_INT32, {c.batches},
      c.lengths_k_as == Lengths::kDense
          ? std::vector<int32_t>()
          : std::vector<int32_t>(c.lengths_k.begin(), c.lengths_k.end()));
  const Optional<int32_t> table(FLYDSL_AOT_INT32, {c.batches, paging.blocks_of_sequence},
                                paging.block_table);
  const bool per_head = c.alibi_slopes.size() == static_cast<size_t>(c.heads_q);
  const Optional<float> slopes(
      FLYDSL_AOT_FP32,
      per_head ? std::vector<int64_t>{c.heads_q} : std::vector<int64_t>{c.batches, c.heads_q},
      c.alibi_slopes);
  const Optional<float> sinks(FLYDSL_AOT_FP32, {c.heads_q}, c.sinks);

  flydsl_aot_attention_decode_params params{};
  params.struct_size = sizeof params;
  params.scale = c.scale;
  params.q = q.tensor();
  params.k = k.tensor();
  params.v = v.tensor();
  params.out = out.tensor();
  if (c.want_lse) params.lse = lse.tensor();
  params.mask = c.mask;
  params.seqused_k = lengths.view();
  params.block_table = table.view();
  if (paged && c.seq_k % 2 == 0) params.max_seqlen_k = c.seq_k;
  params.softcap = c.softcap;
  params.alibi_slopes = slopes.view();
  params.sinks = sinks.view();

  AttentionResult result;
  flydsl_aot_query_result query{};
  query.struct_size = sizeof query;
  const flydsl_aot_status query_status = flydsl_aot_attention_decode_query(handle, &params, &query);
  result.kernel = query.kernel;
  DeviceTensor workspace(handle, FLYDSL_AOT_FP32,
                         {static_cast<int64_t>(query.workspace_bytes / sizeof(float))},
                         {{}, {}, {}, 16, 16}, 0xffffffff);
  if (query.workspace_bytes > 0) params.workspace = workspace.tensor().data;
  params.workspace_bytes = query.workspace_bytes;
  result.status = flydsl_aot_attention_decode(handle, &params, nullptr);
  if (result.status != FLYDSL_AOT_OK) result.message = flydsl_aot_last_error();
  EXPECT_EQ(result.status, query_status) << query.reason << result.message;
  EXPECT_EQ(flydsl_aot_device_synchronize(handle), FLYDSL_AOT_OK)
      << describe(c) << flydsl_aot_last_error();

  result.out = out.get<uint16_t>();
  result.lse = lse.get<float>();
  workspace.get<float>();
  EXPECT_EQ(out.changed_outside() + lse.changed_outside() + workspace.changed_outside(), "")
      << describe(c);
  if (!c.want_lse) {
    EXPECT_TRUE(lse.untouched()) << describe(c);
    result.lse.clear();
  }
  for (DeviceTensor *input : {&q, &k, &v}) {
    input->get<uint16_t>();
    EXPECT_TRUE(input->untouched()) << describe(c);
  }
  return result;
}

AttentionResult check_decode(const AttentionCase &c) {
  const AttentionResult result = run_decode(c);
  EXPECT_EQ(result.status, FLYDSL_AOT_OK) << describe(c) << result.message;
  if (result.status != FLYDSL_AOT_OK) return result;
  const AttentionReference reference = reference_of(c);
  const Judgement out = judge_out(c.dtype, result.out, reference, c.value_dim());
  EXPECT_TRUE(out.ok) << describe(c) << "\n" << out.text;
  if (c.want_lse) {
    const Judgement lse = judge_lse(result.lse, reference);
    EXPECT_TRUE(lse.ok) << describe(c) << "\n" << lse.text;
  }
  return result;
}

}  // namespace flydsl::test
