#include "v2src/attention_check.h"

namespace flydsl {

Status check_mask(const flydsl_aot_mask &mask) {
  if (mask.left < FLYDSL_AOT_UNLIMITED || mask.right < FLYDSL_AOT_UNLIMITED) {
    return error(FLYDSL_AOT_INVALID_MASK,
                 "mask.left is %lld and mask.right %lld; allowed: -1 (unlimited), 0 or more",
                 static_cast<long long>(mask.left), static_cast<long long>(mask.right));
  }
  if (mask.anchor < FLYDSL_AOT_ANCHOR_NONE || mask.anchor > FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT) {
    return error(FLYDSL_AOT_INVALID_MASK,
                 "mask.anchor is %d; allowed: NONE (0), TOP_LEFT (1), BOTTOM_RIGHT (2)",
                 mask.anchor);
  }
  if (mask.reserved != 0)
    return error(FLYDSL_AOT_INVALID_MASK, "mask.reserved is %d; it must be 0", mask.reserved);
  const bool bounded = mask.left != FLYDSL_AOT_UNLIMITED || mask.right != FLYDSL_AOT_UNLIMITED;
  if (bounded && mask.anchor == FLYDSL_AOT_ANCHOR_NONE) {
    return error(FLYDSL_AOT_INVALID_MASK,
                 "mask.left is %lld and mask.right %lld without an anchor; a finite bound needs "
                 "TOP_LEFT (1) or BOTTOM_RIGHT (2), no mask is {-1, -1}",
                 static_cast<long long>(mask.left), static_cast<long long>(mask.right));
  }
  return {};
}

}  // namespace flydsl
