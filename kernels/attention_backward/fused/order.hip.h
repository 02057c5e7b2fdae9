// In which order work-groups take key blocks, and how dQ is summed over them: block after block for each tile of rows, so
// that a call gives the same bits each time.
//
// A work-group takes a ticket. Tickets of a queue go through whole heads, blocks of keys of a head in ascending order; block n adds
// to a tile of dQ when the tile's counter says that n blocks have. It waits for lower tickets only, whose
// work-groups have started: whatever the order in which the hardware starts them, and however many run at a time, one of those that run
// need not wait. A queue for each XCD (work_order.hip.h), so that the blocks of a head run where they share an L2; heads that 8
// does not divide are in a queue of their own, for work-groups that find theirs empty.
//
// Between work-groups on different XCDs nothing but agent-scope accesses is coherent. All accesses to sums and counters are that: sc1
// (LLVM AMDGPU User Guide, "Memory Model GFX942": load and store atomic monotonic, agent). Written back is nothing, since such stores
// go through the caches; a counter is stored after s_waitcnt vmcnt has seen the sums' stores complete, and sums are loaded after a
// counter's load has returned.
#pragma once

#include "attention_backward/fused/tiles.hip.h"
#include "attention_backward/work.hip.h"

namespace flydsl::kernels::fused {

// dq_counters: tickets, then one for each tile and wave, at the place of 32 rows. (As in v2src/attention_backward_workspace.cc.)
constexpr u32 kTickets = 16;
constexpr u32 kLeftOver = kXcds;  // the queue

// The old value. Of one lane.
FLYDSL_DEVICE u32 take_ticket(u32 queue) {
  const auto tickets = (global_ptr<u32>)fresh_arguments()->dq_counters;
  return __scoped_atomic_fetch_add(tickets + queue, 1u, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}

// The block of a work-group: row_tile >= row_tiles if there is none.
template <u32 heads_in_turn>
FLYDSL_DEVICE WorkItem take_item() {
  const Arguments args = fresh_arguments();
  const u32 heads = static_cast<u32>(args->heads_kv), blocks = args->row_tiles;
  const u32 all = heads * static_cast<u32>(args->batches), share = all / kXcds;
  const u32 queue =
      (__builtin_amdgcn_workgroup_id_y() * args->grid_x + __builtin_amdgcn_workgroup_id_x()) %
      kXcds;
  u32 problem, block;
  if (const u32 ticket = take_ticket(queue); ticket < share * blocks) {
    const u32 first = ticket / (heads_in_turn * blocks) * heads_in_turn;
    const u32 in_turn = share - first < heads_in_turn ? share - first : heads_in_turn;
    const u32 rest = ticket - first * blocks;
    block = rest / in_turn;
    problem = queue * share + first + rest % in_turn;
  } else {
    const u32 left = all - share * kXcds;
    if (left == 0) return {0, 0, blocks};
    const u32 other = take_ticket(kLeftOver);
    block = other / left;
    if (block >= blocks) return {0, 0, blocks};
    problem = all - left + other % left;
  }
  return {problem % heads, problem / heads, block};
}

// Byte of a tile's counter from that of the wave's first.
FLYDSL_DEVICE u32 counter_byte(i32 plane_row) {
  return static_cast<u32>(plane_row) / 2;
}
FLYDSL_DEVICE u32 load_counter(u32x4 counters, u32 byte) {
  u32 value;
  asm volatile("global_load_dword %0, %1, %2 sc1"
               : "=v"(value)
               : "v"(byte), "s"(u32x2{counters[0], counters[1]}));
  return value;
}
// Not if it lies past the resource's size.
FLYDSL_DEVICE void store_counter(u32x4 counters, u32 byte, u32 value) {
  asm volatile("buffer_store_dword %0, %1, %2, 0 offen sc1" ::"v"(value), "v"(byte), "s"(counters)
               : "memory");
}

// 16 sums a lane: a product's accumulators, four at a time. `tile` is a resource: bytes past its size load as 0 and are not
// stored.
constexpr u32 kSumsBytes = 4096, kResourceFlags = 0x00027000;
template <int n>
FLYDSL_DEVICE u32x4 load_sums(u32x4 tile, u32 lane_byte) {
  u32x4 value;
  asm volatile("buffer_load_dwordx4 %0, %1, %2, 0 offen offset:%3 sc1"
               : "=v"(value)
               : "v"(lane_byte), "s"(tile), "n"(1024 * n));
  return value;
}
template <int n>
FLYDSL_DEVICE void store_sums(u32x4 tile, u32 lane_byte, u32x4 value) {
  asm volatile("buffer_store_dwordx4 %0, %1, %2, 0 offen offset:%3 sc1" ::"v"(value),
               "v"(lane_byte), "s"(tile), "n"(1024 * n)
               : "memory");
}

}  // namespace flydsl::kernels::fused
