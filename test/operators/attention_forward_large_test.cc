// Tensors whose offsets pass 2^31 and 2^32, in elements and in bytes. Only the rows in use are ever touched, so that
// the memory is reserved, not filled.
#include <gtest/gtest.h>

#include "test/support/attention_forward_case.h"
#include "test/support/library.h"

namespace flydsl::test {
namespace {

constexpr int64_t kBatches = 2, kHeads = 2, kRows = 33, kKeys = 70;

// (B, H, S, D) with one axis' stride so large that its last index lies past 2^32 elements.
class FarTensor {
 public:
  FarTensor(int64_t positions, int64_t channels, int far_axis)
      : tensor_{nullptr,
                FLYDSL_AOT_BF16,
                4,
                {kBatches, kHeads, positions, channels},
                {kHeads * positions * channels, positions * channels, channels, 1}} {
    tensor_.strides[far_axis] = (int64_t{1} << 32) / (tensor_.sizes[far_axis] - 1) / 8 * 8 + 64;
    uint64_t bytes = static_cast<uint64_t>(channels) * 2;
    for (int axis = 0; axis < 3; ++axis)
      bytes += static_cast<uint64_t>((tensor_.sizes[axis] - 1) * tensor_.strides[axis]) * 2;
    EXPECT_EQ(flydsl_aot_device_malloc(emulator(), bytes, &tensor_.data), FLYDSL_AOT_OK)
        << flydsl_aot_last_error();
  }
  ~FarTensor() { flydsl_aot_device_free(emulator(), tensor_.data); }
  FarTensor(const FarTensor &) = delete;
  FarTensor &operator=(const FarTensor &) = delete;

  void set(const std::vector<uint16_t> &dense) {
    for_each_row([&](void *row, size_t first, size_t bytes) {
      ASSERT_EQ(flydsl_aot_device_upload(emulator(), row, &dense[first], bytes), FLYDSL_AOT_OK);
    });
  }
  std::vector<uint16_t> get() const {
    std::vector<uint16_t> dense(
        static_cast<size_t>(kBatches * kHeads * tensor_.sizes[2] * tensor_.sizes[3]));
    for_each_row([&](void *row, size_t first, size_t bytes) {
      ASSERT_EQ(flydsl_aot_device_download(emulator(), &dense[first], row, bytes), FLYDSL_AOT_OK);
    });
    return dense;
  }
  const flydsl_aot_tensor &tensor() const { return tensor_; }

 private:
  template <typename Function>
  void for_each_row(Function function) const {
    size_t first = 0;
    const size_t channels = static_cast<size_t>(tensor_.sizes[3]);
    for (int64_t b = 0; b < kBatches; ++b) {
      for (int64_t h = 0; h < kHeads; ++h) {
        for (int64_t s = 0; s < tensor_.sizes[2]; ++s, first += channels) {
          const int64_t offset =
              b * tensor_.strides[0] + h * tensor_.strides[1] + s * tensor_.strides[2];
          function(static_cast<uint16_t *>(tensor_.data) + offset, first, channels * 2);
        }
      }
    }
  }

  flydsl_aot_tensor tensor_;
};

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
      FarTensor q(kRows, head_dim, axis), k(kKeys, head_dim, axis), v(kKeys, head_dim, axis),
          out(kRows, head_dim, axis);
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
