#include "v2src/launch.h"

#include <algorithm>

#include "flydsl_aot_generated/abi.h"
#include "v2src/launch_kernel.h"

namespace flydsl {
namespace {

constexpr uint64_t kMaxGridX = uint64_t{1} << 22;

struct KeyField {
  const char *op, *name;
  int first_bit, bits;
};
#define FLYDSL_KEY_FIELD(op, name, first_bit, bits) {#op, #name, first_bit, bits},
constexpr KeyField kKeyFields[] = {FLYDSL_AOT_GENERATED_KEY_FIELDS(FLYDSL_KEY_FIELD)};
#undef FLYDSL_KEY_FIELD

uint64_t value_of(const KeyField &field, uint64_t key) {
  return key >> field.first_bit & (~uint64_t{0} >> (64 - field.bits));
}

// What selection looks at, as flydsl_aot_candidate says.
std::string problem_text(const select::Context &context, const select::Problem &problem) {
  const auto ull = [](uint64_t value) { return static_cast<unsigned long long>(value); };
  std::string result;
  const uint64_t key = problem.tuning_key ? problem.tuning_key : problem.functional_key;
  for (const KeyField &field : kKeyFields) {
    if (problem.op != field.op) continue;
    result += text("%s=%llu ", field.name, ull(value_of(field, key)));
  }
  return result + text("rows=%llu keys=%llu parallel=%llu alignment=%llu compute_units=%u",
                       ull(problem.seq_q), ull(problem.seq_k), ull(problem.parallel),
                       ull(std::min(problem.align_bytes, archive::kMaxTuningAlignment)),
                       context.compute_units);
}

// The fields in which two keys differ, as one of them has them: "mask=1 head_dim=2".
std::string unlike(std::string_view op, uint64_t key, uint64_t other, size_t *count) {
  std::string result;
  *count = 0;
  for (const KeyField &field : kKeyFields) {
    if (op != field.op || value_of(field, key) == value_of(field, other)) continue;
    result += text("%s%s=%llu", *count ? " " : "", field.name,
                   static_cast<unsigned long long>(value_of(field, key)));
    ++*count;
  }
  return result;
}

// Of forced kernels that are for other problems: "; forced 'x' is for mask=1, the problem has mask=0", by the problem's key that is
// most like theirs.
std::string why_not_forced(const select::Context &context, const select::Problem &problem) {
  std::string result;
  if (!problem.main) return result;
  for (const uint32_t index : context.policy.forced) {
    const archive::Entry &entry = context.archive.entries()[index];
    const uint64_t its = entry.functional_key;
    if (problem.op != context.archive.string(entry.op) || problem.has_key(its)) continue;
    uint64_t ours = problem.functional_key;
    size_t least = 0, count = 0;
    (void)unlike(problem.op, ours, its, &least);
    for (size_t i = 0; i < problem.fallbacks; ++i) {
      (void)unlike(problem.op, problem.fallback_keys[i], its, &count);
      if (count < least) ours = problem.fallback_keys[i], least = count;
    }
    result += std::string("; forced '") + context.archive.string(entry.name) + "' is for " +
              unlike(problem.op, its, ours, &count);
    result += ", the problem has " + unlike(problem.op, ours, its, &count);
  }
  return result;
}

Status no_kernel(const select::Context &context, const select::Problem &problem) {
  return {FLYDSL_AOT_NO_KERNEL,
          select::why_none(context, problem) + why_not_forced(context, problem)};
}

constexpr const char *kCompiled = "not in the archive: would be compiled at its first use";

// Whether the kernel is there or can be compiled.
Status require_compiler(const flydsl_aot_handle *handle, uint32_t entry) {
  if (handle->archive->in_file(entry)) return {};
  const Status status = handle->jit->available();
  if (status.ok()) return {};
  return error(status.code(), "kernel '%s' is not in the archive and cannot be compiled: %s",
               handle->archive->string(handle->archive->entries()[entry].name),
               status.message().c_str());
}

// Why a candidate that fits is taken, or is not.
std::string reason_of(const select::Context &context, const std::optional<select::Choice> &choice,
                      uint32_t entry, bool takes) {
  if (takes && !context.archive.in_file(entry)) return kCompiled;
  if (!choice) return "the nearest tuning row is of a kernel for another pass";
  if (!choice->row)
    return takes ? "the first that fits" : "fits too, but is listed after the one taken";
  return takes ? "the nearest tuning row: " + select::describe(context.archive, *choice->row)
               : "fits too, but the nearest tuning row has another";
}

}  // namespace

Status linear_tiles(int64_t rows, int64_t batches, int64_t heads, uint32_t tile_rows,
                    LinearTiles *tiles) {
  const uint64_t row_tiles = (static_cast<uint64_t>(rows) + tile_rows - 1) / tile_rows;
  uint64_t total = 0;
  if (__builtin_mul_overflow(row_tiles, static_cast<uint64_t>(batches), &total) ||
      __builtin_mul_overflow(total, static_cast<uint64_t>(heads), &total) ||
      total >= uint64_t{1} << 31) {
    return error(
        FLYDSL_AOT_UNSUPPORTED_SIZE,
        "%llu row tiles of %u rows x %lld batches x %lld heads; their product must be below 2^31",
        static_cast<unsigned long long>(row_tiles), tile_rows, static_cast<long long>(batches),
        static_cast<long long>(heads));
  }
  const uint64_t x = std::min(total, kMaxGridX);
  tiles->grid_x = static_cast<uint32_t>(x);
  tiles->grid_y = static_cast<uint32_t>((total + x - 1) / x);
  tiles->row_tiles = static_cast<uint32_t>(row_tiles);
  return {};
}

Status choose(const flydsl_aot_handle *handle, const select::Problem &problem,
              const archive::TargetId &target, uint32_t *entry, const archive::TuningRow **row) {
  const select::Context context = handle->context(target);
  const std::optional<select::Choice> found = select::select(context, problem);
  if (!found) return no_kernel(context, problem);
  *entry = found->entry;
  if (row) *row = found->row;
  return require_compiler(handle, *entry);
}

void describe_kernel(const flydsl_aot_handle *handle, uint32_t index,
                     flydsl_aot_query_result *result) {
  const archive::Archive &archive = *handle->archive;
  const archive::Entry &entry = archive.entries()[index];
  copy_utf8(result->kernel, sizeof result->kernel, archive.string(entry.name));
  copy_utf8(result->backend, sizeof result->backend, archive.string(entry.backend));
  if (!archive.in_file(index)) copy_utf8(result->reason, sizeof result->reason, kCompiled);
}

Status explain_candidates(const flydsl_aot_handle *handle, const select::Problem &problem,
                          const archive::TargetId &target, flydsl_aot_candidate_callback callback,
                          void *user, const char *unused) {
  const archive::Archive &archive = *handle->archive;
  const select::Context context = handle->context(target);
  const std::optional<select::Choice> choice = select::select(context, problem);
  const std::string looked_up = problem_text(context, problem);
  bool taken = false;
  select::Candidates candidates(archive, problem);
  while (const archive::Candidate *row = candidates.next()) {
    const archive::Entry &entry = archive.entries()[row->entry];
    const select::Refusal why = select::refusal(context, *row, problem);
    const bool fits = why == select::Refusal::None;
    const bool takes = fits && !taken && !unused && choice && choice->entry == row->entry;
    const std::string reason = !fits    ? select::describe(why, context, *row, problem)
                               : unused ? unused
                                        : reason_of(context, choice, row->entry, takes);
    flydsl_aot_candidate candidate{};
    candidate.struct_size = sizeof candidate;
    candidate.taken = takes;
    candidate.kernel = archive.string(entry.name);
    candidate.backend = archive.string(entry.backend);
    candidate.reason = reason.c_str();
    candidate.fits = why == select::Refusal::None || why == select::Refusal::Backend ||
                     why == select::Refusal::NotForced;
    candidate.main = problem.main;
    candidate.problem = looked_up.c_str();
    callback(user, &candidate);
    taken |= takes;
  }
  if (taken) return require_compiler(handle, choice->entry);
  return unused ? Status() : no_kernel(context, problem);
}

Status prefetch(flydsl_aot_handle *handle, const select::Problem &problem,
                const module::KernargContract &contract) {
  int device = 0;
  FLYDSL_RETURN_IF_ERROR(handle->runtime->current_device(&device));
  const archive::TargetId *target = nullptr;
  FLYDSL_RETURN_IF_ERROR(device_target(handle, device, &target));
  uint32_t entry = 0;
  FLYDSL_RETURN_IF_ERROR(choose(handle, problem, *target, &entry));
  module::ModuleCache::Use kernel;
  return handle->modules->get(device, entry, contract, nullptr, &kernel);
}

Status call_device(const flydsl_aot_handle *handle, void *stream, int *device) {
  return CallRecording::is_rehearsal(device) ? Status()
                                           : handle->runtime->stream_device(stream, device);
}

Status Launch::enter(const module::KernargContract &contract, void *stream) {
  stream_ = stream;
  contract_ = contract;
  FLYDSL_RETURN_IF_ERROR(call_device(handle_, stream, &device_));
  int device = 0;
  return CallRecording::is_rehearsal(&device) ? Status() : scope_.enter(device_);
}

Status Launch::load(const archive::TuningRow *row) {
  row_ = row;
  if (int device = 0; CallRecording::is_rehearsal(&device)) return {};
  return handle_->modules->get(device_, entry_, contract_, stream_, &kernel_);
}

void Launch::note() const {
  const archive::Archive &archive = *handle_->archive;
  CallLog::note(entry_, handle_->policy.forces(entry_) ? "forced"
                        : row_                         ? select::describe(archive, *row_)
                        : !archive.in_file(entry_)     ? "compiled"
                                                       : "-");
}

Status Launch::begin(const select::Problem &problem, const module::KernargContract &contract,
                     void *stream) {
  FLYDSL_RETURN_IF_ERROR(enter(contract, stream));
  const archive::TargetId *target = nullptr;
  FLYDSL_RETURN_IF_ERROR(device_target(handle_, device_, &target));
  const archive::TuningRow *row = nullptr;
  FLYDSL_RETURN_IF_ERROR(choose(handle_, problem, *target, &entry_, &row));
  return load(row);
}

Status Launch::begin(uint32_t chosen, const archive::TuningRow *row,
                     const module::KernargContract &contract, void *stream) {
  entry_ = chosen;
  FLYDSL_RETURN_IF_ERROR(enter(contract, stream));
  return load(row);
}

Status Launch::run_grid(const std::array<uint32_t, 3> &grid, void *kernarg,
                        size_t kernarg_bytes) const {
  const archive::Entry &kernel = entry();
  device::LaunchShape shape{{grid[0], grid[1], grid[2]}, {}, kernel.lds_dynamic_bytes};
  std::copy_n(kernel.block, 3, shape.block);
  if (CallRecording::launches(entry_, contract_, shape, kernarg, kernarg_bytes)) return {};
  if (handle_->calls) note();
  return launch_kernel(handle_, entry_, kernel_.function(), shape, stream_, kernarg, kernarg_bytes);
}

}  // namespace flydsl
