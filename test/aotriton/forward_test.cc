// attn_fwd as PyTorch calls it, against the float64 oracle.
#include "test/aotriton/calls.h"

namespace flydsl::test {
namespace {

void expect_right(const std::string &line, Way way) {
  ForwardClient client(line, way);
  expect_right(&client, line);
}

TEST(Forward, FlashDense) {
  expect_right("b=2 hq=4 hkv=2 sq=150 sk=200 d=128" + kBshd, Way::kFlash);
  expect_right("dtype=fp16 b=1 hq=2 hkv=2 sq=70 d=72" + kBshd, Way::kFlash);
  expect_right("b=2 hq=2 hkv=1 sq=130 d=64 mask=causal:bottom-right" + kBshd, Way::kFlash);
  expect_right("b=1 hq=2 hkv=1 sq=200 d=128 mask=30,0:top-left" + kBshd, Way::kFlash);
  expect_right("b=1 hq=1 sq=90 d=64 mask=10,20:top-left" + kBshd, Way::kFlash);
  expect_right("b=1 hq=1 sq=3 sk=70 d=512" + kBshd, Way::kFlash);
}

TEST(Forward, FlashDropout) {
  expect_right("b=2 hq=2 hkv=1 sq=70 d=64 dropout=0.3 dropout_from=device dropout_seed=5 "
               "dropout_offset=77" + kBshd,
               Way::kFlash);
}

TEST(Forward, FlashPacked) {
  const std::string shape = "b=3 hq=4 hkv=2 d=128 sq=80 sk=120 ";
  expect_right(shape + "q_lengths=packed:80,1,33 k_lengths=packed:120,40,7", Way::kFlash);
  expect_right(shape + "q_lengths=packed:80,1,33 k_lengths=packed:120,40,7 mask=causal:bottom-right",
               Way::kFlash);
  expect_right("b=3 hq=4 hkv=2 d=64 sq=90 q_lengths=packed:90,0,33 k_lengths=packed:90,0,33 "
               "mask=10,0:bottom-right",
               Way::kFlash);
}

TEST(Forward, Efficient) {
  expect_right("b=2 hq=2 hkv=2 sq=70 sk=90 d=64" + kBshd, Way::kEfficient);
  expect_right("b=2 hq=2 hkv=2 sq=70 sk=90 d=64 lse=no" + kBshd, Way::kEfficient);
  expect_right("b=2 hq=2 hkv=2 sq=70 sk=90 d=64 mask=causal:top-left" + kBshd, Way::kEfficient);
  expect_right("b=2 hq=2 hkv=2 sq=90 sk=70 d=64 dv=32 mask=causal:bottom-right" + kBshd,
               Way::kEfficient);
  expect_right("b=2 hq=3 hkv=3 sq=70 sk=90 d=64 bias=same bias_zero=bh" + kBshd, Way::kEfficient);
  expect_right("dtype=fp16 b=2 hq=2 hkv=2 sq=70 sk=90 d=40 bias=same bias_hides=0.3" + kBshd,
               Way::kEfficient);
  expect_right("b=3 hq=2 hkv=2 d=64 sq=80 sk=50 q_lengths=packed:80,1,33 k_lengths=packed:20,40,50 "
               "mask=causal:top-left",
               Way::kEfficient);
}

// A capture hands over seed and offset as pointers, and takes those that were used.
TEST(Forward, Capture) {
  ForwardClient client(
      "b=2 hq=2 hkv=2 sq=70 d=64 dropout=0.3 dropout_from=device dropout_seed=5 dropout_offset=77 "
      "mask=causal:top-left" + kBshd,
      Way::kEfficient);
  const auto attend = [&] { EXPECT_EQ(client.call(), hipSuccess) << flydsl_aot_last_error(); };
  attend();  // the warm-up
  EXPECT_EQ(client.stream.capture(attend, 2), 1U);
  EXPECT_EQ(client.fault(), "");
}

}  // namespace
}  // namespace flydsl::test
