// hipOccupancy*, hipModuleOccupancy*.
#include <algorithm>

#include "emulator/hip/api_call.h"
#include "emulator/hip/module.h"
#include "emulator/hip/occupancy.h"

namespace flydsl::emu::hip {
namespace {

hipError_t active_blocks(int *blocks, const void *handle, int block_items,
                         size_t dynamic_lds_bytes) {
  if (blocks == nullptr) return fail(hipErrorInvalidValue, "the result is null");
  if (block_items <= 0 || block_items > kMaxBlockItems)
    return fail(hipErrorInvalidValue, "%d work-items per block, 1 to %d are allowed", block_items,
                kMaxBlockItems);
  hipError_t error = hipSuccess;
  const Device *device = current_device_or_fail(&error);
  if (device == nullptr) return error;
  const std::shared_ptr<Function> function = function_or_fail(handle, *device, &error);
  if (!function) return error;
  *blocks =
      groups_per_compute_unit(*device->model, *function->kernel, block_items, dynamic_lds_bytes);
  return hipSuccess;
}

// The block size, in whole waves, with the most work-items on a compute unit; the largest of several.
hipError_t potential_block(int *grid, int *block, const void *handle, size_t dynamic_lds_bytes,
                           int limit) {
  if (grid == nullptr || block == nullptr) return fail(hipErrorInvalidValue, "a result is null");
  hipError_t error = hipSuccess;
  const Device *device = current_device_or_fail(&error);
  if (device == nullptr) return error;
  const std::shared_ptr<Function> function = function_or_fail(handle, *device, &error);
  if (!function) return error;
  const int most = std::min<int>(limit > 0 ? limit : kMaxBlockItems,
                                 static_cast<int>(function->kernel->metadata.max_workgroup_size));
  int best_items = 0;
  *grid = *block = 0;
  for (int items = kWaveSize; items <= most; items += kWaveSize) {
    const int groups =
        groups_per_compute_unit(*device->model, *function->kernel, items, dynamic_lds_bytes);
    if (groups * items < best_items || groups == 0) continue;
    best_items = groups * items;
    *block = items;
    *grid = groups * device->compute_units;
  }
  if (best_items != 0) return hipSuccess;
  return fail(hipErrorInvalidValue, "no block of up to %d work-items fits on a compute unit", most);
}

}  // namespace
}  // namespace flydsl::emu::hip

using namespace flydsl::emu::hip;

FLYDSL_EMU_EXPORT hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(
    int *blocks, hipFunction_t function, int block_items, size_t dynamic_lds_bytes) {
  return api_call([&] { return active_blocks(blocks, function, block_items, dynamic_lds_bytes); });
}
FLYDSL_EMU_EXPORT hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *blocks, hipFunction_t function, int block_items, size_t dynamic_lds_bytes, unsigned) {
  return api_call([&] { return active_blocks(blocks, function, block_items, dynamic_lds_bytes); });
}
FLYDSL_EMU_EXPORT hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessor(
    int *blocks, const void *stub, int block_items, size_t dynamic_lds_bytes) {
  return api_call([&] { return active_blocks(blocks, stub, block_items, dynamic_lds_bytes); });
}
FLYDSL_EMU_EXPORT hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *blocks, const void *stub, int block_items, size_t dynamic_lds_bytes, unsigned) {
  return api_call([&] { return active_blocks(blocks, stub, block_items, dynamic_lds_bytes); });
}
FLYDSL_EMU_EXPORT hipError_t hipModuleOccupancyMaxPotentialBlockSize(int *grid, int *block,
                                                                     hipFunction_t function,
                                                                     size_t dynamic_lds_bytes,
                                                                     int limit) {
  return api_call([&] { return potential_block(grid, block, function, dynamic_lds_bytes, limit); });
}
FLYDSL_EMU_EXPORT hipError_t hipOccupancyMaxPotentialBlockSize(int *grid, int *block,
                                                               const void *stub,
                                                               size_t dynamic_lds_bytes,
                                                               int limit) {
  return api_call([&] { return potential_block(grid, block, stub, dynamic_lds_bytes, limit); });
}
