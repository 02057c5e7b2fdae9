// Sequences of different lengths: cu_seqlens, seqused and both, on either side, against the float64
// oracle sequence by sequence. Unused rows hold NaN in the inputs and must keep their poison in the
// outputs.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "test/support/attention_forward_case.h"
#include "test/support/library.h"
#include "tools/verify/float16.h"

namespace flydsl::test {
namespace {

constexpr Lengths kWays[] = {Lengths::kDense, Lengths::kUsed, Lengths::kPacked,
                             Lengths::kPackedUsed};

// Fills the inputs, with NaN in rows past a sequence's length.
void fill(AttentionCase &c, Random &random) {
  c.fill_random(random);
  const uint16_t nan = from_float(c.dtype, NAN);
  const auto spoil = [&](std::vector<uint16_t> &values, const std::vector<int64_t> &lengths,
                         Lengths as, int64_t heads, int64_t positions, int64_t channels) {
    if (as == Lengths::kDense) return;
    for (int64_t b = 0; b < c.batches; ++b) {
      for (int64_t h = 0; h < heads; ++h) {
        const auto head = values.begin() + (b * heads + h) * positions * channels;
        std::fill(head + lengths[static_cast<size_t>(b)] * channels, head + positions * channels,
                  nan);
      }
    }
  };
  spoil(c.q, c.lengths_q, c.lengths_q_as, c.heads_q, c.seq_q, c.head_dim);
  spoil(c.k, c.lengths_k, c.lengths_k_as, c.heads_kv, c.seq_k, c.head_dim);
  spoil(c.v, c.lengths_k, c.lengths_k_as, c.heads_kv, c.seq_k, c.value_dim());
}

TEST(AttentionForwardLengths, EveryWayOnEitherSide) {
  const uint64_t seed = test_seed(81);
  SCOPED_TRACE("FLYDSL_TEST_SEED=" + std::to_string(seed));
  Random random(seed);
  const flydsl_aot_mask masks[] = {no_mask(),
                                   causal_top_left(),
                                   causal_bottom_right(),
                                   {20, 3, FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT, 0}};
  for (const Lengths as_q : kWays) {
    for (const Lengths as_k : kWays) {
      for (const flydsl_aot_mask &mask : masks) {
        AttentionCase c;
        c.dtype = random.chance(0.5) ? FLYDSL_AOT_BF16 : FLYDSL_AOT_FP16;
        constexpr int64_t kDims[] = {64, 64, 128, 24};
        c.head_dim = kDims[random.below(4)];
        c.batches = 4;
        c.heads_kv = random.between(1, 2);
        c.heads_q = c.heads_kv * random.between(1, 2);
        c.seq_q = 150;
        c.seq_k = 140;
        c.lengths_q_as = as_q;
        c.lengths_k_as = as_k;
        c.lengths_q = {random.between(1, 150), 0, random.between(1, 40), 150};
        c.lengths_k = {random.between(1, 140), 70, 0, random.between(1, 140)};
        c.mask = mask;
        // (total, H, D) in memory, or (B, S, H, D).
        if (random.chance(0.5)) {
          for (Placement *place : {&c.place_q, &c.place_out}) {
            place->order = as_q == Lengths::kPacked || as_q == Lengths::kPackedUsed
                               ? std::vector<int>{1, 0, 2}
                               : std::vector<int>{0, 2, 1, 3};
          }
        }
        fill(c, random);
        const bool staged = random.chance(0.4);
        if (staged) c.place_v.offset_elements = random.between(1, 7);
        EXPECT_EQ(check_attention(c).kernel, instance_name(c, staged)) << describe(c);
      }
    }
  }
}

// Dao-AILab/flash-attention#2562 and others: sequences without queries, without keys, and a batch in
// which all are empty.
TEST(AttentionForwardLengths, flash_attention_2562_empty_sequences) {
  AttentionCase c;
  c.batches = 4;
  c.heads_q = 4;
  c.head_dim = 256;
  c.seq_q = 121;
  c.seq_k = 254;
  c.lengths_q = {0, 121, 84, 0};
  c.lengths_k = {254, 174, 0, 101};
  c.lengths_q_as = c.lengths_k_as = Lengths::kPacked;
  Random random(test_seed(82));
  c.fill_q([](int64_t, int64_t, int64_t, int64_t) { return 0.0f; });
  c.fill_k([](int64_t, int64_t, int64_t, int64_t) { return 0.0f; });
  c.fill_v([](int64_t, int64_t, int64_t, int64_t) { return 1.0f; });
  const AttentionResult result = check_attention(c);
  const auto row = [&](int64_t b, int64_t i) {
    return to_float(c.dtype, result.out[static_cast<size_t>((b * 4 * 121 + i) * 256)]);
  };
  for (int64_t i = 0; i < 121; ++i) EXPECT_EQ(row(1, i), 1.0f);
  for (int64_t i = 0; i < 84; ++i) EXPECT_EQ(row(2, i), 0.0f);
  c.lengths_q = {0, 0, 0, 0};
  check_attention(c);
  c.lengths_k = {0, 0, 0, 0};
  check_attention(c);
}

// Lengths that do not fit the tensors: nothing outside them is touched (the emulator stops at the
// first byte past an allocation), and the next call is right.
TEST(AttentionForwardLengths, BadNumbersTouchNoOtherMemory) {
  flydsl_aot_handle *handle = emulator();
  DeviceTensor q(handle, FLYDSL_AOT_BF16, {1, 100, 64}, {}, 0x3f80);
  DeviceTensor k(handle, FLYDSL_AOT_BF16, {1, 90, 64}, {}, 0x3f80);
  DeviceTensor out(handle, FLYDSL_AOT_BF16, {1, 100, 64}, {}, 0xabababab);
  DeviceTensor starts(handle, FLYDSL_AOT_INT32, {4}, {}, 0);
  DeviceTensor used(handle, FLYDSL_AOT_INT32, {3}, {}, 0);
  flydsl_aot_attention_forward_params params{};
  params.struct_size = sizeof params;
  params.scale = 1;
  params.q = q.tensor();
  params.k = params.v = k.tensor();
  params.out = out.tensor();
  params.mask = no_mask();
  params.cu_seqlens_q = params.cu_seqlens_k = starts.tensor();
  params.seqused_k = used.tensor();
  params.max_seqlen_q = params.max_seqlen_k = 1000;
  for (const std::vector<int32_t> &numbers :
       std::vector<std::vector<int32_t>>{{0, 101, 2000000000, 2147483647},
                                         {-2147483647, -5, 3, 95},
                                         {50, 40, 30, 20},
                                         {90, 95, 99, 100}}) {
    for (const int32_t length : {-1, 0, 7, 2147483647}) {
      starts.set(numbers);
      used.set(std::vector<int32_t>{length, length, length});
      EXPECT_EQ(flydsl_aot_attention_forward(handle, &params, nullptr), FLYDSL_AOT_OK)
          << flydsl_aot_last_error();
      EXPECT_EQ(flydsl_aot_device_synchronize(handle), FLYDSL_AOT_OK) << flydsl_aot_last_error();
    }
  }
}

// What lies past max_seqlen is not computed and not seen.
TEST(AttentionForwardLengths, SequencesAreCutAtMaxSeqlen) {
  flydsl_aot_handle *handle = emulator();
  DeviceTensor q(handle, FLYDSL_AOT_BF16, {1, 300, 64}, {}, 0);
  DeviceTensor k(handle, FLYDSL_AOT_BF16, {1, 300, 64}, {}, 0);
  DeviceTensor v(handle, FLYDSL_AOT_BF16, {1, 300, 64}, {}, 0);
  std::vector<uint16_t> values;
  for (int i = 0; i < 300 * 64; ++i) values.push_back(float_to_bf16(static_cast<float>(i / 64)));
  v.set(values);
  DeviceTensor out(handle, FLYDSL_AOT_BF16, {1, 300, 64}, {}, 0xabababab);
  DeviceTensor starts(handle, FLYDSL_AOT_INT32, {2}, {}, 0);
  starts.set(std::vector<int32_t>{0, 300});
  flydsl_aot_attention_forward_params params{};
  params.struct_size = sizeof params;
  params.q = q.tensor();
  params.k = k.tensor();
  params.v = v.tensor();
  params.out = out.tensor();
  params.mask = no_mask();
  params.cu_seqlens_q = params.cu_seqlens_k = starts.tensor();
  params.max_seqlen_q = 130;
  params.max_seqlen_k = 9;
  ASSERT_EQ(flydsl_aot_attention_forward(handle, &params, nullptr), FLYDSL_AOT_OK)
      << flydsl_aot_last_error();
  const std::vector<uint16_t> result = out.get<uint16_t>();
  for (size_t i = 0; i < result.size(); ++i)
    ASSERT_EQ(result[i], i < 130 * 64 ? float_to_bf16(4.0f) : 0xabab) << i;
}

}  // namespace
}  // namespace flydsl::test
