#include "emulator/timing/occupancy.h"

#include <algorithm>

namespace flydsl::emu::timing {
namespace {

constexpr uint32_t kWaveSize = 64;

uint64_t round_up(uint64_t value, uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

uint32_t waves_on_fullest_simd(const ComputeUnitResources &unit, const GroupResources &group,
                               uint32_t groups) {
  const uint32_t waves = (group.work_items + kWaveSize - 1) / kWaveSize;
  return (groups * waves + unit.simds - 1) / unit.simds;
}

}  // namespace

Occupancy occupancy_of(const ComputeUnitResources &unit, const GroupResources &group) {
  const uint64_t waves_per_group =
      std::max<uint64_t>((group.work_items + kWaveSize - 1) / kWaveSize, 1);
  const uint64_t vgprs =
      std::max<uint64_t>(round_up(group.vgprs, unit.vgpr_granule), unit.vgpr_granule);
  const uint64_t waves_by_registers = unit.vgprs_per_simd_lane / vgprs;

  uint64_t groups = uint64_t(unit.waves_per_simd) * unit.simds / waves_per_group;
  Occupancy result;
  result.limit = "waves";
  const auto limit_to = [&](uint64_t most, const char *what) {
    if (most >= groups) return;
    groups = most;
    result.limit = what;
  };
  limit_to(waves_by_registers * unit.simds / waves_per_group, "registers");
  if (waves_per_group > 1) limit_to(unit.groups, "work-groups");
  const uint64_t lds = round_up(group.lds_bytes, unit.lds_granule_bytes);
  if (lds != 0) limit_to(unit.lds_bytes / lds, "lds");
  result.groups_per_compute_unit = uint32_t(groups);
  result.waves_per_simd = waves_on_fullest_simd(unit, group, uint32_t(groups));
  return result;
}

Occupancy occupancy_of_launch(const ComputeUnitResources &unit, const GroupResources &group,
                              uint64_t groups, uint32_t compute_units) {
  Occupancy result = occupancy_of(unit, group);
  const uint64_t spread = (groups + compute_units - 1) / compute_units;
  if (spread < result.groups_per_compute_unit) {
    result.groups_per_compute_unit = uint32_t(spread);
    result.waves_per_simd = waves_on_fullest_simd(unit, group, uint32_t(spread));
    result.limit = "grid";
  }
  return result;
}

}  // namespace flydsl::emu::timing
