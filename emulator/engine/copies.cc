// Models of the time that a copy to LDS takes. The hardware's s_waitcnt only bounds it.
//
// Nominal: a copy lands as late as the work-group can still make progress without it. Kernels in
// production lean on that latency: a wave passes the s_waitcnt of a copy whose destination other
// waves still read in the same interval between barriers. Stopping the waiting wave until every
// other one is blocked as well gives them the time that they have on the device, and is one of the
// orders that the ISA allows.
// Strict: the destination is overwritten with a pattern at issue and the copy lands at the
// s_waitcnt that covers it. Random: lands at any legal moment (engine/late_landing).
#include "emulator/engine/copies.h"

#include <algorithm>
#include <cstring>

#include "emulator/checks/observer.h"
#include "emulator/engine/memory.h"
#include "emulator/isa/runtime.h"

namespace flydsl::emu {

void queue_lds_copy(Wave &wave, const Op &op, uint64_t lds_offset, const uint8_t *data,
                    uint64_t mask, uint32_t bytes) {
  for (int lane = 0; lane < 64; ++lane) {
    if (!(mask >> lane & 1)) continue;
    const uint64_t at = lds_offset + uint64_t(lane) * lane_stride(bytes);
    if (at > wave.lds_bytes || wave.lds_bytes - at < bytes)
      return fault_lds(wave, op, lane, at, bytes);
  }
  Memory &memory = *wave.memory;
  // vmcnt counts to 63: with more in flight the hardware waits for the oldest.
  constexpr uint32_t kMostInFlight = 63;
  while (!memory.copies.empty() && wave.vm_issued - memory.copies.front().sequence >= kMostInFlight)
    land_oldest_copy(wave);
  if (memory.group->model == MemoryModel::kStrict)
    for (int lane = 0; lane < 64; ++lane)
      if (mask >> lane & 1)
        std::memset(wave.lds + lds_offset + uint64_t(lane) * lane_stride(bytes), 0xab, bytes);
  memory.copies.push_back({++memory.group->copies_issued, wave.vm_issued, lds_offset, mask, bytes,
                           std::vector<uint8_t>(data, data + 64 * size_t(bytes))});
  wave.copies_pending = uint32_t(memory.copies.size());
  if (memory.group->observer) memory.group->observer->copy_issued(wave, op, memory.copies.back());
}

bool land_oldest_copy(Wave &wave) {
  auto &copies = wave.memory->copies;
  if (copies.empty()) return false;
  const Copy &c = copies.front();
  for (int lane = 0; lane < 64; ++lane)
    if (c.mask >> lane & 1)
      std::memcpy(wave.lds + c.lds_offset + uint64_t(lane) * lane_stride(c.bytes),
                  c.data.data() + size_t(lane) * c.bytes, c.bytes);
  if (wave.memory->group->observer) wave.memory->group->observer->copy_landed(wave, c);
  copies.pop_front();
  wave.copies_pending = uint32_t(copies.size());
  return true;
}

void land_lds_copies(Wave &wave, uint32_t newest_allowed_in_flight) {
  Memory &memory = *wave.memory;
  const auto covered = [&](const Copy &c) {
    return wave.vm_issued - c.sequence >= newest_allowed_in_flight;
  };
  if (memory.group->model != MemoryModel::kNominal) {
    while (!memory.copies.empty() && covered(memory.copies.front())) land_oldest_copy(wave);
    return;
  }
  memory.awaited = 0;
  for (const Copy &c : memory.copies)
    if (covered(c)) memory.awaited = c.issue;
  if (memory.awaited) wave.stop = Stop::kWait;
}

void land_awaited_copies(const std::vector<Wave *> &waves) {
  uint64_t youngest = 0;
  for (Wave *wave : waves)
    if (wave->stop == Stop::kWait) {
      youngest = std::max(youngest, wave->memory->awaited);
      wave->stop = Stop::kNone;
    }
  for (;;) {
    Wave *next = nullptr;
    for (Wave *wave : waves)
      if (!wave->memory->copies.empty() &&
          (!next || wave->memory->copies.front().issue < next->memory->copies.front().issue))
        next = wave;
    if (!next || next->memory->copies.front().issue > youngest) return;
    land_oldest_copy(*next);
  }
}

}  // namespace flydsl::emu
