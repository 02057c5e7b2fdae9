// A row in LDS, more of it than registers hold: each thread reads back what it brought there itself, so that no barrier is
// needed. With two places for a row the next one comes into the other meanwhile; with one, each of its vectors into the place of
// one that has been read for the last time (kEarly is false).
#pragma once

#include "common/threads.hip.h"

namespace flydsl::kernels {

// `kCount` vectors of each thread in LDS, one such array a kernel; kInAll below: with what else the kernel has in it, behind the row.
template <u32 kThreads, u32 kCount>
FLYDSL_DEVICE lds_ptr<u32x4> held_vectors() {
#if defined(__NVPTX__)
  // The launch says how much it is: more than what a kernel may declare.
  extern FLYDSL_SHARED u32x4 held[];
#else
  FLYDSL_SHARED static u32x4 held[kCount * kThreads];
#endif
  return (lds_ptr<u32x4>)&held[0];
}

#if defined(__NVPTX__)

template <u32 kThreads, u32 kVectors, u32 kPlaces, u32 kInAll = kPlaces *kVectors>
class HeldRow {
 public:
  static constexpr bool kEarly = kPlaces > 1;

  // Vector v of the next row, from `base` + `offset`; `base` is the same in all threads.
  FLYDSL_DEVICE void begin(u32 v, global_ptr<const char> base, u32 offset) {
    const u32 to = static_cast<u32>(reinterpret_cast<u64>((lds_ptr<char>)place(1 - now_, v)));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(base + offset)
                 : "memory");
  }
  // The next row becomes this one. `kYounger`: how many stores the wave has made at least since the row began.
  template <u32 kYounger>
  FLYDSL_DEVICE void arrive(bool) {
    asm volatile("cp.async.wait_all;" ::: "memory");
    now_ = 1 - now_;
  }
  FLYDSL_DEVICE u32x4 vector(u32 v) const { return *place(now_, v); }
  FLYDSL_DEVICE void set(u32 v, u32x4 vector) { *place(now_, v) = vector; }

 private:
  static FLYDSL_DEVICE lds_ptr<u32x4> place(u32 row, u32 v) {
    return held_vectors<kThreads, kInAll>() + ((kEarly ? row * kVectors : 0) + v) * kThreads +
           thread_index();
  }
  u32 now_ = 0;
};

#else

// gfx950's copies of 16 bytes.
template <u32 kThreads, u32 kVectors, u32 kPlaces, u32 kInAll = kPlaces *kVectors>
class HeldRow {
 public:
  static constexpr bool kEarly = kPlaces > 1;

  FLYDSL_DEVICE void begin(u32 v, global_ptr<const char> base, u32 offset) {
    // Opaque: or all places would be kept in scalar registers.
    u32 first = wave_uniform(thread_index() / kWaveSize);
    asm volatile("" : "+s"(first));
    const u32 to = static_cast<u32>(reinterpret_cast<u64>((lds_ptr<char>)places())) +
                   (row(1 - now_) + v * kThreads + first * kWaveSize) * 16;
    const u64 bits = reinterpret_cast<u64>(base);
    const u64 from = wave_uniform(static_cast<u32>(bits)) |
                     u64{wave_uniform(static_cast<u32>(bits >> 32))} << 32;
    // (m0 need not be named: clang reserves it, and sets it where it uses it. It does not see that `from` may come from vector
    // instructions, after which an address waits 5 states: emulator/checks/hazard_rules.h.)
    asm volatile("s_mov_b32 m0, %0\n\ts_nop 4\n\tglobal_load_lds_dwordx4 %1, %2" ::"s"(to),
                 "v"(offset), "s"(from)
                 : "memory");
  }
  // The next row becomes this one. `made`: the wave has made kYounger stores since the row began, or more.
  template <u32 kYounger>
  FLYDSL_DEVICE void arrive(bool made) {
    if (made)
      asm volatile("s_waitcnt vmcnt(%0)" ::"n"(kYounger) : "memory");
    else
      asm volatile("s_waitcnt vmcnt(0)" ::: "memory");
    now_ = 1 - now_;
  }
  FLYDSL_DEVICE u32x4 vector(u32 v) const {
    return places()[row(now_) + v * kThreads + thread_index()];
  }
  FLYDSL_DEVICE void set(u32 v, u32x4 vector) {
    places()[row(now_) + v * kThreads + thread_index()] = vector;
  }

 private:
  static FLYDSL_DEVICE u32 row(u32 place) { return kEarly ? place * kVectors * kThreads : 0; }
  static FLYDSL_DEVICE lds_ptr<u32x4> places() { return held_vectors<kThreads, kInAll>(); }
  u32 now_ = 0;
};

#endif

}  // namespace flydsl::kernels
