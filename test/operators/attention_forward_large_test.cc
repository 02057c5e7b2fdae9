// Tensors whose offsets pass 2^31 and 2^32, in elements and in bytes.
#include <gtest/gtest.h>

#include "test/support/attention_forward_case.h"
#include "test/support/far_tensor.h"
#include "test/support/library.h"

namespace flydsl::test {
namespace {

constexpr int64_t kBatches = 2, kHeads = 2, kRows = 33, kKeys = 70;

// Dao-AILab/flash-attention#2214, #1500, ROCm/triton#830: offsets of 32 bits that wrap. D = 72 as in the
// report takes a general instance, D = 64 and 128 the others.
TEST(AttentionForwardLarge, flash_attention_2214_offsets_past_32_bits) {
  for (const int64_t head_dim : {72, 64, 128}) {
    AttentionCase c;
    c.batches = kBatches;
    c.heads_q = c.heads_kv = kHeads;
    c.seq_q = kRows;
    c.seq_k = kKeys;
    c.head_dim = head_dim;
    c.mask = causal_bottom_right();
    c.want_lse = false;
    Random random(test_seed(131));
    c.fill_random(random);
    const AttentionResult compact = check_attention(c);
    for (int axis = 0; axis < 3; ++axis) {
      const auto sizes = [&](int64_t positions) {
        return std::vector<int64_t>{kBatches, kHeads, positions, head_dim};
      };
      FarTensor q(sizes(kRows), axis), k(sizes(kKeys), axis), v(sizes(kKeys), axis),
          out(sizes(kRows), axis);
      q.set(c.q);
      k.set(c.k);
      v.set(c.v);
      flydsl_aot_attention_forward_params params{};
      params.struct_size = sizeof params;
      params.scale = c.scale;
      params.q = q.tensor();
      params.k = k.tensor();
      params.v = v.tensor();
      params.out = out.tensor();
      params.mask = c.mask;
      ASSERT_EQ(flydsl_aot_attention_forward(emulator(), &params, nullptr), FLYDSL_AOT_OK)
          << flydsl_aot_last_error();
      ASSERT_EQ(flydsl_aot_device_synchronize(emulator()), FLYDSL_AOT_OK)
          << flydsl_aot_last_error();
      EXPECT_EQ(out.get(), compact.out) << "D " << head_dim << ", axis " << axis;
    }
  }
}

}  // namespace
}  // namespace flydsl::test
