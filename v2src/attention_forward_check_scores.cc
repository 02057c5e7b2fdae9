// Checks of what changes scores or hides keys one by one: softcap, bias, ALiBi, sinks, boolean mask.
#include "v2src/attention_check.h"
#include "v2src/attention_forward_check.h"

namespace flydsl::attention_forward {
namespace {

constexpr const char *kScoreAxes[] = {"B", "Hq", "Sq", "Sk"};
constexpr const char *kBatchHeadAxes[] = {"B", "Hq"};
constexpr const char *kHeadAxes[] = {"Hq"};

Status check_dtype(const Operand &operand, flydsl_aot_dtype allowed, flydsl_aot_dtype or_this) {
  const flydsl_aot_dtype dtype = operand.tensor->dtype;
  if (dtype == allowed || dtype == or_this) return {};
  const bool one = allowed == or_this;
  return error(FLYDSL_AOT_INVALID_DTYPE, "%s is %s (number %d); it must be %s%s%s", operand.name,
               flydsl_aot_dtype_name(dtype), dtype, flydsl_aot_dtype_name(allowed),
               one ? "" : " or, as out, ", one ? "" : flydsl_aot_dtype_name(or_this));
}

// Each axis has the problem's size, or 1 and is broadcast.
Status check_sizes(const Operand &operand, const int64_t *sizes) {
  for (int axis = 0; axis < operand.tensor->rank; ++axis) {
    const int64_t size = operand.tensor->sizes[axis];
    if (size == sizes[axis] || size == 1) continue;
    return error(FLYDSL_AOT_INVALID_SHAPE, "%s has %s = %lld (axis %d); it must be %lld, or 1",
                 operand.name, operand.axes[axis], static_cast<long long>(size), axis,
                 static_cast<long long>(sizes[axis]));
  }
  return {};
}

Status check_memory(Outputs outputs, const Operand &operand, bool query) {
  FLYDSL_RETURN_IF_ERROR(check_strides(operand));
  FLYDSL_RETURN_IF_ERROR(check_data(operand, query));
  return query ? Status() : check_input_apart(outputs, operand);
}

}  // namespace

Status check_scores(const Params &params, const Sizes &sizes, Outputs outputs, bool query) {
  FLYDSL_RETURN_IF_ERROR(check_softcap(params.softcap));
  const int64_t score_sizes[] = {sizes.batches, sizes.heads_q, sizes.seq_q, sizes.seq_k};
  if (present(params.bias)) {
    const Operand bias = {"bias", &params.bias, kScoreAxes};
    FLYDSL_RETURN_IF_ERROR(check_dtype(bias, FLYDSL_AOT_FP32, params.out.dtype));
    FLYDSL_RETURN_IF_ERROR(check_shape(bias, 4));
    FLYDSL_RETURN_IF_ERROR(check_sizes(bias, score_sizes));
    FLYDSL_RETURN_IF_ERROR(check_memory(outputs, bias, query));
  }
  if (present(params.visible)) {
    const Operand visible = {"visible", &params.visible, kScoreAxes};
    FLYDSL_RETURN_IF_ERROR(check_dtype(visible, FLYDSL_AOT_BOOL, FLYDSL_AOT_BOOL));
    FLYDSL_RETURN_IF_ERROR(check_shape(visible, 4));
    FLYDSL_RETURN_IF_ERROR(check_sizes(visible, score_sizes));
    FLYDSL_RETURN_IF_ERROR(check_memory(outputs, visible, query));
  }
  if (present(params.alibi_slopes)) {
    const bool per_batch = params.alibi_slopes.rank == 2;
    const Operand slopes = {"alibi_slopes", &params.alibi_slopes,
                            per_batch ? kBatchHeadAxes : kHeadAxes};
    FLYDSL_RETURN_IF_ERROR(check_dtype(slopes, FLYDSL_AOT_FP32, FLYDSL_AOT_FP32));
    FLYDSL_RETURN_IF_ERROR(check_shape(slopes, per_batch ? 2 : 1));
    FLYDSL_RETURN_IF_ERROR(check_sizes(slopes, score_sizes + (per_batch ? 0 : 1)));
    FLYDSL_RETURN_IF_ERROR(check_memory(outputs, slopes, query));
  }
  if (present(params.sinks)) {
    const Operand sinks = {"sinks", &params.sinks, kHeadAxes};
    FLYDSL_RETURN_IF_ERROR(check_dtype(sinks, FLYDSL_AOT_FP32, FLYDSL_AOT_FP32));
    FLYDSL_RETURN_IF_ERROR(check_shape(sinks, 1));
    FLYDSL_RETURN_IF_ERROR(check_sizes(sinks, score_sizes + 1));
    FLYDSL_RETURN_IF_ERROR(check_memory(outputs, sinks, query));
  }
  return {};
}

}  // namespace flydsl::attention_forward
