// Seeds of randomised tests, which each says when it fails; FLYDSL_TEST_SEED=<number> replaces them.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace flydsl::test {

inline uint64_t test_seed(uint64_t fallback) {
  const char *text = std::getenv("FLYDSL_TEST_SEED");
  return text && *text ? std::strtoull(text, nullptr, 0) : fallback;
}

}  // namespace flydsl::test
