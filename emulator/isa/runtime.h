// What semantics may ask of the engine: plain functions compiled once, for the slow or rare paths.
#pragma once

#include <cstdint>

#include "emulator/isa/op.h"

namespace flydsl::emu {

// Stops the wave. `lane` < 0: not about one lane.
void fault(Wave &wave, const Op &op, int lane, const char *what);
void fault_value(Wave &wave, const Op &op, int lane, const char *what, uint64_t value);
void fault_lds(Wave &wave, const Op &op, int lane, uint64_t offset, uint32_t bytes);

// Checks each lane of `mask` against the live regions, refills the wave's region cache; false after
// a fault.
bool check_lanes(Wave &wave, const Op &op, const uint64_t *address, uint64_t mask, uint32_t bytes,
                 bool write);
bool check_scalar(Wave &wave, const Op &op, uint64_t address, uint32_t bytes);

// Copies to LDS are asynchronous: `data` ([64][bytes]) lands at the s_waitcnt that covers it; until
// then the destination holds a poison pattern. Lane l of `mask` writes `bytes` bytes at lds_offset
// + l * bytes.
void queue_lds_copy(Wave &wave, const Op &op, uint64_t lds_offset, const uint8_t *data,
                    uint64_t mask, uint32_t bytes);
void land_lds_copies(Wave &wave, uint32_t newest_allowed_in_flight);

uint64_t code_address(const Wave &wave, uint32_t code_offset);
// Operation index of a code address, or -1.
int32_t op_index_of(const Wave &wave, uint64_t address);
uint64_t realtime_counter();
uint64_t special_value(const Wave &wave, uint32_t special);

}  // namespace flydsl::emu
