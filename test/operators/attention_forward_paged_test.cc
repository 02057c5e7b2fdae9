// Paged keys and values: every block size, scattered blocks, both pool layouts, together with packed
// queries, masks and the other features; against the float64 oracle, and bit for bit against dense keys.
#include <gtest/gtest.h>

#include <cmath>

#include "test/support/attention_forward_case.h"
#include "test/support/library.h"
#include "tools/verify/float16.h"

namespace flydsl::test {
namespace {

class AttentionForwardPaged : public ::testing::TestWithParam<int64_t> {
 protected:
  const uint64_t seed_ = test_seed(111);
  ::testing::ScopedTrace trace_{__FILE__, __LINE__, "FLYDSL_TEST_SEED=" + std::to_string(seed_)};
  Random random_{seed_ + static_cast<uint64_t>(GetParam())};

  // A batch that mixes decode, chunked prefill and a first prefill.
  AttentionCase random_case() {
    AttentionCase c;
    c.dtype = random_.chance(0.5) ? FLYDSL_AOT_BF16 : FLYDSL_AOT_FP16;
    constexpr int64_t kDims[] = {64, 128, 72, 192};
    c.head_dim = kDims[random_.below(4)];
    c.head_dim_v = c.head_dim == 192 ? 128 : c.head_dim;
    c.batches = 4;
    c.heads_kv = random_.between(1, 2);
    c.heads_q = c.heads_kv * random_.between(1, 3);
    c.seq_q = 70;
    c.seq_k = random_.between(290, 300);
    c.lengths_q = {1, 0, random_.between(2, 70), 40};
    c.lengths_k = {random_.between(1, 290), 30, random_.between(100, 290), 40};
    c.lengths_q_as = random_.chance(0.7) ? Lengths::kPacked : Lengths::kUsed;
    c.lengths_k_as = Lengths::kPaged;
    c.block_size = GetParam();
    const flydsl_aot_mask masks[] = {no_mask(),
                                     causal_bottom_right(),
                                     causal_bottom_right(),
                                     {50, 0, FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT, 0}};
    c.mask = masks[random_.below(4)];
    // (blocks, block size, heads, D) in memory, as most engines have it.
    if (random_.chance(0.5)) c.place_k.order = c.place_v.order = {0, 2, 1, 3};
    c.fill_random(random_);
    return c;
  }
};

INSTANTIATE_TEST_SUITE_P(BlockSizes, AttentionForwardPaged,
                         ::testing::Values(1, 2, 16, 32, 64, 128, 256, 512),
                         [](const auto &info) { return std::to_string(info.param); });

TEST_P(AttentionForwardPaged, AgainstFloat64AndDense) {
  for (int i = 0; i < 4; ++i) {
    AttentionCase c = random_case();
    const AttentionResult paged = check_attention(c);
    EXPECT_EQ(paged.kernel, instance_name(c, false)) << describe(c);
    c.lengths_k_as = Lengths::kUsed;
    const AttentionResult dense = check_attention(c);
    if (dense.kernel == paged.kernel) {
      EXPECT_TRUE(same_bits(paged, dense)) << describe(c);
    }
  }
}

TEST_P(AttentionForwardPaged, WithOtherFeatures) {
  AttentionCase c = random_case();
  c.seq_k = 296;  // even: told to the library as max_seqlen_k, which the bias then must have
  c.fill_random(random_);
  for (int64_t n = 0; n < c.score_count(); ++n) c.bias.push_back(random_.normal());
  c.sinks.assign(static_cast<size_t>(c.heads_q), -0.5f);
  c.softcap = 20;
  c.dropout_p = 0.2f;
  c.seed = random_.bits();
  check_attention(c);
}

// ROCm/aiter#2517 and others, at a small size: keys of every block size give what the gathered ones
// give; here V holds its own place, so that a wrong block shows.
TEST_P(AttentionForwardPaged, aiter_2517_every_key_is_found) {
  AttentionCase c;
  c.batches = 2;
  c.seq_q = c.seq_k = 256;
  c.lengths_k = {256, 129};
  c.lengths_k_as = Lengths::kPaged;
  c.block_size = GetParam();
  c.mask = causal_top_left();
  c.fill_q([](int64_t, int64_t, int64_t, int64_t) { return 0.0f; });
  c.fill_k([](int64_t, int64_t, int64_t, int64_t) { return 1.0f; });
  c.fill_v([](int64_t, int64_t, int64_t j, int64_t) { return static_cast<float>(j % 128) / 128; });
  const AttentionResult result = check_attention(c);
  for (int64_t i = 0; i < 128; ++i) {
    EXPECT_NEAR(bf16_to_float(result.out[static_cast<size_t>(i * 64)]), static_cast<float>(i) / 256,
                0.001f);
  }
}

// ROCm/aiter#2517: a pool of 4,301,434,368 elements, page size 1, read at its start and at its end. Only
// the pages in use are ever written or read.
TEST(AttentionForwardPagedPool, aiter_2517_pool_above_4_gib) {
  flydsl_aot_handle *handle = emulator();
  constexpr int64_t kPages = 8401239, kHeads = 8, kDim = 64, kPageBytes = kHeads * kDim * 2;
  void *pools[2] = {};
  for (void *&pool : pools) {
    ASSERT_EQ(flydsl_aot_device_malloc(handle, kPages * kPageBytes, &pool), FLYDSL_AOT_OK)
        << flydsl_aot_last_error();
  }
  DeviceTensor q(handle, FLYDSL_AOT_BF16, {4, 16, 128, kDim}, {}, 0);
  DeviceTensor out(handle, FLYDSL_AOT_BF16, {4, 16, 128, kDim}, {}, 0xabababab);
  DeviceTensor table(handle, FLYDSL_AOT_INT32, {4, 128}, {}, 0);
  DeviceTensor used(handle, FLYDSL_AOT_INT32, {4}, {}, 0);
  used.set(std::vector<int32_t>(4, 128));
  flydsl_aot_attention_forward_params params{};
  params.struct_size = sizeof params;
  params.scale = 1;
  params.q = q.tensor();
  params.out = out.tensor();
  params.k = {
      pools[0], FLYDSL_AOT_BF16, 4, {kPages, kHeads, 1, kDim}, {kHeads * kDim, kDim, kDim, 1}};
  params.v = params.k;
  params.v.data = pools[1];
  params.mask = causal_top_left();
  params.block_table = table.tensor();
  params.seqused_k = used.tensor();
  std::vector<uint16_t> first;
  for (const int64_t first_page : {int64_t{16435}, kPages - 512}) {
    std::vector<int32_t> numbers;
    std::vector<uint16_t> keys(512 * kHeads * kDim, 0x3f80), values;
    for (int64_t slot = 0; slot < 512; ++slot) {
      numbers.push_back(static_cast<int32_t>(first_page + slot));
      values.insert(values.end(), kHeads * kDim,
                    float_to_bf16(static_cast<float>(slot % 128) / 128));
    }
    table.set(numbers);
    const auto upload = [&](void *pool, const std::vector<uint16_t> &data) {
      ASSERT_EQ(
          flydsl_aot_device_upload(handle, static_cast<char *>(pool) + first_page * kPageBytes,
                                   data.data(), data.size() * 2),
          FLYDSL_AOT_OK);
    };
    upload(pools[0], keys);
    upload(pools[1], values);
    ASSERT_EQ(flydsl_aot_attention_forward(handle, &params, nullptr), FLYDSL_AOT_OK)
        << flydsl_aot_last_error();
    const std::vector<uint16_t> result = out.get<uint16_t>();
    for (size_t i = 0; i < result.size(); ++i) {
      const float expected = static_cast<float>(i / kDim % 128) / 256;
      ASSERT_NEAR(bf16_to_float(result[i]), expected, expected / 256) << i;
    }
    if (first.empty()) first = result;
    EXPECT_EQ(result, first);
  }
  for (void *pool : pools) flydsl_aot_device_free(handle, pool);
}

// Numbers of blocks that do not exist: nothing outside the pool is read (the emulator stops there).
TEST(AttentionForwardPagedTable, BadBlockNumbersTouchNoOtherMemory) {
  flydsl_aot_handle *handle = emulator();
  DeviceTensor q(handle, FLYDSL_AOT_BF16, {2, 1, 20, 64}, {}, 0x3f80);
  DeviceTensor k(handle, FLYDSL_AOT_BF16, {5, 1, 16, 64}, {}, 0x3f80);
  DeviceTensor out(handle, FLYDSL_AOT_BF16, {2, 1, 20, 64}, {}, 0xabababab);
  DeviceTensor table(handle, FLYDSL_AOT_INT32, {2, 4}, {}, 0);
  DeviceTensor used(handle, FLYDSL_AOT_INT32, {2}, {}, 0);
  table.set(std::vector<int32_t>{5, -1, 2147483647, -2147483647, 0, 4, 1, 6});
  flydsl_aot_attention_forward_params params{};
  params.struct_size = sizeof params;
  params.scale = 1;
  params.q = q.tensor();
  params.k = params.v = k.tensor();
  params.out = out.tensor();
  params.mask = no_mask();
  params.block_table = table.tensor();
  params.seqused_k = used.tensor();
  for (const int32_t length : {64, 63, 2147483647, -1}) {
    used.set(std::vector<int32_t>{length, length});
    EXPECT_EQ(flydsl_aot_attention_forward(handle, &params, nullptr), FLYDSL_AOT_OK)
        << flydsl_aot_last_error();
    EXPECT_EQ(flydsl_aot_device_synchronize(handle), FLYDSL_AOT_OK) << flydsl_aot_last_error();
    const uint16_t expected = length > 0 ? 0x3f80 : 0;
    for (const uint16_t bits : out.get<uint16_t>()) ASSERT_EQ(bits, expected);
  }
}

}  // namespace
}  // namespace flydsl::test
