// Which keys a query sees: causal_type and windows as the C ABI's mask.
#pragma once

#include "flydsl_aot/status.h"
#include "flydsl_aot/types.h"
#include "v2src/aotriton/call.h"
#include "v2src/aotriton/sequences.h"

namespace flydsl::aotriton {

// Whether it is known that every sequence has as many keys as queries: the two diagonals are then one.
bool has_one_diagonal(const Sequences &sequences);

// Reads the windows only where causal_type says that there are any.
flydsl_aot_status mask_of(const Call &call, const Sequences &sequences, flydsl_aot_mask *mask);

}  // namespace flydsl::aotriton
