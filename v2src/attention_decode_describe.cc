// A checked attention_decode problem as what selection looks up, its plan and its kernel arguments
// (codegen/describe/attention_decode.py).
#include <algorithm>
#include <bit>
#include <span>

#include "v2src/attention_arguments.h"
#include "v2src/attention_decode.h"
#include "v2src/call_recording.h"
#include "v2src/tensor_check.h"

namespace flydsl::attention_decode {
namespace {

#define FLYDSL_AOT_CLASS(kv_format, qk, v, shared, row_blocks) \
  {kv_format, qk, v, shared != 0, row_blocks},
constexpr Class kClasses[] = {FLYDSL_AOT_ATTENTION_DECODE_CLASSES(FLYDSL_AOT_CLASS)};
constexpr Class kCompiledClasses[] = {
    FLYDSL_AOT_ATTENTION_DECODE_COMPILED_CLASSES(FLYDSL_AOT_CLASS)};
#undef FLYDSL_AOT_CLASS

#define FLYDSL_AOT_WIDEST(v) v,
constexpr int64_t kWidestValues[] = {FLYDSL_AOT_ATTENTION_DECODE_WIDEST_VALUES(FLYDSL_AOT_WIDEST)};
#undef FLYDSL_AOT_WIDEST

// Best first.
constexpr std::span<const Class> kClassLists[] = {kClasses, kCompiledClasses};
std::span<const std::span<const Class>> classes(bool compiled) {
  return {kClassLists, compiled ? 2u : 1u};
}

constexpr int64_t kRowsOfBlock = 16;
constexpr int64_t kKeysOfTile = 32;
constexpr uint32_t kReduceWaves = 4;  // of a work-group of the second pass
constexpr uint32_t kPartialsOfWave = 32;
// Of an MI350X; for queries without a device.
constexpr uint32_t kComputeUnitsWithoutDevice = 256;

int64_t divided_up(int64_t value, int64_t by) {
  return value / by + (value % by != 0);
}

// Row blocks of the instance: enough for all rows if one has so many, else the most.
int64_t row_blocks_of(int64_t group_rows, const Class &chosen) {
  int64_t blocks = 1;
  const auto bigger_exists = [&] { return chosen.row_blocks >> blocks > 1; };
  while (bigger_exists() &&
         (blocks * kRowsOfBlock < group_rows || !(chosen.row_blocks >> blocks & 1)))
    ++blocks;
  return blocks;
}

// Of the instance of the second pass.
int64_t widest_values(int64_t head_dim_v) {
  int64_t widest = 0;
  for (const int64_t instance : kWidestValues) {
    widest = instance;
    if (head_dim_v <= instance) break;
  }
  return widest;
}

// `by` as quotient() of kernels/attention_decode/plan.hip.h wants it: with s = ceil(log2 by), the low half is
// ceil(2^(31 + s) / by) and the high half s. n times the first is 2^(31 + s) n / by and less than
// n, so less than 2^31, too much: not enough to reach the next integer, for n below 2^31. 0 of 0, which is not used.
uint64_t divider_of(uint32_t by) {
  if (by == 0) return 0;
  const uint64_t shift = static_cast<uint64_t>(std::bit_width(by - 1));
  return shift << 32 | ((uint64_t{1} << (31 + shift)) + by - 1) / by;
}

// Tiles that the queries of a sequence with all keys see: as Sequence in kernels/attention_decode/plan.hip.h.
int64_t tiles_of_longest(const Kernarg &kernarg) {
  const int64_t keys = kernarg.seq_k, queries = kernarg.seq_q;
  const int64_t diagonal = kernarg.bottom_right ? keys - queries : 0;
  const int64_t left = kernarg.window_left, right = kernarg.window_right;
  const int64_t first = left < 0 ? 0 : std::max<int64_t>(diagonal - left, 0);
  const int64_t last = right < 0 ? keys - 1 : std::min(queries - 1 + diagonal + right, keys - 1);
  return last < first ? 0 : (last - first) / kKeysOfTile + 1;
}

// The plan of the kernels where all sequences are equally long: it saves them the look at the lengths.
void set_equal_plan(Kernarg *kernarg) {
  const uint32_t pairs = kernarg->heads_kv * kernarg->row_tiles;
  kernarg->by_pairs = divider_of(pairs);
  kernarg->by_group_rows =
      divider_of(kernarg->heads_per_kv * static_cast<uint32_t>(kernarg->seq_q));
  kernarg->by_heads_kv = divider_of(kernarg->heads_kv);
  kernarg->by_rows_of_tile = divider_of(kernarg->rows_of_tile);
  kernarg->by_seq_q = divider_of(static_cast<uint32_t>(kernarg->seq_q));
  const uint64_t tiles = static_cast<uint64_t>(tiles_of_longest(*kernarg));
  const uint64_t units = tiles * pairs * kernarg->batches;
  if (kernarg->seqused_k || units == 0 || units >= uint64_t{1} << 31) return;
  kernarg->equal_tiles = static_cast<uint32_t>(tiles);
  kernarg->equal_share = static_cast<uint32_t>(units / kernarg->workers);
  kernarg->larger_shares = static_cast<uint32_t>(units % kernarg->workers);
  kernarg->by_equal_share = divider_of(kernarg->equal_share);
  kernarg->by_larger_share = divider_of(kernarg->equal_share + 1);
  kernarg->by_equal_tiles = divider_of(kernarg->equal_tiles);
}

}  // namespace

const Class *find_class(const Sizes &sizes, bool shared, bool compiled) {
  for (const std::span<const Class> list : classes(compiled)) {
    for (const Class &candidate : list) {
      if (candidate.kv_format == sizes.kv_format && sizes.head_dim_qk <= candidate.qk &&
          sizes.head_dim_v <= candidate.v && (shared || !candidate.shared))
        return &candidate;
    }
  }
  return nullptr;
}

std::string head_dims_list(int64_t kv_format, bool compiled) {
  std::string text;
  for (const std::span<const Class> list : classes(compiled)) {
    for (const Class &candidate : list) {
      if (candidate.kv_format != kv_format) continue;
      text += (text.empty() ? "" : ", ") + std::to_string(candidate.qk) + "/" +
              std::to_string(candidate.v) + (candidate.shared ? " (v part of k)" : "");
    }
  }
  return text;
}

bool shares_values(const Params &params, bool query) {
  const flydsl_aot_tensor &k = params.k, &v = params.v;
  CallRecording::compares(k.data);
  if (k.data != v.data || (!k.data && !query) || v.sizes[kDim] > k.sizes[kDim]) return false;
  for (const int axis : {kBatch, kHead, kSeq})
    if (walked_stride(k, axis) != walked_stride(v, axis)) return false;
  return true;
}

Sizes sizes_of(const Params &params) {
  Sizes sizes{};
  sizes.batches = params.q.sizes[kBatch];
  sizes.heads_q = params.q.sizes[kHead];
  sizes.heads_kv = params.k.sizes[kHead];
  sizes.seq_q = params.q.sizes[kSeq];
  sizes.seq_k = present(params.block_table)
                    ? longest_paged(params.block_table, params.k, params.max_seqlen_k)
                    : params.k.sizes[kSeq];
  sizes.head_dim_qk = params.q.sizes[kDim];
  sizes.head_dim_v = params.v.sizes[kDim];
  sizes.kv_format = format_of(params.k.dtype);
  return sizes;
}

Status check_plan(const Sizes &sizes) {
  // The least tile of rows makes the most units.
  const int64_t pairs =
      sizes.heads_kv * divided_up(sizes.heads_q / sizes.heads_kv * sizes.seq_q, kRowsOfBlock);
  const int64_t tiles = divided_up(sizes.seq_k, kKeysOfTile);
  int64_t units = 0;
  if (__builtin_mul_overflow(tiles, pairs, &units) ||
      __builtin_mul_overflow(units, sizes.batches, &units) || units >= int64_t{1} << 32) {
    return error(FLYDSL_AOT_UNSUPPORTED_SIZE,
                 "B is %lld, ceil(Sk / 32) %lld, key heads times ceil(group rows / 16) %lld; their "
                 "product must be below 2^32",
                 static_cast<long long>(sizes.batches), static_cast<long long>(tiles),
                 static_cast<long long>(pairs));
  }
  LinearTiles grid;
  return linear_tiles(sizes.seq_q, sizes.batches, sizes.heads_q, 1, &grid);
}

Problem describe(const Params &params, bool shared) {
  Problem problem{};
  static_cast<Sizes &>(problem) = sizes_of(params);
  problem.params = &params;
  problem.empty = empty(params.out);
  if (problem.empty) return problem;
  problem.group_rows = problem.heads_q / problem.heads_kv * problem.seq_q;
  const Class &chosen = *find_class(problem, shared, true);  // as was checked
  const uint64_t dtype = static_cast<uint64_t>(params.q.dtype);
  problem.key.op = problem.reduce_key.op = kName;
  problem.key.functional_key = flydsl_aot_attention_decode_key(
      dtype, static_cast<uint64_t>(chosen.qk), static_cast<uint64_t>(chosen.v),
      static_cast<uint64_t>(row_blocks_of(problem.group_rows, chosen)),
      static_cast<uint64_t>(chosen.kv_format), chosen.shared);
  problem.reduce_key.functional_key = flydsl_aot_attention_decode_key(
      dtype, 0, static_cast<uint64_t>(widest_values(problem.head_dim_v)), 0, 0, 0);
  problem.key.align_bytes = align_bytes({&params.k, &params.v});
  problem.reduce_key.align_bytes = align_bytes({&params.out});
  problem.reduce_key.main = false;
  for (select::Problem *key : {&problem.key, &problem.reduce_key}) {
    key->seq_q = static_cast<uint64_t>(problem.seq_q);
    key->seq_k = static_cast<uint64_t>(problem.seq_k);
    key->parallel = static_cast<uint64_t>(problem.batches * problem.heads_kv);
  }
  return problem;
}

Status plan_of(const Problem &problem, const archive::Entry &entry, uint32_t compute_units,
               Plan *plan) {
  const int64_t rows_of_tile = entry.tile[0];
  const int64_t row_tiles = divided_up(problem.group_rows, rows_of_tile);
  const int64_t pairs = problem.batches * problem.heads_kv * row_tiles;  // checked: below 2^31
  const uint64_t units = static_cast<uint64_t>(pairs) *
                         static_cast<uint64_t>(divided_up(problem.seq_k, entry.tile[1]));
  const uint64_t resident =
      uint64_t{compute_units ? compute_units : kComputeUnitsWithoutDevice} * entry.tile[2];
  plan->workers = static_cast<uint32_t>(std::clamp<uint64_t>(units, 1, resident));
  plan->row_tiles = static_cast<uint32_t>(row_tiles);
  plan->rows_of_tile = static_cast<uint32_t>(rows_of_tile);
  plan->rows_of_slot = static_cast<uint32_t>(std::min(rows_of_tile, problem.group_rows));
  const uint64_t slots = plan->workers + static_cast<uint64_t>(pairs);
  plan->head_bytes = slots * plan->rows_of_slot * 4 * sizeof(float);
  plan->out_bytes =
      slots * plan->rows_of_slot * static_cast<uint64_t>(problem.head_dim_v) * sizeof(float);
  plan->grid = {plan->workers, 1, 0};
  // A wave for a row has 8 partials of D 128 and more on their way at once.
  plan->waves_of_row =
      plan->workers / static_cast<uint64_t>(pairs) < kPartialsOfWave ? 1 : kReduceWaves;
  return linear_tiles(problem.batches * problem.heads_q * problem.seq_q, 1, 1,
                      kReduceWaves / plan->waves_of_row, &plan->reduce_grid);
}

Kernarg kernarg_of(const Problem &problem, const Plan &plan) {
  const Params &params = *problem.params;
  Kernarg kernarg{};
  kernarg.q = params.q.data;
  kernarg.k = params.k.data;
  kernarg.v = params.v.data;
  kernarg.out = params.out.data;
  const auto set_strides = [](const flydsl_aot_tensor &tensor, int64_t *batch, int64_t *head,
                              int64_t *seq) {
    *batch = walked_stride(tensor, kBatch);
    *head = walked_stride(tensor, kHead);
    *seq = walked_stride(tensor, kSeq);
  };
  set_strides(params.q, &kernarg.q_stride_b, &kernarg.q_stride_h, &kernarg.q_stride_s);
  set_strides(params.k, &kernarg.k_stride_b, &kernarg.k_stride_h, &kernarg.k_stride_s);
  set_strides(params.v, &kernarg.v_stride_b, &kernarg.v_stride_h, &kernarg.v_stride_s);
  const int64_t stored_bytes = problem.kv_format == 0 ? 2 : 1;
  for (int64_t *stride : {&kernarg.k_stride_b, &kernarg.k_stride_h, &kernarg.k_stride_s,
                          &kernarg.v_stride_b, &kernarg.v_stride_h, &kernarg.v_stride_s})
    *stride *= stored_bytes;
  kernarg.kv_format = static_cast<uint32_t>(problem.kv_format);
  set_per_head(params.k_descale, &kernarg.k_descale, &kernarg.k_descale_stride_b,
               &kernarg.k_descale_stride_h);
  set_per_head(params.v_descale, &kernarg.v_descale, &kernarg.v_descale_stride_b,
               &kernarg.v_descale_stride_h);
  set_strides(params.out, &kernarg.out_stride_b, &kernarg.out_stride_h, &kernarg.out_stride_s);
  if (present(params.lse)) {
    kernarg.lse = static_cast<float *>(params.lse.data);
    set_strides(params.lse, &kernarg.lse_stride_b, &kernarg.lse_stride_h, &kernarg.lse_stride_s);
  }
  kernarg.batches = static_cast<uint32_t>(problem.batches);
  kernarg.heads_kv = static_cast<uint32_t>(problem.heads_kv);
  kernarg.heads_per_kv = static_cast<uint32_t>(problem.heads_q / problem.heads_kv);
  kernarg.seq_q = static_cast<int32_t>(problem.seq_q);
  kernarg.seq_k = static_cast<int32_t>(problem.seq_k);
  kernarg.head_dim_qk = static_cast<uint32_t>(problem.head_dim_qk);
  kernarg.head_dim_v = static_cast<uint32_t>(problem.head_dim_v);
  kernarg.row_tiles = plan.row_tiles;
  kernarg.rows_of_tile = plan.rows_of_tile;
  kernarg.rows_of_slot = plan.rows_of_slot;
  kernarg.workers = plan.workers;
  kernarg.waves_of_row = plan.waves_of_row;
  kernarg.reduce_grid_x = plan.reduce_grid.grid_x;
  set_mask(params, &kernarg);
  if (present(params.seqused_k))
    kernarg.seqused_k = static_cast<const int32_t *>(params.seqused_k.data);
  set_paging(params, &kernarg);
  kernarg.scale_log2 = scale_log2_of(params.scale);
  kernarg.scale_sign = params.scale == 0 ? 0.0f : params.scale < 0 ? -1.0f : 1.0f;
  kernarg.score_terms = params.softcap > 0 || present(params.alibi_slopes) || present(params.sinks);
  set_score_terms(params, &kernarg);
  kernarg.partial_heads = params.workspace;
  kernarg.partial_outs = static_cast<char *>(params.workspace) + plan.head_bytes;
  set_equal_plan(&kernarg);
  return kernarg;
}

}  // namespace flydsl::attention_decode
