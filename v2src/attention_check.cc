#include "v2src/attention_check.h"

#include <bit>

#include "v2src/tensor_check.h"

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

Status check_paged_keys(const flydsl_aot_tensor &seqused_k, const flydsl_aot_tensor &k) {
  if (!present(seqused_k)) {
    return error(FLYDSL_AOT_INVALID_ARGUMENT,
                 "block_table is given without seqused_k, the length of each sequence");
  }
  const int64_t block_size = k.sizes[2];
  if (block_size > 0 && std::has_single_bit(static_cast<uint64_t>(block_size))) return {};
  return error(FLYDSL_AOT_UNSUPPORTED_SIZE,
               "k has blocks of %lld keys (axis 2); with block_table a power of two is supported",
               static_cast<long long>(block_size));
}

}  // namespace flydsl
