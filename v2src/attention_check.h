// Checks that the attention operators share and that are not about one tensor.
#pragma once

#include <initializer_list>

#include "flydsl_aot/types.h"
#include "src/status/status.h"
#include "v2src/tensor_check.h"

namespace flydsl {

// Bounds not below -1, and an anchor wherever one of them is finite.
Status check_mask(const flydsl_aot_mask &mask);

// All operands are there; `names` says which they are.
Status check_required(std::initializer_list<const Operand *> operands, const char *names);

// Hq is a multiple of Hkv.
Status check_heads(int64_t heads_q, int64_t heads_kv);

// Finite in fp32, also in units of log2.
Status check_scale(float scale);
Status check_softcap(float softcap);

// With a block table: `seqused_k` is given, and `k`, (blocks, Hkv, block size, D), has blocks of a power
// of two.
Status check_paged_keys(const flydsl_aot_tensor &seqused_k, const flydsl_aot_tensor &k);

// Element types that products run in, and those that are widened on the way to them.
bool is_wide(flydsl_aot_dtype dtype);
bool is_float8(flydsl_aot_dtype dtype);

// What an 8-bit tensor is multiplied by, (1), (H) or (B, H), any axis of size 1 broadcast.
struct Descale {
  const char *name;
  const flydsl_aot_tensor *tensor;
  const char *of;  // the tensor that it scales
  const flydsl_aot_tensor *scaled;
  int64_t batches;
  int64_t heads, or_heads;  // per head: one of these
};
Operand operand_of(const Descale &descale);
// `descale` is present.
Status check_descale(const Descale &descale, bool query);

}  // namespace flydsl
