// D tile = A B, 256 x 256, 16-bit operands: four waves, one a SIMD, 128 x 128 sums each in hidden registers.
//
// A slab of 64 k is four quadrants of 16 matrix instructions, halves of 64 rows of A and B against each other; under each, the half
// that the next one needs anew is read from LDS, and slabs are copied to LDS two (B) and three (A) ahead:
//
//   quadrant     0            1            2                3
//   multiplies   A0 Bp        A0 Bq        A1 Bq            A1 Bp          p = parity of the slab, q = 1 - p
//   reads        Bq           A1           A0 of slab + 1   Bq of slab + 1
//   copies                                 B of slab + 2    A of slab + 3
//
// The end of quadrant 1 is where a work-group's waves meet: all have read slab j then, so that what follows may overwrite it, and their copies
// of slab j + 1 have landed. Reads are inline assembly, as in attention_forward/pipelined: clang 22 counts copies as LDS reads.
#pragma once

#include "common/matmul/accumulators.hip.h"
#include "common/matmul/operand.hip.h"

namespace flydsl::kernels::matmul {

constexpr int kStagesA = 3, kStagesB = 2;
constexpr int kLdsBytes = (kStagesA + kStagesB) * kSlabBytes;

FLYDSL_DEVICE void slot() {
  __builtin_amdgcn_sched_barrier(0);
}
// Waits until at most `younger` LDS reads, or copies, are in flight.
template <int younger>
FLYDSL_DEVICE void wait_for_reads() {
  __builtin_amdgcn_s_waitcnt(0xc07f | (younger < 15 ? younger : 15) << 8);
}
template <int younger>
FLYDSL_DEVICE void wait_for_younger_copies() {
  __builtin_amdgcn_s_waitcnt(0x0f70 | younger % 16 | younger / 16 << 14);
}

// (m0 need not be named: clang reserves it, and sets it where it uses it.)
// 1024 bytes from `from` + offset, an offset for each lane, to LDS address `to` + `immediate`.
template <int immediate>
FLYDSL_DEVICE void copy_line(global_ptr<const char> from, u32 offset, u32 to) {
  asm volatile("s_add_u32 m0, %0, %1\n\ts_nop 0\n\tglobal_load_lds_dwordx4 %2, %3" ::"s"(to),
               "n"(immediate), "v"(offset), "s"(from)
               : "scc", "memory");
}

// The copies of one operand's slabs, one after the other; the last one again and again once all are there.
template <Order order>
struct Source {
  global_ptr<const char> next;
  i64 advance;
  i32 left;  // slabs after `next`
  u32 offset[kCopies];

  FLYDSL_DEVICE void begin(const Operand &from, i32 slabs, u32 wave, u32 lane) {
    next = from.first;
    advance = Slab<order>::advance(from);
    left = slabs - 1;
#pragma unroll
    for (int n = 0; n < kCopies; ++n)
      offset[n] = Slab<order>::offset(from, wave * kCopies + n, lane);
  }
  template <int n>
  FLYDSL_DEVICE void copy(u32 to) const {
    copy_line<1024 * n>(next, offset[n], to);
  }
  FLYDSL_DEVICE void go_on() {
    next += left > 0 ? advance : 0;
    left -= left > 0;
  }
  FLYDSL_DEVICE void copy_all(u32 to) {
    each<kCopies>([&](auto n) { copy<decltype(n)::value>(to); });
    go_on();
  }
};

template <class Element, Order a_order, Order b_order>
struct MainLoop {
  using SlabA = Slab<a_order>;
  using SlabB = Slab<b_order>;
  u32 wave, lane;
  u32 lds;  // address of kLdsBytes of LDS
  Source<a_order> from_a;
  Source<b_order> from_b;
  u32 a_first[4], a_now[4],
      a_next[4];  // addresses of fragments: in stage 0, of this slab, of the next one
  u32 b_first[4];
  u32 stage_now = 0, stage_next = 0;  // bytes from stage 0
  u32x4 a[2][8], b[2][8];             // halves of 64 rows: fragment 2 step + block of 32

  FLYDSL_DEVICE MainLoop(lds_ptr<char> memory, u32 wave, u32 lane)
      : wave(wave), lane(lane), lds(uniform((u32)(__UINTPTR_TYPE__)memory)) {
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      a_first[n] = lds + SlabA::address(n, wave / 2, lane);
      b_first[n] = lds + kStagesA * kSlabBytes + SlabB::address(n, wave % 2, lane);
    }
  }

  static FLYDSL_DEVICE u32 after(u32 stage) {
    return stage == (kStagesA - 1) * kSlabBytes ? 0 : stage + kSlabBytes;
  }
  FLYDSL_DEVICE u32 place(u32 stage) const {
    return uniform(lds + stage + wave * (kCopies * 1024));
  }

  // Read r = 2 step + block of a half.
  template <int half, int r>
  FLYDSL_DEVICE void read_a(const u32 (&address)[4]) {
    a[half][r] = SlabA::template read<2 * half + r % 2, r / 2>(address, Number<0>{});
  }
  template <int half, int r, int stage>
  FLYDSL_DEVICE void read_b() {
    b[half][r] =
        SlabB::template read<2 * half + r % 2, r / 2>(b_first, Number<stage * kSlabBytes>{});
  }

  // Reads stand behind every other matrix instruction, in quadrant 1 behind each of the first eight.
  static constexpr int gap_of_read(int quadrant, int r) {
    return quadrant == 1 ? r : 2 * r;
  }
  static constexpr int reads_before(int quadrant, int m) {
    int count = 0;
    for (int r = 0; r < 8; ++r) count += gap_of_read(quadrant, r) < m;
    return count;
  }
  static constexpr int instructions_of_read(int quadrant) {
    return quadrant % 2 == 0 ? (quadrant == 0 ? SlabB::kReads : SlabA::kReads)
                             : (quadrant == 1 ? SlabA::kReads : SlabB::kReads);
  }
  // Reads in flight, younger than those that step m / 4 needs of the quadrant before.
  static constexpr int younger_reads(int quadrant, int m) {
    return reads_before(quadrant, m) * instructions_of_read(quadrant) +
           (8 - 2 * (m / 4 + 1)) * instructions_of_read((quadrant + 3) % 4);
  }

  template <int quadrant, int parity, int m>
  FLYDSL_DEVICE void product() {
    constexpr int half_a = quadrant / 2,
                  half_b = quadrant == 0 || quadrant == 3 ? parity : 1 - parity;
    constexpr int step = m / 4, block_a = m / 2 % 2, block_b = m % 2;
    multiply<Element, 2 * half_a + block_a, 2 * half_b + block_b>(a[half_a][2 * step + block_a],
                                                                  b[half_b][2 * step + block_b]);
  }

  template <int quadrant, int parity>
  FLYDSL_DEVICE void multiply_quadrant() {
    each<16>([&](auto number) {
      constexpr int m = decltype(number)::value;
      slot();
      // Those of quadrant 1 were waited for before the barrier.
      if constexpr (m % 4 == 0 && quadrant != 2) wait_for_reads<younger_reads(quadrant, m)>();
      if constexpr (quadrant == 1 && m == 14) {
        wait_for_reads<0>();
        wait_for_younger_copies<kCopies>();
      }
      slot();
      product<quadrant, parity, m>();
      slot();
      each<8>([&](auto read) {
        constexpr int r = decltype(read)::value;
        if constexpr (gap_of_read(quadrant, r) == m) {
          if constexpr (quadrant == 0) read_b<1 - parity, r, parity>();
          if constexpr (quadrant == 1) read_a<1, r>(a_now);
          if constexpr (quadrant == 2) read_a<0, r>(a_next);
          if constexpr (quadrant == 3) read_b<1 - parity, r, 1 - parity>();
        }
      });
      slot();
      if constexpr (quadrant == 1 && m == 14) barrier();
      if constexpr (quadrant == 1 && m >= 8 && m < 12) a_next[m - 8] = a_first[m - 8] + stage_next;
      if constexpr (quadrant == 2 && m % 2 == 1)
        from_b.template copy<m / 2>(place((kStagesA + parity) * kSlabBytes));
      if constexpr (quadrant == 3 && m % 2 == 1) from_a.template copy<m / 2>(place(stage_now));
      if constexpr (quadrant == 2 && m == 15) from_b.go_on();
    });
    keep_hidden();
    slot();
  }

  template <int parity>
  FLYDSL_DEVICE void slab() {
    multiply_quadrant<0, parity>();
    multiply_quadrant<1, parity>();
    multiply_quadrant<2, parity>();
    multiply_quadrant<3, parity>();
    from_a.go_on();
    stage_now = stage_next;
    stage_next = after(stage_next);
#pragma unroll
    for (int n = 0; n < 4; ++n) a_now[n] = a_next[n];
  }

  // `slabs` complete slabs, from 1 up. Nothing is read from LDS, and no copy is in flight, afterwards in this wave.
  FLYDSL_DEVICE void add_slabs(const Operand &operand_a, const Operand &operand_b, i32 slabs) {
    from_a.begin(operand_a, slabs, wave, lane);
    from_b.begin(operand_b, slabs, wave, lane);
    from_a.copy_all(place(0));
    from_b.copy_all(place(kStagesA * kSlabBytes));
    from_a.copy_all(place(kSlabBytes));
    from_b.copy_all(place((kStagesA + 1) * kSlabBytes));
    from_a.copy_all(place(2 * kSlabBytes));
    clear_sums();
    keep_hidden();
    stage_now = 0;
    stage_next = kSlabBytes;
#pragma unroll
    for (int n = 0; n < 4; ++n) a_now[n] = a_first[n];
    wait_for_younger_copies<3 * kCopies>();
    barrier();
    each<8>([&](auto r) { read_a<0, decltype(r)::value>(a_now); });
    each<8>([&](auto r) { read_b<0, decltype(r)::value, 0>(); });
    wait_for_reads<8 * SlabB::kReads>();
#pragma unroll 1
    for (;;) {
      slab<0>();
      if (--slabs == 0) break;
      slab<1>();
      if (--slabs == 0) break;
    }
    wait_for_reads<0>();
    wait_for_copies();
    slot();
  }

  // One slab of which only `left` k exist; the others count as zeros, of either operand.
  FLYDSL_DEVICE void add_some(const Operand &operand_a, const Operand &operand_b, i32 left) {
    const lds_ptr<char> memory = (lds_ptr<char>)(__UINTPTR_TYPE__)(place(0) + 16 * lane);
#pragma unroll 1
    for (int n = 0; n < kCopies; ++n) {
      const u32 copy = wave * kCopies + n;
      const u32x4 of_a = SlabA::load_some(operand_a, copy, lane, left);
      const u32x4 of_b = SlabB::load_some(operand_b, copy, lane, left);
      write_b128(memory + 1024 * n, of_a);
      write_b128(memory + kStagesA * kSlabBytes + 1024 * n, of_b);
    }
    barrier();
    each<8>([&](auto r) { read_a<0, decltype(r)::value>(a_first); });
    each<8>([&](auto r) { read_a<1, decltype(r)::value>(a_first); });
    each<8>([&](auto r) { read_b<0, decltype(r)::value, 0>(); });
    each<8>([&](auto r) { read_b<1, decltype(r)::value, 0>(); });
    wait_for_reads<0>();
    slot();
    each<16>([&](auto m) { product<0, 0, decltype(m)::value>(); });
    each<16>([&](auto m) { product<1, 0, decltype(m)::value>(); });
    each<16>([&](auto m) { product<2, 0, decltype(m)::value>(); });
    each<16>([&](auto m) { product<3, 0, decltype(m)::value>(); });
    keep_hidden();
    slot();
  }

  // The sums of the tile over k < `length`. All waves have done with LDS afterwards.
  FLYDSL_DEVICE void run(Operand operand_a, Operand operand_b, i32 length) {
    const i32 slabs = length / kSlabK, left = length % kSlabK;
    if (slabs > 0) {
      add_slabs(operand_a, operand_b, slabs);
    } else {
      clear_sums();
      keep_hidden();
    }
    barrier();
    if (FLYDSL_UNLIKELY(left > 0)) {
      operand_a.first += slabs * SlabA::advance(operand_a);
      operand_b.first += slabs * SlabB::advance(operand_b);
      add_some(operand_a, operand_b, left);
      barrier();
    }
  }
};

}  // namespace flydsl::kernels::matmul
