// One problem of attention_forward, with its numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "flydsl_aot/flydsl_aot.h"
#include "tools/verify/attention_forward_packing.h"
#include "tools/verify/device_tensor.h"
#include "tools/verify/random.h"

namespace flydsl::verify {

inline flydsl_aot_mask no_mask() {
  return {FLYDSL_AOT_UNLIMITED, FLYDSL_AOT_UNLIMITED, FLYDSL_AOT_ANCHOR_NONE, 0};
}
inline flydsl_aot_mask causal_top_left() {
  return {FLYDSL_AOT_UNLIMITED, 0, FLYDSL_AOT_ANCHOR_TOP_LEFT, 0};
}
inline flydsl_aot_mask causal_bottom_right() {
  return {FLYDSL_AOT_UNLIMITED, 0, FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT, 0};
}

struct AttentionCase {
  flydsl_aot_dtype dtype = FLYDSL_AOT_BF16;
  int64_t batches = 1, heads_q = 1, heads_kv = 1, seq_q = 1, seq_k = 1, head_dim = 64;
  int64_t head_dim_v = 0;  // 0: as head_dim
  // 8-bit types of q, and of k and v, the 16-bit values of which are then those of the 8-bit type;
  // INVALID: `dtype`.
  flydsl_aot_dtype q_dtype = FLYDSL_AOT_DTYPE_INVALID, kv_dtype = FLYDSL_AOT_DTYPE_INVALID;
  // Of such types: dense numbers of these sizes, (1), (H) or (B, H); empty: none.
  struct Descale {
    std::vector<int64_t> sizes;
    std::vector<float> values;
    double of(int64_t batch, int64_t head) const;  // 1 if there are none
  };
  Descale q_descale, k_descale, v_descale;
  float scale = 0.125f;
  flydsl_aot_mask mask = no_mask();
  bool want_lse = true;
  // Rows in use of each sequence, at most seq_q and seq_k, and how the library is told.
  std::vector<int64_t> lengths_q, lengths_k;
  Lengths lengths_q_as = Lengths::kDense, lengths_k_as = Lengths::kDense;
  // Of a sequence.
  int64_t rows_of(int64_t batch) const {
    return lengths_q_as == Lengths::kDense ? seq_q : lengths_q[static_cast<size_t>(batch)];
  }
  int64_t keys_of(int64_t batch) const {
    return lengths_k_as == Lengths::kDense ? seq_k : lengths_k[static_cast<size_t>(batch)];
  }
  int64_t block_size = 16;        // of paged keys
  std::vector<uint16_t> q, k, v;  // dense, (B, H, S, D)
  bool v_is_k = false;            // v is a view of k, its first channels
  Placement place_q, place_k, place_v, place_out, place_lse;
  uint16_t input_poison =
      0xffff;  // what lies around and between the inputs' elements: NaN in both types

  // Terms of the scores, dense; empty: absent.
  float softcap = 0;
  std::vector<float> bias;  // (B, Hq, Sq, Sk), rounded to bias_dtype
  flydsl_aot_dtype bias_dtype = FLYDSL_AOT_FP32;
  std::vector<uint8_t> visible;     // (B, Hq, Sq, Sk)
  std::vector<float> alibi_slopes;  // (Hq) or (B, Hq)
  std::vector<float> sinks;         // (Hq)
  Placement place_bias, place_visible;
  // Dropout. Seed and offset are given by the host, or with `random_on_device` by device memory, the
  // offset then in two parts.
  float dropout_p = 0;
  uint64_t seed = 0, offset = 0;
  bool random_on_device = false;
  bool want_kept = false;
  Placement place_kept;
  // Whether weight (b, h, i, j) is kept, by the header's rule.
  bool keeps(int64_t b, int64_t h, int64_t i, int64_t j) const;

  // q, k and v filled by functions of (batch, head, position, channel).
  using Fill = std::function<float(int64_t, int64_t, int64_t, int64_t)>;
  void fill_q(const Fill &fill) { q = filled(q_dtype, heads_q, seq_q, head_dim, fill); }
  void fill_k(const Fill &fill) { k = filled(kv_dtype, heads_kv, seq_k, head_dim, fill); }
  void fill_v(const Fill &fill) { v = filled(kv_dtype, heads_kv, seq_k, value_dim(), fill); }
  // Standard normal values.
  void fill_random(Random &random);
  // Of bias and visible.
  int64_t score_count() const { return batches * heads_q * seq_q * seq_k; }
  int64_t value_dim() const { return head_dim_v ? head_dim_v : head_dim; }

 private:
  std::vector<uint16_t> filled(flydsl_aot_dtype stored, int64_t heads, int64_t positions,
                               int64_t channels, const Fill &fill) const;
};

// "B1 Hq2/1 Sq33 Sk65 D64 ..." for failure messages.
std::string describe(const AttentionCase &c);

}  // namespace flydsl::verify
