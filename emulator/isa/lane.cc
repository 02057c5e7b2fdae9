// Data across lanes: readlane, permlane swaps, lane counts.
#include "emulator/isa/lanes.h"

namespace flydsl::emu::FLYDSL_EMU_LEVEL {
namespace {

void readlane(Wave &w, const Op &op) {
  const uint32_t lane = scalar32(w, op, 2) & 63;
  const Operand &o = op.o[1];
  set32(w, op, 0, o.kind == Kind::kScalar ? w.s[o.index] : rows_of(w, o)[o.index * 64 + lane]);
}
void readfirstlane(Wave &w, const Op &op) {
  const uint64_t exec = exec_of(w);
  const Operand &o = op.o[1];
  const int lane = exec ? __builtin_ctzll(exec) : 0;
  set32(w, op, 0,
        o.kind <= Kind::kConstant ? rows_of(w, o)[o.index * 64 + lane] : scalar32(w, op, 1));
}
void writelane(Wave &w, const Op &op) {
  w.v[op.o[0].index * 64 + (scalar32(w, op, 2) & 63)] = scalar32(w, op, 1);
}

// Swaps the odd rows of D with the even rows of S0, in rows of kRow lanes (CDNA4 ISA,
// V_PERMLANE16_SWAP_B32 and V_PERMLANE32_SWAP_B32): D lane kRow + i of each pair of rows against S0
// lane i, for enabled lanes.
template <int kRow>
void permlane_swap(Wave &w, const Op &op) {
  uint32_t *d = w.v + op.o[0].index * 64, *s = w.v + op.o[1].index * 64;
  const uint64_t exec = exec_of(w);
  for (int pair = 0; pair < 64; pair += 2 * kRow)
    for (int i = 0; i < kRow; ++i) {
      const int low = pair + i, high = low + kRow;
      const uint32_t from_s = s[low], from_d = d[high];
      if (exec >> high & 1) d[high] = from_s;
      if (exec >> low & 1) s[low] = from_d;
    }
}

template <int kHigh>
void mbcnt(Wave &w, const Op &op) {
  const uint32_t *m = source(w, op, 1), *b = source(w, op, 2);
  uint32_t *d = result(w, op);
  for (int i = 0; i < 64; ++i) {
    const int below = kHigh ? (i > 32 ? i - 32 : 0) : (i > 32 ? 32 : i);
    const uint32_t mask = below == 32 ? ~0u : (1u << below) - 1;
    d[i] = uint32_t(__builtin_popcount(m[i] & mask)) + b[i];
  }
  finish(w, op, d);
}
void nop(Wave &, const Op &) {}

}  // namespace

const Row rows_lane[] = {
    {"v_readlane_b32", "i=ii", readlane, kRowNoVop},
    {"v_readfirstlane_b32", "i=i", readfirstlane, kRowNoVop},
    {"v_writelane_b32", "i&ii", writelane, kRowNoVop},
    {"v_permlane32_swap_b32", "ii=", permlane_swap<32>, kRowNoVop},
    {"v_permlane16_swap_b32", "ii=", permlane_swap<16>, kRowNoVop},
    {"v_mbcnt_lo_u32_b32", "i=ii", mbcnt<0>},
    {"v_mbcnt_hi_u32_b32", "i=ii", mbcnt<1>},
    {"v_nop", "*", nop, kRowNoVop},
    {nullptr, nullptr, nullptr},
};

}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
