// A row for the slow path (attention_forward/exact.hip.h).
#pragma once

#include "attention_decode/scores.hip.h"
#include "common/elements.hip.h"
#include "common/float8.hip.h"
#include "common/memory.hip.h"

namespace flydsl::kernels {

// Only where the log-sum-exp is wanted.
FLYDSL_DEVICE void store_lse(u32 batch, u32 head, i32 query, float x) {
  const Arguments args = fresh_arguments();
  if (!args->lse) return;
  ((global_ptr<float>)args
       ->lse)[batch * args->lse_stride_b + head * args->lse_stride_h + query * args->lse_stride_s] =
      x;
}

template <class Element, int elements_of_lane>
struct DecodeRow {
  static constexpr int elements = elements_of_lane;
  const Row &row;
  u32 kv_head;
  RowTerms terms;
  i32 first_key, last_key;
  float c, sink;
  float of_products, of_values;  // factors

  FLYDSL_DEVICE DecodeRow(const Row &row, u32 kv_head, const Sequence &sequence)
      : row(row),
        kv_head(kv_head),
        terms(row, sequence),
        first_key(terms.first_key),
        last_key(terms.last_key),
        c(weight_factor()),
        sink(sink_of(row.head)),
        of_products(product_factor(row.batch, kv_head)),
        of_values(value_descale(row.batch, kv_head)) {}

  FLYDSL_DEVICE RowOffsets offsets(i32 key) const {
    return offsets_of(block_of(row.batch, key, static_cast<i32>(row.batch)), kv_head, key);
  }
  static FLYDSL_DEVICE Format format() { return static_cast<Format>(fresh_arguments()->kv_format); }
  FLYDSL_DEVICE float score(i32 key) const {
    const Arguments args = fresh_arguments();
    const auto q = row.q(), k = (global_ptr<const char>)args->k + offsets(key).k;
    const i32 head_dim = static_cast<i32>(args->head_dim_qk);
    const Format stored = format();
    float score = 0.0f;
#pragma unroll 1
    for (i32 element = 0; element < head_dim; element += 8) {
      const u32x4 a = load_16_bytes(q + 2 * element);
      u32x4 b;
      if (stored == Format::wide) {
        b = load_16_bytes(k + 2 * element);
      } else {
        const u32x2 bytes = load_8_bytes(k + element);
        b = widened<Element>(u32x4{bytes[0], bytes[1], 0, 0}, stored);
      }
#pragma unroll
      for (int i = 0; i < 8; ++i)
        score = fma(element_of<Element>(a, i), element_of<Element>(b, i), score);
    }
    score *= of_products;
    if (has_terms())
      add_score_terms(
          terms, 1, [&](int) -> float & { return score; }, [&](int) { return key; });
    return score;
  }
  FLYDSL_DEVICE float kept(float weight, i32) const {
    return weight;
  }
  FLYDSL_DEVICE float value(i32 key, u32 element) const {
    const Arguments args = fresh_arguments();
    if (element >= args->head_dim_v) return 0.0f;
    const auto v = (global_ptr<const char>)args->v + offsets(key).v;
    const Format stored = format();
    if (stored == Format::wide) return to_float<Element>(((global_ptr<const u16>)v)[element]);
    return pair_of_float8(((global_ptr<const u8>)v)[element], false, stored)[0];
  }
  FLYDSL_DEVICE global_ptr<typename Element::scalar> out() const {
    const Arguments args = fresh_arguments();
    return (global_ptr<typename Element::scalar>)args->out +
           (row.batch * args->out_stride_b + row.head * args->out_stride_h +
            row.query * args->out_stride_s);
  }
  FLYDSL_DEVICE void store(u32 element, float x) const {
    if (element >= fresh_arguments()->head_dim_v) return;
    out()[element] = static_cast<typename Element::scalar>(x * of_values);
  }
  FLYDSL_DEVICE void store_lse(float x) const {
    kernels::store_lse(row.batch, row.head, row.query, x);
  }
};

}  // namespace flydsl::kernels
