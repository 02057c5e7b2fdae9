// How many work-groups of a kernel one compute unit holds at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "emulator/hip/device.h"
#include "emulator/loader/code_object.h"

namespace flydsl::emu::hip {

// CDNA 3 ISA document, "Vector General-Purpose Registers" and "LDS": each SIMD has 512 registers a
// lane, shared by its waves in granules of 8; the compute unit's LDS is shared by its work-groups
// in granules.
inline int groups_per_compute_unit(const DeviceModel &model, const LoadedKernel &loaded,
                                   int block_items, size_t dynamic_lds_bytes) {
  const auto round_up = [](uint64_t value, uint64_t unit) {
    return (value + unit - 1) / unit * unit;
  };
  const uint64_t vgprs =
      std::max<uint64_t>(round_up(loaded.metadata.vgpr_count, kVgprGranule), kVgprGranule);
  const uint64_t waves =
      std::min<uint64_t>(kWavesPerSimd, kVgprsPerSimdLane / vgprs) * kSimdsPerComputeUnit;
  const uint64_t waves_per_group = (static_cast<uint64_t>(block_items) + kWaveSize - 1) / kWaveSize;
  uint64_t groups = waves / waves_per_group;
  if (waves_per_group > 1) groups = std::min<uint64_t>(groups, kMaxGroupsPerComputeUnit);
  const uint64_t lds =
      round_up(loaded.kernel.lds_bytes + dynamic_lds_bytes, model.lds_granule_bytes);
  if (lds != 0) groups = std::min<uint64_t>(groups, model.lds_bytes / lds);
  return static_cast<int>(groups);
}

}  // namespace flydsl::emu::hip
