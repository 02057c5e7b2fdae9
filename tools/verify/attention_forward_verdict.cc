#include "tools/verify/attention_forward_verdict.h"

#include <algorithm>
#include <bit>

#include "tools/verify/attention_terms.h"
#include "tools/verify/float16.h"

namespace flydsl::verify {
namespace {

constexpr uint16_t kPoison16 = static_cast<uint16_t>(kOutputPoison);

std::string place_text(int64_t b, int64_t h, int64_t i) {
  return "batch " + std::to_string(b) + ", head " + std::to_string(h) + ", query " +
         std::to_string(i);
}

// "" or where a row that no sequence has was written, though its bits are as good as the poison's to the
// judges.
std::string unused_rows(const AttentionCase &c, const AttentionResult &result) {
  for (int64_t b = 0; b < c.batches; ++b) {
    for (int64_t h = 0; h < c.heads_q; ++h) {
      for (int64_t i = c.rows_of(b); i < c.seq_q; ++i) {
        const auto row = static_cast<size_t>((b * c.heads_q + h) * c.seq_q + i);
        bool same = result.lse.empty() || std::bit_cast<uint32_t>(result.lse[row]) == kOutputPoison;
        for (size_t d = 0, n = static_cast<size_t>(c.value_dim()); d < n && same; ++d)
          same = result.out[row * n + d] == kPoison16;
        if (!same) return "a row past its sequence's length was written: " + place_text(b, h, i);
      }
    }
  }
  return "";
}

// The same of the weights that were kept: those of the header's rule.
std::string kept_weights(const AttentionCase &c, const AttentionResult &result) {
  size_t n = 0;
  for (int64_t b = 0; b < c.batches; ++b) {
    const int64_t rows = c.rows_of(b);
    const int64_t keys = c.keys_of(b);
    for (int64_t h = 0; h < c.heads_q; ++h) {
      for (int64_t i = 0; i < c.seq_q; ++i) {
        for (int64_t j = 0; j < c.seq_k; ++j) {
          const uint8_t expected =
              i >= rows || j >= keys ? static_cast<uint8_t>(kOutputPoison) : c.keeps(b, h, i, j);
          if (result.kept[n++] == expected) continue;
          return "kept: " + place_text(b, h, i) + ", key " + std::to_string(j) + ": " +
                 std::to_string(result.kept[n - 1]) + " instead of " + std::to_string(expected);
        }
      }
    }
  }
  return "";
}

}  // namespace

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
  result.out.assign(static_cast<size_t>(out_rows * value_dim), to_float(c.dtype, kPoison16));
  result.magnitude.assign(result.out.size(), 0);
  result.underflow = result.magnitude;
  result.lse.assign(static_cast<size_t>(out_rows), static_cast<double>(kLsePoison));
  result.score_scale.assign(result.lse.size(), 0);
  result.empty.assign(result.lse.size(), false);
  for (int64_t b = 0; b < c.batches; ++b) {
    const int64_t rows = c.rows_of(b);
    const int64_t keys = c.keys_of(b);
    const AttentionReference one = attention_forward_reference(
        c.dtype, view(c.q, b, c.heads_q, c.seq_q, rows, c.head_dim),
        view(c.k, b, c.heads_kv, c.seq_k, keys, c.head_dim),
        view(c.v, b, c.heads_kv, c.seq_k, keys, value_dim), c.scale, c.mask, terms_of(c, b));
    for (int64_t h = 0; h < c.heads_q; ++h) {
      const int64_t to = (b * c.heads_q + h) * c.seq_q, from = h * rows;
      std::copy_n(one.out.begin() + from * value_dim, rows * value_dim,
                  result.out.begin() + to * value_dim);
      std::copy_n(one.magnitude.begin() + from * value_dim, rows * value_dim,
                  result.magnitude.begin() + to * value_dim);
      std::copy_n(one.underflow.begin() + from * value_dim, rows * value_dim,
                  result.underflow.begin() + to * value_dim);
      std::copy_n(one.lse.begin() + from, rows, result.lse.begin() + to);
      std::copy_n(one.score_scale.begin() + from, rows, result.score_scale.begin() + to);
      std::copy_n(one.empty.begin() + from, rows, result.empty.begin() + to);
    }
  }
  return result;
}

Verdict judge(const AttentionCase &c, const AttentionResult &result,
              const AttentionReference &reference) {
  Verdict verdict;
  verdict.out = judge_out(c.dtype, result.out, reference, c.value_dim());
  if (c.want_lse) verdict.lse = judge_lse(result.lse, reference);
  const bool computes = c.batches * c.heads_q * c.seq_q * c.value_dim() > 0;
  if (!verdict.out.ok)
    verdict.fault = "out: " + verdict.out.text;
  else if (!verdict.lse.ok)
    verdict.fault = "lse: " + verdict.lse.text;
  else if (!result.stray_write.empty())
    verdict.fault = result.stray_write;
  else if (c.random_on_device && computes && result.used != std::vector{c.seed, c.offset})
    verdict.fault = "dropout_seed_out, dropout_offset_out: not the numbers that were used";
  else if (c.want_kept)
    verdict.fault = kept_weights(c, result);
  if (verdict.fault.empty()) verdict.fault = unused_rows(c, result);
  return verdict;
}

}  // namespace flydsl::verify
