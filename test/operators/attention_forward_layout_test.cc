// Where the elements lie must not matter: strides, views, broadcast, alignment, slack, optional
// LSE, and what was called before. Bit-for-bit where the same kernel runs.
#include <gtest/gtest.h>

#include <array>

#include "test/support/attention_forward_case.h"
#include "test/support/library.h"

namespace flydsl::test {
namespace {

AttentionCase random_case(uint64_t seed, flydsl_aot_dtype dtype = FLYDSL_AOT_BF16) {
  AttentionCase c;
  c.dtype = dtype;
  c.batches = 2;
  c.heads_q = 4;
  c.heads_kv = 2;
  c.seq_q = 75;
  c.seq_k = 140;
  c.mask = causal_bottom_right();
  Random random(test_seed(seed));
  c.fill_random(random);
  return c;
}

TEST(AttentionForwardLayout, BshdEqualsBhsd) {
  AttentionCase c = random_case(21);
  const AttentionResult bhsd = check_attention(c);
  c.place_q = c.place_k = c.place_v = c.place_out = bshd();
  EXPECT_TRUE(same_bits(bhsd, check_attention(c)));
}

// pytorch/pytorch#146704 and others reach kernels with expanded tensors: one batch shared by all.
TEST(AttentionForwardLayout, BroadcastBatchAndHead) {
  AttentionCase c = random_case(22);
  // Every batch and head of K, and every batch of V, holds the same data, densely ...
  const size_t head_elements = static_cast<size_t>(c.seq_k * c.head_dim);
  for (size_t i = 0; i < c.k.size(); ++i) c.k[i] = c.k[i % head_elements];
  for (size_t i = 0; i < c.v.size(); ++i) c.v[i] = c.v[i % (head_elements * 2)];
  const AttentionResult dense = check_attention(c);
  // ... or once, with stride 0.
  c.place_k.broadcast = {true, true, false, false};
  c.place_v.broadcast = {true, false, false, false};
  const AttentionResult expanded = check_attention(c);
  EXPECT_EQ(dense.kernel, expanded.kernel);
  EXPECT_TRUE(same_bits(dense, expanded));
}

// ROCm/pytorch#3230: V as a transposed view, every combination of which operand is the view.
TEST(AttentionForwardLayout, rocm_pytorch_3230_every_combination_of_views) {
  AttentionCase c;
  c.heads_q = c.heads_kv = 16;
  c.seq_q = c.seq_k = 62;
  c.head_dim = 128;
  c.scale = 0.08838834764831845f;
  Random random(test_seed(23));
  c.fill_random(random);
  const AttentionResult packed = check_attention(c);
  for (unsigned views = 1; views < 16; ++views) {
    const std::array<Placement *, 4> places = {&c.place_q, &c.place_k, &c.place_v, &c.place_out};
    for (unsigned i = 0; i < places.size(); ++i)
      *places[i] = (views >> i) & 1 ? bshd() : Placement{};
    const AttentionResult viewed = run_attention(c);
    ASSERT_EQ(viewed.status, FLYDSL_AOT_OK) << viewed.message;
    EXPECT_TRUE(same_bits(packed, viewed)) << "views mask " << views;
  }
}

TEST(AttentionForwardLayout, EveryAlignmentOfEveryOperand) {
  for (const flydsl_aot_dtype dtype : {FLYDSL_AOT_BF16, FLYDSL_AOT_FP16}) {
    AttentionCase c = random_case(24, dtype);
    const AttentionResult aligned = check_attention(c);
    EXPECT_EQ(aligned.kernel, instance_name(c, false));
    AttentionReference reference;
    for (const int64_t offset_elements : {8, 4, 2, 1}) {  // 16, 8, 4 and 2 bytes
      for (Placement *place : {&c.place_q, &c.place_k, &c.place_v, &c.place_out}) {
        place->offset_elements = offset_elements;
        const AttentionResult moved = check_attention(c);
        EXPECT_EQ(moved.kernel, instance_name(c, offset_elements < 8))
            << "offset of " << offset_elements << " elements";
        place->offset_elements = 0;
      }
    }
    // Row pitch of one element more: base aligned, rows not.
    c.place_v.pad = {0, 0, 0, 1};
    EXPECT_EQ(check_attention(c).kernel, instance_name(c, true));
  }
}

TEST(AttentionForwardLayout, LseIsOptionalAndChangesNothing) {
  AttentionCase c = random_case(25);
  const AttentionResult with = check_attention(c);
  c.want_lse = false;
  const AttentionResult without = check_attention(c);
  EXPECT_EQ(with.out, without.out);
  EXPECT_EQ(with.kernel, without.kernel);
}

// ROCm/rocMLIR#2426, pytorch/pytorch#187152, ROCm/aiter#5654: garbage around the problem must not
// leak in. NaN slack against tight buffers that end at the last byte of their allocation (the
// emulator stops at the first byte past it).
TEST(AttentionForwardLayout, rocmlir_2426_nan_slack_equals_tight_buffers) {
  for (const auto &[seq_q, seq_k] :
       {std::pair<int64_t, int64_t>{9, 9}, {197, 197}, {1001, 503}, {704, 704}, {300, 677}}) {
    AttentionCase c;
    c.heads_q = 2;
    c.seq_q = seq_q;
    c.seq_k = seq_k;
    Random random(test_seed(26));
    c.fill_random(random);
    const AttentionResult tight = check_attention(c);
    for (Placement *place : {&c.place_q, &c.place_k, &c.place_v, &c.place_out}) {
      // Head dim inside a pitch 32 elements wider, rows inside 59 more of them, slack on both
      // sides.
      *place = Placement{{}, {0, 0, 59 * 96, 32}, {}, 96 * 8, 4096};
    }
    c.place_lse = Placement{{}, {0, 0, 59}, {}, 64, 64};
    for (const uint16_t poison : {0xffff, 0x7fc0, 0x7c00, 0xabab}) {
      c.input_poison = poison;
      const AttentionResult slack = run_attention(c);
      ASSERT_EQ(slack.status, FLYDSL_AOT_OK) << slack.message;
      EXPECT_EQ(slack.stray_write, "") << describe(c);
      EXPECT_EQ(slack.kernel, tight.kernel);
      EXPECT_TRUE(same_bits(tight, slack)) << describe(c) << " poison " << std::hex << poison;
    }
  }
}

TEST(AttentionForwardLayout, RandomPlacements) {
  const uint64_t seed = test_seed(27);
  SCOPED_TRACE("FLYDSL_TEST_SEED=" + std::to_string(seed));
  Random random(seed);
  for (int i = 0; i < 60; ++i) {
    AttentionCase c;
    c.dtype = random.chance(0.5) ? FLYDSL_AOT_BF16 : FLYDSL_AOT_FP16;
    c.head_dim = random.chance(0.5) ? 64 : 128;
    c.batches = random.between(1, 3);
    c.heads_kv = random.between(1, 3);
    c.heads_q = c.heads_kv * random.between(1, 3);
    c.seq_q = random.between(1, 150);
    c.seq_k = random.between(1, 150);
    c.mask = i % 3 == 0 ? no_mask() : i % 3 == 1 ? causal_top_left() : causal_bottom_right();
    // A mask that is bounded elsewhere than on the diagonal is the same kernel with another shift.
    if (c.mask.right == 0 && random.chance(0.3)) c.mask.right = random.between(1, 200);
    c.want_lse = random.chance(0.7);
    c.fill_random(random);
    const bool align16 = random.chance(0.4);
    for (Placement *place : {&c.place_q, &c.place_k, &c.place_v, &c.place_out}) {
      *place = random_placement(random, 4, 3, align16);
    }
    c.place_lse = random_placement(random, 3, 3, false);
    check_attention(c);
  }
}

// ROCm/FlyDSL#317, ROCm/aiter#4840: a kernel built for one shape, stride or alignment picked for
// another. Each call must give the same bits alone on a fresh handle, in a sequence, and in the
// reverse sequence.
TEST(AttentionForwardLayout, flydsl_317_order_of_calls_does_not_matter) {
  std::vector<AttentionCase> cases;
  const auto add = [&](int64_t length, int64_t heads_q, int64_t heads_kv, int64_t head_dim,
                       int64_t pitch_pad, int64_t offset) {
    AttentionCase c;
    c.head_dim = head_dim;
    c.heads_q = heads_q;
    c.heads_kv = heads_kv;
    c.seq_q = 40;
    c.seq_k = length;
    Random random(test_seed(28) + cases.size());
    c.fill_random(random);
    for (Placement *place : {&c.place_q, &c.place_k, &c.place_v}) {
      place->pad = {0, 0, 0, pitch_pad};
      place->offset_elements = offset;
    }
    cases.push_back(c);
  };
  for (const int64_t length : {255, 256, 257, 383, 384, 385, 511, 512, 513, 640})
    add(length, 1, 1, 128, 0, 0);
  for (const int64_t heads : {8, 16}) add(100, heads, heads, 128, 0, 0);
  for (const int64_t pad : {8, 1}) add(100, 1, 1, 128, pad, 0);
  for (const int64_t offset : {8, 4, 2, 1}) add(100, 1, 1, 128, 0, offset);
  add(100, 4, 1, 128, 0, 0);
  add(100, 4, 4, 64, 0, 0);

  std::vector<AttentionResult> alone;
  for (const AttentionCase &c : cases) {
    flydsl_aot_handle *fresh = open_emulator();
    alone.push_back(check_attention(c, nullptr, fresh));
    flydsl_aot_close(fresh);
  }
  for (size_t i = 0; i < cases.size(); ++i)
    EXPECT_TRUE(same_bits(alone[i], run_attention(cases[i]))) << "case " << i;
  for (size_t i = cases.size(); i-- > 0;)
    EXPECT_TRUE(same_bits(alone[i], run_attention(cases[i]))) << "case " << i;
}

}  // namespace
}  // namespace flydsl::test
