// Attention of two layers of a real model, SmolLM2-135M-Instruct: see test/data/smollm2/README.md.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>

#include "test/support/attention_forward_case.h"
#include "tools/npy.h"

namespace flydsl::test {
namespace {

std::vector<uint16_t> read_bf16(const std::string &name, const std::vector<int64_t> &shape) {
  const tools::NpyArray array =
      tools::read_npy(std::string(FLYDSL_AOT_TEST_DATA) + "/smollm2/" + name);
  EXPECT_EQ(array.descr, "<u2") << name;
  EXPECT_EQ(array.shape, shape) << name;
  std::vector<uint16_t> values(array.bytes.size() / 2);
  std::memcpy(values.data(), array.bytes.data(), array.bytes.size());
  return values;
}

class AttentionForwardSmolLm2 : public ::testing::TestWithParam<const char *> {};

TEST_P(AttentionForwardSmolLm2, CausalAgainstFloat64) {
  const std::string layer = std::string("layer") + GetParam();
  AttentionCase c;
  c.heads_q = 9;
  c.heads_kv = 3;
  c.seq_q = c.seq_k = 509;
  c.mask = causal_top_left();
  c.q = read_bf16(layer + "_q.npy", {1, 9, 509, 64});
  c.k = read_bf16(layer + "_k.npy", {1, 3, 509, 64});
  c.v = read_bf16(layer + "_v.npy", {1, 3, 509, 64});
  AttentionReference reference;
  const AttentionResult result = check_attention(c, &reference);
  EXPECT_EQ(result.kernel, instance_name(c, false));
  const Judgement out = judge_out(c.dtype, result.out, reference, c.head_dim);
  const Judgement lse = judge_lse(result.lse, reference);
  std::printf("%s: out: worst %s, relative Frobenius norm %.3g; lse: worst %s\n", layer.c_str(),
              out.text.c_str(), out.frobenius, lse.text.c_str());

  // The LSE stored with the data was computed by another program.
  const tools::NpyArray stored =
      tools::read_npy(std::string(FLYDSL_AOT_TEST_DATA) + "/smollm2/" + layer + "_lse.npy");
  ASSERT_EQ(stored.descr, "<f4");
  std::vector<float> stored_lse(stored.bytes.size() / 4);
  std::memcpy(stored_lse.data(), stored.bytes.data(), stored.bytes.size());
  ASSERT_EQ(stored_lse.size(), result.lse.size());
  for (size_t i = 0; i < stored_lse.size(); ++i) {
    ASSERT_NEAR(result.lse[i], stored_lse[i], 1e-4) << "row " << i;
    ASSERT_NEAR(reference.lse[i], stored_lse[i], 1e-5) << "row " << i << " of the oracle";
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, AttentionForwardSmolLm2, ::testing::Values("00", "14"),
                         [](const auto &info) { return std::string("layer") + info.param; });

}  // namespace
}  // namespace flydsl::test
