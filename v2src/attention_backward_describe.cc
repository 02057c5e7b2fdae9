// A checked attention_backward problem as what selection looks up, pass by pass.
#include <algorithm>
#include <cmath>

#include "v2src/attention_arguments.h"
#include "v2src/attention_backward.h"
#include "v2src/attention_backward_aiter.h"
#include "v2src/tensor_check.h"

namespace flydsl::attention_backward {
namespace {

#define FLYDSL_AOT_CLASS(qk, v) {qk, v},
constexpr HeadDims kClasses[] = {FLYDSL_AOT_ATTENTION_BACKWARD_HEAD_DIM_CLASSES(FLYDSL_AOT_CLASS)};
constexpr HeadDims kCompiledClasses[] = {
    FLYDSL_AOT_ATTENTION_BACKWARD_COMPILED_CLASSES(FLYDSL_AOT_CLASS)};
#undef FLYDSL_AOT_CLASS

// Whether the problem has what only general instances compute.
bool needs_general_instance(const Params &params) {
  return params.softcap > 0 || params.dropout_p > 0 || present(params.bias) ||
         present(params.visible) || present(params.alibi_slopes) || present(params.sinks);
}

bool is_nearly_its_class(const Problem &problem) {
  const HeadDims &dims = *problem.dims;
  return is_nearly(problem.head_dim_qk, dims.qk) && is_nearly(problem.head_dim_v, dims.v);
}

// Whether the kernels for all gradients take the problem (kernels/attention_backward/fused/): they count in
// 32 bits inside a head, and scale their scores without a look at special values.
bool fits_together(const Problem &problem) {
  constexpr float kLargest = 0x1p60f;
  constexpr int64_t kMostElements = int64_t{1} << 25;  // from row to row
  const Params &params = *problem.params;
  const float scale = std::fabs(params.scale);
  if (problem.differing || !is_nearly_its_class(problem)) return false;
  if (scale > kLargest || scale < 1 / kLargest) return false;
  for (const flydsl_aot_tensor *tensor : {&params.q, &params.k, &params.dout})
    if (walked_stride(*tensor, attention_forward::kSeq) >= kMostElements) return false;
  return true;
}

// What a pass costs: the rounds that its work-groups make over the compute units, times what one of them computes; of a pass whose
// work-groups share compute units no less than one of them alone.
double cost_of(const Problem &problem, Pass pass, uint32_t compute_units) {
  constexpr uint32_t kComputeUnitsWithoutDevice = 256;
  uint32_t rows = 0;
  double alone = 0, of_many = 0;
#define FLYDSL_AOT_COST(name, rows_of, cost_alone, cost_of_many) \
  if (pass == Pass::name) rows = rows_of, alone = cost_alone, of_many = cost_of_many;
  FLYDSL_AOT_ATTENTION_BACKWARD_COSTS(FLYDSL_AOT_COST)
#undef FLYDSL_AOT_COST
  const bool of_queries = pass == Pass::queries;
  const double units = compute_units ? compute_units : kComputeUnitsWithoutDevice;
  const double heads = static_cast<double>(of_queries ? problem.heads_q : problem.heads_kv),
               groups = tiles_of(of_queries ? problem.seq_q : problem.seq_k, rows) * heads *
                        static_cast<double>(problem.batches),
               met = of_queries ? static_cast<double>(problem.seq_k)
                                : static_cast<double>(problem.seq_q) *
                                      static_cast<double>(problem.heads_q) / heads;
  return std::max(alone, of_many * std::ceil(groups / units)) * rows * met;
}

// Of few key blocks, each of which meets the rows of many heads, one kernel leaves most compute units without work.
bool is_faster_together(const Problem &problem, uint32_t compute_units) {
  const auto cost = [&](Pass pass) { return cost_of(problem, pass, compute_units); };
  return cost(Pass::fused) <= cost(Pass::keys) + cost(Pass::queries);
}

uint64_t key_of(const Problem &problem, Pass pass, uint64_t mask, bool general, bool padded) {
  const HeadDims &dims = *problem.dims;
  return flydsl_aot_attention_backward_key(
      static_cast<uint64_t>(problem.params->q.dtype), static_cast<uint64_t>(dims.qk),
      static_cast<uint64_t>(dims.v), mask, static_cast<uint64_t>(pass), general, padded);
}

// Which kernels of a pass over scores the problem is for, best first. For all gradients together: those of just
// its head dims and bounds, then those that take smaller head dims too, then AITER's. Else: those without features, any bounds, and the
// general ones of its head-dim class.
void set_keys(const Problem &problem, Pass pass, select::Problem *key) {
  const bool nearly = is_nearly_its_class(problem);
  uint64_t keys[select::kMaxKeys];
  size_t count = 0;
  if (pass == Pass::fused) {
    const uint64_t mask = problem.bounds;
    if (!nearly) return;
    const HeadDims &dims = *problem.dims;
    if (problem.head_dim_qk == dims.qk && problem.head_dim_v == dims.v)
      keys[count++] = key_of(problem, pass, mask, false, false);
    keys[count++] = key_of(problem, pass, mask, false, true);
    if (const std::optional<uint64_t> of_aiter = aiter::mask_of(problem))
      keys[count++] = key_of(problem, pass, *of_aiter, false, false);
  } else {
    if (nearly && pass != Pass::bias && !needs_general_instance(*problem.params))
      keys[count++] = key_of(problem, pass, 0, false, true);
    keys[count++] = key_of(problem, pass, 0, true, false);
  }
  key->functional_key = keys[0];
  key->fallbacks = count - 1;
  std::copy(keys + 1, keys + count, key->fallback_keys.begin());
}

// The first that is wanted: the one that has the most to do.
Pass main_without_fused(const Problem &problem) {
  for (const Pass pass : {Pass::keys, Pass::queries, Pass::bias})
    if (problem.wants[static_cast<size_t>(pass)]) return pass;
  return Pass::sinks;
}

// Of every head dim.
bool moves_memory(Pass pass) {
  return pass == Pass::prepare || pass == Pass::convert || pass == Pass::prepare_rows ||
         pass == Pass::convert_rows || pass == Pass::sinks;
}

// Of what passes read and write, as far as their instances ask for alignment. Of a gradient that is not wanted all there is.
struct Alignments {
  uint64_t outs, read, dq, dk, dv;

  explicit Alignments(const Problem &problem) {
    const Params &params = *problem.params;
    const auto of_gradient = [](const flydsl_aot_tensor &tensor) {
      return wanted(tensor) ? align_bytes({&tensor}) : ~uint64_t{0};
    };
    const uint64_t dout = align_bytes({&params.dout});
    outs = std::min(align_bytes({&params.out}), dout);
    read = align_bytes({&params.q, &params.k, &params.v});
    if (!problem.copies_dout) read = std::min(read, dout);  // the copy is aligned
    dq = of_gradient(params.dq);
    dk = of_gradient(params.dk);
    dv = of_gradient(params.dv);
  }

  uint64_t of(Pass pass) const {
    switch (pass) {
      case Pass::prepare:
      case Pass::prepare_rows:
        return outs;
      case Pass::convert:
      case Pass::convert_rows:
        return dq;
      case Pass::queries:
        return std::min(read, dq);
      case Pass::keys:
        return std::min({read, dk, dv});
      case Pass::fused:
        return std::min({read, dq, dk, dv});
      case Pass::bias:
      case Pass::sinks:
        break;
    }
    return read;
  }
};

// Whether the call may run it.
bool may_run(const Problem &problem, Pass pass) {
  const bool together = pass == Pass::fused || pass == Pass::convert ||
                        pass == Pass::prepare_rows || pass == Pass::convert_rows;
  return together ? problem.wants_together : problem.wants[static_cast<size_t>(pass)];
}

void set_wanted(Problem *problem, uint32_t compute_units) {
  const Params &params = *problem->params;
  const auto wants = [&](Pass pass) -> bool & { return problem->wants[static_cast<size_t>(pass)]; };
  const bool has_keys = problem->batches > 0 && problem->seq_k > 0;
  wants(Pass::keys) = has_keys && (wanted(params.dk) || wanted(params.dv));
  wants(Pass::queries) = problem->has_rows && wanted(params.dq);
  wants(Pass::bias) = wanted(params.dbias);
  wants(Pass::sinks) = wanted(params.dsinks);
  problem->empty = std::none_of(problem->wants, problem->wants + kPasses, [](bool w) { return w; });
  wants(Pass::prepare) = problem->has_rows && !problem->empty;
  problem->wants_together = has_keys && problem->has_rows && wanted(params.dq) &&
                            wanted(params.dk) && wanted(params.dv) &&
                            !needs_general_instance(params) && fits_together(*problem);
  problem->faster_together = problem->wants_together && is_faster_together(*problem, compute_units);
}

}  // namespace

attention_forward::Params forward_of(const Params &params) {
  attention_forward::Params forward{};
  forward.scale = params.scale;
  forward.q = params.q;
  forward.k = params.k;
  forward.v = params.v;
  forward.out = params.out;
  forward.mask = params.mask;
  forward.cu_seqlens_q = params.cu_seqlens_q;
  forward.cu_seqlens_k = params.cu_seqlens_k;
  forward.seqused_q = params.seqused_q;
  forward.seqused_k = params.seqused_k;
  forward.max_seqlen_q = params.max_seqlen_q;
  forward.max_seqlen_k = params.max_seqlen_k;
  forward.softcap = params.softcap;
  forward.dropout_p = params.dropout_p;
  forward.bias = params.bias;
  forward.visible = params.visible;
  forward.alibi_slopes = params.alibi_slopes;
  forward.sinks = params.sinks;
  forward.dropout_seed = params.dropout_seed;
  forward.dropout_offset = params.dropout_offset;
  forward.dropout_seed_device = params.dropout_seed_device;
  forward.dropout_offset_device = params.dropout_offset_device;
  return forward;
}

const HeadDimClasses kHeadDimClasses = {kClasses, kCompiledClasses};

bool wanted(const flydsl_aot_tensor &output) {
  return present(output) && !empty(output);
}

Problem describe(const Params &params, uint32_t compute_units) {
  Problem problem{};
  static_cast<Sizes &>(problem) = attention_forward::sizes_of_sequences(params);
  problem.params = &params;
  problem.dims = kHeadDimClasses.of(problem.head_dim_qk, problem.head_dim_v);
  problem.differing = attention_forward::differing_lengths(params);
  problem.score_terms = params.softcap > 0 || present(params.bias) ||
                        present(params.alibi_slopes) || present(params.sinks);
  problem.bounds = attention_forward::bounds_of(params.mask, problem.differing, problem);
  problem.has_rows = problem.batches > 0 && problem.heads_q > 0 && problem.seq_q > 0;
  const int last = params.dout.rank - 1;
  problem.copies_dout = params.dout.sizes[last] > 1 && params.dout.strides[last] != 1;
  set_wanted(&problem, compute_units);
  const Pass main_alone = main_without_fused(problem);
  const Alignments alignments(problem);
  for (size_t i = 0; i < kPasses; ++i) {
    const Pass pass = static_cast<Pass>(i);
    if (!may_run(problem, pass)) continue;
    select::Problem &key = problem.keys[i];
    key.op = kName;
    key.align_bytes = alignments.of(pass);
    key.seq_q = static_cast<uint64_t>(problem.seq_q);
    key.seq_k = static_cast<uint64_t>(problem.seq_k);
    key.parallel = static_cast<uint64_t>(problem.batches * problem.heads_q);
    key.main = pass == Pass::fused || pass == main_alone;
    if (moves_memory(pass)) {
      const uint64_t dtype = pass == Pass::sinks ? 0 : static_cast<uint64_t>(params.q.dtype);
      key.functional_key = flydsl_aot_attention_backward_key(dtype, 0, 0, 0, i, 0, 0);
    } else {
      set_keys(problem, pass, &key);
    }
  }
  // One table for all gradients together and for the pass that is taken instead of them. Where query heads share key heads, which
  // makes for few work-groups with much to do, it is another.
  if (problem.wants_together) {
    select::Problem &fused = problem.keys[static_cast<size_t>(Pass::fused)];
    fused.yields = true;
    const bool shared = problem.heads_q != problem.heads_kv;
    fused.tuning_key =
        shared ? key_of(problem, Pass::fused, problem.bounds, true, false) : fused.functional_key;
    problem.keys[static_cast<size_t>(Pass::keys)].tuning_key = fused.tuning_key;
  }
  return problem;
}

}  // namespace flydsl::attention_backward
