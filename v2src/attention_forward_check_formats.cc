// Checks of the element types of q, k, v and out, and of what 8-bit ones are multiplied by.
#include "v2src/attention_check.h"
#include "v2src/attention_forward_check.h"
#include "v2src/types.h"

namespace flydsl::attention_forward {
namespace {

// `operand` has none of the allowed types.
Status wrong_dtype(const char *operand, const flydsl_aot_tensor &tensor, const char *allowed) {
  return error(FLYDSL_AOT_INVALID_DTYPE, "%s is %s (number %d); %s", operand,
               flydsl_aot_dtype_name(tensor.dtype), tensor.dtype, allowed);
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

Status check_descale(const Params &params, const Sizes &sizes, Outputs outputs, bool query) {
  const Descale all[] = {{"q_descale", &params.q_descale, "q", &params.q, sizes.batches,
                          sizes.heads_q, sizes.heads_kv},
                         {"k_descale", &params.k_descale, "k", &params.k, sizes.batches,
                          sizes.heads_kv, sizes.heads_kv},
                         {"v_descale", &params.v_descale, "v", &params.v, sizes.batches,
                          sizes.heads_kv, sizes.heads_kv}};
  for (const Descale &descale : all) {
    if (!present(*descale.tensor)) continue;
    FLYDSL_RETURN_IF_ERROR(flydsl::check_descale(descale, query));
    if (!query) FLYDSL_RETURN_IF_ERROR(check_input_apart(outputs, operand_of(descale)));
  }
  return {};
}

}  // namespace flydsl::attention_forward
