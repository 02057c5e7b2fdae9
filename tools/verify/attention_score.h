// One score of attention in float64, written from the definition in include/flydsl_aot/attention_forward.h and
// from nothing else: what the oracles of attention share.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "flydsl_aot/types.h"

namespace flydsl::verify {

// A host view of one 4-axis tensor, 16-bit elements.
struct HostView {
  const uint16_t *data = nullptr;
  int64_t sizes[4] = {};
  int64_t strides[4] = {};
};

// One head's (S, D) slice in float64.
std::vector<double> head_of(flydsl_aot_dtype dtype, const HostView &view, int64_t batch,
                            int64_t head);

// The optional terms of the definition, as functions of (batch, head, query, key). Those left empty are
// absent.
struct ReferenceTerms {
  double softcap = 0;
  std::function<double(int64_t, int64_t)> score_factor,
      value_factor;  // descaling, of (batch, head)
  std::function<double(int64_t, int64_t, int64_t, int64_t)> bias;
  std::function<bool(int64_t, int64_t, int64_t, int64_t)> visible;
  std::function<double(int64_t, int64_t)> slope;  // ALiBi, of (batch, head)
  std::function<double(int64_t)> sink;            // of the head
  // What a weight is multiplied by on its way to v.
  std::function<double(int64_t, int64_t, int64_t, int64_t)> dropout;
};

// Whether the mask lets query i of `rows` see key j of `keys`.
bool mask_allows(const flydsl_aot_mask &mask, int64_t i, int64_t j, int64_t rows, int64_t keys);

struct ScorePlace {
  int64_t batch, head, row, key;
  int64_t rows, keys;  // of the sequence
};

struct Score {
  double value = -INFINITY;  // -inf: the key is not visible
  double magnitude = 0;      // |scale| sum |q k| + |bias| + |slope distance|
  double derivative = 1;     // of the value by scale * sum q k: 1 - tanh^2 with softcap
};

// Of two rows of `head_dim` numbers.
Score attention_score(const double *q, const double *k, int64_t head_dim, double scale,
                      const flydsl_aot_mask &mask, const ReferenceTerms &terms,
                      const ScorePlace &place);

}  // namespace flydsl::verify
