// Checks that the attention operators share and that are not about one tensor.
#pragma once

#include "flydsl_aot/types.h"
#include "src/status/status.h"

namespace flydsl {

// Bounds not below -1, and an anchor wherever one of them is finite.
Status check_mask(const flydsl_aot_mask &mask);

}  // namespace flydsl
