// What rms_norm_backward and layer_norm_backward share on the host: check -> describe -> select -> launch, of either's parameters.
#pragma once

#include <array>
#include <optional>

#include "flydsl_aot/types.h"
#include "src/archive/reader.h"
#include "src/select/select.h"
#include "v2src/launch.h"
#include "v2src/norm.h"
#include "v2src/rows.h"
#include "v2src/struct_size.h"

namespace flydsl::norm_backward {

// Both operators' parameters, whose tensors are the caller's; what one does not have is absent. (A mean is required of a centred one.)
struct Params {
  bool centred = false;
  float weight_offset = 0;
  const flydsl_aot_tensor *x = &norm::kAbsent, *weight = &norm::kAbsent, *rstd = &norm::kAbsent,
                          *mean = &norm::kAbsent, *dout = &norm::kAbsent, *dsum = &norm::kAbsent,
                          *dx = &norm::kAbsent, *dweight = &norm::kAbsent, *dbias = &norm::kAbsent;
  void *workspace = nullptr;
  uint64_t workspace_bytes = 0;
};

// codegen/describe/norm_backward.py
enum class Pass : uint64_t { kRows, kSums, kColumns, kTotals };
constexpr size_t kPasses = 4;

// How the rows are cut, which the alignment of pointers does not change.
struct Problem {
  Params params;
  bool empty;
  uint64_t rows;
  int64_t length;
  uint64_t most_slots;  // of either way
  uint64_t column_tiles, column_slots;
  uint32_t column_slot_rows;
  uint32_t parts, part_length;  // of a row, for kSums
  std::array<select::Problem, kPasses> keys;

  bool wants_dx() const { return present(*params.dx) && rows > 0; }
  bool wants_totals() const { return present(*params.dweight) || present(*params.dbias); }
};

Status check(const Params &params, bool query);
// But for the operators and functional keys of its keys. `columns`: of a work-group that goes down them; `most_rows`: of one
// team in a slot.
Problem describe(const Params &params, int64_t columns, uint32_t most_rows);
// Whether a kernel of the target holds a row: dx by kRows, else by kSums and kColumns, if it is wanted.
bool holds_rows(const flydsl_aot_handle *handle, const Problem &problem,
                const archive::TargetId &target);

// The passes that run, in their order.
struct Passes {
  Pass all[3];
  size_t count;
};
Passes passes_of(const Problem &problem, bool held);
// The one that a query names.
Pass main_pass(const Problem &problem, bool held);

// Offsets in bytes of what passes leave each other.
struct Workspace {
  uint64_t row_sums, dweight_sums, dbias_sums, bytes;
};
// UNSUPPORTED_SIZE past 2^63 bytes.
Status workspace_of(const Problem &problem, Workspace *workspace);
Status check_workspace(const Params &params, uint64_t needed, const char *name);

// What a pass over `problem.rows` with this kernel goes through.
struct Cut {
  uint64_t slots, tiles;
  uint32_t slot_rows;
};
Cut cut_of(const Problem &problem, Pass pass, const archive::Entry &entry, uint32_t most_rows);

// The fields that both have.
template <class OperatorParams>
Params common_params(const OperatorParams &from) {
  Params params;
  params.weight_offset = from.weight_offset;
  params.x = &from.x;
  params.weight = &from.weight;
  params.rstd = &from.rstd;
  params.dout = &from.dout;
  params.dsum = &from.dsum;
  params.dx = &from.dx;
  params.dweight = &from.dweight;
  params.workspace = from.workspace;
  params.workspace_bytes = from.workspace_bytes;
  return params;
}

template <class Kernarg>
Kernarg common_kernarg(const Problem &problem, const Workspace &workspace) {
  Kernarg kernarg{};
  const Params &params = problem.params;
  const flydsl_aot_tensor &x = *params.x;
  const auto place = [&](const flydsl_aot_tensor &tensor, auto *data, int64_t *outer,
                         int64_t *inner) {
    if (!present(tensor)) return;
    *data = tensor.data;
    const RowStrides strides = row_stride_bytes(tensor, x);
    *outer = strides.outer;
    *inner = strides.inner;
  };
  place(x, &kernarg.x, &kernarg.x_stride_o, &kernarg.x_stride_i);
  place(*params.dout, &kernarg.dout, &kernarg.dout_stride_o, &kernarg.dout_stride_i);
  place(*params.dsum, &kernarg.dsum, &kernarg.dsum_stride_o, &kernarg.dsum_stride_i);
  place(*params.dx, &kernarg.dx, &kernarg.dx_stride_o, &kernarg.dx_stride_i);
  norm::place_per_row(*params.rstd, x, &kernarg.rstd, &kernarg.rstd_stride_o,
                      &kernarg.rstd_stride_i);
  if (present(*params.weight)) {
    kernarg.weight = params.weight->data;
    kernarg.weight_dtype = static_cast<uint32_t>(params.weight->dtype);
    kernarg.weight_offset = params.weight_offset;
  }
  const auto at = [&](uint64_t offset) {
    return reinterpret_cast<float *>(static_cast<char *>(params.workspace) + offset);
  };
  kernarg.row_sums = at(workspace.row_sums);
  if (present(*params.dweight)) {
    kernarg.dweight = params.dweight->data;
    kernarg.dweight_dtype = static_cast<uint32_t>(params.dweight->dtype);
    kernarg.dweight_sums = at(workspace.dweight_sums);
  }
  if constexpr (requires { kernarg.mean; }) {
    norm::place_per_row(*params.mean, x, &kernarg.mean, &kernarg.mean_stride_o,
                        &kernarg.mean_stride_i);
    if (present(*params.dbias)) {
      kernarg.dbias = params.dbias->data;
      kernarg.dbias_dtype = static_cast<uint32_t>(params.dbias->dtype);
      kernarg.dbias_sums = at(workspace.dbias_sums);
    }
  }
  kernarg.rows = problem.rows;
  kernarg.rows_inner = static_cast<uint64_t>(rows_of(x).inner);
  kernarg.row_length = static_cast<uint32_t>(problem.length);
  kernarg.parts = problem.parts;
  kernarg.part_length = problem.part_length;
  kernarg.column_tiles = static_cast<uint32_t>(problem.column_tiles);
  return kernarg;
}

// `Operator` has Params and Kernarg, kName, kContract, kMostRows, functional_key(dtype, pass), columns(dtype) and
// params_of(its parameters).
template <class Operator>
struct Calls {
  using Caller = typename Operator::Params;

  // Reads and checks the caller's parameters.
  static Status prepare(const flydsl_aot_handle *handle, const Caller *caller, bool query,
                        ReadStruct<Caller> *room, Problem *problem) {
    if (!handle) return error(FLYDSL_AOT_INVALID_ARGUMENT, "handle is NULL");
    FLYDSL_RETURN_IF_ERROR(room->read("params", caller));
    const Caller &params = room->get();
    *problem = {};
    const Params all = Operator::params_of(params);
    FLYDSL_RETURN_IF_ERROR(check(all, query));
    const auto dtype = static_cast<uint64_t>(all.x->dtype);
    *problem = describe(all, Operator::columns(dtype), Operator::kMostRows);
    for (size_t pass = 0; pass < kPasses; ++pass) {
      problem->keys[pass].op = Operator::kName;
      problem->keys[pass].functional_key =
          Operator::functional_key(pass == static_cast<size_t>(Pass::kTotals) ? 0 : dtype, pass);
    }
    return {};
  }

  static const select::Problem &key_of(const Problem &problem, Pass pass) {
    return problem.keys[static_cast<size_t>(pass)];
  }

  static Status launch(flydsl_aot_handle *handle, const Problem &problem, void *stream) {
    Workspace workspace;
    FLYDSL_RETURN_IF_ERROR(workspace_of(problem, &workspace));
    FLYDSL_RETURN_IF_ERROR(check_workspace(problem.params, workspace.bytes, Operator::kName));
    int device = 0;
    FLYDSL_RETURN_IF_ERROR(handle->runtime->stream_device(stream, &device));
    const archive::TargetId *target = nullptr;
    FLYDSL_RETURN_IF_ERROR(device_target(handle, device, &target));
    // All are loaded before one is launched: a refused call has launched nothing.
    const Passes passes = passes_of(problem, holds_rows(handle, problem, *target));
    std::array<std::optional<Launch>, std::size(Passes{}.all)> launches;
    for (size_t i = 0; i < passes.count; ++i) {
      launches[i].emplace(handle);
      FLYDSL_RETURN_IF_ERROR(
          launches[i]->begin(key_of(problem, passes.all[i]), Operator::kContract, stream));
    }
    auto kernarg = common_kernarg<typename Operator::Kernarg>(problem, workspace);
    for (size_t i = 0; i < passes.count; ++i) {
      const Pass pass = passes.all[i];
      Cut cut = cut_of(problem, pass, launches[i]->entry(), Operator::kMostRows);
      // Totals are of the slots of the pass before; without rows of none.
      if (pass == Pass::kTotals) cut.slots = kernarg.slots;
      kernarg.slots = cut.slots;
      kernarg.slot_rows = cut.slot_rows;
      kernarg.tiles = cut.tiles;
      kernarg.groups = groups_for(cut.tiles);
      FLYDSL_RETURN_IF_ERROR(launches[i]->run({kernarg.groups, 1, 0}, &kernarg, sizeof kernarg));
    }
    return {};
  }

  static Status query(flydsl_aot_handle *handle, const Caller *caller,
                      flydsl_aot_query_result *result) {
    return answer_query(handle, caller, result, fill);
  }

  static Status explain(flydsl_aot_handle *handle, const Caller *caller,
                        flydsl_aot_candidate_callback callback, void *user) {
    if (!callback) return error(FLYDSL_AOT_INVALID_ARGUMENT, "callback is NULL");
    ReadStruct<Caller> params;
    Problem problem;
    FLYDSL_RETURN_IF_ERROR(prepare(handle, caller, true, &params, &problem));
    if (problem.empty) return {};
    const archive::TargetId *target = nullptr;
    FLYDSL_RETURN_IF_ERROR(query_target(handle, &target));
    const bool held = holds_rows(handle, problem, *target);
    const Passes passes = passes_of(problem, held);
    for (size_t i = 0; i < passes.count; ++i) {
      FLYDSL_RETURN_IF_ERROR(
          explain_candidates(handle, key_of(problem, passes.all[i]), *target, callback, user));
    }
    // The other way to dx.
    for (const Pass pass : {Pass::kRows, Pass::kSums, Pass::kColumns}) {
      if (!problem.wants_dx() || held == (pass == Pass::kRows)) continue;
      select::Problem other = key_of(problem, pass);
      other.main = false;
      const char *const unused = held ? "one kernel reads rows once" : "two kernels read rows twice";
      FLYDSL_RETURN_IF_ERROR(explain_candidates(handle, other, *target, callback, user, unused));
    }
    return {};
  }

  static Status prefetch(flydsl_aot_handle *handle, const Caller *caller) {
    ReadStruct<Caller> params;
    Problem problem;
    FLYDSL_RETURN_IF_ERROR(prepare(handle, caller, true, &params, &problem));
    FLYDSL_RETURN_IF_ERROR(require_runtime(handle));
    if (problem.empty) return {};
    const archive::TargetId *target = nullptr;
    FLYDSL_RETURN_IF_ERROR(query_target(handle, &target));
    const Passes passes = passes_of(problem, holds_rows(handle, problem, *target));
    for (size_t i = 0; i < passes.count; ++i) {
      FLYDSL_RETURN_IF_ERROR(
          flydsl::prefetch(handle, key_of(problem, passes.all[i]), Operator::kContract));
    }
    return {};
  }

  static Status call(flydsl_aot_handle *handle, const Caller *caller, void *stream) {
    return call_problem<Problem>(handle, caller, prepare, launch, stream);
  }

 private:
  static Status fill(const flydsl_aot_handle *handle, const Caller *caller,
                     flydsl_aot_query_result *result) {
    ReadStruct<Caller> params;
    Problem problem;
    FLYDSL_RETURN_IF_ERROR(prepare(handle, caller, true, &params, &problem));
    if (problem.empty) return {};
    const archive::TargetId *target = nullptr;
    FLYDSL_RETURN_IF_ERROR(query_target(handle, &target));
    Workspace workspace;
    FLYDSL_RETURN_IF_ERROR(workspace_of(problem, &workspace));
    const bool held = holds_rows(handle, problem, *target);
    const Passes passes = passes_of(problem, held);
    uint32_t entry = 0, main_entry = 0;
    for (size_t i = 0; i < passes.count; ++i) {
      FLYDSL_RETURN_IF_ERROR(choose(handle, key_of(problem, passes.all[i]), *target, &entry));
      if (passes.all[i] == main_pass(problem, held)) main_entry = entry;
    }
    result->workspace_bytes = workspace.bytes;
    describe_kernel(handle, main_entry, result);
    return {};
  }
};

}  // namespace flydsl::norm_backward
