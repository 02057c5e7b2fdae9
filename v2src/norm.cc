// The check and the key of norms of rows.
#include "v2src/norm.h"

#include <cmath>

#include "v2src/attention_check.h"
#include "v2src/plain_look.h"

namespace flydsl::norm {
namespace {

constexpr const char *kColumnAxes[] = {"N"};
constexpr const char *kTwoScaleAxes[] = {"M", "ceil(N / 32)"};
constexpr const char *kThreeScaleAxes[] = {"M0", "M1", "ceil(N / 32)"};
constexpr int64_t kScaleBlock = 32;

struct Operands {
  Operand x, weight, bias, residual, sum, out, out_scale, mean, rstd;
};

Operands operands_of(const Params &params) {
  const char *const *axes = row_axes(params.x->rank);
  const char *const *scale_axes = params.x->rank == 3 ? kThreeScaleAxes : kTwoScaleAxes;
  return {{"x", params.x, axes},
          {"weight", params.weight, kColumnAxes},
          {"bias", params.bias, kColumnAxes},
          {"residual", params.residual, axes},
          {"sum", params.sum, axes},
          {"out", params.out, axes},
          {"out_scale", params.out_scale, block_scaled(params) ? scale_axes : axes},
          {"mean", params.mean, axes},
          {"rstd", params.rstd, axes}};
}

Status check_numbers(const Params &params) {
  if (!std::isfinite(params.eps) || params.eps < 0) {
    return error(FLYDSL_AOT_INVALID_SCALE, "eps is %g; it must be finite and 0 or more",
                 static_cast<double>(params.eps));
  }
  const float offset = params.weight_offset;
  if (offset != 0 && offset != 1) {
    return error(FLYDSL_AOT_INVALID_ARGUMENT, "weight_offset is %g; it must be 0 or 1",
                 static_cast<double>(offset));
  }
  if (offset != 0 && !present(*params.weight))
    return error(FLYDSL_AOT_INVALID_ARGUMENT, "weight_offset is 1, but there is no weight");
  if (params.reserved == 0) return {};
  return error(FLYDSL_AOT_INVALID_ARGUMENT, "reserved is %u; it must be 0", params.reserved);
}

Status check_dtypes(const Params &params, const Operands &all) {
  const flydsl_aot_dtype dtype = params.x->dtype;
  if (!known_dtype(dtype))
    return error(FLYDSL_AOT_INVALID_DTYPE, "x has the unknown dtype number %d", dtype);
  if (!is_real(dtype)) {
    return error(FLYDSL_AOT_UNSUPPORTED_DTYPE, "x is %s; supported: fp32, fp16, bf16",
                 flydsl_aot_dtype_name(dtype));
  }
  for (const Operand *operand : {&all.residual, &all.sum})
    if (present(*operand->tensor)) FLYDSL_RETURN_IF_ERROR(check_dtype_is(*operand, dtype));
  for (const Operand *operand : {&all.mean, &all.rstd})
    if (present(*operand->tensor))
      FLYDSL_RETURN_IF_ERROR(check_dtype_is(*operand, FLYDSL_AOT_FP32));
  if (!quantised(params)) {
    if (params.out->dtype != dtype) {
      return error(FLYDSL_AOT_INVALID_DTYPE,
                   "out is %s (number %d); it must have x's dtype, %s, or be e4m3 or e5m2",
                   flydsl_aot_dtype_name(params.out->dtype), params.out->dtype,
                   flydsl_aot_dtype_name(dtype));
    }
    if (!present(*params.out_scale)) return {};
    return error(FLYDSL_AOT_INVALID_ARGUMENT, "out_scale is given, but out is %s, not quantised",
                 flydsl_aot_dtype_name(params.out->dtype));
  }
  if (!present(*params.out_scale)) {
    return error(FLYDSL_AOT_INVALID_SHAPE, "out is %s, but out_scale is absent (rank 0)",
                 flydsl_aot_dtype_name(params.out->dtype));
  }
  if (block_scaled(params) || params.out_scale->dtype == FLYDSL_AOT_FP32) return {};
  return error(FLYDSL_AOT_INVALID_DTYPE,
               "out_scale is %s (number %d); it must be fp32 (a number for each row) or e8m0 (for "
               "32 neighbours)",
               flydsl_aot_dtype_name(params.out_scale->dtype), params.out_scale->dtype);
}

Status check_block_scales(const Operands &all) {
  const int32_t rank = all.x.tensor->rank;
  FLYDSL_RETURN_IF_ERROR(check_shape(all.out_scale, rank));
  for (int axis = 0; axis + 1 < rank; ++axis)
    FLYDSL_RETURN_IF_ERROR(check_same_size(all.x, axis, all.out_scale, axis));
  const int64_t length = all.x.tensor->sizes[rank - 1];
  const int64_t blocks = length / kScaleBlock + (length % kScaleBlock != 0);
  if (all.out_scale.tensor->sizes[rank - 1] == blocks) return {};
  return error(FLYDSL_AOT_INVALID_SHAPE,
               "out_scale has %lld scales a row (axis %d); x has N = %lld, which needs %lld",
               static_cast<long long>(all.out_scale.tensor->sizes[rank - 1]), rank - 1,
               static_cast<long long>(length), static_cast<long long>(blocks));
}

Status check_shapes(const Params &params, const Operands &all) {
  FLYDSL_RETURN_IF_ERROR(check_rows(all.x));
  FLYDSL_RETURN_IF_ERROR(check_like(all.out, all.x));
  for (const Operand *operand : {&all.weight, &all.bias})
    if (present(*operand->tensor)) FLYDSL_RETURN_IF_ERROR(check_per_column(*operand, all.x));
  for (const Operand *operand : {&all.residual, &all.sum})
    if (present(*operand->tensor)) FLYDSL_RETURN_IF_ERROR(check_like(*operand, all.x));
  if (present(*params.sum) && !present(*params.residual))
    return error(FLYDSL_AOT_INVALID_ARGUMENT, "sum is given, but there is no residual");
  for (const Operand *operand : {&all.mean, &all.rstd})
    if (present(*operand->tensor)) FLYDSL_RETURN_IF_ERROR(check_per_row(*operand, all.x));
  if (!present(*params.out_scale)) return {};
  return block_scaled(params) ? check_block_scales(all) : check_per_row(all.out_scale, all.x);
}

Status check_memory(const Params &params, const Operands &all, bool query) {
  const Operand *const operands[] = {&all.x,   &all.weight,    &all.bias, &all.residual, &all.sum,
                                     &all.out, &all.out_scale, &all.mean, &all.rstd};
  for (const Operand *operand : operands) {
    if (!present(*operand->tensor)) continue;
    FLYDSL_RETURN_IF_ERROR(check_strides(*operand));
    FLYDSL_RETURN_IF_ERROR(check_data(*operand, query));
  }
  for (const Operand *operand : {&all.x, &all.weight, &all.bias, &all.residual, &all.sum, &all.out})
    if (present(*operand->tensor)) FLYDSL_RETURN_IF_ERROR(check_last_axis_contiguous(*operand));
  const bool sum_in_x = same_view(*params.sum, *params.x);
  for (const Operand *output : {&all.sum, &all.out, &all.out_scale, &all.mean, &all.rstd}) {
    if (!present(*output->tensor)) continue;
    FLYDSL_RETURN_IF_ERROR(check_no_self_overlap(*output));
    for (const Operand *other : operands) {
      if (other == output || !present(*other->tensor)) continue;
      const bool in_place = (output == &all.sum && (other == &all.x || other == &all.residual)) ||
                            (output == &all.out && other == &all.x && !sum_in_x);
      if (in_place && same_view(*output->tensor, *other->tensor)) continue;
      FLYDSL_RETURN_IF_ERROR(check_apart(*output, *other));
    }
  }
  return {};
}

// Whether everything is plain to see right, of a call that does not quantise. Outputs in the place of inputs are what may_share allows.
template <int rank>
bool is_plain(const Params &params) {
  using Is = PlainLook::Is;
  using Last = PlainLook::Last;
  const flydsl_aot_tensor &x = *params.x, &residual = *params.residual, &sum = *params.sum;
  const flydsl_aot_tensor &out = *params.out, &weight = *params.weight, &bias = *params.bias;
  PlainLook look;
  struct Seen {
    const flydsl_aot_tensor *tensor;
    PlainLook::Memory memory;
  };
  const Seen inputs[] = {{&x, look.tensor<rank, Is::kInput>(x)},
                         {&residual, look.if_present<rank, Is::kInput>(residual)},
                         {&weight, look.if_present<1, Is::kInput>(weight)},
                         {&bias, look.if_present<1, Is::kInput>(bias)}};
  const Seen outputs[] = {
      {&out, look.tensor<rank, Is::kOutput>(out)},
      {&sum, look.if_present<rank, Is::kOutput>(sum)},
      {params.mean, look.if_present<rank - 1, Is::kOutput, Last::kAny>(*params.mean)},
      {params.rstd, look.if_present<rank - 1, Is::kOutput, Last::kAny>(*params.rstd)}};
  const auto may_share = [&](const flydsl_aot_tensor &output, const flydsl_aot_tensor &input) {
    if (output.data != input.data) return false;
    const bool in_place = (&output == &sum && (&input == &x || &input == &residual)) ||
                          (&output == &out && &input == &x);
    return in_place && same_view(output, input);
  };
  for (size_t i = 0; i < std::size(outputs); ++i) {
    if (!present(*outputs[i].tensor)) continue;
    for (const Seen &input : inputs)
      if (present(*input.tensor) && !may_share(*outputs[i].tensor, *input.tensor))
        look.expect_apart(outputs[i].memory, input.memory);
    for (size_t j = 0; j < i; ++j) look.expect_apart(outputs[i].memory, outputs[j].memory);
  }
  look.expect(is_real(x.dtype) && out.dtype == x.dtype);
  look.expect_same_sizes<rank>(x, out);
  for (const flydsl_aot_tensor *like : {&residual, &sum}) {
    if (!present(*like)) continue;
    look.expect_same_sizes<rank>(x, *like);
    look.expect(like->dtype == x.dtype);
  }
  look.expect(present(residual) || !present(sum));
  for (const flydsl_aot_tensor *of_columns : {&weight, &bias}) {
    if (!present(*of_columns)) continue;
    look.expect(of_columns->sizes[0] == x.sizes[rank - 1] && is_real(of_columns->dtype));
  }
  for (const flydsl_aot_tensor *of_rows : {params.mean, params.rstd}) {
    if (!present(*of_rows)) continue;
    look.expect_same_sizes<rank - 1>(x, *of_rows);
    look.expect(of_rows->dtype == FLYDSL_AOT_FP32);
  }
  if constexpr (rank == 3) look.expect((x.sizes[0] * x.sizes[1]) >> 32 == 0);
  return look.all_plain() && check_numbers(params).ok();
}

bool is_plain(const Params &params) {
  if (present(*params.out_scale)) return false;
  return params.x->rank == 3 ? is_plain<3>(params) : is_plain<2>(params);
}

}  // namespace

Status check(const Params &params, bool query) {
  if (!query && is_plain(params)) return {};
  const Operands all = operands_of(params);
  FLYDSL_RETURN_IF_ERROR(check_required({&all.x, &all.out}, "x and out"));
  FLYDSL_RETURN_IF_ERROR(check_numbers(params));
  FLYDSL_RETURN_IF_ERROR(check_dtypes(params, all));
  FLYDSL_RETURN_IF_ERROR(check_shapes(params, all));
  return check_memory(params, all, query);
}

select::Problem key_of(const Params &params) {
  const Rows rows = rows_of(*params.x);
  const uint64_t element_bytes = dtype_bytes(params.x->dtype);
  const bool bytes = quantised(params);
  select::Problem key{};
  const auto mask = [](const flydsl_aot_tensor &tensor) {
    return present(tensor) ? alignment_mask(tensor) : 0;
  };
  key.align_bytes = alignment_of({mask(*params.x), mask(*params.residual), mask(*params.sum),
                                  mask(*params.weight), mask(*params.bias),
                                  mask(*params.out) * (bytes ? element_bytes : 1),
                                  static_cast<uint64_t>(rows.length) * element_bytes});
  key.seq_q = rows.count();
  key.seq_k = static_cast<uint64_t>(rows.length);
  return key;
}

}  // namespace flydsl::norm
