// Checks of cu_seqlens, seqused and max_seqlen.
#include <array>

#include "v2src/attention_forward_check.h"

namespace flydsl::attention_forward {
namespace {

constexpr const char *kStartAxes[] = {"B + 1"};
constexpr const char *kLengthAxes[] = {"B"};

struct Lengths {
  Operand operand;
  int64_t size;  // that it must have
};

// The four tensors; `batches` is B.
std::array<Lengths, 4> lengths_of(const Params &params, int64_t batches) {
  return {{{{"cu_seqlens_q", &params.cu_seqlens_q, kStartAxes}, batches + 1},
           {{"cu_seqlens_k", &params.cu_seqlens_k, kStartAxes}, batches + 1},
           {{"seqused_q", &params.seqused_q, kLengthAxes}, batches},
           {{"seqused_k", &params.seqused_k, kLengthAxes}, batches}}};
}

// B, as the first tensor that has it says.
struct Batches {
  const char *source;
  int64_t value;
};
Batches batches_of(const Params &params) {
  if (!present(params.cu_seqlens_q)) return {"q has B", params.q.sizes[kBatch]};
  return {"cu_seqlens_q has B + 1 elements, B", params.cu_seqlens_q.sizes[0] - 1};
}

Status check_numbers(const Operand &operand) {
  const flydsl_aot_tensor &tensor = *operand.tensor;
  if (tensor.dtype != FLYDSL_AOT_INT32) {
    return error(FLYDSL_AOT_INVALID_DTYPE, "%s is %s (number %d); it must be int32", operand.name,
                 flydsl_aot_dtype_name(tensor.dtype), tensor.dtype);
  }
  FLYDSL_RETURN_IF_ERROR(check_shape(operand, 1));
  FLYDSL_RETURN_IF_ERROR(check_strides(operand));
  return check_last_axis_contiguous(operand);
}

Status check_longest(const char *name, int64_t longest, const char *with, bool given) {
  if (given ? longest >= 0 : longest == 0) return {};
  return error(FLYDSL_AOT_INVALID_ARGUMENT,
               "%s is %lld; it must be 0 or more with %s, and 0 without", name,
               static_cast<long long>(longest), with);
}

}  // namespace

Status check_lengths(const Params &params) {
  for (const Lengths &lengths : lengths_of(params, 0)) {
    if (present(*lengths.operand.tensor)) FLYDSL_RETURN_IF_ERROR(check_numbers(lengths.operand));
  }
  const Batches batches = batches_of(params);
  if (batches.value < 0) {
    return error(FLYDSL_AOT_INVALID_SHAPE,
                 "cu_seqlens_q has no elements; it must have B + 1, at least 1");
  }
  const auto all = lengths_of(params, batches.value);
  for (const auto &[operand, size] : all) {
    if (!present(*operand.tensor) || operand.tensor->sizes[0] == size) continue;
    return error(
        FLYDSL_AOT_INVALID_SHAPE, "%s has %lld elements; it must have %s = %lld (%s = %lld)",
        operand.name, static_cast<long long>(operand.tensor->sizes[0]), operand.axes[0],
        static_cast<long long>(size), batches.source, static_cast<long long>(batches.value));
  }
  // Who has a batch axis on the keys' side.
  const flydsl_aot_tensor &keys = present(params.block_table) ? params.block_table : params.k;
  if (!present(params.cu_seqlens_k) && keys.sizes[kBatch] != batches.value) {
    return error(FLYDSL_AOT_INVALID_SHAPE, "%s has B = %lld; %s = %lld",
                 &keys == &params.k ? "k" : "block_table",
                 static_cast<long long>(keys.sizes[kBatch]), batches.source,
                 static_cast<long long>(batches.value));
  }
  FLYDSL_RETURN_IF_ERROR(check_longest("max_seqlen_q", params.max_seqlen_q, "cu_seqlens_q",
                                       present(params.cu_seqlens_q)));
  return check_longest("max_seqlen_k", params.max_seqlen_k, "cu_seqlens_k or block_table",
                       present(params.cu_seqlens_k) || present(params.block_table));
}

Status check_lengths_memory(const Params &params, Outputs outputs, bool query) {
  for (const auto &[operand, size] : lengths_of(params, 0)) {
    if (!present(*operand.tensor)) continue;
    FLYDSL_RETURN_IF_ERROR(check_data(operand, query));
    if (!query) FLYDSL_RETURN_IF_ERROR(check_input_apart(outputs, operand));
  }
  return {};
}

}  // namespace flydsl::attention_forward
