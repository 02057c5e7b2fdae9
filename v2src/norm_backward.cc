// How the gradients of norms of rows are checked and cut into passes.
#include "v2src/norm_backward.h"

#include <algorithm>

#include "v2src/attention_check.h"

namespace flydsl::norm_backward {
namespace {

constexpr const char *kColumnAxes[] = {"N"};
constexpr uint64_t kWorkspaceAlignment = 16;

// More slots balance better over compute units, fewer leave less to write and read for the totals.
constexpr uint64_t kSlotThreads = 131072;  // of all slots; kernels/common/norm_backward_row
constexpr uint64_t kMostSlots = 1024;      // unless slots would have too many rows
constexpr uint64_t kFreeSlots = 16384;     // where there are no totals
constexpr uint64_t kColumnGroups = 2048;   // of kColumns
constexpr uint64_t kFewColumnRows = 8;     // of a slot, at least, where there are as many

// Parts of rows for kSums: tiles of any type divide them.
constexpr uint64_t kPartStep = 16384, kMostParts = 32;

uint64_t divide_up(uint64_t of, uint64_t by) {
  return of / by + (of % by != 0);
}

struct Operands {
  Operand x, weight, rstd, mean, dout, dsum, dx, dweight, dbias;
};

Operands operands_of(const Params &params) {
  const char *const *axes = row_axes(params.x->rank);
  return {{"x", params.x, axes},
          {"weight", params.weight, kColumnAxes},
          {"rstd", params.rstd, axes},
          {"mean", params.mean, axes},
          {"dout", params.dout, axes},
          {"dsum", params.dsum, axes},
          {"dx", params.dx, axes},
          {"dweight", params.dweight, kColumnAxes},
          {"dbias", params.dbias, kColumnAxes}};
}

Status check_presence(const Params &params, const Operands &all) {
  FLYDSL_RETURN_IF_ERROR(
      check_required({&all.x, &all.dout, &all.rstd},
                     params.centred ? "x, dout, mean and rstd" : "x, dout and rstd"));
  if (params.centred) FLYDSL_RETURN_IF_ERROR(check_required({&all.mean}, "x, dout, mean and rstd"));
  if (!present(*params.dx) && !present(*params.dweight) && !present(*params.dbias)) {
    return error(FLYDSL_AOT_INVALID_ARGUMENT,
                 params.centred
                     ? "dx, dweight and dbias are all absent (rank 0); one of them must be given"
                     : "dx and dweight are both absent (rank 0); one of them must be given");
  }
  if (present(*params.dsum) && !present(*params.dx))
    return error(FLYDSL_AOT_INVALID_ARGUMENT, "dsum is given, but there is no dx to add it to");
  const float offset = params.weight_offset;
  if (offset != 0 && offset != 1) {
    return error(FLYDSL_AOT_INVALID_ARGUMENT, "weight_offset is %g; it must be 0 or 1",
                 static_cast<double>(offset));
  }
  if (offset != 0 && !present(*params.weight))
    return error(FLYDSL_AOT_INVALID_ARGUMENT, "weight_offset is 1, but there is no weight");
  return {};
}

Status check_dtypes(const Params &params, const Operands &all) {
  const flydsl_aot_dtype dtype = params.x->dtype;
  if (!known_dtype(dtype))
    return error(FLYDSL_AOT_INVALID_DTYPE, "x has the unknown dtype number %d", dtype);
  if (!is_real(dtype)) {
    return error(FLYDSL_AOT_UNSUPPORTED_DTYPE, "x is %s; supported: fp32, fp16, bf16",
                 flydsl_aot_dtype_name(dtype));
  }
  for (const Operand *operand : {&all.dout, &all.dsum, &all.dx})
    if (present(*operand->tensor)) FLYDSL_RETURN_IF_ERROR(check_dtype_is(*operand, dtype));
  for (const Operand *operand : {&all.rstd, &all.mean})
    if (present(*operand->tensor))
      FLYDSL_RETURN_IF_ERROR(check_dtype_is(*operand, FLYDSL_AOT_FP32));
  return {};
}

Status check_shapes(const Operands &all) {
  FLYDSL_RETURN_IF_ERROR(check_rows(all.x));
  for (const Operand *operand : {&all.dout, &all.dsum, &all.dx})
    if (present(*operand->tensor)) FLYDSL_RETURN_IF_ERROR(check_like(*operand, all.x));
  for (const Operand *operand : {&all.rstd, &all.mean})
    if (present(*operand->tensor)) FLYDSL_RETURN_IF_ERROR(check_per_row(*operand, all.x));
  for (const Operand *operand : {&all.weight, &all.dweight, &all.dbias})
    if (present(*operand->tensor)) FLYDSL_RETURN_IF_ERROR(check_per_column(*operand, all.x));
  return {};
}

Status check_memory(const Operands &all, bool query) {
  const Operand *const operands[] = {&all.x,    &all.weight, &all.rstd,    &all.mean, &all.dout,
                                     &all.dsum, &all.dx,     &all.dweight, &all.dbias};
  const auto per_row = [&](const Operand *operand) {
    return operand == &all.rstd || operand == &all.mean;
  };
  for (const Operand *operand : operands) {
    if (!present(*operand->tensor)) continue;
    FLYDSL_RETURN_IF_ERROR(check_strides(*operand));
    FLYDSL_RETURN_IF_ERROR(check_data(*operand, query));
    if (!per_row(operand)) FLYDSL_RETURN_IF_ERROR(check_last_axis_contiguous(*operand));
  }
  for (const Operand *output : {&all.dx, &all.dweight, &all.dbias}) {
    if (!present(*output->tensor)) continue;
    FLYDSL_RETURN_IF_ERROR(check_no_self_overlap(*output));
    for (const Operand *other : operands) {
      if (other == output || !present(*other->tensor)) continue;
      const bool in_place =
          output == &all.dx && (other == &all.x || other == &all.dout || other == &all.dsum);
      if (in_place && same_view(*output->tensor, *other->tensor)) continue;
      FLYDSL_RETURN_IF_ERROR(check_apart(*output, *other));
    }
  }
  return {};
}

uint64_t alignment_of_rows(const Params &params, int64_t length) {
  const auto mask = [](const flydsl_aot_tensor &tensor) {
    return present(tensor) ? alignment_mask(tensor) : 0;
  };
  return alignment_of({mask(*params.x), mask(*params.dout), mask(*params.dsum), mask(*params.dx),
                       mask(*params.weight),
                       static_cast<uint64_t>(length) * dtype_bytes(params.x->dtype)});
}

}  // namespace

Status check(const Params &params, bool query) {
  const Operands all = operands_of(params);
  FLYDSL_RETURN_IF_ERROR(check_presence(params, all));
  FLYDSL_RETURN_IF_ERROR(check_dtypes(params, all));
  FLYDSL_RETURN_IF_ERROR(check_shapes(all));
  return check_memory(all, query);
}

Problem describe(const Params &params, int64_t columns, uint32_t most_rows) {
  Problem problem{};
  problem.params = params;
  const Rows rows = rows_of(*params.x);
  problem.rows = rows.count();
  problem.length = rows.length;
  problem.empty = rows.length == 0 || (problem.rows == 0 && !problem.wants_totals());
  if (problem.empty) return problem;

  const auto length = static_cast<uint64_t>(rows.length);
  const uint64_t align_bytes = alignment_of_rows(params, rows.length);
  problem.column_tiles = divide_up(length, static_cast<uint64_t>(columns));
  // Not past 2^64: kColumnGroups are far fewer than rows where the first factor is large.
  const uint64_t wanted =
      divide_up(problem.rows, std::max<uint64_t>(1, kColumnGroups / problem.column_tiles));
  problem.column_slot_rows = static_cast<uint32_t>(
      std::clamp<uint64_t>(wanted, std::min(problem.rows, kFewColumnRows), most_rows));
  if (problem.rows > 0) problem.column_slots = divide_up(problem.rows, problem.column_slot_rows);
  problem.most_slots = std::max({problem.column_slots, std::min(problem.rows, kMostSlots),
                                 divide_up(problem.rows, most_rows)});

  problem.part_length =
      static_cast<uint32_t>(divide_up(divide_up(length, kMostParts), kPartStep) * kPartStep);
  problem.parts = static_cast<uint32_t>(divide_up(length, problem.part_length));
  for (size_t pass = 0; pass < kPasses; ++pass) {
    select::Problem &key = problem.keys[pass];
    key.align_bytes = align_bytes;
    key.seq_q = std::max<uint64_t>(problem.rows, 1);
    key.seq_k = length;
    key.main = pass == static_cast<size_t>(Pass::kRows) || pass == static_cast<size_t>(Pass::kSums);
  }
  return problem;
}

bool holds_rows(const flydsl_aot_handle *handle, const Problem &problem,
                const archive::TargetId &target) {
  const select::Problem &key = problem.keys[static_cast<size_t>(Pass::kRows)];
  return problem.wants_dx() && select::select(handle->context(target), key).has_value();
}

Passes passes_of(const Problem &problem, bool held) {
  Passes passes{};
  const auto add = [&](Pass pass, bool runs) {
    if (runs) passes.all[passes.count++] = pass;
  };
  add(Pass::kRows, held);
  add(Pass::kSums, problem.wants_dx() && !held);
  add(Pass::kColumns, problem.rows > 0 && !held);
  add(Pass::kTotals, problem.wants_totals());
  return passes;
}

Pass main_pass(const Problem &problem, bool held) {
  if (held) return Pass::kRows;
  return problem.rows > 0 ? Pass::kColumns : Pass::kTotals;
}

Status workspace_of(const Problem &problem, Workspace *workspace) {
  *workspace = {};
  if (problem.rows == 0) return {};
  bool fits = true;
  const auto add = [&](bool wanted, uint64_t count, uint64_t of_each, uint64_t *offset) {
    *offset = workspace->bytes;
    if (!wanted) return;
    uint64_t bytes = 0;
    fits &= !__builtin_mul_overflow(count, of_each * sizeof(float), &bytes) && bytes < uint64_t{1}
                                                                                           << 61;
    workspace->bytes += divide_up(bytes, kWorkspaceAlignment) * kWorkspaceAlignment;
  };
  // Of kColumns whether or not kRows will run: pointers may be aligned otherwise in the call.
  add(problem.wants_dx(), problem.rows, uint64_t{problem.parts} * (problem.params.centred ? 2 : 1),
      &workspace->row_sums);
  const auto length = static_cast<uint64_t>(problem.length);
  add(present(*problem.params.dweight), problem.most_slots, length, &workspace->dweight_sums);
  add(present(*problem.params.dbias), problem.most_slots, length, &workspace->dbias_sums);
  if (fits) return {};
  return error(FLYDSL_AOT_UNSUPPORTED_SIZE,
               "the workspace of %llu rows of %lld elements would have more than 2^61 bytes",
               static_cast<unsigned long long>(problem.rows),
               static_cast<long long>(problem.length));
}

Status check_workspace(const Params &params, uint64_t needed, const char *name) {
  if (needed == 0) return {};
  if (params.workspace_bytes < needed || !params.workspace) {
    return error(FLYDSL_AOT_INVALID_WORKSPACE,
                 "workspace is %s, workspace_bytes %llu; the problem needs %llu bytes (see "
                 "flydsl_aot_%s_query)",
                 params.workspace ? "given" : "NULL",
                 static_cast<unsigned long long>(params.workspace_bytes),
                 static_cast<unsigned long long>(needed), name);
  }
  if (reinterpret_cast<uint64_t>(params.workspace) % kWorkspaceAlignment == 0) return {};
  return error(FLYDSL_AOT_INVALID_WORKSPACE, "workspace is at %p; it must be 16-byte aligned",
               params.workspace);
}

Cut cut_of(const Problem &problem, Pass pass, const archive::Entry &entry, uint32_t most_rows) {
  Cut cut{};
  switch (pass) {
    case Pass::kRows: {
      const uint64_t teams = entry.tile[0];
      const uint64_t wanted =
          problem.wants_totals() ? std::min(kSlotThreads / entry.block[0], kMostSlots) : kFreeSlots;
      cut.slot_rows = static_cast<uint32_t>(
          std::clamp<uint64_t>(divide_up(problem.rows, teams * wanted), 1, most_rows));
      cut.slots = cut.tiles = divide_up(problem.rows, teams * cut.slot_rows);
      return cut;
    }
    case Pass::kSums:
      cut.tiles = problem.rows * problem.parts;
      return cut;
    case Pass::kColumns:
      cut.slot_rows = problem.column_slot_rows;
      cut.slots = problem.column_slots;
      cut.tiles = cut.slots * problem.column_tiles;
      return cut;
    case Pass::kTotals:
      cut.tiles = divide_up(static_cast<uint64_t>(problem.length), entry.tile[1]) *
                  (present(*problem.params.dweight) && present(*problem.params.dbias) ? 2 : 1);
      return cut;
  }
  return cut;
}

}  // namespace flydsl::norm_backward
