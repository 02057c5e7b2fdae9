#include "v2src/attention_check.h"

#include <bit>
#include <cfloat>
#include <cmath>

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

Status check_required(std::initializer_list<const Operand *> operands, const char *names) {
  for (const Operand *operand : operands) {
    if (present(*operand->tensor)) continue;
    return error(FLYDSL_AOT_INVALID_SHAPE, "%s is absent (rank 0); %s are required", operand->name,
                 names);
  }
  return {};
}

Status check_heads(int64_t heads_q, int64_t heads_kv) {
  if (heads_q == 0 || (heads_kv > 0 && heads_q % heads_kv == 0)) return {};
  return error(FLYDSL_AOT_INVALID_SHAPE,
               "q has Hq = %lld heads, k and v have Hkv = %lld; Hq must be a multiple of Hkv",
               static_cast<long long>(heads_q), static_cast<long long>(heads_kv));
}

namespace {

bool fits_log2(float value) {
  return std::fabs(static_cast<double>(value)) * M_LOG2E <= static_cast<double>(FLT_MAX);
}

}  // namespace

Status check_scale(float scale) {
  if (std::isfinite(scale) && fits_log2(scale)) return {};
  return error(FLYDSL_AOT_INVALID_SCALE,
               "scale is %g; scale * log2(e) must be finite in fp32 (|scale| < 2.358e38)",
               static_cast<double>(scale));
}

Status check_softcap(float softcap) {
  if (softcap >= 0 && fits_log2(softcap)) return {};
  return error(FLYDSL_AOT_INVALID_ARGUMENT,
               "softcap is %g; it must be 0 (none) or more, and softcap * log2(e) finite in fp32",
               static_cast<double>(softcap));
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

bool is_wide(flydsl_aot_dtype dtype) {
  return dtype == FLYDSL_AOT_FP16 || dtype == FLYDSL_AOT_BF16;
}
bool is_float8(flydsl_aot_dtype dtype) {
  return dtype == FLYDSL_AOT_E4M3 || dtype == FLYDSL_AOT_E5M2;
}

Operand operand_of(const Descale &descale) {
  static constexpr const char *kBatchHeadAxes[] = {"B", "H"};
  static constexpr const char *kHeadAxes[] = {"H"};
  return {descale.name, descale.tensor, descale.tensor->rank == 2 ? kBatchHeadAxes : kHeadAxes};
}

Status check_descale(const Descale &descale, bool query) {
  const flydsl_aot_tensor &tensor = *descale.tensor;
  if (!is_float8(descale.scaled->dtype)) {
    return error(FLYDSL_AOT_INVALID_ARGUMENT,
                 "%s is given, but %s is %s; only e4m3 and e5m2 have one", descale.name, descale.of,
                 flydsl_aot_dtype_name(descale.scaled->dtype));
  }
  if (tensor.dtype != FLYDSL_AOT_FP32) {
    return error(FLYDSL_AOT_INVALID_DTYPE, "%s is %s (number %d); it must be fp32", descale.name,
                 flydsl_aot_dtype_name(tensor.dtype), tensor.dtype);
  }
  const Operand operand = operand_of(descale);
  const int rank = tensor.rank == 2 ? 2 : 1;
  FLYDSL_RETURN_IF_ERROR(check_shape(operand, rank));
  const int64_t heads = tensor.sizes[rank - 1];
  if (heads != 1 && heads != descale.heads && heads != descale.or_heads) {
    return error(FLYDSL_AOT_INVALID_SHAPE, "%s has H = %lld; it must be %lld, or 1", descale.name,
                 static_cast<long long>(heads), static_cast<long long>(descale.heads));
  }
  if (rank == 2 && tensor.sizes[0] != 1 && tensor.sizes[0] != descale.batches) {
    return error(FLYDSL_AOT_INVALID_SHAPE, "%s has B = %lld; it must be %lld, or 1", descale.name,
                 static_cast<long long>(tensor.sizes[0]), static_cast<long long>(descale.batches));
  }
  FLYDSL_RETURN_IF_ERROR(check_strides(operand));
  return check_data(operand, query);
}

}  // namespace flydsl
