// AITER's assembly kernels for attention_forward (codegen/import/aiter.py): which problems they take, and their arguments.
#pragma once

#include <optional>

#include "v2src/attention_forward.h"

namespace flydsl::attention_forward::aiter {

// LAYOUT_ID and KERNARG_BYTES of codegen/import/aiter.py; a test holds them together.
constexpr module::KernargContract kContract = {0xd06718f7319a6d18ull, 512};

// Of a problem that these kernels take: the functional key's field `mask` that their instances have.
constexpr uint64_t kMaskNone = 8, kMaskCausal = 9;
std::optional<uint64_t> mask_of(const Problem &problem);

// Launches the chosen kernel, which is one of theirs.
Status run(const Launch &launch, const Problem &problem);

}  // namespace flydsl::attention_forward::aiter
