// Lines and lists of cases: what is misspelt is said.
#include "tools/verify/case_line.h"

#include <gtest/gtest.h>

#include <functional>

#include "tools/verify/attention_forward_spec.h"
#include "tools/verify/attention_operators.h"
#include "tools/verify/case_list.h"

namespace flydsl::verify {
namespace {

// The message of the CaseError that `call` ends with.
std::string error_of(const std::function<void()> &call) {
  try {
    call();
  } catch (const CaseError &error) {
    return error.what();
  }
  return "no error";
}

std::string error_of_spec(const std::string &line) {
  return error_of([&] { parse_attention_spec(line); });
}

bool holds(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

TEST(CaseLine, UnknownKeyIsNamedWithThoseThereAre) {
  const std::string error = error_of_spec("smoke_a sq=3 casual=yes");
  EXPECT_TRUE(holds(error, "case smoke_a: key 'casual' is unknown; there is ")) << error;
  EXPECT_TRUE(holds(error, " mask, ") && holds(error, " sinks, ")) << error;
}

TEST(CaseLine, FormIsChecked) {
  EXPECT_TRUE(holds(error_of_spec("smoke_a sq"), "'sq' must be key=value"));
  EXPECT_TRUE(holds(error_of_spec("smoke_a sq="), "'sq=' must be key=value"));
  EXPECT_TRUE(holds(error_of_spec("smoke_a sq=1 sk=2 sq=1"), "'sq' is given twice"));
  EXPECT_TRUE(holds(error_of_spec("sq=1"), "begins with its name"));
  EXPECT_TRUE(holds(error_of_spec(""), "begins with its name"));
}

TEST(CaseLine, ValuesAreChecked) {
  const struct {
    const char *setting, *words;
  } bad[] = {
      {"sq=12x", "sq=12x: '12x' must be an integer from 0 to "},
      {"sq=-1", "must be an integer from 0 to "},
      {"sq=99999999999999999999", "must be an integer"},
      {"dtype=fp32", "dtype=fp32: must be one of bf16, fp16"},
      {"scale=fast", "'fast' must be a number"},
      {"mask=causal", "must be none, causal:ANCHOR or LEFT,RIGHT:ANCHOR"},
      {"mask=3:top-left", "must be none, causal:ANCHOR"},
      {"mask=1,2:left", "must be none, causal:ANCHOR"},
      {"q_lengths=1", "must begin with used:, packed: or packed-used:"},
      {"q_lengths=paged:1", "must begin with used:, packed: or packed-used:"},
      {"k_lengths=paged:1,1", "must have as many lengths as b, 1"},
      {"k_lengths=used:2", "'2' must be an integer from 0 to 1"},
      {"v=first", "must be normal, int, first:NUMBER"},
      {"v=normal+1", "must be normal or normal*NUMBER"},
      {"v=position%0", "'0' must be an integer from 1"},
      {"k_zero=sb", "must be letters of bhs, in this order"},
      {"q_place=offset", "must be tight, guarded, bshd"},
      {"q_place=tight:3", "must be tight, guarded, bshd"},
      {"dropout_seed=-1", "must be an integer from 0 to 2^64 - 1"},
      {"k_zero=b nan_v=1", "cannot be together with"},
      {"k_zero=b k_lengths=packed:1", "needs dense k and v"},
      {"inf_k=1 kv_dtype=e4m3", "e4m3 has no infinity"},
      {"b=16777216 sq=16777216", "more than 2^24 rows"},
      {"k_zero=b nan_hidden=yes", "cannot be together with"},
      {"q=k", "must be normal, int"},
      {"v=k v_place=slack", "v=k leaves v no place"},
      {"v=k d=64 dv=65", "k must have at least dv channels"},
  };
  for (const auto &one : bad) {
    const std::string error = error_of_spec(std::string("smoke_a ") + one.setting);
    EXPECT_TRUE(holds(error, "case smoke_a: ") && holds(error, one.words))
        << one.setting << ": " << error;
  }
}

TEST(CaseList, CommentsNamesAndSelection) {
  const std::vector<std::string> lines =
      case_lines("list", "# all\n\nsmoke_a sq=1 # one\r\n  full_b\nsmoke_ab sq=2\n");
  EXPECT_EQ(lines, (std::vector<std::string>{"smoke_a sq=1", "full_b", "smoke_ab sq=2"}));
  EXPECT_EQ(select_cases(lines, "smoke", "").size(), 2u);
  EXPECT_EQ(select_cases(lines, "smoke", "b"), (std::vector<std::string>{"smoke_ab sq=2"}));
  EXPECT_EQ(select_cases(lines, "", "^full_").size(), 1u);
  EXPECT_EQ(error_of([] { case_lines("list", "smoke_a\nsmoke_b\n smoke_a sq=2"); }),
            "list:3: case smoke_a is also line 1");
}

// What attention_decode does not take.
TEST(CaseLine, KeysOfAnotherOperatorAreRefused) {
  for (const char *setting : {"bias=fp32", "dropout=0.5", "q_lengths=used:1", "k_lengths=packed:1",
                              "k_lengths=packed-used:1", "q_dtype=e4m3"}) {
    const std::string line = std::string("smoke_a ") + setting;
    EXPECT_EQ(error_of_spec(line), "no error");
    EXPECT_TRUE(holds(error_of([&] { attention_decode_cases().read(line, 0); }),
                      "this operator has no such argument"))
        << setting;
  }
  attention_decode_cases().read("smoke_a k_lengths=paged:1", 0);
}

class CasesOfAnOperator : public ::testing::TestWithParam<const AttentionOperator *> {};
INSTANTIATE_TEST_SUITE_P(All, CasesOfAnOperator,
                         ::testing::Values(&attention_forward_cases(), &attention_decode_cases(),
                                           &attention_backward_cases()),
                         [](const auto &info) { return std::string(info.param->name); });

TEST_P(CasesOfAnOperator, EveryShippedCaseIsUnderstood) {
  const std::vector<std::string> lines = case_lines("shipped", GetParam()->cases);
  EXPECT_GT(lines.size(), 150u);
  for (const std::string &line : lines) {
    const std::string name = GetParam()->read(line, 0).name;
    EXPECT_TRUE(name.starts_with("smoke_") || name.starts_with("full_")) << name;
  }
}

TEST_P(CasesOfAnOperator, TheSameSeedIsTheSameCaseAndEverySeedIsUnderstood) {
  const auto line = GetParam()->fuzz;
  EXPECT_EQ(line(7), line(7));
  EXPECT_NE(line(7), line(8));
  for (uint64_t seed = 0; seed < 2000; ++seed) GetParam()->read(line(seed), 0);
}

}  // namespace
}  // namespace flydsl::verify
