#include "tools/verify/attention_forward_case.h"

#include <array>

#include "tools/verify/float16.h"
#include "tools/verify/float8.h"
#include "tools/verify/philox.h"

namespace flydsl::verify {

namespace {

float rounded_to(flydsl_aot_dtype float8, float value) {
  return float8 == FLYDSL_AOT_DTYPE_INVALID
             ? value
             : float8_to_float(float8, float_to_float8(float8, value));
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

}  // namespace flydsl::verify
