// Which attention_decode problems are refused, and with what message. The rules are those of
// include/flydsl_aot/attention_decode.h.
#include "v2src/attention_arguments.h"
#include "v2src/attention_check.h"
#include "v2src/attention_decode.h"
#include "v2src/head_dim_classes.h"
#include "v2src/plain_look.h"
#include "v2src/tensor_check.h"
#include "v2src/types.h"

namespace flydsl::attention_decode {
namespace {

constexpr const char *kQueryAxes[] = {"B", "Hq", "Sq", "D"};
constexpr const char *kKeyAxes[] = {"B", "Hkv", "Sk", "D"};
constexpr const char *kValueAxes[] = {"B", "Hkv", "Sk", "Dv"};
constexpr const char *kPagedKeyAxes[] = {"blocks", "Hkv", "block size", "D"};
constexpr const char *kPagedValueAxes[] = {"blocks", "Hkv", "block size", "Dv"};
constexpr const char *kOutAxes[] = {"B", "Hq", "Sq", "Dv"};
constexpr const char *kLseAxes[] = {"B", "Hq", "Sq"};
constexpr const char *kTableAxes[] = {"B", "blocks of a sequence"};
constexpr const char *kLengthAxes[] = {"B"};
constexpr const char *kBatchHeadAxes[] = {"B", "Hq"};
constexpr const char *kHeadAxes[] = {"Hq"};

struct Operands {
  Operand q, k, v, out, lse, table, lengths, slopes, sinks;
};

Operands operands_of(const Params &params) {
  const bool paged = present(params.block_table);
  return {{"q", &params.q, kQueryAxes},
          {"k", &params.k, paged ? kPagedKeyAxes : kKeyAxes},
          {"v", &params.v, paged ? kPagedValueAxes : kValueAxes},
          {"out", &params.out, kOutAxes},
          {"lse", &params.lse, kLseAxes},
          {"block_table", &params.block_table, kTableAxes},
          {"seqused_k", &params.seqused_k, kLengthAxes},
          {"alibi_slopes", &params.alibi_slopes,
           params.alibi_slopes.rank == 2 ? kBatchHeadAxes : kHeadAxes},
          {"sinks", &params.sinks, kHeadAxes}};
}

Status check_dtype(const Operand &operand, flydsl_aot_dtype allowed) {
  const flydsl_aot_dtype dtype = operand.tensor->dtype;
  if (!present(*operand.tensor) || dtype == allowed) return {};
  return error(FLYDSL_AOT_INVALID_DTYPE, "%s is %s (number %d); it must be %s", operand.name,
               flydsl_aot_dtype_name(dtype), dtype, flydsl_aot_dtype_name(allowed));
}

Status check_dtypes(const Operands &all) {
  const flydsl_aot_dtype dtype = all.q.tensor->dtype;
  if (!known_dtype(dtype))
    return error(FLYDSL_AOT_INVALID_DTYPE, "q has the unknown dtype number %d", dtype);
  if (!is_wide(dtype)) {
    return error(FLYDSL_AOT_UNSUPPORTED_DTYPE, "q is %s; supported: fp16, bf16",
                 flydsl_aot_dtype_name(dtype));
  }
  const flydsl_aot_dtype stored = all.k.tensor->dtype;
  if (stored != dtype && !is_float8(stored)) {
    return error(FLYDSL_AOT_INVALID_DTYPE,
                 "q is %s, but k is %s (number %d); it must have q's dtype or be e4m3 or e5m2",
                 flydsl_aot_dtype_name(dtype), flydsl_aot_dtype_name(stored), stored);
  }
  FLYDSL_RETURN_IF_ERROR(check_dtype(all.v, stored));
  FLYDSL_RETURN_IF_ERROR(check_dtype(all.out, dtype));
  for (const Operand *operand : {&all.table, &all.lengths})
    FLYDSL_RETURN_IF_ERROR(check_dtype(*operand, FLYDSL_AOT_INT32));
  for (const Operand *operand : {&all.lse, &all.slopes, &all.sinks})
    FLYDSL_RETURN_IF_ERROR(check_dtype(*operand, FLYDSL_AOT_FP32));
  return {};
}

Status check_shapes(const Params &params, const Operands &all) {
  for (const Operand *operand : {&all.q, &all.k, &all.v, &all.out})
    FLYDSL_RETURN_IF_ERROR(check_shape(*operand, 4));
  const bool paged = present(params.block_table);
  if (!paged) FLYDSL_RETURN_IF_ERROR(check_same_size(all.q, kBatch, all.k, kBatch));
  FLYDSL_RETURN_IF_ERROR(check_same_size(all.q, kDim, all.k, kDim));
  for (const int axis : {kBatch, kHead, kSeq}) {
    FLYDSL_RETURN_IF_ERROR(check_same_size(all.k, axis, all.v, axis));
    FLYDSL_RETURN_IF_ERROR(check_same_size(all.q, axis, all.out, axis));
  }
  FLYDSL_RETURN_IF_ERROR(check_same_size(all.v, kDim, all.out, kDim));
  const struct {
    const Operand &operand;
    int rank;
    Axis first;  // of q, that its first axis must be like
  } optional[] = {{all.lse, 3, kBatch},
                  {all.table, 2, kBatch},
                  {all.lengths, 1, kBatch},
                  {all.slopes, params.alibi_slopes.rank == 2 ? 2 : 1,
                   params.alibi_slopes.rank == 2 ? kBatch : kHead},
                  {all.sinks, 1, kHead}};
  for (const auto &[operand, rank, first] : optional) {
    if (!present(*operand.tensor)) continue;
    FLYDSL_RETURN_IF_ERROR(check_shape(operand, rank));
    const int alike = &operand == &all.table ? 1 : rank;
    for (int axis = 0; axis < alike; ++axis)
      FLYDSL_RETURN_IF_ERROR(check_same_size(all.q, first + axis, operand, axis));
  }
  return check_heads(params.q.sizes[kHead], params.k.sizes[kHead]);
}

Status check_paging(const Params &params) {
  const bool paged = present(params.block_table);
  if (paged ? params.max_seqlen_k < 0 : params.max_seqlen_k != 0) {
    return error(FLYDSL_AOT_INVALID_ARGUMENT,
                 "max_seqlen_k is %lld; it must be 0 or more with block_table, and 0 without",
                 static_cast<long long>(params.max_seqlen_k));
  }
  if (!paged) return {};
  return check_paged_keys(params.seqused_k, params.k);
}

// `shared`: values are, or may be, part of the keys. `compiled`: whether kernels may be compiled.
Status check_limits(const Sizes &sizes, bool shared, bool nothing_to_do, bool compiled) {
  const struct {
    const char *name;
    int64_t value, most;
    const char *instead;
  } limited[] = {{"Sq", sizes.seq_q, kMaxQueries, "; attention_forward takes more"},
                 {"B", sizes.batches, kMaxAttentionSize, ""},
                 {"Hq", sizes.heads_q, kMaxAttentionSize, ""},
                 {"Hkv", sizes.heads_kv, kMaxAttentionSize, ""},
                 {"Sk", sizes.seq_k, kMaxAttentionSize, ""}};
  for (const auto &size : limited) {
    if (size.value <= size.most) continue;
    return error(FLYDSL_AOT_UNSUPPORTED_SIZE, "%s = %lld; at most %lld%s", size.name,
                 static_cast<long long>(size.value), static_cast<long long>(size.most),
                 size.instead);
  }
  if (nothing_to_do) return {};
  const int64_t multiple = sizes.kv_format == 0 ? 8 : 16;  // of 16 bytes, what a lane copies
  const bool in_steps = sizes.head_dim_qk % multiple == 0 && sizes.head_dim_v % multiple == 0;
  if (!in_steps || !find_class(sizes, shared, compiled)) {
    return error(FLYDSL_AOT_UNSUPPORTED_HEAD_DIM,
                 "head dims D = %lld, Dv = %lld; attention_decode supports multiples of %lld up to "
                 "D/Dv %s with k and v of this dtype%s",
                 static_cast<long long>(sizes.head_dim_qk),
                 static_cast<long long>(sizes.head_dim_v), static_cast<long long>(multiple),
                 head_dims_list(sizes.kv_format, compiled).c_str(),
                 in_steps && find_class(sizes, shared, true) ? kCouldBeCompiled : "");
  }
  return check_plan(sizes);
}

Status check_memory(const Operands &all, bool query) {
  for (const Operand *output : {&all.out, &all.lse}) {
    if (!present(*output->tensor)) continue;
    FLYDSL_RETURN_IF_ERROR(check_strides(*output));
    FLYDSL_RETURN_IF_ERROR(check_no_self_overlap(*output));
    FLYDSL_RETURN_IF_ERROR(check_data(*output, query));
  }
  for (const Operand *operand : {&all.q, &all.k, &all.v, &all.out, &all.table})
    if (present(*operand->tensor)) FLYDSL_RETURN_IF_ERROR(check_last_axis_contiguous(*operand));
  for (const Operand *input :
       {&all.q, &all.k, &all.v, &all.table, &all.lengths, &all.slopes, &all.sinks}) {
    if (!present(*input->tensor)) continue;
    FLYDSL_RETURN_IF_ERROR(check_strides(*input));
    FLYDSL_RETURN_IF_ERROR(check_data(*input, query));
    if (query) continue;
    FLYDSL_RETURN_IF_ERROR(check_no_overlap(all.out, *input));
    if (present(*all.lse.tensor)) FLYDSL_RETURN_IF_ERROR(check_no_overlap(all.lse, *input));
  }
  return query || !present(*all.lse.tensor) ? Status() : check_no_overlap(all.lse, all.out);
}

Status check_descales(const Params &params, const Operands &all, bool query) {
  const int64_t batches = params.q.sizes[kBatch], heads = params.k.sizes[kHead];
  const Descale descales[] = {
      {"k_descale", &params.k_descale, "k", &params.k, batches, heads, heads},
      {"v_descale", &params.v_descale, "v", &params.v, batches, heads, heads}};
  for (const Descale &descale : descales) {
    if (!present(*descale.tensor)) continue;
    FLYDSL_RETURN_IF_ERROR(check_descale(descale, query));
    if (query) continue;
    FLYDSL_RETURN_IF_ERROR(check_no_overlap(all.out, operand_of(descale)));
    if (present(params.lse)) FLYDSL_RETURN_IF_ERROR(check_no_overlap(all.lse, operand_of(descale)));
  }
  return {};
}

// Whether everything is plain to see right, of a call without the terms of scores and factors that few have.
bool is_plain(const Params &params, bool compiled) {
  using Is = PlainLook::Is;
  if (present(params.alibi_slopes) || present(params.sinks) || present(params.k_descale) ||
      present(params.v_descale))
    return false;
  const flydsl_aot_tensor &q = params.q, &k = params.k, &v = params.v, &out = params.out;
  const flydsl_aot_tensor &table = params.block_table, &lengths = params.seqused_k;
  PlainLook look;
  const PlainLook::Memory written = look.tensor<4, Is::kOutput>(out);
  const PlainLook::Memory lse = look.if_present<3, Is::kOutput, PlainLook::Last::kAny>(params.lse);
  const PlainLook::Memory inputs[] = {
      look.tensor<4, Is::kInput>(q), look.tensor<4, Is::kInput>(k), look.tensor<4, Is::kInput>(v),
      look.if_present<2, Is::kInput>(table), look.if_present<1, Is::kInput>(lengths)};
  look.expect_apart(lse, written);
  for (const PlainLook::Memory &input : inputs) {
    look.expect_apart(written, input);
    look.expect_apart(lse, input);
  }
  look.expect_same_sizes<3>(q, out);
  look.expect_same_sizes<3>(k, v);
  look.expect(q.sizes[kDim] == k.sizes[kDim] && v.sizes[kDim] == out.sizes[kDim]);
  look.expect(k.dtype == v.dtype && q.dtype == out.dtype);
  if (present(params.lse)) {
    look.expect_same_sizes<3>(q, params.lse);
    look.expect(params.lse.dtype == FLYDSL_AOT_FP32);
  }
  if (present(lengths))
    look.expect(lengths.dtype == FLYDSL_AOT_INT32 && lengths.sizes[0] == q.sizes[kBatch]);
  if (present(table))
    look.expect(table.dtype == FLYDSL_AOT_INT32 && table.sizes[0] == q.sizes[kBatch]);
  else
    look.expect(k.sizes[kBatch] == q.sizes[kBatch]);
  if (!look.all_plain() || q.sizes[kHead] % k.sizes[kHead] != 0) return false;
  return is_wide(q.dtype) && (k.dtype == q.dtype || is_float8(k.dtype)) &&
         check_paging(params).ok() &&
         check_limits(sizes_of(params), shares_values(params, false), false, compiled).ok() &&
         check_mask(params.mask).ok() && check_scale(params.scale).ok() &&
         check_softcap(params.softcap).ok();
}

}  // namespace

Status check(const Params &params, bool query, bool compiled) {
  if (!query && is_plain(params, compiled)) return {};
  const Operands all = operands_of(params);
  FLYDSL_RETURN_IF_ERROR(check_required({&all.q, &all.k, &all.v, &all.out}, "q, k, v and out"));
  FLYDSL_RETURN_IF_ERROR(check_dtypes(all));
  FLYDSL_RETURN_IF_ERROR(check_shapes(params, all));
  FLYDSL_RETURN_IF_ERROR(check_paging(params));
  FLYDSL_RETURN_IF_ERROR(check_limits(sizes_of(params), shares_values(params, query),
                                      empty(params.out), compiled));
  FLYDSL_RETURN_IF_ERROR(check_mask(params.mask));
  FLYDSL_RETURN_IF_ERROR(check_scale(params.scale));
  FLYDSL_RETURN_IF_ERROR(check_softcap(params.softcap));
  FLYDSL_RETURN_IF_ERROR(check_descales(params, all, query));
  return check_memory(all, query);
}

}  // namespace flydsl::attention_decode
