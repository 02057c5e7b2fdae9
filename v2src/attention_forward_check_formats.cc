// Checks of the element types of q, k, v and out, and of what 8-bit ones are multiplied by.
#include "v2src/attention_forward_check.h"
#include "v2src/types.h"

namespace flydsl::attention_forward {
namespace {

constexpr const char *kBatchHeadAxes[] = {"B", "H"};
constexpr const char *kHeadAxes[] = {"H"};

bool is_wide(flydsl_aot_dtype dtype) {
  return dtype == FLYDSL_AOT_FP16 || dtype == FLYDSL_AOT_BF16;
}
bool is_float8(flydsl_aot_dtype dtype) {
  return dtype == FLYDSL_AOT_E4M3 || dtype == FLYDSL_AOT_E5M2;
}

// `operand` has none of the allowed types.
Status wrong_dtype(const char *operand, const flydsl_aot_tensor &tensor, const char *allowed) {
  return error(FLYDSL_AOT_INVALID_DTYPE, "%s is %s (number %d); %s", operand,
               flydsl_aot_dtype_name(tensor.dtype), tensor.dtype, allowed);
}

struct Descale {
  Operand operand;
  const char *of;  // the tensor that it scales
  const flydsl_aot_tensor *scaled;
  int64_t heads, or_heads;  // per head: one of these
};

Status check_one(const Params &params, const Descale &descale, int64_t batches, bool query) {
  const flydsl_aot_tensor &tensor = *descale.operand.tensor;
  const char *name = descale.operand.name;
  if (!is_float8(descale.scaled->dtype)) {
    return error(FLYDSL_AOT_INVALID_ARGUMENT,
                 "%s is given, but %s is %s; only e4m3 and e5m2 have one", name, descale.of,
                 flydsl_aot_dtype_name(descale.scaled->dtype));
  }
  if (tensor.dtype != FLYDSL_AOT_FP32) return wrong_dtype(name, tensor, "it must be fp32");
  const int rank = tensor.rank == 2 ? 2 : 1;
  FLYDSL_RETURN_IF_ERROR(check_shape(descale.operand, rank));
  const int64_t heads = tensor.sizes[rank - 1];
  if (heads != 1 && heads != descale.heads && heads != descale.or_heads) {
    return error(FLYDSL_AOT_INVALID_SHAPE, "%s has H = %lld; it must be %lld, or 1", name,
                 static_cast<long long>(heads), static_cast<long long>(descale.heads));
  }
  if (rank == 2 && tensor.sizes[0] != 1 && tensor.sizes[0] != batches) {
    return error(FLYDSL_AOT_INVALID_SHAPE, "%s has B = %lld; it must be %lld, or 1", name,
                 static_cast<long long>(tensor.sizes[0]), static_cast<long long>(batches));
  }
  FLYDSL_RETURN_IF_ERROR(check_strides(descale.operand));
  FLYDSL_RETURN_IF_ERROR(check_data(descale.operand, query));
  return query ? Status() : check_input_apart(params, descale.operand);
}

}  // namespace

Status check_formats(const Params &params) {
  const flydsl_aot_dtype q = params.q.dtype, k = params.k.dtype;
  if (!known_dtype(q)) {
    return error(FLYDSL_AOT_INVALID_DTYPE,
                 "q has dtype number %d, which is no dtype; supported: fp16, bf16, e4m3, e5m2", q);
  }
  if (!is_wide(q) && !is_float8(q)) {
    return error(FLYDSL_AOT_UNSUPPORTED_DTYPE, "q is %s; supported: fp16, bf16, e4m3, e5m2",
                 flydsl_aot_dtype_name(q));
  }
  if (k != q && !is_float8(k)) {
    return error(FLYDSL_AOT_INVALID_DTYPE,
                 "q is %s, but k is %s (number %d); it must have q's dtype or be e4m3 or e5m2",
                 flydsl_aot_dtype_name(q), flydsl_aot_dtype_name(k), k);
  }
  if (params.v.dtype != k) {
    return error(FLYDSL_AOT_INVALID_DTYPE,
                 "q is %s and k %s, but v is %s (number %d); it must have k's dtype",
                 flydsl_aot_dtype_name(q), flydsl_aot_dtype_name(k),
                 flydsl_aot_dtype_name(params.v.dtype), params.v.dtype);
  }
  if (is_wide(q) && params.out.dtype != q)
    return wrong_dtype("out", params.out, "it must have q's dtype");
  if (!is_wide(params.out.dtype)) return wrong_dtype("out", params.out, "it must be fp16 or bf16");
  if (present(params.lse) && params.lse.dtype != FLYDSL_AOT_FP32)
    return wrong_dtype("lse", params.lse, "it must be fp32");
  return {};
}

Status check_descale(const Params &params, const Sizes &sizes, bool query) {
  const auto axes = [](const flydsl_aot_tensor &tensor) {
    return tensor.rank == 2 ? kBatchHeadAxes : kHeadAxes;
  };
  const Descale all[] = {{{"q_descale", &params.q_descale, axes(params.q_descale)},
                          "q",
                          &params.q,
                          sizes.heads_q,
                          sizes.heads_kv},
                         {{"k_descale", &params.k_descale, axes(params.k_descale)},
                          "k",
                          &params.k,
                          sizes.heads_kv,
                          sizes.heads_kv},
                         {{"v_descale", &params.v_descale, axes(params.v_descale)},
                          "v",
                          &params.v,
                          sizes.heads_kv,
                          sizes.heads_kv}};
  for (const Descale &descale : all) {
    if (present(*descale.operand.tensor))
      FLYDSL_RETURN_IF_ERROR(check_one(params, descale, sizes.batches, query));
  }
  return {};
}

}  // namespace flydsl::attention_forward
