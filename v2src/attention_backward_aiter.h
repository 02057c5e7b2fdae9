// AITER's assembly kernels for attention_backward (codegen/import/aiter.py): which problems they take, and their arguments. They add up
// dq in fp32 by atomic operations, whose order differs from run to run, so that dq does in its last bits.
#pragma once

#include <optional>

#include "v2src/attention_backward.h"

namespace flydsl::attention_backward::aiter {

// As codegen/import/aiter.py says; a test holds them together.
constexpr module::KernargContract kContract = {0xa6fd9fd3afb075b0ull, 704};

// Of a problem that these kernels take: the functional key's field `mask` that their instances have.
constexpr uint64_t kMaskNone = 8, kMaskCausal = 9;
std::optional<uint64_t> mask_of(const Problem &problem);

// Launches the chosen kernel, which is one of theirs, between prepare_rows and convert_rows, whose arguments `ours` are.
Status run(const Launch &launch, const Problem &problem, const Kernarg &ours);

}  // namespace flydsl::attention_backward::aiter
