// How many work-groups of a kernel one compute unit of a device holds at a time.
#pragma once

#include <cstddef>

#include "emulator/hip/device.h"
#include "emulator/loader/code_object.h"
#include "emulator/timing/occupancy.h"

namespace flydsl::emu::hip {

inline timing::ComputeUnitResources compute_unit_resources(const DeviceModel &model) {
  timing::ComputeUnitResources unit;
  unit.simds = kSimdsPerComputeUnit;
  unit.waves_per_simd = kWavesPerSimd;
  unit.vgprs_per_simd_lane = kVgprsPerSimdLane;
  unit.vgpr_granule = kVgprGranule;
  unit.groups = kMaxGroupsPerComputeUnit;
  unit.lds_bytes = static_cast<uint32_t>(model.lds_bytes);
  unit.lds_granule_bytes = static_cast<uint32_t>(model.lds_granule_bytes);
  return unit;
}

inline timing::GroupResources group_resources(const LoadedKernel &loaded, uint32_t block_items,
                                              size_t dynamic_lds_bytes) {
  return {block_items, loaded.metadata.vgpr_count, loaded.kernel.lds_bytes + dynamic_lds_bytes};
}

inline int groups_per_compute_unit(const DeviceModel &model, const LoadedKernel &loaded,
                                   int block_items, size_t dynamic_lds_bytes) {
  return static_cast<int>(
      timing::occupancy_of(
          compute_unit_resources(model),
          group_resources(loaded, static_cast<uint32_t>(block_items), dynamic_lds_bytes))
          .groups_per_compute_unit);
}

}  // namespace flydsl::emu::hip
