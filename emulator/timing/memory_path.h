// The MemoryPort of the model: a compute unit's L1, scalar and instruction caches, and its share of
// what lies beyond.
#pragma once

#include <vector>

#include "emulator/timing/cache_tags.h"
#include "emulator/timing/memory_port.h"
#include "emulator/timing/memory_system.h"

namespace flydsl::emu::timing {

class MemoryPath : public MemoryPort {
 public:
  // `active_units`: compute units that share the MALL and HBM; `clock_hz`: of the compute unit, to
  // which their bytes a second are converted.
  MemoryPath(const Constants &constants, const MemoryProfile &profile, double clock_hz,
             uint32_t active_units);

  double vector(double clock, const RequestOrigin &origin, const MemoryUse &use,
                const uint64_t *lines) override;
  double scalar(double clock, const RequestOrigin &origin, const MemoryUse &use,
                const uint64_t *lines) override;
  double fetch(double clock, uint64_t line) override;

  // When HBM has taken what was stored.
  double drained() const { return hbm_.free; }
  // Bytes moved so far.
  double l2_bytes() const { return l2_bytes_; }
  double hbm_bytes() const { return hbm_bytes_; }

 private:
  // What moves a limited number of bytes a clock, in the order of the requests.
  struct Channel {
    double bytes_per_clock = 0, free = 0;
    double take(double clock, double bytes) {
      free = (clock > free ? clock : free) + bytes / bytes_per_clock;
      return free;
    }
  };
  // Shares are handed out evenly: the source that is furthest behind its share is next.
  // Shares are of lines that miss the L1 of the profile, where all compute units go in lock-step. This one's may find more: work-groups
  // drift apart, and the second half of a line is still there. What was not in the profile's L1 and is in this one spares the nearest
  // place that the instruction's lines come from: the first touch of a line is no hit anywhere, so HBM's bytes stay.
  struct Debt {
    double found_early = 0;  // lines that missed there, less those that missed here
    std::array<double, unsigned(Source::kCount)> of_source = {};
    double write_back = 0;
  };
  const OpService &service_of(uint32_t op) const;
  Source next_source(uint32_t op, const OpService &service);
  void found_in_l1(uint32_t op);
  // `through`: past the L2, which keeps nothing of it.
  double load_line(double clock, uint32_t op, bool through);
  double store_line(double clock, uint32_t op, bool atomic, bool through);

  const Constants &constants_;
  const MemoryProfile &profile_;
  CacheTags l1_, scalar_, instructions_;
  std::vector<Debt> debts_;
  std::array<uint64_t, unsigned(Source::kCount)> found_beyond_l2_ = {};
  Channel l1_channel_, l2_, mall_, hbm_;
  double l2_bytes_ = 0, hbm_bytes_ = 0;
  uint64_t requests_ = 0;
};

}  // namespace flydsl::emu::timing
