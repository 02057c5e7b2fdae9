#include "tools/verify/attention_device_inputs.h"

#include <utility>

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

flydsl_aot_dtype stored(const AttentionCase &c, flydsl_aot_dtype float8) {
  return float8 == FLYDSL_AOT_DTYPE_INVALID ? c.dtype : float8;
}

std::vector<uint16_t> rounded(flydsl_aot_dtype dtype, const std::vector<float> &values) {
  std::vector<uint16_t> bits;
  for (const float value : values) bits.push_back(from_float(dtype, value));
  return bits;
}

std::vector<int64_t> score_sizes(const AttentionCase &c) {
  return {c.batches, c.heads_q, c.seq_q, c.seq_k};
}

Numbers descale_numbers(flydsl_aot_handle *handle, const AttentionCase::Descale &of) {
  return Numbers(handle, FLYDSL_AOT_FP32, !of.values.empty(), of.sizes);
}

}  // namespace

std::vector<int64_t> without_channels(std::vector<int64_t> sizes) {
  sizes.pop_back();
  return sizes;
}

Side::Side(const AttentionCase &c, const std::vector<int64_t> &lengths, Lengths as,
           int64_t positions)
    : batches(c.batches),
      positions(positions),
      packed(as == Lengths::kPacked || as == Lengths::kPackedUsed),
      used(as == Lengths::kUsed || as == Lengths::kPackedUsed || as == Lengths::kPaged),
      paged(as == Lengths::kPaged),
      lengths(lengths),
      packing(packing_of(lengths, as == Lengths::kPackedUsed)),
      paging(paged ? paging_of(lengths, positions, c.block_size, 1) : Paging{}) {}

std::vector<int64_t> Side::sizes(int64_t heads, int64_t channels) const {
  if (packed) return {heads, packing.total, channels};
  if (paged) return {paging.blocks, heads, paging.block_size, channels};
  return {batches, heads, positions, channels};
}

DeviceInputs::DeviceInputs(flydsl_aot_handle *handle, const AttentionCase &c)
    : rows(c, c.lengths_q, c.lengths_q_as, c.seq_q),
      keys(c, c.lengths_k, c.lengths_k_as, c.seq_k),
      handle_(handle),
      case_(&c),
      q_(handle, stored(c, c.q_dtype), rows.sizes(c.heads_q, c.head_dim), c.place_q,
         c.input_poison),
      k_(handle, stored(c, c.kv_dtype), keys.sizes(c.heads_kv, c.head_dim), c.place_k,
         c.input_poison),
      v_(handle, stored(c, c.kv_dtype), keys.sizes(c.heads_kv, c.v_is_k ? 0 : c.value_dim()),
         c.place_v, c.input_poison),
      starts_q_(handle, FLYDSL_AOT_INT32, rows.packed, {c.batches + 1}),
      starts_k_(handle, FLYDSL_AOT_INT32, keys.packed, {c.batches + 1}),
      used_q_(handle, FLYDSL_AOT_INT32, rows.used, {c.batches}),
      used_k_(handle, FLYDSL_AOT_INT32, keys.used, {c.batches}),
      block_table_(handle, FLYDSL_AOT_INT32, keys.paged,
                   {c.batches, keys.paging.blocks_of_sequence}),
      bias_(handle, c.bias_dtype, !c.bias.empty(), score_sizes(c), c.place_bias),
      visible_(handle, FLYDSL_AOT_BOOL, !c.visible.empty(), score_sizes(c), c.place_visible),
      alibi_slopes_(handle, FLYDSL_AOT_FP32, !c.alibi_slopes.empty(),
                    c.alibi_slopes.size() == static_cast<size_t>(c.heads_q)
                        ? std::vector<int64_t>{c.heads_q}
                        : std::vector<int64_t>{c.batches, c.heads_q}),
      sinks_(handle, FLYDSL_AOT_FP32, !c.sinks.empty(), {c.heads_q}),
      q_descale_(descale_numbers(handle, c.q_descale)),
      k_descale_(descale_numbers(handle, c.k_descale)),
      v_descale_(descale_numbers(handle, c.v_descale)),
      random_(handle, FLYDSL_AOT_INT64, {2}, {}, 0) {
  fill();
}

void DeviceInputs::fill() {
  const AttentionCase &c = *case_;
  upload(q_, c.dtype, rows.placed(c.q, c.heads_q, c.head_dim, c.input_poison));
  upload(k_, c.dtype, keys.placed(c.k, c.heads_kv, c.head_dim, c.input_poison));
  if (!c.v_is_k) upload(v_, c.dtype, keys.placed(c.v, c.heads_kv, c.value_dim(), c.input_poison));
  starts_q_.set(rows.packing.starts);
  starts_k_.set(keys.packing.starts);
  used_q_.set(rows.packing.lengths);
  used_k_.set(keys.packing.lengths);
  block_table_.set(keys.paging.block_table);
  if (c.bias_dtype == FLYDSL_AOT_FP32)
    bias_.set(c.bias);
  else
    bias_.set(rounded(c.dtype, c.bias));
  visible_.set(c.visible);
  alibi_slopes_.set(c.alibi_slopes);
  sinks_.set(c.sinks);
  q_descale_.set(c.q_descale.values);
  k_descale_.set(c.k_descale.values);
  v_descale_.set(c.v_descale.values);
  random_.set(std::vector<uint64_t>{c.seed, c.offset - 1000});
}

void DeviceInputs::refill(const AttentionCase &c) {
  const auto sizes = [&] {
    return std::pair(rows.sizes(c.heads_q, c.head_dim), keys.sizes(c.heads_kv, c.head_dim));
  };
  const auto before = sizes();
  rows = Side(c, c.lengths_q, c.lengths_q_as, c.seq_q);
  keys = Side(c, c.lengths_k, c.lengths_k_as, c.seq_k);
  if (sizes() != before) throw DeviceError("a case with other shapes cannot take these tensors");
  case_ = &c;
  fill();
  if (workspace_) workspace_->upload();
}

flydsl_aot_tensor DeviceInputs::value_view() const {
  if (!case_->v_is_k) return v_.tensor();
  flydsl_aot_tensor view = k_.tensor();
  view.sizes[view.rank - 1] = case_->value_dim();
  return view;
}

bool DeviceInputs::finish(flydsl_aot_status status, CallResult *result) {
  result->status = status;
  result->kernel = answer_.kernel;
  if (status != FLYDSL_AOT_OK) result->message = flydsl_aot_last_error();
  if (status != query_status_ || answer_.status != query_status_) {
    result->contradiction = std::string("the query said ") + flydsl_aot_status_name(query_status_) +
                            " (" + answer_.reason + "), the call " +
                            flydsl_aot_status_name(status) + " (" + result->message + ")";
  }
  if (flydsl_aot_device_synchronize(handle_) != FLYDSL_AOT_OK) {
    result->device_failed = true;
    result->contradiction = flydsl_aot_last_error();
    return false;
  }
  workspace_->get<uint8_t>();
  result->stray_write = workspace_->changed_outside();
  for (DeviceTensor *input : {&q_, &k_, &v_}) {
    input->get<uint16_t>();
    if (!input->untouched()) result->stray_write = "an input was changed";
  }
  random_.get<uint64_t>();
  if (!random_.untouched()) result->stray_write = "the seed was changed";
  return true;
}

}  // namespace flydsl::verify
