#include "test/support/attention_forward_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "test/support/float16.h"
#include "test/support/float8.h"
#include "test/support/library.h"
#include "test/support/philox.h"

namespace flydsl::test {

namespace {

float rounded_to(flydsl_aot_dtype float8, float value) {
  return float8 == FLYDSL_AOT_DTYPE_INVALID
             ? value
             : float8_to_float(float8, float_to_float8(float8, value));
}

// The 16-bit values as they are stored.
void upload(DeviceTensor &tensor, flydsl_aot_dtype wide, const std::vector<uint16_t> &values) {
  const flydsl_aot_dtype stored = tensor.tensor().dtype;
  if (stored == wide) return tensor.set(values);
  std::vector<uint8_t> bytes;
  for (const uint16_t value : values)
    bytes.push_back(float_to_float8(stored, to_float(wide, value)));
  tensor.set(bytes);
}

}  // namespace

double AttentionCase::Descale::of(int64_t batch, int64_t head) const {
  if (values.empty()) return 1;
  const int64_t row = sizes.size() == 2 && sizes[0] > 1 ? batch * sizes[1] : 0;
  return static_cast<double>(values[static_cast<size_t>(row + (sizes.back() > 1 ? head : 0))]);
}

std::vector<uint16_t> AttentionCase::filled(flydsl_aot_dtype stored, int64_t heads,
                                            int64_t positions, int64_t channels,
                                            const Fill &fill) const {
  std::vector<uint16_t> values;
  values.reserve(static_cast<size_t>(batches * heads * positions * channels));
  for (int64_t b = 0; b < batches; ++b) {
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t s = 0; s < positions; ++s) {
        for (int64_t d = 0; d < channels; ++d)
          values.push_back(from_float(dtype, rounded_to(stored, fill(b, h, s, d))));
      }
    }
  }
  return values;
}

bool AttentionCase::keeps(int64_t b, int64_t h, int64_t i, int64_t j) const {
  const auto halves = [](uint64_t value) {
    return std::array{static_cast<uint32_t>(value), static_cast<uint32_t>(value >> 32)};
  };
  const auto key = halves(seed), column = halves(offset + static_cast<uint64_t>(j / 4)),
             row = halves(static_cast<uint64_t>((b * heads_q + h) * seq_q + i));
  const auto words = philox_4x32_10(key, {column[0], column[1], row[0], row[1]});
  return words[static_cast<size_t>(j % 4)] >= static_cast<double>(dropout_p) * 0x1p32;
}

void AttentionCase::fill_random(Random &random) {
  const Fill normal = [&](int64_t, int64_t, int64_t, int64_t) { return random.normal(); };
  fill_q(normal);
  fill_k(normal);
  fill_v(normal);
}

namespace {

constexpr uint32_t kOutputPoison = 0xabababab;
const float kLsePoison = std::bit_cast<float>(kOutputPoison);

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

// The same for the oracle, of batch b alone.
ReferenceTerms terms_of(const AttentionCase &c, int64_t b) {
  ReferenceTerms terms;
  const auto at = [&c, b](int64_t h, int64_t i, int64_t j) {
    return static_cast<size_t>(((b * c.heads_q + h) * c.seq_q + i) * c.seq_k + j);
  };
  terms.softcap = static_cast<double>(c.softcap);
  if (!c.bias.empty()) {
    terms.bias = [&c, at](int64_t, int64_t h, int64_t i, int64_t j) {
      const float value = c.bias[at(h, i, j)];
      return static_cast<double>(
          c.bias_dtype == FLYDSL_AOT_FP32 ? value : to_float(c.dtype, from_float(c.dtype, value)));
    };
  }
  if (!c.visible.empty()) {
    terms.visible = [&c, at](int64_t, int64_t h, int64_t i, int64_t j) {
      return c.visible[at(h, i, j)] != 0;
    };
  }
  if (!c.alibi_slopes.empty()) {
    const bool per_batch = c.alibi_slopes.size() != static_cast<size_t>(c.heads_q);
    terms.slope = [&c, b, per_batch](int64_t, int64_t h) {
      return static_cast<double>(
          c.alibi_slopes[static_cast<size_t>((per_batch ? b * c.heads_q : 0) + h)]);
    };
  }
  const int64_t group = c.heads_q / c.heads_kv;
  if (!c.q_descale.values.empty() || !c.k_descale.values.empty()) {
    terms.score_factor = [&c, b, group](int64_t, int64_t h) {
      const bool by_kv = !c.q_descale.sizes.empty() && c.q_descale.sizes.back() == c.heads_kv;
      return c.q_descale.of(b, by_kv ? h / group : h) * c.k_descale.of(b, h / group);
    };
  }
  if (!c.v_descale.values.empty()) {
    terms.value_factor = [&c, b, group](int64_t, int64_t h) {
      return c.v_descale.of(b, h / group);
    };
  }
  if (c.dropout_p > 0) {
    terms.dropout = [&c, b](int64_t, int64_t h, int64_t i, int64_t j) {
      return c.keeps(b, h, i, j) ? 1 / (1 - static_cast<double>(c.dropout_p)) : 0;
    };
  }
  if (!c.sinks.empty()) {
    terms.sink = [&c](int64_t h) { return static_cast<double>(c.sinks[static_cast<size_t>(h)]); };
  }
  return terms;
}

}  // namespace

AttentionResult run_attention(const AttentionCase &c) {
  flydsl_aot_handle *handle = c.handle ? c.handle : emulator();
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
  EXPECT_EQ(query_status, query.status) << describe(c);
  EXPECT_EQ(query.workspace_bytes, 0u) << describe(c);
  result.kernel = query.kernel;
  result.status = flydsl_aot_attention_forward(handle, &params, nullptr);
  if (result.status != FLYDSL_AOT_OK) result.message = flydsl_aot_last_error();
  EXPECT_EQ(result.status, query_status)
      << describe(c) << ": call: " << result.message << "; query: " << query.reason;
  const flydsl_aot_status finished = flydsl_aot_device_synchronize(handle);
  EXPECT_EQ(finished, FLYDSL_AOT_OK) << describe(c) << ": " << flydsl_aot_last_error();

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

// Sequence by sequence. Rows past a sequence's length are the poison that they must still hold.
AttentionReference reference_of(const AttentionCase &c) {
  const auto view = [&](const std::vector<uint16_t> &values, int64_t batch, int64_t heads,
                        int64_t positions, int64_t length, int64_t channels) {
    return HostView{values.data() + batch * heads * positions * channels,
                    {1, heads, length, channels},
                    {heads * positions * channels, positions * channels, channels, 1}};
  };
  AttentionReference result;
  const int64_t value_dim = c.value_dim(), out_rows = c.batches * c.heads_q * c.seq_q;
  result.out.assign(static_cast<size_t>(out_rows * value_dim),
                    to_float(c.dtype, static_cast<uint16_t>(kOutputPoison)));
  result.magnitude.assign(result.out.size(), 0);
  result.lse.assign(static_cast<size_t>(out_rows), static_cast<double>(kLsePoison));
  for (int64_t b = 0; b < c.batches; ++b) {
    const auto length = [&](const std::vector<int64_t> &lengths, Lengths as, int64_t all) {
      return as == Lengths::kDense ? all : lengths[static_cast<size_t>(b)];
    };
    const int64_t rows = length(c.lengths_q, c.lengths_q_as, c.seq_q);
    const int64_t keys = length(c.lengths_k, c.lengths_k_as, c.seq_k);
    const AttentionReference one = attention_forward_reference(
        c.dtype, view(c.q, b, c.heads_q, c.seq_q, rows, c.head_dim),
        view(c.k, b, c.heads_kv, c.seq_k, keys, c.head_dim),
        view(c.v, b, c.heads_kv, c.seq_k, keys, value_dim), c.scale, c.mask, terms_of(c, b));
    if (b == 0 && terms_of(c, b).any()) {
      result.score_scale.assign(result.lse.size(), 0);
      result.empty.assign(result.lse.size(), false);
    }
    for (int64_t h = 0; h < c.heads_q; ++h) {
      const int64_t to = (b * c.heads_q + h) * c.seq_q, from = h * rows;
      std::copy_n(one.out.begin() + from * value_dim, rows * value_dim,
                  result.out.begin() + to * value_dim);
      std::copy_n(one.magnitude.begin() + from * value_dim, rows * value_dim,
                  result.magnitude.begin() + to * value_dim);
      std::copy_n(one.lse.begin() + from, rows, result.lse.begin() + to);
      if (one.score_scale.empty()) continue;
      std::copy_n(one.score_scale.begin() + from, rows, result.score_scale.begin() + to);
      std::copy_n(one.empty.begin() + from, rows, result.empty.begin() + to);
    }
  }
  return result;
}

AttentionResult check_attention(const AttentionCase &c, AttentionReference *reference_out) {
  AttentionResult result = run_attention(c);
  AttentionReference reference = reference_of(c);
  EXPECT_EQ(result.status, FLYDSL_AOT_OK) << describe(c) << ": " << result.message;
  EXPECT_EQ(result.stray_write, "") << describe(c);
  const Judgement out = judge_out(c.dtype, result.out, reference, c.value_dim());
  EXPECT_TRUE(out.ok) << describe(c) << ": out: " << out.text;
  if (c.want_lse) {
    const Judgement lse = judge_lse(result.lse, reference);
    EXPECT_TRUE(lse.ok) << describe(c) << ": lse: " << lse.text;
  }
  if (reference_out) *reference_out = std::move(reference);
  return result;
}

bool same_bits(const AttentionResult &a, const AttentionResult &b) {
  return a.out == b.out && a.lse.size() == b.lse.size() &&
         (a.lse.empty() ||
          std::memcmp(a.lse.data(), b.lse.data(), a.lse.size() * sizeof(float)) == 0);
}

namespace {

bool left_hides(const AttentionCase &c) {
  const bool top_left = c.mask.anchor == FLYDSL_AOT_ANCHOR_TOP_LEFT;
  return c.mask.left != FLYDSL_AOT_UNLIMITED && c.mask.left < (top_left ? c.seq_q : c.seq_k) - 1;
}

std::string class_name(int64_t head_dim, int64_t value_dim) {
  constexpr int64_t kClasses[][2] = {{32, 32},   {64, 64},   {96, 96},   {128, 128},
                                     {160, 160}, {192, 128}, {192, 192}, {224, 224},
                                     {256, 256}, {512, 512}, {576, 512}};
  for (const auto &[qk, v] : kClasses) {
    if (head_dim > qk || value_dim > v) continue;
    std::string name = std::to_string(qk);
    if (qk != v) name.append("x").append(std::to_string(v));
    return name;
  }
  return "none";
}

}  // namespace

std::string instance_name(const AttentionCase &c, bool staged) {
  const int64_t diagonal = c.mask.anchor == FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT ? c.seq_k - c.seq_q : 0;
  const bool masked = c.mask.right != FLYDSL_AOT_UNLIMITED && diagonal + c.mask.right < c.seq_k - 1;
  const bool exact = c.value_dim() == c.head_dim && (c.head_dim == 64 || c.head_dim == 128);
  const bool lengths = c.lengths_q_as != Lengths::kDense || c.lengths_k_as != Lengths::kDense;
  const bool terms = c.softcap > 0 || !c.bias.empty() || !c.visible.empty() ||
                     !c.alibi_slopes.empty() || !c.sinks.empty() || c.dropout_p > 0 ||
                     c.random_on_device || c.want_kept || c.q_dtype != FLYDSL_AOT_DTYPE_INVALID ||
                     c.kv_dtype != FLYDSL_AOT_DTYPE_INVALID;
  const std::string kind =
      !exact || lengths || terms || left_hides(c)
          ? "_general"
          : std::string(masked ? "_causal" : "_none") + (staged ? "_staged" : "_direct");
  return std::string("attention_forward_") + flydsl_aot_dtype_name(c.dtype) + "_d" +
         class_name(c.head_dim, c.value_dim()) + kind + "_m128n64";
}

std::string describe(const AttentionCase &c) {
  std::string text = std::string(flydsl_aot_dtype_name(c.dtype)) + " B" +
                     std::to_string(c.batches) + " H" + std::to_string(c.heads_q) + "/" +
                     std::to_string(c.heads_kv) + " Sq" + std::to_string(c.seq_q) + " Sk" +
                     std::to_string(c.seq_k) + " D" + std::to_string(c.head_dim) + "/" +
                     std::to_string(c.value_dim()) + " scale " + std::to_string(c.scale);
  if (c.mask.left != FLYDSL_AOT_UNLIMITED || c.mask.right != FLYDSL_AOT_UNLIMITED) {
    text += " window " + std::to_string(c.mask.left) + "," + std::to_string(c.mask.right) +
            (c.mask.anchor == FLYDSL_AOT_ANCHOR_TOP_LEFT ? " top-left" : " bottom-right");
  }
  const auto sequences = [&](const char *name, const std::vector<int64_t> &lengths, Lengths as) {
    constexpr const char *kNames[] = {"", " used", " packed", " packed used", " paged"};
    if (as == Lengths::kDense) return;
    text.append(" ").append(name).append(kNames[static_cast<int>(as)]);
    for (const int64_t length : lengths) text.append(" ").append(std::to_string(length));
  };
  sequences("q", c.lengths_q, c.lengths_q_as);
  sequences("k", c.lengths_k, c.lengths_k_as);
  if (c.softcap > 0) text.append(" softcap ").append(std::to_string(c.softcap));
  if (!c.bias.empty()) text.append(" bias ").append(flydsl_aot_dtype_name(c.bias_dtype));
  if (!c.visible.empty()) text.append(" boolean mask");
  if (!c.alibi_slopes.empty()) text.append(" ALiBi");
  if (!c.sinks.empty()) text.append(" sinks");
  if (c.q_dtype) text.append(" q ").append(flydsl_aot_dtype_name(c.q_dtype));
  if (c.kv_dtype) text.append(" kv ").append(flydsl_aot_dtype_name(c.kv_dtype));
  if (c.dropout_p > 0) text.append(" dropout ").append(std::to_string(c.dropout_p));
  return text + (c.want_lse ? "" : " without lse");
}

}  // namespace flydsl::test
