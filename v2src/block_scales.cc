#include "v2src/block_scales.h"

namespace flydsl {

Status check_scale_layout(flydsl_aot_scale_layout layout) {
  if (layout == FLYDSL_AOT_SCALES_PLAIN || layout == FLYDSL_AOT_SCALES_SHUFFLED_32_8) return {};
  return error(FLYDSL_AOT_INVALID_ARGUMENT,
               "scale_layout is %d; it must be 0 (plain) or 1 (shuffled_32_8)", layout);
}

Status check_scale_dtype(const Operand &scale) {
  if (scale.tensor->dtype == FLYDSL_AOT_E8M0) return {};
  return error(FLYDSL_AOT_INVALID_DTYPE, "%s is %s (number %d); it must be e8m0", scale.name,
               flydsl_aot_dtype_name(scale.tensor->dtype), scale.tensor->dtype);
}

Status check_block_scales(const Operand &scale, const Operand &of, int64_t rows, int64_t k,
                          bool shuffled) {
  if (scale.tensor->rank != of.tensor->rank) {
    return error(FLYDSL_AOT_INVALID_SHAPE, "%s has rank %d; it must be that of %s, %d", scale.name,
                 scale.tensor->rank, of.name, of.tensor->rank);
  }
  FLYDSL_RETURN_IF_ERROR(check_shape(scale, of.tensor->rank));
  if (scale.tensor->rank == 3) FLYDSL_RETURN_IF_ERROR(check_same_size(of, 0, scale, 0));
  const int64_t blocks = k / kMxBlock;
  const int64_t want_rows = shuffled ? rounded_up(rows, 32) : rows;
  const int64_t want_blocks = shuffled ? rounded_up(blocks, 8) : blocks;
  const int32_t rank = scale.tensor->rank;
  const int64_t have_rows = scale.tensor->sizes[rank - 2];
  const int64_t have_blocks = scale.tensor->sizes[rank - 1];
  if (have_rows != want_rows || have_blocks != want_blocks) {
    return error(FLYDSL_AOT_INVALID_SHAPE,
                 "%s is %lld x %lld; %s has %lld rows and K = %lld, which need %lld x %lld%s",
                 scale.name, static_cast<long long>(have_rows), static_cast<long long>(have_blocks),
                 of.name, static_cast<long long>(rows), static_cast<long long>(k),
                 static_cast<long long>(want_rows), static_cast<long long>(want_blocks),
                 shuffled ? " (shuffled, padded to 32 rows and 8 columns)" : "");
  }
  if (!shuffled || empty(*scale.tensor)) return {};
  const int64_t row_stride = scale.tensor->strides[rank - 2],
                stride = scale.tensor->strides[rank - 1];
  if (row_stride == have_blocks && stride == 1) return {};
  return error(
      FLYDSL_AOT_INVALID_STRIDE,
      "%s has strides %lld and %lld on its last axes; shuffled scales are dense: %lld and 1",
      scale.name, static_cast<long long>(row_stride), static_cast<long long>(stride),
      static_cast<long long>(have_blocks));
}

}  // namespace flydsl
