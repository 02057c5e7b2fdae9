#include "v2src/launch.h"

#include <algorithm>

#include "src/log/log.h"

namespace flydsl {
namespace {

constexpr uint64_t kMaxGridX = uint64_t{1} << 22;

Status load(flydsl_aot_handle *handle, int device, const select::Problem &problem,
            const module::KernargContract &contract, void *stream, uint32_t *entry,
            module::ModuleCache::Use *kernel) {
  const archive::TargetId *target = nullptr;
  FLYDSL_RETURN_IF_ERROR(device_target(handle, device, &target));
  FLYDSL_RETURN_IF_ERROR(choose(handle, problem, *target, entry));
  return handle->modules->get(device, *entry, contract, stream, kernel);
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
              const archive::TargetId &target, uint32_t *entry) {
  const std::optional<uint32_t> found = select::select(*handle->archive, problem, target);
  if (!found) return {FLYDSL_AOT_NO_KERNEL, select::why_none(*handle->archive, problem, target)};
  *entry = *found;
  return {};
}

void describe_kernel(const flydsl_aot_handle *handle, uint32_t index,
                     flydsl_aot_query_result *result) {
  const archive::Archive &archive = *handle->archive;
  const archive::Entry &entry = archive.entries()[index];
  copy_utf8(result->kernel, sizeof result->kernel, archive.string(entry.name));
  copy_utf8(result->backend, sizeof result->backend, archive.string(entry.backend));
}

Status explain_candidates(const flydsl_aot_handle *handle, const select::Problem &problem,
                          const archive::TargetId &target, flydsl_aot_candidate_callback callback,
                          void *user) {
  const archive::Archive &archive = *handle->archive;
  bool taken = false;
  select::Candidates candidates(archive, problem);
  while (const archive::Candidate *row = candidates.next()) {
    const archive::Entry &entry = archive.entries()[row->entry];
    const select::Refusal why = select::refusal(archive, *row, problem, target);
    const bool fits = why == select::Refusal::None;
    std::string reason = select::describe(why, archive, *row, problem, target);
    if (fits)
      reason = taken ? "fits too, but is listed after the one taken" : "the first that fits";
    flydsl_aot_candidate candidate{};
    candidate.struct_size = sizeof candidate;
    candidate.taken = fits && !taken;
    candidate.kernel = archive.string(entry.name);
    candidate.backend = archive.string(entry.backend);
    candidate.reason = reason.c_str();
    callback(user, &candidate);
    taken |= fits;
  }
  return taken ? Status()
               : Status(FLYDSL_AOT_NO_KERNEL, select::why_none(archive, problem, target));
}

Status prefetch(flydsl_aot_handle *handle, const select::Problem &problem,
                const module::KernargContract &contract) {
  int device = 0;
  FLYDSL_RETURN_IF_ERROR(handle->runtime->current_device(&device));
  uint32_t entry = 0;
  module::ModuleCache::Use kernel;
  return load(handle, device, problem, contract, nullptr, &entry, &kernel);
}

Status Launch::begin(const select::Problem &problem, const module::KernargContract &contract,
                     void *stream) {
  stream_ = stream;
  contract_ = contract;
  FLYDSL_RETURN_IF_ERROR(handle_->runtime->stream_device(stream, &device_));
  FLYDSL_RETURN_IF_ERROR(scope_.enter(device_));
  return load(handle_, device_, problem, contract, stream, &entry_, &kernel_);
}

Status Launch::run(const LinearTiles &tiles, void *kernarg, size_t kernarg_bytes) const {
  const archive::Entry &kernel = entry();
  device::LaunchShape shape{{tiles.grid_x, tiles.grid_y, 1}, {}, kernel.lds_dynamic_bytes};
  std::copy_n(kernel.block, 3, shape.block);
  RecentCalls::note(device_, entry_, contract_, shape, kernarg, kernarg_bytes);
  return launch_kernel(handle_, entry_, kernel_.function(), shape, stream_, kernarg, kernarg_bytes);
}

}  // namespace flydsl
