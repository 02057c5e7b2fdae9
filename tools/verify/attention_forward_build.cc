// The numbers of a case.
#include <algorithm>
#include <cmath>

#include "tools/verify/attention_forward_reference.h"
#include "tools/verify/attention_forward_spec.h"
#include "tools/verify/case_line.h"
#include "tools/verify/float16.h"
#include "tools/verify/random.h"

namespace flydsl::verify {
namespace {

enum Stream : uint64_t {
  kQ = 1,
  kK,
  kV,
  kBias,
  kBiasHides,
  kVisible,
  kSinks,
  kQDescale,
  kKDescale,
  kVDescale,
  kBadKeys,
  kPlacements
};

bool has(const std::string &letters, char letter) {
  return letters.find(letter) != std::string::npos;
}

// Rows that are not in use, made NaN.
void spoil(const AttentionCase &c, std::vector<uint16_t> &values,
           const std::vector<int64_t> &lengths, Lengths as, int64_t heads, int64_t positions,
           int64_t channels) {
  if (as == Lengths::kDense) return;
  for (int64_t row = 0; row < c.batches * heads; ++row) {
    const auto head = values.begin() + row * positions * channels;
    std::fill(head + lengths[static_cast<size_t>(row / heads)] * channels,
              head + positions * channels, from_float(c.dtype, NAN));
  }
}

// Rows of random keys of every batch and head, or their first channel alone.
void set_keys(const AttentionSpec &spec, AttentionCase &c, std::vector<uint16_t> &values,
              int64_t channels, int64_t count, bool first_channel, float value, Random &random) {
  for (int64_t row = 0; row < c.batches * c.heads_kv; ++row) {
    const int64_t keys = c.keys_of(row / c.heads_kv);
    for (int64_t n = 0; n < count && keys > 0; ++n) {
      const auto key = values.begin() + (row * spec.base.seq_k + random.below(keys)) * channels;
      const int64_t channel = first_channel ? random.below(channels) : 0;
      std::fill_n(key + channel, first_channel ? 1 : channels, from_float(c.dtype, value));
    }
  }
}

// Rows of keys that the mask hides from all queries, made NaN.
void spoil_hidden(const AttentionCase &c, std::vector<uint16_t> &values, int64_t channels) {
  for (int64_t b = 0; b < c.batches; ++b) {
    const int64_t rows = c.rows_of(b), keys = c.keys_of(b);
    for (int64_t j = 0; j < keys; ++j) {
      bool seen = false;
      for (int64_t i = 0; i < rows && !seen; ++i) seen = mask_allows(c.mask, i, j, rows, keys);
      for (int64_t h = 0; h < c.heads_kv && !seen; ++h) {
        std::fill_n(values.begin() + ((b * c.heads_kv + h) * c.seq_k + j) * channels, channels,
                    from_float(c.dtype, NAN));
      }
    }
  }
}

// v where it is the first channels of k.
std::vector<uint16_t> first_channels(const AttentionCase &c) {
  std::vector<uint16_t> values;
  for (int64_t row = 0; row < c.batches * c.heads_kv * c.seq_k; ++row) {
    const auto key = c.k.begin() + row * c.head_dim;
    values.insert(values.end(), key, key + c.value_dim());
  }
  return values;
}

// Numbers over (B, Hq, Sq, Sk) that are the same along axes of `zero`.
template <typename Number, typename Draw>
std::vector<Number> score_numbers(const AttentionCase &c, const std::string &zero, Draw draw) {
  std::vector<Number> values;
  values.reserve(static_cast<size_t>(c.score_count()));
  const bool b0 = has(zero, 'b'), h0 = has(zero, 'h'), q0 = has(zero, 'q'), k0 = has(zero, 'k');
  for (int64_t b = 0; b < c.batches; ++b) {
    for (int64_t h = 0; h < c.heads_q; ++h) {
      for (int64_t i = 0; i < c.seq_q; ++i) {
        for (int64_t j = 0; j < c.seq_k; ++j) {
          const int64_t row = ((b0 ? 0 : b) * c.heads_q + (h0 ? 0 : h)) * c.seq_q + (q0 ? 0 : i);
          values.push_back(static_cast<Number>(draw(row * c.seq_k + (k0 ? 0 : j))));
        }
      }
    }
  }
  return values;
}

AttentionCase::Descale descale(const AttentionSpec &spec, const std::string &kind, Stream stream) {
  AttentionCase::Descale result;
  if (kind.empty()) return result;
  const int64_t heads = kind.ends_with("hq") ? spec.base.heads_q : spec.base.heads_kv;
  if (kind == "one")
    result.sizes = {1};
  else if (kind.starts_with("b"))
    result.sizes = {spec.base.batches, heads};
  else
    result.sizes = {heads};
  int64_t count = 1;
  for (const int64_t size : result.sizes) count *= size;
  for (int64_t n = 0; n < count; ++n) {
    Random random = random_at(spec.seed, stream, n);
    result.values.push_back(std::exp2(random.normal()) * (random.chance(0.1) ? -1.0f : 1.0f));
  }
  return result;
}

void place_all(const AttentionSpec &spec, AttentionCase &c) {
  Random random = random_at(spec.seed, kPlacements);
  const auto packed = [](Lengths as) {
    return as == Lengths::kPacked || as == Lengths::kPackedUsed ? 1 : 0;
  };
  const auto bytes = [](flydsl_aot_dtype float8) {
    return float8 == FLYDSL_AOT_DTYPE_INVALID ? 2 : 1;
  };
  const int q = packed(c.lengths_q_as), k = packed(c.lengths_k_as);
  c.place_q = place(spec.place_q, random, 4 - q, 3 - q, "bhs", bytes(c.q_dtype));
  c.place_k = place(spec.place_k, random, 4 - k, 3 - k, "bhs", bytes(c.kv_dtype));
  c.place_v = place(spec.place_v, random, 4 - k, 3 - k, "bhs", bytes(c.kv_dtype));
  c.place_out = place(spec.place_out, random, 4 - q, 3 - q, "", 2);
  c.place_lse = place(spec.place_lse, random, 3 - q, 3 - q, "", 4);
  c.place_bias = place(spec.place_bias, random, 4, 4, "bhqk", 2);
  c.place_visible = place(spec.place_visible, random, 4, 4, "bhqk", 1);
  c.place_kept = place(spec.place_kept, random, 4, 4, "", 1);
}

}  // namespace

AttentionCase build_attention_case(const AttentionSpec &spec) {
  AttentionCase c = spec.base;
  place_all(spec, c);
  c.fill_q(filler(spec.seed, kQ, spec.q, spec.place_q.zero, c.heads_q, c.seq_q, c.head_dim));
  c.fill_k(filler(spec.seed, kK, spec.k, spec.place_k.zero, c.heads_kv, c.seq_k, c.head_dim));
  c.fill_v(filler(spec.seed, kV, spec.v, spec.place_v.zero, c.heads_kv, c.seq_k, c.value_dim()));
  if (spec.place_q.zero.empty())
    spoil(c, c.q, c.lengths_q, c.lengths_q_as, c.heads_q, c.seq_q, c.head_dim);
  if (spec.place_k.zero.empty())
    spoil(c, c.k, c.lengths_k, c.lengths_k_as, c.heads_kv, c.seq_k, c.head_dim);
  if (spec.place_v.zero.empty())
    spoil(c, c.v, c.lengths_k, c.lengths_k_as, c.heads_kv, c.seq_k, c.value_dim());
  Random bad_keys = random_at(spec.seed, kBadKeys);
  set_keys(spec, c, c.k, c.head_dim, spec.inf_k, true, INFINITY, bad_keys);
  set_keys(spec, c, c.k, c.head_dim, spec.nan_k, false, NAN, bad_keys);
  set_keys(spec, c, c.v, c.value_dim(), spec.nan_v, false, NAN, bad_keys);
  set_keys(spec, c, c.v, c.value_dim(), spec.nan_v_channel, true, NAN, bad_keys);
  if (spec.nan_hidden) {
    spoil_hidden(c, c.k, c.head_dim);
    spoil_hidden(c, c.v, c.value_dim());
  }
  c.v_is_k = spec.v.kind == Values::kKeys;
  if (c.v_is_k) c.v = first_channels(c);
  if (spec.bias) {
    c.bias = score_numbers<float>(c, spec.place_bias.zero, [&](int64_t n) {
      if (random_at(spec.seed, kBiasHides, n).chance(spec.bias_hides)) return -INFINITY;
      return static_cast<float>(spec.bias_factor) * random_at(spec.seed, kBias, n).normal();
    });
  }
  if (spec.visible) {
    c.visible = score_numbers<uint8_t>(c, spec.place_visible.zero, [&](int64_t n) -> int64_t {
      Random random = random_at(spec.seed, kVisible, n);
      return random.chance(spec.visible_share) ? random.between(1, 255) : 0;
    });
  }
  using Slopes = AttentionSpec::Slopes;
  const int64_t slopes = spec.alibi == Slopes::kNone     ? 0
                         : spec.alibi == Slopes::kByHead ? c.heads_q
                                                         : c.batches * c.heads_q;
  for (int64_t n = 0; n < slopes; ++n) {
    const double place = static_cast<double>(n + 1) / static_cast<double>(slopes);
    c.alibi_slopes.push_back(static_cast<float>(std::exp2(-8 * place)));
  }
  using Sinks = AttentionSpec::Sinks;
  for (int64_t h = 0; h < c.heads_q && spec.sinks != Sinks::kNone; ++h) {
    c.sinks.push_back(spec.sinks == Sinks::kNormal ? 3 * random_at(spec.seed, kSinks, h).normal()
                      : spec.sinks == Sinks::kZero ? 0
                      : spec.sinks == Sinks::kHigh ? 80
                                                   : -INFINITY);
  }
  c.q_descale = descale(spec, spec.q_descale, kQDescale);
  c.k_descale = descale(spec, spec.k_descale, kKDescale);
  c.v_descale = descale(spec, spec.v_descale, kVDescale);
  return c;
}

}  // namespace flydsl::verify
