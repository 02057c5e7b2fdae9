#include "tools/verify/attention_forward_call.h"

#include <cstring>

#include "tools/verify/device_tensor.h"
#include "tools/verify/float16.h"
#include "tools/verify/float8.h"

namespace flydsl::verify {
namespace {

// The 16-bit values as they are stored.
void upload(DeviceTensor &tensor, flydsl_aot_dtype wide, const std::vector<uint16_t> &values) {
  const flydsl_aot_dtype stored = tensor.tensor().dtype;
  if (stored == wide) return tensor.set(values);
  std::vector<uint8_t> bytes;
  for (const uint16_t value : values)
    bytes.push_back(float_to_float8(stored, to_float(wide, value)));
  tensor.set(bytes);
}

// The queries' or the keys' side of a case: its sequences, and where they are.
struct Side {
  int64_t batches, positions;
  bool packed, used, paged;
  const std::vector<int64_t> &lengths;
  Packing packing;
  Paging paging;

  Side(const AttentionCase &c, const std::vector<int64_t> &lengths, Lengths as, int64_t positions)
      : batches(c.batches),
        positions(positions),
        packed(as == Lengths::kPacked || as == Lengths::kPackedUsed),
        used(as == Lengths::kUsed || as == Lengths::kPackedUsed || as == Lengths::kPaged),
        paged(as == Lengths::kPaged),
        lengths(lengths),
        packing(packing_of(lengths, as == Lengths::kPackedUsed)),
        paging(paged ? paging_of(lengths, positions, c.block_size, 1) : Paging{}) {}

  std::vector<int64_t> sizes(int64_t heads, int64_t channels) const {
    if (packed) return {heads, packing.total, channels};
    if (paged) return {paging.blocks, heads, paging.block_size, channels};
    return {batches, heads, positions, channels};
  }
  template <typename Element>
  std::vector<Element> placed(const std::vector<Element> &dense, int64_t heads, int64_t channels,
                              Element filler) const {
    if (paged) return page(paging, lengths, dense, heads, positions, channels, filler);
    return packed ? pack(packing, dense, heads, positions, channels, filler) : dense;
  }
  // The other way; `*stray` says so if a row that is not in use was written.
  template <typename Element>
  std::vector<Element> dense(const std::vector<Element> &values, int64_t heads, int64_t channels,
                             Element filler, std::string *stray) const {
    if (!packed) return values;
    std::vector<Element> result = unpack(packing, values, heads, positions, channels, filler);
    const std::vector<Element> again = pack(packing, result, heads, positions, channels, filler);
    if (std::memcmp(again.data(), values.data(), values.size() * sizeof(Element)) != 0)
      *stray = "a row between the sequences was written";
    return result;
  }
};

// Numbers in device memory.
template <typename Number>
struct Numbers {
  DeviceTensor tensor;
  Numbers(flydsl_aot_handle *handle, flydsl_aot_dtype dtype, const std::vector<Number> &values)
      : Numbers(handle, dtype, {static_cast<int64_t>(values.size())}, {}, values) {}
  Numbers(flydsl_aot_handle *handle, flydsl_aot_dtype dtype, const std::vector<int64_t> &sizes,
          const Placement &placement, const std::vector<Number> &values)
      : tensor(handle, dtype, sizes, placement, 0xffffffff) {
    if (!values.empty()) tensor.set(values);
  }
  // Of these numbers, and absent if there are none.
  flydsl_aot_tensor optional(bool wanted) const {
    return wanted ? tensor.tensor() : flydsl_aot_tensor{};
  }
};

std::vector<uint16_t> rounded(flydsl_aot_dtype dtype, const std::vector<float> &values) {
  std::vector<uint16_t> bits;
  for (const float value : values) bits.push_back(from_float(dtype, value));
  return bits;
}

// The terms of the scores in device memory.
class ScoreTerms {
 public:
  ScoreTerms(flydsl_aot_handle *handle, const AttentionCase &c)
      : case_(c),
        sizes_(c.bias.empty() && c.visible.empty()
                   ? std::vector<int64_t>{0, 0, 0, 0}
                   : std::vector<int64_t>{c.batches, c.heads_q, c.seq_q, c.seq_k}),
        wide_(c.bias_dtype == FLYDSL_AOT_FP32),
        bias_wide_(handle, FLYDSL_AOT_FP32, sizes_, c.place_bias,
                   wide_ ? c.bias : std::vector<float>()),
        bias_narrow_(handle, c.dtype, sizes_, c.place_bias,
                     rounded(c.dtype, wide_ ? std::vector<float>() : c.bias)),
        visible_(handle, FLYDSL_AOT_BOOL, sizes_, c.place_visible, c.visible),
        alibi_slopes_(handle, FLYDSL_AOT_FP32,
                      c.alibi_slopes.size() == static_cast<size_t>(c.heads_q)
                          ? std::vector<int64_t>{c.heads_q}
                          : std::vector<int64_t>{c.batches, c.heads_q},
                      {}, c.alibi_slopes),
        sinks_(handle, FLYDSL_AOT_FP32, c.sinks) {}

  void set(flydsl_aot_attention_forward_params *params) const {
    params->softcap = case_.softcap;
    params->bias = wide_ ? bias_wide_.optional(!case_.bias.empty())
                         : bias_narrow_.optional(!case_.bias.empty());
    params->visible = visible_.optional(!case_.visible.empty());
    params->alibi_slopes = alibi_slopes_.optional(!case_.alibi_slopes.empty());
    params->sinks = sinks_.optional(!case_.sinks.empty());
  }

 private:
  const AttentionCase &case_;
  std::vector<int64_t> sizes_;
  bool wide_;
  Numbers<float> bias_wide_;
  Numbers<uint16_t> bias_narrow_;
  Numbers<uint8_t> visible_;
  Numbers<float> alibi_slopes_, sinks_;
};

}  // namespace

AttentionResult call_attention(flydsl_aot_handle *handle, const AttentionCase &c) {
  const Side rows(c, c.lengths_q, c.lengths_q_as, c.seq_q);
  const Side keys(c, c.lengths_k, c.lengths_k_as, c.seq_k);
  const int64_t value_dim = c.value_dim();
  const auto stored = [&](flydsl_aot_dtype float8) {
    return float8 == FLYDSL_AOT_DTYPE_INVALID ? c.dtype : float8;
  };
  DeviceTensor q(handle, stored(c.q_dtype), rows.sizes(c.heads_q, c.head_dim), c.place_q,
                 c.input_poison);
  DeviceTensor k(handle, stored(c.kv_dtype), keys.sizes(c.heads_kv, c.head_dim), c.place_k,
                 c.input_poison);
  DeviceTensor v(handle, stored(c.kv_dtype), keys.sizes(c.heads_kv, value_dim), c.place_v,
                 c.input_poison);
  DeviceTensor out(handle, c.dtype, rows.sizes(c.heads_q, value_dim), c.place_out, kOutputPoison);
  std::vector<int64_t> lse_sizes = rows.sizes(c.heads_q, 1);
  lse_sizes.pop_back();
  DeviceTensor lse(handle, FLYDSL_AOT_FP32, lse_sizes, c.place_lse, kOutputPoison);
  upload(q, c.dtype, rows.placed(c.q, c.heads_q, c.head_dim, c.input_poison));
  upload(k, c.dtype, keys.placed(c.k, c.heads_kv, c.head_dim, c.input_poison));
  upload(v, c.dtype, keys.placed(c.v, c.heads_kv, value_dim, c.input_poison));

  flydsl_aot_attention_forward_params params{};
  params.struct_size = sizeof params;
  params.scale = c.scale;
  params.q = q.tensor();
  params.k = k.tensor();
  params.v = v.tensor();
  params.out = out.tensor();
  if (c.want_lse) params.lse = lse.tensor();
  params.mask = c.mask;
  const Numbers<int32_t> starts_q(handle, FLYDSL_AOT_INT32, rows.packing.starts),
      starts_k(handle, FLYDSL_AOT_INT32, keys.packing.starts),
      used_q(handle, FLYDSL_AOT_INT32, rows.packing.lengths),
      used_k(handle, FLYDSL_AOT_INT32, keys.packing.lengths);
  params.cu_seqlens_q = starts_q.optional(rows.packed);
  params.cu_seqlens_k = starts_k.optional(keys.packed);
  params.seqused_q = used_q.optional(rows.used);
  params.seqused_k = used_k.optional(keys.used);
  if (rows.packed) params.max_seqlen_q = c.seq_q;
  if (keys.packed) params.max_seqlen_k = c.seq_k;
  const Numbers<int32_t> block_table(handle, FLYDSL_AOT_INT32,
                                     {keys.paged ? c.batches : 0, keys.paging.blocks_of_sequence},
                                     {}, keys.paging.block_table);
  params.block_table = block_table.optional(keys.paged);
  if (keys.paged && c.seq_k % 2 == 0) params.max_seqlen_k = c.seq_k;
  const auto descale = [&](const AttentionCase::Descale &of) {
    return Numbers<float>(handle, FLYDSL_AOT_FP32,
                          of.sizes.empty() ? std::vector<int64_t>{0} : of.sizes, {}, of.values);
  };
  const Numbers<float> q_descale = descale(c.q_descale), k_descale = descale(c.k_descale),
                       v_descale = descale(c.v_descale);
  params.q_descale = q_descale.optional(!c.q_descale.values.empty());
  params.k_descale = k_descale.optional(!c.k_descale.values.empty());
  params.v_descale = v_descale.optional(!c.v_descale.values.empty());
  const ScoreTerms terms(handle, c);
  terms.set(&params);
  // Seed and offset in device memory: two that are read, two that are written.
  DeviceTensor numbers(handle, FLYDSL_AOT_INT64, {4}, {}, 0);
  numbers.set(std::vector<uint64_t>{c.seed, c.offset - 1000, 0, 0});
  DeviceTensor kept(handle, FLYDSL_AOT_BOOL,
                    c.want_kept ? std::vector<int64_t>{c.batches, c.heads_q, c.seq_q, c.seq_k}
                                : std::vector<int64_t>{0, 0, 0, 0},
                    c.place_kept, kOutputPoison);
  params.dropout_p = c.dropout_p;
  params.dropout_seed = c.random_on_device ? 77 : c.seed;
  params.dropout_offset = c.random_on_device ? 1000 : c.offset;
  if (c.random_on_device) {
    uint64_t *const first = static_cast<uint64_t *>(numbers.tensor().data);
    params.dropout_seed_device = first;
    params.dropout_offset_device = first + 1;
    params.dropout_seed_out = first + 2;
    params.dropout_offset_out = first + 3;
  }
  if (c.want_kept) params.kept = kept.tensor();

  AttentionResult result;
  flydsl_aot_query_result query{};
  query.struct_size = sizeof query;
  const flydsl_aot_status query_status =
      flydsl_aot_attention_forward_query(handle, &params, &query);
  result.kernel = query.kernel;
  DeviceTensor workspace(handle, FLYDSL_AOT_BOOL, {static_cast<int64_t>(query.workspace_bytes)},
                         {{}, {}, {}, 0, 64}, kOutputPoison);
  if (query.workspace_bytes > 0) params.workspace = workspace.tensor().data;
  params.workspace_bytes = query.workspace_bytes;
  result.status = flydsl_aot_attention_forward(handle, &params, nullptr);
  if (result.status != FLYDSL_AOT_OK) result.message = flydsl_aot_last_error();
  if (result.status != query_status || query.status != query_status) {
    result.contradiction = std::string("the query said ") + flydsl_aot_status_name(query_status) +
                           " (" + query.reason + "), the call " +
                           flydsl_aot_status_name(result.status) + " (" + result.message + ")";
  }
  if (flydsl_aot_device_synchronize(handle) != FLYDSL_AOT_OK) {
    result.device_failed = true;
    result.contradiction = flydsl_aot_last_error();
    return result;
  }
  workspace.get<uint8_t>();
  result.stray_write = workspace.changed_outside();

  result.out = rows.dense(out.get<uint16_t>(), c.heads_q, value_dim,
                          static_cast<uint16_t>(kOutputPoison), &result.stray_write);
  result.lse = rows.dense(lse.get<float>(), c.heads_q, 1, kLsePoison, &result.stray_write);
  result.outputs_untouched = out.untouched() && lse.untouched();
  if (c.want_kept) {
    result.kept = kept.get<uint8_t>();
    if (result.stray_write.empty()) result.stray_write = kept.changed_outside();
  }
  if (c.random_on_device) {
    const std::vector<uint64_t> all = numbers.get<uint64_t>();
    result.used = {all[2], all[3]};
    if (all[0] != c.seed || all[1] != c.offset - 1000) result.stray_write = "the seed was changed";
  }
  if (result.stray_write.empty()) result.stray_write = out.changed_outside();
  if (result.stray_write.empty()) result.stray_write = lse.changed_outside();
  if (!c.want_lse) {
    if (!lse.untouched()) result.stray_write = "an LSE that was not asked for was written";
    result.lse.clear();
  }
  for (DeviceTensor *input : {&q, &k, &v}) {
    input->get<uint16_t>();
    if (!input->untouched()) result.stray_write = "an input was changed";
  }
  return result;
}

bool same_bits(const AttentionResult &a, const AttentionResult &b) {
  return a.out == b.out && a.lse.size() == b.lse.size() &&
         (a.lse.empty() ||
          std::memcmp(a.lse.data(), b.lse.data(), a.lse.size() * sizeof(float)) == 0);
}

}  // namespace flydsl::verify
