// The numbers of a case of attention_backward: those of attention_forward's, and dout.
#include <algorithm>
#include <cmath>

#include "tools/verify/attention_backward_spec.h"
#include "tools/verify/attention_score.h"
#include "tools/verify/float16.h"

namespace flydsl::verify {
namespace {

// Apart from those of the forward case.
enum Stream : uint64_t { kDout = 101, kBadRows, kOutputPlacements };

// Rows of a tensor of the queries' made NaN.
template <typename Which>
void spoil_rows(const AttentionCase &c, std::vector<uint16_t> &values, int64_t channels,
                Which which) {
  for (int64_t row = 0; row < c.batches * c.heads_q; ++row) {
    for (int64_t i = 0; i < c.seq_q; ++i) {
      if (which(row / c.heads_q, i))
        std::fill_n(values.begin() + (row * c.seq_q + i) * channels, channels,
                    from_float(c.dtype, NAN));
    }
  }
}

void spoil_random_rows(const AttentionCase &c, std::vector<uint16_t> &values, int64_t channels,
                       int64_t count, Random &random) {
  for (int64_t row = 0; row < c.batches * c.heads_q; ++row) {
    const int64_t rows = c.rows_of(row / c.heads_q);
    for (int64_t n = 0; n < count && rows > 0; ++n)
      std::fill_n(values.begin() + (row * c.seq_q + random.below(rows)) * channels, channels,
                  from_float(c.dtype, NAN));
  }
}

void fill_dout(const BackwardSpec &spec, BackwardCase &c) {
  const AttentionCase &f = c.forward;
  const std::string &zero = spec.place_dout.zero;
  const bool packed = f.lengths_q_as == Lengths::kPacked || f.lengths_q_as == Lengths::kPackedUsed;
  const bool one_row = zero.find('s') != std::string::npos, one_channel = zero.ends_with('d');
  const AttentionCase::Fill numbers =
      filler(spec.forward.seed, kDout, spec.dout, packed && one_row ? "b" + zero : zero, f.heads_q,
             f.seq_q, f.value_dim());
  AttentionCase shape = f;  // its fill_v fills (B, heads of keys, keys, Dv)
  shape.heads_kv = f.heads_q;
  shape.seq_k = f.seq_q;
  shape.fill_v([&](int64_t b, int64_t h, int64_t s, int64_t d) {
    return numbers(b, h, s, one_channel ? 0 : d);
  });
  c.dout = std::move(shape.v);
  if (one_row || zero.find('b') != std::string::npos) return;
  spoil_rows(f, c.dout, f.value_dim(), [&](int64_t b, int64_t i) { return i >= f.rows_of(b); });
}

}  // namespace

BackwardCase build_backward_case(const BackwardSpec &spec) {
  BackwardCase c = spec.base;
  c.forward = build_attention_case(spec.forward);
  AttentionCase &f = c.forward;
  const auto packed = [](Lengths as) {
    return as == Lengths::kPacked || as == Lengths::kPackedUsed ? 1 : 0;
  };
  const int q = packed(f.lengths_q_as), k = packed(f.lengths_k_as);
  Random random = random_at(spec.forward.seed, kOutputPlacements);
  c.place_dout = place(spec.place_dout, random, 4 - q, 3 - q, q ? "hsd" : "bhsd", 2);
  const int lse_rank = q && !c.lse_padded ? 2 : 3;
  c.place_lse = place(spec.forward.place_lse, random, lse_rank, lse_rank, "", 4);
  for (size_t n : {kDq, kDk, kDv}) {
    const int rank = 4 - (n == kDq ? q : k);
    c.place[n] = place(spec.place[n], random, rank, rank - 1, "", 2);
  }
  c.place[kDbias] = place(spec.place[kDbias], random, 4, 4, "", 4);
  c.place[kDsinks] = place(spec.place[kDsinks], random, 1, 1, "", 4);
  fill_dout(spec, c);

  if (spec.forward.nan_hidden && spec.place_dout.zero.empty() &&
      spec.forward.place_q.zero.empty()) {
    const auto sees_nothing = [&](int64_t b, int64_t i) {
      const int64_t rows = f.rows_of(b), keys = f.keys_of(b);
      for (int64_t j = 0; j < keys; ++j)
        if (mask_allows(f.mask, i, j, rows, keys)) return false;
      return true;
    };
    spoil_rows(f, f.q, f.head_dim, sees_nothing);
    spoil_rows(f, c.dout, f.value_dim(), sees_nothing);
  }
  Random bad_rows = random_at(spec.forward.seed, kBadRows);
  spoil_random_rows(f, f.q, f.head_dim, spec.nan_q, bad_rows);
  spoil_random_rows(f, c.dout, f.value_dim(), spec.nan_dout, bad_rows);
  return c;
}

}  // namespace flydsl::verify
