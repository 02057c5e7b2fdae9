// A checked attention_forward problem as what selection looks up.
#include <algorithm>

#include "v2src/attention_arguments.h"
#include "v2src/attention_forward_aiter.h"
#include "v2src/tensor_check.h"

namespace flydsl::attention_forward {
namespace {

#define FLYDSL_AOT_CLASS(qk, v) {qk, v},
constexpr HeadDims kClasses[] = {FLYDSL_AOT_ATTENTION_FORWARD_HEAD_DIM_CLASSES(FLYDSL_AOT_CLASS)};
constexpr HeadDims kCompiledClasses[] = {
    FLYDSL_AOT_ATTENTION_FORWARD_COMPILED_CLASSES(FLYDSL_AOT_CLASS)};
#undef FLYDSL_AOT_CLASS

// Whether scores are more than a multiple of q . k, or a sink takes part.
bool has_score_modifiers(const Params &params) {
  return params.softcap > 0 || present(params.bias) || present(params.alibi_slopes) ||
         present(params.sinks);
}

// All of q, k and v e4m3.
bool is_float8(const Params &params) {
  return params.q.dtype == FLYDSL_AOT_E4M3 && params.k.dtype == FLYDSL_AOT_E4M3;
}

bool all_wide(const Params &params) {
  return params.q.dtype == element_type(params) && params.k.dtype == element_type(params);
}

// Whether the problem has what only instances with every feature compute.
bool has_features(const Params &params) {
  const bool mixed_dtypes = !all_wide(params) && !is_float8(params);
  return mixed_dtypes || has_score_modifiers(params) || present(params.visible) ||
         params.dropout_p > 0 || params.dropout_seed_out || params.dropout_offset_out ||
         present(params.kept) || present(params.block_table);
}

// Whether a problem with features has what only general instances compute: elements of 8 bits, or what the others
// (features/ in kernels/attention_forward) leave out.
bool needs_general_instance(const Problem &problem) {
  const Params &params = *problem.params;
  constexpr float kWidestCap = 128.0f;  // of a wider one their tanh is not accurate enough
  const bool bias = present(params.bias), visible = present(params.visible);
  const double rows = static_cast<double>(problem.batches) * static_cast<double>(problem.heads_q) *
                      static_cast<double>(problem.seq_q);
  return !all_wide(params) || params.softcap > kWidestCap || (bias && visible) ||
         ((bias || visible) && present(params.block_table)) ||
         (params.dropout_p > 0 && rows > 0x1p32);
}

// Whether row tiles of 128 rows give each of 256 compute units the four work-groups that kernels of
// "many rows" want there; with fewer, latencies show that more waves of fewer rows hide.
bool has_many_rows(const Problem &problem) {
  constexpr double kManyRows = 256 * 4 * 128;
  double rows = static_cast<double>(problem.seq_q) * static_cast<double>(problem.batches);
  if (present(problem.params->cu_seqlens_q))
    rows = std::min(rows, static_cast<double>(problem.total_q));
  return rows * static_cast<double>(problem.heads_q) >= kManyRows;
}

// Which kernels the problem is for, best first: those of just its head dims, of many rows first if it has
// them, those that take smaller ones too, those with every feature for 16-bit elements, and the general ones of its class. Last,
// for tuning rows and what a user forces: those of many rows if it has few, and AITER's.
void set_keys(const Problem &problem, bool with_aiter, select::Problem *key) {
  const HeadDims *dims = kHeadDimClasses.of(problem.head_dim_qk, problem.head_dim_v);
  if (!dims) return;  // an empty problem; nothing is looked up for it
  const auto key_of = [&](uint64_t mask, bool general, bool float8, bool padded, bool many_rows) {
    return flydsl_aot_attention_forward_key(
        static_cast<uint64_t>(element_type(*problem.params)), static_cast<uint64_t>(dims->qk),
        static_cast<uint64_t>(dims->v), mask, general, float8, padded, many_rows);
  };
  const bool exact = problem.head_dim_qk == dims->qk && problem.head_dim_v == dims->v;
  const bool many = has_many_rows(problem);
  uint64_t keys[select::kMaxKeys];
  size_t count = 0;
  const bool nearly =
      is_nearly(problem.head_dim_qk, dims->qk) && is_nearly(problem.head_dim_v, dims->v);
  const bool features = has_features(*problem.params);
  const bool float8 = is_float8(*problem.params);
  const uint64_t mask =
      bounds_of(problem.params->mask, differing_lengths(*problem.params), problem);
  if (!features) {
    if (exact && many) keys[count++] = key_of(mask, false, float8, false, true);
    if (exact) keys[count++] = key_of(mask, false, float8, false, false);
    if (nearly) keys[count++] = key_of(mask, false, float8, true, false);
  } else if (nearly && !needs_general_instance(problem)) {
    keys[count++] = key_of(0, true, false, true, false);
  }
  keys[count++] = key_of(0, true, false, false, false);
  key->functional_key = keys[0];
  key->fallbacks = count - 1;
  std::copy(keys + 1, keys + count, key->fallback_keys.begin());
  key->tuning_key = keys[0];
  if (!features && count > 1) {
    // Of many rows and of few alike.
    key->tuning_key = key_of(mask, false, float8, !exact, false);
    if (exact && !many)
      key->fallback_keys[key->fallbacks++] = key_of(mask, false, float8, false, true);
    const std::optional<uint64_t> of_aiter = with_aiter ? aiter::mask_of(problem) : std::nullopt;
    if (of_aiter)
      key->fallback_keys[key->fallbacks++] = key_of(*of_aiter, false, false, false, false);
  }
}

}  // namespace

// The first query sees the fewest keys to the right, the last one the fewest to the left.
uint64_t bounds_of(const flydsl_aot_mask &mask, bool differing, const Sizes &sizes) {
  const bool top_left = mask.anchor == FLYDSL_AOT_ANCHOR_TOP_LEFT;
  const auto hides = [&](int64_t bound, int64_t size) {
    return bound != FLYDSL_AOT_UNLIMITED && (differing || bound < size - 1);
  };
  if (hides(mask.left, top_left ? sizes.seq_q : sizes.seq_k)) return 2;
  return hides(mask.right, top_left ? sizes.seq_k : sizes.seq_q) ? 1 : 0;
}

bool has_score_terms(const Params &params) {
  return has_score_modifiers(params) || present(params.q_descale) || present(params.k_descale);
}

Sizes sizes_of(const Params &params) {
  Sizes sizes = sizes_of_sequences(params);
  if (present(params.block_table))
    sizes.seq_k = sizes.total_k = longest_paged(params.block_table, params.k, params.max_seqlen_k);
  return sizes;
}

const HeadDimClasses kHeadDimClasses = {kClasses, kCompiledClasses};

Problem describe(const Params &params, bool with_aiter) {
  Problem problem{};
  static_cast<Sizes &>(problem) = sizes_of(params);
  problem.params = &params;
  problem.empty = empty(params.out) || problem.batches == 0 || problem.seq_q == 0;
  problem.key.op = kName;
  set_keys(problem, with_aiter, &problem.key);
  problem.key.align_bytes = align_bytes({&params.q, &params.k, &params.v, &params.out});
  problem.key.seq_q = static_cast<uint64_t>(problem.seq_q);
  problem.key.seq_k = static_cast<uint64_t>(problem.seq_k);
  problem.key.parallel = static_cast<uint64_t>(problem.batches * problem.heads_q);
  return problem;
}

Status tiles_of_sequences(const SequenceTiles &what, LinearTiles *tiles) {
  if (!what.differing)
    return linear_tiles(what.longest, what.batches, what.heads, what.rows_of_tile, tiles);
  // Tiles of all sequences together: the device finds out whose each is (unequal_order.hip.h). Of packed
  // ones each begins at most one tile more than its rows fill.
  const int64_t rows = what.rows_of_tile;
  int64_t all = what.batches * ((what.longest + rows - 1) / rows);  // checked: below 2^31
  // More sequences than that are not counted (kMostCounted, kernels/attention_forward/unequal_order.hip.h).
  if (what.packed && what.batches <= 4096) all = std::min(all, what.total / rows + what.batches);
  return linear_tiles(all * rows, 1, what.heads, what.rows_of_tile, tiles);
}

Status tiles_of(const Problem &problem, uint32_t tile_rows, LinearTiles *tiles) {
  const Params &params = *problem.params;
  return tiles_of_sequences({problem.seq_q, problem.total_q, problem.batches, problem.heads_q,
                             tile_rows, present(params.cu_seqlens_q), differing_lengths(params)},
                            tiles);
}

}  // namespace flydsl::attention_forward
