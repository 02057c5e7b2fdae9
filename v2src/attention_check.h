// Checks that the attention operators share and that are not about one tensor.
#pragma once

#include "flydsl_aot/types.h"
#include "src/status/status.h"

namespace flydsl {

// Bounds not below -1, and an anchor wherever one of them is finite.
Status check_mask(const flydsl_aot_mask &mask);

// With a block table: `seqused_k` is given, and `k`, (blocks, Hkv, block size, D), has blocks of a power
// of two.
Status check_paged_keys(const flydsl_aot_tensor &seqused_k, const flydsl_aot_tensor &k);

}  // namespace flydsl
