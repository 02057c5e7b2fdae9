// Kernels with a fault each, for the source lines in reports (source_lines_test.cc). The test finds a line by its "here:" mark.
#define KERNEL extern "C" __attribute__((global))

typedef unsigned int u32;

static __attribute__((device)) inline u32 lane() { return __builtin_amdgcn_workitem_id_x(); }

// The caller's count is one too large.
static __attribute__((device, always_inline)) inline void fill(u32 *out, u32 count) {
  if (lane() < count) out[lane()] = 7;  // here: store
}
static __attribute__((device, always_inline)) inline void fill_twice(u32 *out, u32 count) {
  fill(out, count);  // here: inner call
}

KERNEL void past_end(u32 *out, u32 count) {
  fill_twice(out, count + 1);  // here: outer call
}

static __attribute__((device, noinline)) void store_one(u32 *at) {
  *at = 1;  // here: store of a call
}
KERNEL void past_end_in_call(u32 *out, u32 count) { store_one(out + count); }

KERNEL void missing_wait(u32 *out) {
  u32 value;
  u32 *from = out + lane();
  asm volatile("global_load_dword %0, %1, off" : "=v"(value) : "v"(from));  // here: load
  value += 1;                                                               // here: too early
  *from = value;
}

KERNEL void lds_race(u32 *out) {
  __attribute__((shared)) static u32 tile[128];
  tile[lane()] = lane();         // here: write
  out[lane()] = tile[lane() ^ 64];  // here: read
}

// For ever, if out[0] is 0.
KERNEL void hang(u32 *out) {
  while (__hip_atomic_load(out, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) == 0)  // here: spin
    ;
}

// The first wave waits for one that spins.
KERNEL void deadlock(u32 *out) {
  if (__builtin_amdgcn_readfirstlane(lane()) >= 64)
    while (__hip_atomic_load(out, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) == 0)  // here: spins
      ;
  __builtin_amdgcn_s_barrier();  // here: barrier
}
