// What a quick look finds right (v2src/plain_look.h) the checks find right too: random calls near right ones get the same answer, status and
// message, from an operator's check() as from its complete checks, which alone are made while a call is recorded.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <vector>

#include "v2src/attention_backward.h"
#include "v2src/attention_decode.h"
#include "v2src/attention_forward.h"
#include "v2src/call_recording.h"
#include "v2src/gemm.h"
#include "v2src/norm.h"

namespace flydsl::test {
namespace {

constexpr uint64_t kApart = uint64_t{1} << 40;
constexpr flydsl_aot_mask kNoMask = {FLYDSL_AOT_UNLIMITED, FLYDSL_AOT_UNLIMITED,
                                     FLYDSL_AOT_ANCHOR_NONE, 0};

flydsl_aot_tensor tensor(flydsl_aot_dtype dtype, const std::vector<int64_t> &sizes) {
  static uint64_t next = kApart;
  flydsl_aot_tensor result{};
  result.dtype = dtype;
  result.rank = static_cast<int32_t>(sizes.size());
  int64_t stride = 1;
  for (size_t axis = sizes.size(); axis-- > 0; stride *= sizes[axis]) {
    result.sizes[axis] = sizes[axis];
    result.strides[axis] = stride;
  }
  result.data = reinterpret_cast<void *>(next += kApart);
  return result;
}

template <class Params>
class Changes {
 public:
  explicit Changes(unsigned seed) : random_(seed) {}

  // One to three members of tensors, or other words, hold what is often a limit of something.
  Params of(Params params) {
    for (unsigned count = 1 + any(3); count > 0; --count) {
      auto *bytes = reinterpret_cast<unsigned char *>(&params);
      const auto &tensors = layout_of<Params>.tensors;
      if (any(4) != 0) {
        change(
            reinterpret_cast<flydsl_aot_tensor *>(bytes + *(tensors.begin() + any(tensors.size()))),
            reinterpret_cast<flydsl_aot_tensor *>(bytes +
                                                  *(tensors.begin() + any(tensors.size()))));
      } else {
        // Not struct_size, which is read before.
        const auto &rest = layout_of<Params>.rest;
        const size_t at = *(rest.begin() + any(rest.size()));
        const int64_t value = number();
        const float real = kReals[any(std::size(kReals))];
        if (any(2) != 0)
          std::memcpy(bytes + at + (at == 0 ? 4 : 4 * any(2)), &real, sizeof real);
        else if (at != 0)
          std::memcpy(bytes + at, &value, sizeof value);
      }
    }
    return params;
  }

 private:
  static constexpr float kReals[] = {0.0f, 1.0f, -1.0f, 0.5f, 3e38f, -INFINITY, NAN};

  size_t any(size_t below) { return random_() % below; }
  int64_t number() {
    constexpr int64_t kNumbers[] = {0,
                                    1,
                                    2,
                                    3,
                                    4,
                                    5,
                                    8,
                                    64,
                                    128,
                                    1024,
                                    int64_t{1} << 27,
                                    int64_t{1} << 28,
                                    int64_t{1} << 31,
                                    int64_t{1} << 62,
                                    -1,
                                    INT64_MIN};
    return kNumbers[any(std::size(kNumbers))];
  }
  void change(flydsl_aot_tensor *one, const flydsl_aot_tensor *other) {
    const size_t axis = any(4);
    const auto data = reinterpret_cast<uint64_t>(one->data);
    switch (any(9)) {
      case 0:
        one->sizes[axis] = number();
        break;
      case 1:
        one->strides[axis] = number();
        break;
      case 2:
        one->sizes[axis] += static_cast<int64_t>(any(3)) - 1;
        break;
      case 3:
        one->dtype = static_cast<flydsl_aot_dtype>(any(15));
        break;
      case 4:
        one->rank = static_cast<int32_t>(any(5));
        break;
      case 5:
        *one = *other;
        break;
      case 6:
        one->data = static_cast<char *>(other->data) + (any(2) ? 0 : 4096);
        break;
      case 7:
        std::swap(one->strides[axis], one->strides[any(4)]);
        break;
      case 8: {
        const uint64_t places[] = {0,        data + 1,         data + 2,
                                   data + 4, ~uint64_t{0} - 7, ~uint64_t{0} - 4095};
        one->data = reinterpret_cast<void *>(places[any(std::size(places))]);
        break;
      }
    }
  }

  std::mt19937 random_;
};

template <class Params, class Check>
void expect_same_answers(const std::vector<Params> &right, Check check) {
  constexpr int kCalls = 60000;
  const char *const given = std::getenv("FLYDSL_TEST_SEED");
  const unsigned seed = given ? static_cast<unsigned>(std::atoi(given)) : 20261130;
  SCOPED_TRACE(seed);
  Changes<Params> changes(seed);
  int taken = 0;
  for (int i = 0; i < kCalls; ++i) {
    const Params &from = right[static_cast<size_t>(i) % right.size()];
    const Params params = i < static_cast<int>(right.size()) ? from : changes.of(from);
    const Status quick = check(params);
    CallForm form;
    ASSERT_TRUE(read_form(&from, 0, 16, &form));
    const CallRecording recording(form);
    const Status complete = check(params);
    ASSERT_EQ(quick.code(), complete.code()) << i << ": " << complete.message();
    ASSERT_EQ(quick.message(), complete.message());
    if (i < static_cast<int>(right.size())) {
      ASSERT_TRUE(complete.ok()) << complete.message();
    }
    taken += quick.ok();
  }
  EXPECT_GT(taken, kCalls / 20);
  EXPECT_LT(taken, kCalls - kCalls / 20);
}

template <class Params>
Params begun() {
  Params params{};
  params.struct_size = sizeof params;
  return params;
}

constexpr auto kHalf = FLYDSL_AOT_BF16;
constexpr auto kFloat = FLYDSL_AOT_FP32;
constexpr auto kInt = FLYDSL_AOT_INT32;

TEST(PlainLook, AttentionForward) {
  auto dense = begun<flydsl_aot_attention_forward_params>();
  dense.scale = 0.125f;
  dense.mask = kNoMask;
  dense.q = tensor(kHalf, {2, 4, 5, 64});
  dense.k = dense.v = tensor(kHalf, {2, 2, 8, 64});
  dense.v.data = tensor(kHalf, {}).data;
  dense.out = tensor(kHalf, {2, 4, 5, 64});
  dense.lse = tensor(kFloat, {2, 4, 5});
  dense.seqused_k = tensor(kInt, {2});
  auto packed = dense;
  packed.q = tensor(kHalf, {4, 10, 64});
  packed.k = tensor(kHalf, {2, 16, 64});
  packed.v = tensor(kHalf, {2, 16, 128});
  packed.out = tensor(kHalf, {4, 10, 128});
  packed.lse = tensor(kFloat, {4, 10});
  packed.cu_seqlens_q = tensor(kInt, {3});
  packed.cu_seqlens_k = tensor(kInt, {3});
  packed.max_seqlen_q = 5;
  packed.max_seqlen_k = 8;
  for (const bool compiled : {false, true})
    expect_same_answers<flydsl_aot_attention_forward_params>(
        {dense, packed},
        [&](const auto &params) { return attention_forward::check(params, false, compiled); });
}

TEST(PlainLook, AttentionDecode) {
  auto plain = begun<flydsl_aot_attention_decode_params>();
  plain.scale = 0.125f;
  plain.mask = kNoMask;
  plain.q = tensor(kHalf, {2, 8, 1, 128});
  plain.k = tensor(kHalf, {2, 2, 64, 128});
  plain.v = tensor(kHalf, {2, 2, 64, 128});
  plain.out = tensor(kHalf, {2, 8, 1, 128});
  plain.lse = tensor(kFloat, {2, 8, 1});
  plain.seqused_k = tensor(kInt, {2});
  auto paged = plain;
  paged.k = tensor(kHalf, {5, 2, 16, 128});
  paged.v = tensor(kHalf, {5, 2, 16, 128});
  paged.block_table = tensor(kInt, {2, 4});
  expect_same_answers<flydsl_aot_attention_decode_params>(
      {plain, paged}, [](const auto &params) { return attention_decode::check(params, false, true); });
}

TEST(PlainLook, AttentionBackward) {
  auto dense = begun<flydsl_aot_attention_backward_params>();
  dense.scale = 0.125f;
  dense.mask = kNoMask;
  dense.q = tensor(kHalf, {2, 4, 5, 64});
  dense.k = tensor(kHalf, {2, 2, 8, 64});
  dense.v = tensor(kHalf, {2, 2, 8, 64});
  dense.out = tensor(kHalf, {2, 4, 5, 64});
  dense.lse = tensor(kFloat, {2, 4, 5});
  dense.dout = tensor(kHalf, {2, 4, 5, 64});
  dense.dq = tensor(kHalf, {2, 4, 5, 64});
  dense.dk = tensor(kHalf, {2, 2, 8, 64});
  dense.dv = tensor(kHalf, {2, 2, 8, 64});
  auto packed = dense;
  packed.q = tensor(kHalf, {4, 10, 64});
  packed.k = tensor(kHalf, {2, 16, 64});
  packed.v = tensor(kHalf, {2, 16, 64});
  packed.out = tensor(kHalf, {4, 10, 64});
  packed.lse = tensor(kFloat, {4, 10});
  packed.dout = tensor(kHalf, {4, 10, 64});
  packed.dq = tensor(kHalf, {4, 10, 64});
  packed.dk = tensor(kHalf, {2, 16, 64});
  packed.dv = tensor(kHalf, {2, 16, 64});
  packed.cu_seqlens_q = tensor(kInt, {3});
  packed.cu_seqlens_k = tensor(kInt, {3});
  packed.max_seqlen_q = 5;
  packed.max_seqlen_k = 8;
  expect_same_answers<flydsl_aot_attention_backward_params>(
      {dense, packed}, [](const auto &params) { return attention_backward::check(params, false, true); });
}

TEST(PlainLook, Gemm) {
  auto plain = begun<flydsl_aot_gemm_params>();
  plain.alpha = plain.beta = 1;
  plain.a = tensor(kHalf, {64, 5});
  plain.b = tensor(kHalf, {5, 64});
  plain.c = tensor(kFloat, {64, 64});
  plain.d = tensor(kFloat, {64, 64});
  plain.epilogue.bias_n = tensor(kHalf, {64});
  plain.epilogue.residual = plain.d;
  auto batched = plain;
  batched.a = tensor(kHalf, {3, 64, 5});
  batched.b = tensor(kHalf, {3, 5, 64});
  batched.c = tensor(kFloat, {3, 64, 64});
  batched.d = tensor(kFloat, {3, 64, 64});
  batched.epilogue.residual = {};
  expect_same_answers<flydsl_aot_gemm_params>(
      {plain, batched}, [](const auto &params) { return gemm::check(params, false); });
}

TEST(PlainLook, Norm) {
  auto plain = begun<flydsl_aot_layer_norm_params>();
  plain.eps = 1e-5f;
  plain.x = tensor(kHalf, {5, 64});
  plain.weight = tensor(kFloat, {64});
  plain.bias = tensor(kHalf, {64});
  plain.residual = tensor(kHalf, {5, 64});
  plain.sum = plain.residual;
  plain.out = plain.x;
  plain.rstd = tensor(kFloat, {5});
  auto outer = plain;
  outer.x = tensor(kHalf, {2, 5, 64});
  outer.residual = outer.sum = {};
  outer.out = tensor(kHalf, {2, 5, 64});
  outer.rstd = tensor(kFloat, {2, 5});
  outer.mean = tensor(kFloat, {2, 5});
  expect_same_answers<flydsl_aot_layer_norm_params>({plain, outer}, [](const auto &params) {
    norm::Params all = norm::common_params(params);
    all.bias = &params.bias;
    all.mean = &params.mean;
    return norm::check(all, false);
  });
}

}  // namespace
}  // namespace flydsl::test
