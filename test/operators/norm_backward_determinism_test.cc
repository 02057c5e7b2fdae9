// Gradients of norms are the same bits, however often they are computed, by however many threads and in whatever order of waves and
// work-groups (FLYDSL_EMU_MEMORY=random), and right each time.
#include <gtest/gtest.h>

#include <string>

#include "test/support/library.h"
#include "test/support/setting.h"
#include "tools/verify/norm_backward_case.h"

namespace flydsl::test {
namespace {

using namespace verify;

struct Problem {
  const char *name, *line;
  bool centred;
};

class NormBackwardDeterminism : public ::testing::TestWithParam<Problem> {};

TEST_P(NormBackwardDeterminism, EveryRunThreadCountAndOrderGivesTheSameBits) {
  const NormBackwardSpec spec =
      parse_norm_backward_spec(std::string("case ") + GetParam().line, GetParam().centred);
  const NormBackwardNumbers numbers = norm_backward_numbers(spec);
  const NormBackwardReference reference = norm_backward_reference(spec, numbers);
  const NormBackwardResult first = call_norm_backward(emulator(), spec, numbers);
  const auto expect_right = [&](const NormBackwardResult &result, const std::string &what) {
    ASSERT_EQ(result.status, FLYDSL_AOT_OK) << what << ": " << result.message;
    EXPECT_EQ(result.stray_write, "") << what;
    EXPECT_EQ(judge_norm_backward(spec, reference, result).fault, "") << what;
  };
  expect_right(first, "first");
  const auto expect_the_same = [&](const std::string &what) {
    const NormBackwardResult again = call_norm_backward(emulator(), spec, numbers);
    expect_right(again, what);
    EXPECT_TRUE(same_bits(again, first)) << what;
  };
  for (int run = 2; run <= 3; ++run) expect_the_same("run " + std::to_string(run));
  for (const char *threads : {"1", "2", "5"}) {
    const Setting setting("FLYDSL_EMU_THREADS", threads);
    expect_the_same(std::string(threads) + " threads");
  }
  for (const char *memory : {"strict", "random:1", "random:2", "random:3"}) {
    const Setting setting("FLYDSL_EMU_MEMORY", memory);
    expect_the_same(memory);
    const Setting one("FLYDSL_EMU_THREADS", "1");
    expect_the_same(std::string(memory) + ", one thread");
  }
}

constexpr Problem kProblems[] = {
    {"TeamsOfAWave", "dtype=bf16 m=3000 n=24 weight=same dsum=yes dweight=fp32", false},
    {"TeamsOfAGroup", "dtype=bf16 m=530 n=512 weight=same dweight=same dbias=fp32", true},
    {"AGroupARow", "dtype=fp16 m=300 n=2048 weight=fp32 dweight=fp32 dbias=same", true},
    {"Unaligned", "dtype=fp32 m=40 n=601 dx=dout dweight=same dbias=same", true},
    {"LongRows", "dtype=bf16 m=37 n=40000 weight=same dsum=yes dx=dsum dweight=fp32", false},
    {"LongUnalignedRows", "dtype=bf16 m=19 n=20001 weight=same dweight=fp32 dbias=fp32", true},
};
INSTANTIATE_TEST_SUITE_P(Problems, NormBackwardDeterminism, ::testing::ValuesIn(kProblems),
                         [](const auto &info) { return std::string(info.param.name); });

}  // namespace
}  // namespace flydsl::test
