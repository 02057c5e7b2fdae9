// The key changes with everything that decides about the code, and with nothing else.
#include "src/jit/key.h"

#include <gtest/gtest.h>

#include <set>

namespace flydsl::test {
namespace {

using jit::Key;
using jit::Source;

TEST(Key, EveryInputCountsAndNoTwoListsMeet) {
  const std::vector<const char *> options = {"-O3", "-g"}, joined = {"-O3-g"},
                                  swapped = {"-g", "-O3"};
  const std::vector<Source> sources = {{"a", "bc"}, {"d", "e"}},
                            other_text = {{"a", "bc"}, {"d", "f"}},
                            moved = {{"ab", "c"}, {"d", "e"}}, one = {{"a", "bcde"}};
  const Key key = jit::key_of("c 1", "gfx950", options, sources);
  EXPECT_EQ(key, jit::key_of("c 1", "gfx950", options, sources));
  const Key others[] = {key,
                        jit::key_of("c 2", "gfx950", options, sources),
                        jit::key_of("c 1", "gfx942", options, sources),
                        jit::key_of("c 1g", "fx950", options, sources),
                        jit::key_of("c 1", "gfx950", joined, sources),
                        jit::key_of("c 1", "gfx950", swapped, sources),
                        jit::key_of("c 1", "gfx950", {}, sources),
                        jit::key_of("c 1", "gfx950", options, other_text),
                        jit::key_of("c 1", "gfx950", options, moved),
                        jit::key_of("c 1", "gfx950", options, one)};
  std::set<std::string> names;
  for (const Key &other : others) {
    names.insert(other.text());
    EXPECT_EQ(other.text().size(), 32u);
    EXPECT_EQ(other.text().find_first_not_of("0123456789abcdef"), std::string::npos);
  }
  EXPECT_EQ(names.size(), std::size(others));
}

}  // namespace
}  // namespace flydsl::test
