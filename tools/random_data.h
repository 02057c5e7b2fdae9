// Inputs of benchmarks: normally distributed values, the same in every run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "flydsl_aot/flydsl_aot.h"

namespace flydsl::tools {

inline constexpr uint64_t kRandomSeed = 1;
// Elements of the block that is repeated: a prime, so that rows and heads do not repeat with it.
inline constexpr size_t kRandomBlockElements = 524287;

// 64 random bits: splitmix64 (Steele, Lea, Flood, OOPSLA 2014), the same values with every standard library.
uint64_t random_bits(uint64_t &state);

// Random elements of `dtype`, with mean 0 and variance 1, other ones for each `stream`; of bool, half of them true.
// Refuses other types.
std::vector<uint8_t> random_block(const std::string &name, flydsl_aot_dtype dtype, uint64_t stream);

}  // namespace flydsl::tools
