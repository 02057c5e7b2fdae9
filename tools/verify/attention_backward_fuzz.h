// Random cases of attention_backward over the cross product of its features.
#pragma once

#include <cstdint>
#include <string>

namespace flydsl::verify {

// The line of case `seed`, named fuzz_<seed>: small enough for the emulator, a problem that must run.
std::string fuzz_attention_backward_line(uint64_t seed);

}  // namespace flydsl::verify
