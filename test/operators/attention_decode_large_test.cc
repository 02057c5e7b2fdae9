// attention_decode where offsets pass 2^31 and 2^32, in elements and in bytes.
#include <gtest/gtest.h>

#include <cmath>

#include "test/support/attention_decode_case.h"
#include "test/support/far_tensor.h"
#include "test/support/library.h"
#include "tools/verify/float16.h"

namespace flydsl::test {
namespace {

// Calls with a workspace of the size that the query gave.
void decode(flydsl_aot_attention_decode_params *params) {
  flydsl_aot_query_result query{};
  query.struct_size = sizeof query;
  ASSERT_EQ(flydsl_aot_attention_decode_query(emulator(), params, &query), FLYDSL_AOT_OK);
  const DeviceTensor workspace(emulator(), FLYDSL_AOT_BOOL,
                               {static_cast<int64_t>(query.workspace_bytes)}, {}, 0xff);
  params->workspace = workspace.tensor().data;
  params->workspace_bytes = query.workspace_bytes;
  ASSERT_EQ(flydsl_aot_attention_decode(emulator(), params, nullptr), FLYDSL_AOT_OK)
      << flydsl_aot_last_error();
  ASSERT_EQ(flydsl_aot_device_synchronize(emulator()), FLYDSL_AOT_OK) << flydsl_aot_last_error();
}

// Dao-AILab/flash-attention#2214, #1500, ROCm/triton#830: offsets of 32 bits that wrap.
TEST(AttentionDecodeLarge, flash_attention_2214_offsets_past_32_bits) {
  constexpr int64_t kDims[][2] = {{64, 64},   {128, 128}, {192, 128},
                                  {256, 256}, {96, 80},   {576, 512}};
  for (const auto &[head_dim, value_dim] : kDims) {
    AttentionCase c;
    c.batches = 2;
    c.heads_q = 4;
    c.heads_kv = 2;
    c.seq_q = 3;
    c.seq_k = 70;
    c.head_dim = head_dim;
    c.head_dim_v = value_dim;
    c.mask = causal_bottom_right();
    c.want_lse = false;
    Random random(test_seed(131));
    c.fill_random(random);
    const AttentionResult compact = check_decode(c);
    for (int axis = 0; axis < 3; ++axis) {
      FarTensor q({2, 4, 3, head_dim}, axis), k({2, 2, 70, head_dim}, axis),
          v({2, 2, 70, value_dim}, axis), out({2, 4, 3, value_dim}, axis);
      q.set(c.q);
      k.set(c.k);
      v.set(c.v);
      flydsl_aot_attention_decode_params params{};
      params.struct_size = sizeof params;
      params.scale = c.scale;
      params.q = q.tensor();
      params.k = k.tensor();
      params.v = v.tensor();
      params.out = out.tensor();
      params.mask = c.mask;
      decode(&params);
      EXPECT_EQ(out.get(), compact.out) << "D " << head_dim << ", axis " << axis;
    }
  }
}

// ROCm/aiter#2517, #2608: a pool of 4,301,434,368 elements, read at its start and at its end; V holds its place, so
// that a wrong page shows.
class AttentionDecodePool : public ::testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(BlockSizes, AttentionDecodePool, ::testing::Values(1, 16, 64, 128),
                         [](const auto &info) { return std::to_string(info.param); });

TEST_P(AttentionDecodePool, aiter_2517_pool_above_4_gib) {
  constexpr int64_t kSlots = 8401239, kHeads = 8, kDim = 64, kSequences = 4, kLongest = 128;
  const int64_t page_size = GetParam(), pages = (kSlots + page_size - 1) / page_size,
                pages_of_sequence = kLongest / page_size;
  FarPool k(pages, kHeads, page_size, kDim), v(pages, kHeads, page_size, kDim);
  DeviceTensor q(emulator(), FLYDSL_AOT_BF16, {kSequences, 16, 1, kDim}, {}, 0);
  DeviceTensor out(emulator(), FLYDSL_AOT_BF16, {kSequences, 16, 1, kDim}, {}, 0xabababab);
  DeviceTensor table(emulator(), FLYDSL_AOT_INT32, {kSequences, pages_of_sequence}, {}, 0);
  DeviceTensor used(emulator(), FLYDSL_AOT_INT32, {kSequences}, {}, 0);
  const std::vector<int32_t> lengths = {128, 1, 100, 37};
  used.set(lengths);
  flydsl_aot_attention_decode_params params{};
  params.struct_size = sizeof params;
  params.scale = 1;
  params.q = q.tensor();
  params.out = out.tensor();
  params.k = k.tensor();
  params.v = v.tensor();
  params.mask = no_mask();
  params.block_table = table.tensor();
  params.seqused_k = used.tensor();
  std::vector<uint16_t> keys, values;
  for (int64_t slot = 0; slot < kSequences * kLongest; ++slot) {
    keys.push_back(float_to_bf16(1));
    values.push_back(float_to_bf16(static_cast<float>(slot % kLongest) / kLongest));
  }
  for (const int64_t first : {16435 / page_size, pages - kSequences * pages_of_sequence}) {
    std::vector<int32_t> numbers;
    for (int64_t n = 0; n < kSequences * pages_of_sequence; ++n)
      numbers.push_back(static_cast<int32_t>(first + n));
    table.set(numbers);
    k.fill(first, keys);
    v.fill(first, values);
    decode(&params);
    const std::vector<uint16_t> result = out.get<uint16_t>();
    for (size_t n = 0; n < result.size(); ++n) {
      const float mean = static_cast<float>(lengths[n / kDim / 16] - 1) / 256;
      ASSERT_NEAR(bf16_to_float(result[n]), mean, mean / 256) << n;
    }
  }
}

}  // namespace
}  // namespace flydsl::test
