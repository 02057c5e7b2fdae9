// D tile = A B of 256 or 128 rows and columns, operands of 16 or 8 bits: four waves, a quarter of the sums each in hidden registers.
//
// A slab of 128 bytes of K is four quadrants of 16 matrix instructions (8 of twice the length for bytes), halves of 64 rows of A and B against each other; under each, the half
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

// 1024 bytes from `from` + offset, an offset for each lane, to LDS address `to` + `immediate`; nothing if `mask` is 0.
// (m0 need not be named: clang reserves it, and sets it where it uses it.)
template <int immediate>
FLYDSL_DEVICE void copy_line(global_ptr<const char> from, u32 offset, u32 to) {
  asm volatile("s_add_u32 m0, %0, %1\n\ts_nop 0\n\tglobal_load_lds_dwordx4 %2, %3" ::"s"(to),
               "n"(immediate), "v"(offset), "s"(from)
               : "scc", "memory");
}
template <int immediate>
FLYDSL_DEVICE void copy_line(global_ptr<const char> from, u32 offset, u32 to, u64 mask) {
  asm volatile(
      "s_add_u32 m0, %0, %1\n\ts_mov_b64 exec, %4\n\tglobal_load_lds_dwordx4 %2, %3\n\ts_mov_b64 "
      "exec, -1" ::"s"(to),
      "n"(immediate), "v"(offset), "s"(from), "s"(mask)
      : "scc", "memory");
}

// (A comparison in C++ becomes a vector instruction.)
template <int least>
FLYDSL_DEVICE u64 all_if_more_than(i32 number) {
  u64 all;
  asm volatile("s_cmp_gt_i32 %1, %2\n\ts_cselect_b64 %0, -1, 0"
               : "=s"(all)
               : "s"(number), "n"(least)
               : "scc");
  return all;
}

// A wave's lines of an incomplete slab, of which `left` bytes of K exist; the others are zeros.
template <class Slab>
FLYDSL_DEVICE void fill(const Operand &operand, u32 lines, u32 wave, u32 lane, i32 left) {
  const lds_ptr<char> to = (lds_ptr<char>)(__UINTPTR_TYPE__)(lines + 16 * lane);
#pragma unroll 1
  for (int n = 0; n < Slab::kCopies; ++n)
    write_b128(to + 1024 * n, Slab::load_some(operand, wave * Slab::kCopies + n, lane, left));
}

// The copies of one operand's slabs, one after the other, and then those of the tile that follows; where none does, the last
// one again and again.
template <class Slab>
struct Source {
  static constexpr int kCopies = Slab::kCopies;
  global_ptr<const char> next;
  i64 advance, jump;  // from slab to slab, and from the last one to the following tile's first
  i32 left, refill;   // slabs of the tile after `next`, and of the following one after its first
  u32 offset[kCopies];

  FLYDSL_DEVICE void begin(const Operand &from, i32 slabs, u32 wave, u32 lane) {
    next = from.first;
    advance = Slab::advance(from);
    left = slabs - 1;
    jump = 0;
    refill = 0;
#pragma unroll
    for (int n = 0; n < kCopies; ++n) offset[n] = Slab::offset(from, wave * kCopies + n, lane);
  }
  // `following` comes after `from`, with as many slabs and all rows of either; or nothing does.
  FLYDSL_DEVICE void follow(const Operand &from, const Operand &following, bool follows,
                            i32 slabs) {
    jump = follows ? following.first - from.first - (slabs - 1) * advance : 0;
    refill = follows ? slabs - 1 : 0;
    settle();
  }
  template <int n>
  FLYDSL_DEVICE void copy(u32 to) const {
    copy_line<1024 * n>(next, offset[n], to);
  }
  template <int n>
  FLYDSL_DEVICE void copy(u32 to, u64 mask) const {
    copy_line<1024 * n>(next, offset[n], to, mask);
  }
  // Into scalar registers, where clang may not have kept them across a branch.
  FLYDSL_DEVICE void settle() {
    next = (global_ptr<const char>)uniform((u64)next);
    jump = static_cast<i64>(uniform(static_cast<u64>(jump)));
    left = static_cast<i32>(uniform(static_cast<u32>(left)));
    refill = static_cast<i32>(uniform(static_cast<u32>(refill)));
  }
  // Done here, not where the next copy is.
  FLYDSL_DEVICE void go_on() {
    // (Looked at after the subtraction: with its borrow, it would be a vector instruction.)
    --left;
    const bool ends = left < 0;
    next += ends ? jump : advance;
    left = ends ? refill : left;
    asm volatile("" : "+s"(next), "+s"(left));
  }
  FLYDSL_DEVICE void copy_all(u32 to) {
    each<kCopies>([&](auto n) { copy<decltype(n)::value>(to); });
  }
};

// `equal_stages`: 0, or how many stages both operands have, so that both are copied as many slabs ahead, for a work-group that has a compute
// unit for itself and little to do in a slab.
template <class ElementA, class ElementB, Order a_order, Order b_order, int rows_a = 256,
          int rows_b = 256, int equal_stages = 0>
struct MainLoop {
  static constexpr int kBytes = kBytesOf<ElementA>;
  static_assert(kBytesOf<ElementB> == kBytes && (kBytes == 1 || __is_same(ElementA, ElementB)));
  static_assert(kBytes == 2 || (a_order == Order::k && b_order == Order::k),
                "transposing reads are of 16-bit elements");
  using SlabA = Slab<a_order, rows_a>;
  using SlabB = Slab<b_order, rows_b>;
  static constexpr i32 kSlabK = kSlabKBytes / kBytes;
  static constexpr bool kEqual = equal_stages != 0;
  // A tile that follows another one has four slabs or more.
  static_assert(!kEqual ||
                (SlabA::kBytes == SlabB::kBytes && equal_stages > 2 && equal_stages <= 4));
  static constexpr int kOfA = kEqual ? equal_stages : kStagesA,
                       kOfB = kEqual ? equal_stages : kStagesB;
  static constexpr int kFirstB = kOfA * SlabA::kBytes;
  static constexpr int kLdsBytes = kFirstB + kOfB * SlabB::kBytes;
  static constexpr int kHalfA = SlabA::kBlocks / 2, kHalfB = SlabB::kBlocks / 2;  // blocks
  static constexpr int kSums = 16 * SlabA::kBlocks * SlabB::kBlocks;              // registers
  u32 wave, lane;
  u32 lds;               // address of kLdsBytes of LDS
  u32 lines_a, lines_b;  // of those that this wave copies in stage 0
  Source<SlabA> from_a;
  Source<SlabB> from_b;
  u32 a_first[4], a_now[4],
      a_next[4];  // addresses of fragments: in stage 0, of this slab, of the next one
  u32 b_first[4], b_now[4], b_next[4];       // the last two with equal stages only
  u32 stage_now, stage_next, stage_done;     // bytes from stage 0
  i32 pairs;                                 // of slabs, to do
  u64 mask;                                  // 0: the slab copies nothing
  u32x4 a[2][4 * kHalfA], b[2][4 * kHalfB];  // halves: fragment blocks * step + block

  FLYDSL_DEVICE MainLoop(lds_ptr<char> memory, u32 wave, u32 lane)
      : wave(wave),
        lane(lane),
        lds(uniform((u32)(__UINTPTR_TYPE__)memory)),
        lines_a(uniform(lds + wave * (SlabA::kCopies * 1024))),
        lines_b(uniform(lds + kFirstB + wave * (SlabB::kCopies * 1024))) {
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      a_first[n] = lds + SlabA::address(n, wave / 2 * (rows_a / 2), lane);
      b_first[n] = lds + kFirstB + SlabB::address(n, wave % 2 * (rows_b / 2), lane);
    }
  }

  static FLYDSL_DEVICE u32 after(u32 stage) {
    return stage == (kOfA - 1) * SlabA::kBytes ? 0 : stage + SlabA::kBytes;
  }
  // Read r = blocks * step + block of a half.
  template <int half, int r>
  FLYDSL_DEVICE void read_a(const u32 (&address)[4]) {
    a[half][r] = SlabA::template read<kHalfA * half + r % kHalfA, r / kHalfA>(address, Number<0>{});
  }
  template <int half, int r, int stage = 0>
  FLYDSL_DEVICE void read_b(const u32 (&address)[4]) {
    b[half][r] = SlabB::template read<kHalfB * half + r % kHalfB, r / kHalfB>(
        address, Number<stage * SlabB::kBytes>{});
  }
  // Of this slab and the next one.
  template <int half, int r, int parity>
  FLYDSL_DEVICE void read_b_now() {
    if constexpr (kEqual)
      read_b<half, r>(b_now);
    else
      read_b<half, r, parity>(b_first);
  }
  template <int half, int r, int parity>
  FLYDSL_DEVICE void read_b_next() {
    if constexpr (kEqual)
      read_b<half, r>(b_next);
    else
      read_b<half, r, 1 - parity>(b_first);
  }

  // A quadrant has places for matrix instructions; those of bytes take two. What stands behind one is in its gap.
  static constexpr int kOfStep = kHalfA * kHalfB, kPlaces = 4 * kOfStep;
  static constexpr int reads_of(int quadrant) {
    return 4 * (quadrant == 1 || quadrant == 2 ? kHalfA : kHalfB);
  }
  // In quadrant 1 they are done by its end.
  static constexpr int gap_of_read(int quadrant, int r) {
    return r * kPlaces / (quadrant == 1 ? 2 : 1) / reads_of(quadrant);
  }
  // Behind the last matrix instruction of a slab is the loop's branch.
  static constexpr int gap_of_copy(int n, int count) {
    const int gap = n * kPlaces / count + (kPlaces > count ? 1 : 0);
    return gap < kPlaces - 2 ? gap : kPlaces - 2;
  }
  static constexpr int kMeet = kPlaces - 2;  // of quadrant 1
  static constexpr int reads_before(int quadrant, int m) {
    int count = 0;
    for (int r = 0; r < reads_of(quadrant); ++r) count += gap_of_read(quadrant, r) < m;
    return count;
  }
  static constexpr int instructions_of_read(int quadrant) {
    return quadrant == 1 || quadrant == 2 ? SlabA::kReads : SlabB::kReads;
  }
  static constexpr bool has_product(int m) {
    return kBytes == 2 || m % 2 == 0;
  }
  // Whether the product at m is the first that needs further reads of the quadrant before, and how many.
  static constexpr bool needs_reads(int m) {
    return m % (kBytes == 2 ? kOfStep : 2 * kOfStep) == 0;
  }
  static constexpr int reads_needed(int quadrant, int m) {
    const int before = reads_of((quadrant + 3) % 4);
    return kBytes == 2 ? before / 4 * (m / kOfStep + 1) : before / 2 * (m / (2 * kOfStep) + 1);
  }
  // Reads in flight that are younger than those.
  static constexpr int younger_reads(int quadrant, int m) {
    const int before = (quadrant + 3) % 4;
    return reads_before(quadrant, m) * instructions_of_read(quadrant) +
           (reads_of(before) - reads_needed(quadrant, m)) * instructions_of_read(before);
  }

  template <int quadrant, int parity, int m>
  FLYDSL_DEVICE void product() {
    constexpr int half_a = quadrant / 2,
                  half_b = quadrant == 0 || quadrant == 3 ? parity : 1 - parity;
    constexpr int number = kBytes == 2 ? m : m / 2;
    constexpr int step = number / kOfStep, block_a = number % kOfStep / kHalfB,
                  block_b = number % kHalfB;
    constexpr int first =
        16 * (SlabB::kBlocks * (kHalfA * half_a + block_a) + kHalfB * half_b + block_b);
    const u32x4(&of_a)[4 * kHalfA] = a[half_a];
    const u32x4(&of_b)[4 * kHalfB] = b[half_b];
    if constexpr (kBytes == 2)
      multiply<ElementA, first>(of_a[kHalfA * step + block_a], of_b[kHalfB * step + block_b]);
    else if constexpr (has_product(m))
      multiply<ElementA, ElementB, first>(
          of_a[2 * kHalfA * step + block_a], of_a[2 * kHalfA * step + kHalfA + block_a],
          of_b[2 * kHalfB * step + block_b], of_b[2 * kHalfB * step + kHalfB + block_b]);
  }

  // Copies in flight that are younger than those of the next slab, in quadrant 1.
  static constexpr int kYoungerCopies =
      (kOfB - 2) * (SlabA::kCopies + SlabB::kCopies) + (kEqual ? 0 : SlabA::kCopies);

  // A tile ends with an odd slab.
  template <int parity, int n, class Source>
  FLYDSL_DEVICE void copy(const Source &from, u32 to) const {
    if constexpr (parity == 1)
      from.template copy<n>(to, mask);
    else
      from.template copy<n>(to);
  }
  template <int quadrant, int parity, int m>
  FLYDSL_DEVICE void gap() {
    each<reads_of(quadrant)>([&](auto read) {
      constexpr int r = decltype(read)::value;
      if constexpr (gap_of_read(quadrant, r) == m) {
        if constexpr (quadrant == 0) read_b_now<1 - parity, r, parity>();
        if constexpr (quadrant == 1) read_a<1, r>(a_now);
        if constexpr (quadrant == 2) read_a<0, r>(a_next);
        if constexpr (quadrant == 3) read_b_next<1 - parity, r, parity>();
      }
    });
    slot();
    if constexpr (quadrant == 1 && m == kMeet) barrier();
    // Where there is room: seven other instructions fit behind a matrix instruction.
    if constexpr (quadrant == 0 && m == kPlaces / 4 - 1) from_a.go_on();
    if constexpr (quadrant == 0 && m == kPlaces / 2 - 1) from_b.go_on();
    if constexpr (quadrant == 0 && m == kPlaces * 3 / 4 - 1) {
      stage_next = after(stage_now);
      asm volatile("" : "+s"(stage_next));
    }
    if constexpr (parity == 1 && quadrant == 1 && m == 0) {
      // (A comparison in C++ becomes a vector instruction.)
      asm volatile("s_cmp_eq_u32 %1, 1\n\ts_cselect_b64 %0, 0, -1"
                   : "=s"(mask)
                   : "s"(pairs)
                   : "scc");
    }
    each<4>([&](auto number) {
      constexpr int n = decltype(number)::value;
      if constexpr (quadrant == 1 && m == kPlaces / 2 + n * kPlaces / 16)
        a_next[n] = a_first[n] + stage_next;
      if constexpr (kEqual && quadrant == 1 && m == kPlaces / 2 + n * kPlaces / 16)
        b_next[n] = b_first[n] + stage_next;
    });
    each<SlabB::kCopies>([&](auto number) {
      constexpr int n = decltype(number)::value;
      if constexpr (quadrant == 2 && gap_of_copy(n, SlabB::kCopies) == m)
        copy<parity, n>(from_b, lines_b + (kEqual ? stage_now : parity * SlabB::kBytes));
    });
    each<SlabA::kCopies>([&](auto number) {
      constexpr int n = decltype(number)::value;
      if constexpr (quadrant == 3 && gap_of_copy(n, SlabA::kCopies) == m)
        copy<parity, n>(from_a, lines_a + stage_now);
    });
  }

  template <int quadrant, int parity>
  FLYDSL_DEVICE void multiply_quadrant() {
    each<kPlaces>([&](auto number) {
      constexpr int m = decltype(number)::value;
      slot();
      // Those of quadrant 1 were waited for before the barrier.
      if constexpr (needs_reads(m) && quadrant != 2) wait_for_reads<younger_reads(quadrant, m)>();
      if constexpr (quadrant == 1 && m == kMeet) {
        wait_for_reads<0>();
        wait_for_younger_copies<kYoungerCopies>();
      }
      slot();
      product<quadrant, parity, m>();
      slot();
      gap<quadrant, parity, m>();
    });
    keep_hidden<kSums>();
    slot();
  }

  template <int parity>
  FLYDSL_DEVICE void slab() {
    multiply_quadrant<0, parity>();
    multiply_quadrant<1, parity>();
    multiply_quadrant<2, parity>();
    multiply_quadrant<3, parity>();
    stage_done = stage_now;
    stage_now = stage_next;
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      a_now[n] = a_next[n];
      if constexpr (kEqual) b_now[n] = b_next[n];
    }
  }

  // ---- A tile is begin(), add(), and if its length is not made of pairs of slabs add_rest(). Another one may follow without a
  // break: follow() before add(), resume() after it and before the add() of the other.
  static constexpr i32 kPairK = 2 * kSlabK;

  // Starts the copies of the first slabs of `length` k, and clears the sums. What is done between this and add() is done while
  // they are under way.
  FLYDSL_DEVICE void begin(const Operand &operand_a, const Operand &operand_b, i32 length) {
    const i32 slabs = length / kPairK * 2;
    if (FLYDSL_LIKELY(slabs > 0)) {
      from_a.begin(operand_a, slabs, wave, lane);
      from_a.copy_all(lines_a);
      from_a.go_on();
      from_b.begin(operand_b, slabs, wave, lane);
      from_b.copy_all(lines_b);
      from_b.go_on();
      each<kOfA - 1>([&](auto number) {
        constexpr int s = 1 + decltype(number)::value;
        from_a.copy_all(lines_a + s * SlabA::kBytes);
        if constexpr (s < kOfA - 1) from_a.go_on();
        if constexpr (s < kOfB) from_b.copy_all(lines_b + s * SlabB::kBytes);
        if constexpr (s < kOfB - 1) from_b.go_on();
      });
    }
    stage_done = 0;
    clear_sums<kSums>();
  }

  // Between begin() or resume() and add(): what comes after this tile. A tile that follows has the same length, no rest, at least four slabs,
  // and all of its rows, as this one has.
  FLYDSL_DEVICE void follow(const Operand &operand_a, const Operand &operand_b,
                            const Operand &next_a, const Operand &next_b, bool follows,
                            i32 length) {
    from_a.follow(operand_a, next_a, follows, length / kSlabK);
    from_b.follow(operand_b, next_b, follows, length / kSlabK);
  }

  // After begin() and follow(), if there is a pair of slabs: waits for the first copies.
  FLYDSL_DEVICE void start() {
    stage_now = 0;
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      a_now[n] = a_first[n];
      if constexpr (kEqual) b_now[n] = b_first[n];
    }
    wait_for_younger_copies<(kOfA - 1) * SlabA::kCopies + (kOfB - 1) * SlabB::kCopies>();
    barrier();
  }

  // The pairs of slabs of `length` k, from one up. Afterwards this wave may use its lines of LDS that free_a() and free_b() say.
  FLYDSL_DEVICE void add(i32 length) {
    from_a.settle();
    from_b.settle();
    stage_now = uniform(stage_now);
    pairs = static_cast<i32>(uniform(static_cast<u32>(length / kPairK)));
    // Again, if they are of a tile that follows: kept, they would take the registers that epilogues need.
    each<4 * kHalfA>([&](auto r) { read_a<0, decltype(r)::value>(a_now); });
    each<4 * kHalfB>([&](auto r) { read_b_now<0, decltype(r)::value, 0>(); });
    wait_for_reads<4 * kHalfB * SlabB::kReads>();
#pragma unroll 1
    do {
      slab<0>();
      slab<1>();
    } while (--pairs != 0);
    wait_for_reads<0>();
    slot();
  }
  // Addresses of SlabA::kBytes / kWaves and SlabB::kBytes / kWaves of LDS.
  FLYDSL_DEVICE u32 free_a() const {
    return lines_a + stage_done;
  }
  FLYDSL_DEVICE u32 free_b() const {
    return lines_b + (kEqual ? stage_done : SlabB::kBytes);
  }

  // To the tile that follows: what the last slab did not copy, and no sums.
  FLYDSL_DEVICE void resume() {
    from_b.copy_all(free_b());
    from_a.copy_all(free_a());
    clear_sums<kSums>();
  }

  // The last k of a tile that none follows. No copy is in flight afterwards.
  FLYDSL_DEVICE void add_rest(Operand operand_a, Operand operand_b, i32 length) {
    const i32 slabs = length / kPairK * 2;
    i32 left = length - slabs * kSlabK;
    wait_for_copies();
    if (FLYDSL_LIKELY(left == 0)) return;
    operand_a.first += slabs * SlabA::advance(operand_a);
    operand_b.first += slabs * SlabB::advance(operand_b);
    barrier();
#pragma unroll 1
    for (; left > 0; left -= kSlabK) {
      add_some(operand_a, operand_b, left);
      operand_a.first += SlabA::advance(operand_a);
      operand_b.first += SlabB::advance(operand_b);
      barrier();
    }
  }

 private:
  // One slab, in stages 0, of which `left` k exist, if so many; the others count as zeros, of either operand.
  FLYDSL_DEVICE void add_some(const Operand &operand_a, const Operand &operand_b, i32 left) {
    fill<SlabA>(operand_a, lines_a, wave, lane, left * kBytes);
    fill<SlabB>(operand_b, lines_b, wave, lane, left * kBytes);
    barrier();
    each<4 * kHalfA>([&](auto r) { read_a<0, decltype(r)::value>(a_first); });
    each<4 * kHalfA>([&](auto r) { read_a<1, decltype(r)::value>(a_first); });
    each<4 * kHalfB>([&](auto r) { read_b<0, decltype(r)::value>(b_first); });
    each<4 * kHalfB>([&](auto r) { read_b<1, decltype(r)::value>(b_first); });
    wait_for_reads<0>();
    slot();
    each<kPlaces>([&](auto m) { product<0, 0, decltype(m)::value>(); });
    each<kPlaces>([&](auto m) { product<1, 0, decltype(m)::value>(); });
    each<kPlaces>([&](auto m) { product<2, 0, decltype(m)::value>(); });
    each<kPlaces>([&](auto m) { product<3, 0, decltype(m)::value>(); });
    keep_hidden<kSums>();
    slot();
  }
};

}  // namespace flydsl::kernels::matmul
