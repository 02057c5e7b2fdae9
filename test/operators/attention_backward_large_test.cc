// Tensors whose offsets pass 2^31 and 2^32, in elements and in bytes; workspaces as large.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "test/support/attention_backward_case.h"
#include "test/support/far_tensor.h"
#include "test/support/library.h"

namespace flydsl::test {
namespace {

// Memory of the device, never filled.
class Reserved {
 public:
  explicit Reserved(uint64_t bytes) {
    EXPECT_EQ(flydsl_aot_device_malloc(emulator(), bytes, &data_), FLYDSL_AOT_OK)
        << flydsl_aot_last_error();
  }
  ~Reserved() { flydsl_aot_device_free(emulator(), data_); }
  Reserved(const Reserved &) = delete;
  Reserved &operator=(const Reserved &) = delete;
  void *data() const { return data_; }

 private:
  void *data_ = nullptr;
};

void call(flydsl_aot_attention_backward_params params) {
  flydsl_aot_query_result query{};
  query.struct_size = sizeof query;
  ASSERT_EQ(flydsl_aot_attention_backward_query(emulator(), &params, &query), FLYDSL_AOT_OK)
      << flydsl_aot_last_error();
  const Reserved workspace(query.workspace_bytes);
  params.workspace = workspace.data();
  params.workspace_bytes = query.workspace_bytes;
  ASSERT_EQ(flydsl_aot_attention_backward(emulator(), &params, nullptr), FLYDSL_AOT_OK)
      << flydsl_aot_last_error();
  ASSERT_EQ(flydsl_aot_device_synchronize(emulator()), FLYDSL_AOT_OK) << flydsl_aot_last_error();
}

// Dao-AILab/flash-attention#2214, #1500, ROCm/triton#830: offsets of 32 bits that wrap. D = 72 takes a general instance.
TEST(AttentionBackwardLarge, flash_attention_2214_offsets_past_32_bits) {
  for (const int64_t head_dim : {72, 64, 128}) {
    const PreparedBackward p("c b=2 hq=2 hkv=2 sq=33 sk=70 mask=causal:bottom-right d=" +
                             std::to_string(head_dim));
    const AttentionCase &c = p.problem.forward;
    const BackwardResult compact = check_backward(p);
    for (int axis = 0; axis < 3; ++axis) {
      const std::vector<int64_t> of_q{2, 2, 33, head_dim}, of_k{2, 2, 70, head_dim};
      FarTensor q(of_q, axis), k(of_k, axis), v(of_k, axis), out(of_q, axis), dout(of_q, axis),
          dq(of_q, axis), dk(of_k, axis), dv(of_k, axis);
      DeviceTensor lse(emulator(), FLYDSL_AOT_FP32, {2, 2, 33}, {}, 0);
      q.set(c.q);
      k.set(c.k);
      v.set(c.v);
      out.set(p.forward.out);
      dout.set(p.problem.dout);
      lse.set(p.forward.lse);
      flydsl_aot_attention_backward_params params{};
      params.struct_size = sizeof params;
      params.scale = c.scale;
      params.q = q.tensor();
      params.k = k.tensor();
      params.v = v.tensor();
      params.out = out.tensor();
      params.lse = lse.tensor();
      params.dout = dout.tensor();
      params.dq = dq.tensor();
      params.dk = dk.tensor();
      params.dv = dv.tensor();
      params.mask = c.mask;
      call(params);
      // A kernel that takes near rows only may have given its place to another, which rounds otherwise.
      BackwardResult far = compact;
      size_t gradient = kDq;
      for (const FarTensor *tensor : {&dq, &dk, &dv}) {
        const std::vector<uint16_t> bits = tensor->get();
        far.bits[gradient++].assign(bits.begin(), bits.end());
      }
      const BackwardVerdict verdict =
          judge_backward(p.problem, far, backward_reference_of(p.problem, p.forward));
      EXPECT_EQ(verdict.fault, "") << "D " << head_dim << ", axis " << axis;
    }
  }
}

// The same report: batches of 128 rows whose fp32 sums would fill 2^31 elements and more. All but the first and the last
// are empty, so that their memory is reserved and never touched; these two hold the same numbers.
TEST(AttentionBackwardLarge, flash_attention_2214_first_and_last_batch_are_equal) {
  constexpr int64_t kBatches = 16384, kHeads = 16, kRows = 128, kChannels = 64;
  const PreparedBackward p("c hq=16 hkv=16 sq=128 d=64 mask=causal:top-left");
  const AttentionCase &c = p.problem.forward;
  const uint64_t batch = kHeads * kRows * kChannels;
  const Reserved q(kBatches * batch * 2), dq(kBatches * batch * 2), dk(kBatches * batch * 2),
      dv(kBatches * batch * 2);
  const auto tensor = [&](void *data, int64_t stride) {
    return flydsl_aot_tensor{data,
                             FLYDSL_AOT_BF16,
                             4,
                             {kBatches, kHeads, kRows, kChannels},
                             {stride, kRows * kChannels, kChannels, 1}};
  };
  const auto upload = [&](void *to, uint64_t element, const std::vector<uint16_t> &values) {
    ASSERT_EQ(flydsl_aot_device_upload(emulator(), static_cast<uint16_t *>(to) + element,
                                       values.data(), values.size() * 2),
              FLYDSL_AOT_OK);
  };
  upload(q.data(), 0, c.q);
  upload(q.data(), (kBatches - 1) * batch, c.q);
  // One batch of each serves all.
  const auto one = [&](const std::vector<uint16_t> &values) {
    auto memory = std::make_unique<Reserved>(batch * 2);
    upload(memory->data(), 0, values);
    return memory;
  };
  const auto k = one(c.k), v = one(c.v), out = one(p.forward.out), dout = one(p.problem.dout);
  DeviceTensor lse(emulator(), FLYDSL_AOT_FP32, {1, kHeads, kRows}, {}, 0);
  lse.set(p.forward.lse);
  std::vector<int32_t> lengths(kBatches, 0);
  lengths.front() = lengths.back() = kRows;
  DeviceTensor used(emulator(), FLYDSL_AOT_INT32, {kBatches}, {}, 0);
  used.set(lengths);
  flydsl_aot_attention_backward_params params{};
  params.struct_size = sizeof params;
  params.scale = c.scale;
  params.q = tensor(q.data(), static_cast<int64_t>(batch));
  params.k = tensor(k->data(), 0);
  params.v = tensor(v->data(), 0);
  params.out = tensor(out->data(), 0);
  params.dout = tensor(dout->data(), 0);
  params.lse = lse.tensor();
  params.lse.sizes[0] = kBatches;
  params.lse.strides[0] = 0;
  params.dq = tensor(dq.data(), static_cast<int64_t>(batch));
  params.dk = tensor(dk.data(), static_cast<int64_t>(batch));
  params.dv = tensor(dv.data(), static_cast<int64_t>(batch));
  params.mask = c.mask;
  params.seqused_q = params.seqused_k = used.tensor();
  call(params);
  BackwardResult first, last;
  size_t gradient = kDq;
  for (const Reserved *memory : {&dq, &dk, &dv}) {
    std::vector<uint16_t> bits(batch);
    for (BackwardResult *result : {&first, &last}) {
      const uint64_t from = result == &first ? 0 : (kBatches - 1) * batch;
      ASSERT_EQ(
          flydsl_aot_device_download(emulator(), bits.data(),
                                     static_cast<uint16_t *>(memory->data()) + from, batch * 2),
          FLYDSL_AOT_OK);
      result->bits[gradient].assign(bits.begin(), bits.end());
    }
    ++gradient;
  }
  EXPECT_TRUE(same_bits(first, last));
  EXPECT_EQ(judge_backward(p.problem, first, backward_reference_of(p.problem, p.forward)).fault,
            "");
}

// pytorch/pytorch#146704, #142228: more batches, or heads, than 65535, the largest of a grid's second and third size. All have the same
// numbers, and give the same gradients.
TEST(AttentionBackwardLarge, pytorch_146704_batches_and_heads_past_65535) {
  constexpr int64_t kMany = 65537, kRows = 4, kChannels = 16;
  const PreparedBackward p("c dtype=fp16 sq=4 d=16");
  const AttentionCase &c = p.problem.forward;
  const int64_t one = kRows * kChannels;
  for (const bool of_heads : {false, true}) {
    const std::vector<int64_t> sizes = {of_heads ? 1 : kMany, of_heads ? kMany : 1, kRows,
                                        kChannels};
    // Inputs: one head for all.
    const auto shared = [&](const std::vector<uint16_t> &values) {
      auto memory = std::make_unique<DeviceTensor>(emulator(), FLYDSL_AOT_FP16,
                                                   std::vector<int64_t>{1, 1, kRows, kChannels},
                                                   Placement{}, 0);
      memory->set(values);
      flydsl_aot_tensor view = memory->tensor();
      std::copy(sizes.begin(), sizes.end(), view.sizes);
      view.strides[0] = view.strides[1] = 0;
      return std::pair(std::move(memory), view);
    };
    const auto q = shared(c.q), k = shared(c.k), v = shared(c.v), out = shared(p.forward.out),
               dout = shared(p.problem.dout);
    DeviceTensor lse(emulator(), FLYDSL_AOT_FP32, {1, 1, kRows}, {}, 0);
    lse.set(p.forward.lse);
    DeviceTensor dq(emulator(), FLYDSL_AOT_FP16, sizes, {}, 0xffff),
        dk(emulator(), FLYDSL_AOT_FP16, sizes, {}, 0xffff),
        dv(emulator(), FLYDSL_AOT_FP16, sizes, {}, 0xffff);
    flydsl_aot_attention_backward_params params{};
    params.struct_size = sizeof params;
    params.scale = c.scale;
    params.q = q.second;
    params.k = k.second;
    params.v = v.second;
    params.out = out.second;
    params.dout = dout.second;
    params.lse = lse.tensor();
    params.lse.sizes[of_heads ? 1 : 0] = kMany;
    params.lse.strides[0] = params.lse.strides[1] = 0;
    params.dq = dq.tensor();
    params.dk = dk.tensor();
    params.dv = dv.tensor();
    params.mask = c.mask;
    call(params);
    const BackwardResult expected = check_backward(p);
    size_t gradient = kDq;
    for (DeviceTensor *tensor : {&dq, &dk, &dv}) {
      const std::vector<uint16_t> bits = tensor->get<uint16_t>();
      for (int64_t n = 0; n < kMany * one; ++n)
        ASSERT_EQ(bits[static_cast<size_t>(n)],
                  expected.bits[gradient][static_cast<size_t>(n % one)])
            << kGradientNames[gradient] << " " << n / one << (of_heads ? ", heads" : ", batches");
      ++gradient;
    }
  }
}

}  // namespace
}  // namespace flydsl::test
