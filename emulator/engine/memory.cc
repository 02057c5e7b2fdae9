#include "emulator/engine/memory.h"

#include <time.h>

#include <cinttypes>
#include <cstdio>

#include "emulator/checks/observer.h"
#include "emulator/isa/runtime.h"

namespace flydsl::emu {
namespace {

std::string hex(uint64_t x) {
  char s[24];
  std::snprintf(s, sizeof s, "0x%" PRIx64, x);
  return s;
}

// The operation being executed; it may be a copy with relative register numbers applied.
uint32_t index_of(const Wave &wave, const Op &op) {
  const auto &ops = wave.memory->group->program->ops;
  return &op >= ops.data() && &op < ops.data() + ops.size() ? uint32_t(&op - ops.data())
                                                            : wave.pc - 1;
}

void report(Wave &wave, const Op &op, int lane, const std::string &what) {
  wave.memory->group->fault = place_of(wave, op, lane) + ": " + what;
  wave.stop = Stop::kFault;
}

std::string describe(const Group &g, uint64_t address, uint32_t bytes) {
  if (const Region *r = g.regions->find(address)) {
    if (address + bytes > r->end)
      return std::to_string(address + bytes - r->end) + " past the end of the " + r->what +
             " region [" + hex(r->begin) + ", " + hex(r->end) + ")";
    return std::string("inside the read-only ") + r->what + " region [" + hex(r->begin) + ", " +
           hex(r->end) + ")";
  }
  if (address < 4096) return "a null pointer";
  const Region *r = g.regions->nearest(address);
  if (!r) return "and no memory is allocated";
  const std::string place = std::string(" the nearest region, ") + r->what + " [" + hex(r->begin) +
                            ", " + hex(r->end) + ")";
  return address >= r->end ? std::to_string(address - r->end) + " bytes past the end of" + place
                           : std::to_string(r->begin - address) + " bytes before" + place;
}

void fault_address(Wave &wave, const Op &op, int lane, uint64_t address, uint32_t bytes,
                   bool write) {
  report(wave, op, lane,
         std::string(write ? "writes " : "reads ") + std::to_string(bytes) + " bytes at " +
             hex(address) + ", " + describe(*wave.memory->group, address, bytes));
}

}  // namespace

std::string place_of(const Wave &wave, const Op &op, int lane) {
  const Group &g = *wave.memory->group;
  const Program &p = *g.program;
  const uint32_t index = index_of(wave, op);
  std::string s = g.kernel->name + ": work-group (" + std::to_string(g.id[0]) + "," +
                  std::to_string(g.id[1]) + "," + std::to_string(g.id[2]) + ") wave " +
                  std::to_string(wave.wave_in_group);
  if (lane >= 0) s += " lane " + std::to_string(lane);
  return s + " at " + offset_and_line(p, index) + " `" + p.text_of(index) + "`";
}

void fault(Wave &wave, const Op &op, int lane, const char *what) {
  if (what) return report(wave, op, lane, what);
  const Program &p = *wave.memory->group->program;
  report(wave, op, lane, p.refusals.at(index_of(wave, op)));
}

void fault_value(Wave &wave, const Op &op, int lane, const char *what, uint64_t value) {
  report(wave, op, lane, std::string(what) + " " + hex(value));
}

void fault_lds(Wave &wave, const Op &op, int lane, uint64_t offset, uint32_t bytes) {
  report(wave, op, lane,
         "accesses " + std::to_string(bytes) + " bytes of LDS at offset " + hex(offset) +
             "; the work-group has " + std::to_string(wave.lds_bytes) + " bytes");
}

bool check_lanes(Wave &wave, const Op &op, const uint64_t *address, uint64_t mask, uint32_t bytes,
                 bool write) {
  Group &g = *wave.memory->group;
  const Region *last = nullptr;
  for (int lane = 0; lane < 64; ++lane) {
    if (!(mask >> lane & 1)) continue;
    const uint64_t a = address[lane];
    if (last && a >= last->begin && a <= last->end && last->end - a >= bytes) continue;
    const auto packet = reinterpret_cast<uint64_t>(g.packet);
    if (!write && a >= packet && a + bytes <= packet + sizeof(DispatchPacket)) continue;
    const Region *r = g.regions->find(a);
    if (!r || r->end - a < bytes || (write && !r->writable)) {
      fault_address(wave, op, lane, a, bytes, write);
      return false;
    }
    last = r;
  }
  if (g.observer) {
    // Without a remembered region every access comes here.
    g.observer->global_access(wave, op, address, mask, bytes);
    return wave.stop != Stop::kFault;
  }
  if (last) {
    (write ? wave.wregion_begin : wave.region_begin) = last->begin;
    (write ? wave.wregion_end : wave.region_end) = last->end;
  }
  return true;
}

bool check_scalar(Wave &wave, const Op &op, uint64_t address, uint32_t bytes) {
  Group &g = *wave.memory->group;
  const auto packet = reinterpret_cast<uint64_t>(g.packet);
  const Region *r = g.regions->find(address);
  const bool in_packet = address >= packet && address + bytes <= packet + sizeof(DispatchPacket);
  if (!in_packet && !(r && r->end - address >= bytes)) {
    fault_address(wave, op, -1, address, bytes, false);
    return false;
  }
  if (!g.observer) return true;
  g.observer->scalar_access(wave, op, address, bytes);
  return wave.stop != Stop::kFault;
}

uint64_t code_address(const Wave &wave, uint32_t code_offset) {
  return wave.memory->group->program->base + code_offset;
}

int32_t op_index_of(const Wave &wave, uint64_t address) {
  const Program &p = *wave.memory->group->program;
  const uint64_t offset = address - p.base;
  if (address < p.base || offset % 4 || offset / 4 >= p.op_of_word.size()) return -1;
  return p.op_of_word[offset / 4];
}

uint64_t realtime_counter() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return uint64_t(t.tv_sec) * 100000000 + uint64_t(t.tv_nsec) / 10;  // 100 MHz, as s_memrealtime
}

uint64_t special_value(const Wave &wave, uint32_t special) {
  const uint64_t vcc = wave.s[kVcc] | uint64_t(wave.s[kVcc + 1]) << 32;
  const uint64_t exec = wave.s[kExec] | uint64_t(wave.s[kExec + 1]) << 32;
  switch (Special(special)) {
    case Special::kVccz:
      return vcc == 0;
    case Special::kExecz:
      return exec == 0;
    case Special::kScc:
      return wave.scc;
    case Special::kSharedBase:
      return uint64_t(1) << 48;  // isa/address.h
    case Special::kSharedLimit:
      return (uint64_t(1) << 48) + 0xffffffff;
    case Special::kPrivateBase:
      return uint64_t(1) << 49;
    case Special::kPrivateLimit:
      return (uint64_t(1) << 49) + 0xffffffff;
  }
  return 0;
}

}  // namespace flydsl::emu
