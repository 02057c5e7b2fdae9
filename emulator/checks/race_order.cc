#include "emulator/checks/race_order.h"

namespace flydsl::emu::checks {

uint32_t Order::against_write(const Cell &cell, bool atomic) const {
  const uint32_t id = cell.write & Cell::kId;
  if (!live(id) || (atomic && cell.write & Cell::kAtomic)) return 0;
  const AccessRecord &r = log_[id];
  // Until it lands a copy is unordered with every other wave, whatever barriers are passed.
  if (cell.write & Cell::kInFlight) return r.wave != me_.wave ? id : 0;
  if (unordered(r)) return id;
  // Earlier atomics of others: their records are gone.
  const bool others = cell.write & Cell::kManyAtomics && cell.write & Cell::kAtomic;
  return others && r.group == me_.group && r.epoch == me_.epoch && !acquired_ ? id : 0;
}

uint32_t Order::against_read(const Cell &cell) const {
  const uint32_t id = cell.read & Cell::kId;
  if (!live(id)) return 0;
  const AccessRecord &r = log_[id];
  if (unordered(r)) return id;
  if (r.group != me_.group) return 0;
  if (cell.read & Cell::kManyGroups && !acquired_) return id;
  return cell.read & Cell::kManyWaves && r.epoch == me_.epoch ? id : 0;
}

uint32_t Order::read_flags(const Cell &cell) const {
  const uint32_t id = cell.read & Cell::kId;
  if (!live(id)) return 0;
  const AccessRecord &r = log_[id];
  if (r.group != me_.group) return Cell::kManyGroups;
  const uint32_t groups = cell.read & Cell::kManyGroups;
  if (r.epoch != me_.epoch) return groups;
  return groups | (r.wave != me_.wave ? Cell::kManyWaves : cell.read & Cell::kManyWaves);
}

uint32_t Order::many_atomics(const Cell &cell) const {
  const uint32_t id = cell.write & Cell::kId;
  if (!live(id) || !(cell.write & Cell::kAtomic)) return 0;
  const AccessRecord &r = log_[id];
  if (r.group == me_.group && r.epoch != me_.epoch) return 0;
  const bool other = r.group != me_.group || r.wave != me_.wave;
  return other ? Cell::kManyAtomics : cell.write & Cell::kManyAtomics;
}

}  // namespace flydsl::emu::checks
