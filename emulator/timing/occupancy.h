// How many work-groups of a kernel one compute unit holds at a time, and what limits them.
#pragma once

#include <cstdint>

namespace flydsl::emu::timing {

// CDNA 3 ISA document, "Vector General-Purpose Registers" and "LDS": each SIMD has 512 registers a
// lane, architectural and accumulation registers together, shared by its waves in granules of 8; the
// compute unit's LDS is shared by its work-groups in granules. gfx90a and later hold 8 waves a SIMD.
struct ComputeUnitResources {
  uint32_t simds = 4;
  uint32_t waves_per_simd = 8;
  uint32_t vgprs_per_simd_lane = 512;
  uint32_t vgpr_granule = 8;
  uint32_t groups = 16;  // of more than one wave: one barrier resource each
  uint32_t lds_bytes = 0;
  uint32_t lds_granule_bytes = 1;
};

// What one work-group takes.
struct GroupResources {
  uint32_t work_items = 0;
  uint32_t vgprs = 0;  // of each wave
  uint64_t lds_bytes = 0;
};

struct Occupancy {
  uint32_t groups_per_compute_unit = 0;
  uint32_t waves_per_simd = 0;  // of the fullest SIMD
  const char *limit = "";       // "registers", "lds", "waves", "work-groups" or "grid"
};

// groups_per_compute_unit is 0 when one work-group does not fit; `limit` then says why.
Occupancy occupancy_of(const ComputeUnitResources &unit, const GroupResources &group);

// The same when a launch of `groups` work-groups spreads over `compute_units`.
Occupancy occupancy_of_launch(const ComputeUnitResources &unit, const GroupResources &group,
                              uint64_t groups, uint32_t compute_units);

}  // namespace flydsl::emu::timing
