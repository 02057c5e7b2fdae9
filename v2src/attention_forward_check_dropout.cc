// Checks of dropout: probability, seed and offset, the output of what was kept.
#include "v2src/attention_forward_check.h"
#include "v2src/call_recording.h"

namespace flydsl::attention_forward {
namespace {

constexpr const char *kScoreAxes[] = {"B", "Hq", "Sq", "Sk"};

Status check_numbers(const Params &params) {
  const struct {
    const char *name;
    const void *pointer;
  } pointers[] = {{"dropout_seed_device", params.dropout_seed_device},
                  {"dropout_offset_device", params.dropout_offset_device},
                  {"dropout_seed_out", params.dropout_seed_out},
                  {"dropout_offset_out", params.dropout_offset_out}};
  for (int i = 0; i < 4; ++i) {
    const void *pointer = pointers[i].pointer;
    if (reinterpret_cast<uint64_t>(pointer) % sizeof(uint64_t) != 0) {
      return error(FLYDSL_AOT_INVALID_POINTER, "%s is %p, not aligned to 8 bytes", pointers[i].name,
                   pointer);
    }
    CallRecording::compares(pointer);
    // Work-groups read the inputs while one writes the outputs.
    for (int other = i + 1; other < 4; ++other) {
      if (!pointer || pointer != pointers[other].pointer) continue;
      return error(FLYDSL_AOT_INVALID_POINTER, "%s and %s are the same: %p", pointers[i].name,
                   pointers[other].name, pointer);
    }
  }
  return {};
}

Status check_kept(const Params &params, const Sizes &sizes, Outputs outputs, bool query) {
  const Operand kept = {"kept", &params.kept, kScoreAxes};
  if (params.kept.dtype != FLYDSL_AOT_BOOL) {
    return error(FLYDSL_AOT_INVALID_DTYPE, "kept is %s (number %d); it must be bool",
                 flydsl_aot_dtype_name(params.kept.dtype), params.kept.dtype);
  }
  FLYDSL_RETURN_IF_ERROR(check_shape(kept, 4));
  const int64_t expected[] = {sizes.batches, sizes.heads_q, sizes.seq_q, sizes.seq_k};
  for (int axis = 0; axis < 4; ++axis) {
    if (params.kept.sizes[axis] == expected[axis]) continue;
    return error(FLYDSL_AOT_INVALID_SHAPE, "kept has %s = %lld (axis %d); it must be %lld",
                 kScoreAxes[axis], static_cast<long long>(params.kept.sizes[axis]), axis,
                 static_cast<long long>(expected[axis]));
  }
  FLYDSL_RETURN_IF_ERROR(check_strides(kept));
  FLYDSL_RETURN_IF_ERROR(check_no_self_overlap(kept));
  FLYDSL_RETURN_IF_ERROR(check_data(kept, query));
  return query ? Status() : check_input_apart(outputs, kept);
}

}  // namespace

Status check_dropout(const Params &params, const Sizes &sizes, Outputs outputs, bool query) {
  if (!(params.dropout_p >= 0 && params.dropout_p < 1)) {
    return error(FLYDSL_AOT_INVALID_ARGUMENT, "dropout_p is %g; it must be at least 0 and below 1",
                 static_cast<double>(params.dropout_p));
  }
  FLYDSL_RETURN_IF_ERROR(check_numbers(params));
  return present(params.kept) ? check_kept(params, sizes, outputs, query) : Status();
}

}  // namespace flydsl::attention_forward
