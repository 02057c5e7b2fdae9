// Checks of a paged key-value cache.
#include "v2src/attention_check.h"
#include "v2src/attention_forward_check.h"

namespace flydsl::attention_forward {
namespace {

constexpr const char *kTableAxes[] = {"B", "blocks of a sequence"};

Operand table_of(const Params &params) {
  return {"block_table", &params.block_table, kTableAxes};
}

}  // namespace

Status check_paging(const Params &params) {
  if (!present(params.block_table)) return {};
  const Operand table = table_of(params);
  if (params.block_table.dtype != FLYDSL_AOT_INT32) {
    return error(FLYDSL_AOT_INVALID_DTYPE, "block_table is %s (number %d); it must be int32",
                 flydsl_aot_dtype_name(params.block_table.dtype), params.block_table.dtype);
  }
  FLYDSL_RETURN_IF_ERROR(check_shape(table, 2));
  FLYDSL_RETURN_IF_ERROR(check_strides(table));
  FLYDSL_RETURN_IF_ERROR(check_last_axis_contiguous(table));
  if (present(params.cu_seqlens_k)) {
    return error(FLYDSL_AOT_INVALID_ARGUMENT,
                 "block_table and cu_seqlens_k are both given; keys are either paged or packed");
  }
  return check_paged_keys(params.seqused_k, params.k);
}

Status check_paging_memory(const Params &params, Outputs outputs, bool query) {
  if (!present(params.block_table)) return {};
  FLYDSL_RETURN_IF_ERROR(check_data(table_of(params), query));
  return query ? Status() : check_input_apart(outputs, table_of(params));
}

}  // namespace flydsl::attention_forward
