// LDS: reads, writes, transpose reads, and the lane permutations that use the LDS crossbar without
// memory.
#include "emulator/isa/lanes.h"

namespace flydsl::emu::FLYDSL_EMU_LEVEL {
namespace {

// Adds the offset to 64 byte addresses and checks `bytes` at each enabled lane. The sum is 32 bits
// wide: since Sea Islands compilers use negative bases with positive offsets (LLVM,
// isDSOffsetLegal).
inline bool addresses(Wave &w, const Op &op, const uint32_t *a, uint32_t offset, uint32_t bytes,
                      uint32_t *out) {
  const uint64_t exec = exec_of(w);
  if (w.lds_bytes < bytes) {
    if (exec) fault_lds(w, op, __builtin_ctzll(exec), a[__builtin_ctzll(exec)] + offset, bytes);
    return exec == 0;
  }
  const uint32_t limit = w.lds_bytes - bytes;
  alignas(64) uint32_t bad[64];
  LANES {
    const uint32_t x = a[i] + offset;
    out[i] = x;
    bad[i] = x > limit ? ~0u : 0u;
  }
  const uint64_t m = mask_of(bad) & exec;
  if (__builtin_expect(m == 0, 1)) return true;
  const int lane = __builtin_ctzll(m);
  fault_lds(w, op, lane, a[lane] + offset, bytes);
  return false;
}

// Reads kWords words a lane into rows first.. of w.out.
template <int kWords>
inline void gather(Wave &w, const uint32_t *address, int first) {
  const uint8_t *lds = w.lds;
  FOR_EACH_LANE(i, exec_of(w)) {
    uint32_t t[kWords];
    memcpy(t, lds + address[i], sizeof t);
    for (int k = 0; k < kWords; ++k) w.out[(first + k) * 64 + i] = t[k];
  }
}
inline void write_rows(Wave &w, const Op &op, int rows) {
  uint32_t *d = w.v + op.o[0].index * 64;
  for (int r = 0; r < rows; ++r) store_masked(d + 64 * r, w.out + 64 * r, exec_of(w));
}

template <int kWords>
void read(Wave &w, const Op &op) {
  alignas(64) uint32_t a[64];
  if (!addresses(w, op, source(w, op, 1), uint32_t(op.imm), 4 * kWords, a)) return;
  gather<kWords>(w, a, 0);
  write_rows(w, op, kWords);
}
template <class T, int kShift>  // sub-word reads; kShift 16 writes the high half, -1 the whole
                                // register, 0 the low half
void read_small(Wave &w, const Op &op) {
  alignas(64) uint32_t a[64];
  if (!addresses(w, op, source(w, op, 1), uint32_t(op.imm), sizeof(T), a)) return;
  uint32_t *d = w.v + op.o[0].index * 64;
  FOR_EACH_LANE(i, exec_of(w)) {
    T t;
    memcpy(&t, w.lds + a[i], sizeof t);
    const uint32_t x = uint32_t(int32_t(t));
    d[i] = kShift < 0 ? x
           : kShift   ? (d[i] & 0xffff) | x << 16
                      : (d[i] & 0xffff0000u) | (x & 0xffff);
  }
}
template <int kWords, int kStride>
void read2(Wave &w, const Op &op) {
  alignas(64) uint32_t a[64], b[64];
  const uint32_t *p = source(w, op, 1);
  const uint32_t o0 = (uint32_t(op.imm) & 0xff) * kStride,
                 o1 = (uint32_t(op.imm) >> 8 & 0xff) * kStride;
  if (!addresses(w, op, p, o0, 4 * kWords, a) || !addresses(w, op, p, o1, 4 * kWords, b)) return;
  gather<kWords>(w, a, 0);
  gather<kWords>(w, b, kWords);
  write_rows(w, op, 2 * kWords);
}

inline const uint32_t *row(Wave &w, const Op &op, int n) {
  return w.base[0] + op.o[n].index * 64;
}

template <int kWords>
inline void scatter(Wave &w, const uint32_t *address, const uint32_t *data) {
  FOR_EACH_LANE(i, exec_of(w)) {
    uint32_t t[kWords];
    for (int k = 0; k < kWords; ++k) t[k] = data[64 * k + i];
    memcpy(w.lds + address[i], t, sizeof t);
  }
}
template <int kWords>
void write(Wave &w, const Op &op) {
  alignas(64) uint32_t a[64];
  if (!addresses(w, op, source(w, op, 0), uint32_t(op.imm), 4 * kWords, a)) return;
  scatter<kWords>(w, a, row(w, op, 1));
}
template <class T, int kShift>
void write_small(Wave &w, const Op &op) {
  alignas(64) uint32_t a[64];
  if (!addresses(w, op, source(w, op, 0), uint32_t(op.imm), sizeof(T), a)) return;
  const uint32_t *d = row(w, op, 1);
  FOR_EACH_LANE(i, exec_of(w)) {
    const T t = T(d[i] >> kShift);
    memcpy(w.lds + a[i], &t, sizeof t);
  }
}
template <int kWords, int kStride>
void write2(Wave &w, const Op &op) {
  alignas(64) uint32_t a[64], b[64];
  const uint32_t *p = source(w, op, 0);
  const uint32_t o0 = (uint32_t(op.imm) & 0xff) * kStride,
                 o1 = (uint32_t(op.imm) >> 8 & 0xff) * kStride;
  if (!addresses(w, op, p, o0, 4 * kWords, a) || !addresses(w, op, p, o1, 4 * kWords, b)) return;
  scatter<kWords>(w, a, row(w, op, 1));
  scatter<kWords>(w, b, row(w, op, 2));
}

// Transpose read: each lane fetches 64 bits (96 of 6-bit elements). 16 lanes together hold a tile
// with 16 columns, 16 / kLanesPerRow of them a lane; destination lane l gets column l. (b16 and b8:
// two public implementations agree; b4 and b6: the same rule, one row a lane.)
template <int kBits>
void read_transposed(Wave &w, const Op &op) {
  constexpr int kWords = kBits == 6 ? 3 : 2, kElements = 32 * kWords / kBits;
  constexpr int kLanesPerRow = 16 / kElements;
  alignas(64) uint32_t a[64];
  const uint64_t exec = exec_of(w);
  for (int g = 0; g < 64; g += 16) {
    const uint64_t group = exec >> g & 0xffff;
    if (group && group != 0xffff)
      return fault(w, op, g, "transpose read with some of 16 lanes disabled");
  }
  if (!addresses(w, op, source(w, op, 1), uint32_t(op.imm), 4 * kWords, a)) return;
  uint32_t tile[64][4] = {};
  FOR_EACH_LANE(i, exec) memcpy(tile[i], w.lds + a[i], 4 * kWords);
  for (int l = 0; l < 64; ++l) {
    uint32_t out[4] = {};
    const int column = l & 15, bit = column % kElements * kBits;
    for (int n = 0; n < kElements; ++n) {
      const uint32_t *from = tile[(l & ~15) + n * kLanesPerRow + column / kElements];
      const uint64_t two = from[bit / 32] | uint64_t(from[bit / 32 + 1]) << 32;
      const uint64_t x = (two >> (bit % 32) & ((1u << kBits) - 1)) << (n * kBits % 32);
      out[n * kBits / 32] |= uint32_t(x);
      out[n * kBits / 32 + 1] |= uint32_t(x >> 32);
    }
    for (int r = 0; r < kWords; ++r) w.out[64 * r + l] = out[r];
  }
  write_rows(w, op, kWords);
}

void bpermute(Wave &w, const Op &op) {
  const uint32_t *a = source(w, op, 1), *d = row(w, op, 2);
  const uint64_t exec = exec_of(w);
  for (int i = 0; i < 64; ++i) {
    const uint32_t from = (a[i] + uint32_t(op.imm)) >> 2 & 63;
    w.out[i] = exec >> from & 1 ? d[from] : 0;
  }
  write_rows(w, op, 1);
}
void permute(Wave &w, const Op &op) {
  const uint32_t *a = source(w, op, 1), *d = row(w, op, 2);
  LANES w.out[i] = 0;
  for (int i = 0; i < 64; ++i)
    if (exec_of(w) >> i & 1) w.out[(a[i] + uint32_t(op.imm)) >> 2 & 63] = d[i];
  write_rows(w, op, 1);
}
// Source lane of DS_SWIZZLE_B32 inside 32 lanes (Vega ISA): FFT mode reverses the bits that the
// mask leaves, rotation moves them, quads permute, and the general form has and, or and xor masks.
inline int swizzle_source(uint32_t pattern, int lane) {
  const uint32_t i = uint32_t(lane) & 31, mask = pattern & 31;
  uint32_t from;
  if (pattern >= 0xe000) {
    const uint32_t reversed = (i & 1) << 4 | (i & 2) << 2 | (i & 4) | (i & 8) >> 2 | (i & 16) >> 4;
    from = reversed >> __builtin_popcount(mask) | (i & mask);
  } else if (pattern >= 0xc000) {
    const uint32_t by = pattern >> 5 & 31, turned = pattern >> 10 & 1 ? i - by : i + by;
    from = (i & mask) | (turned & 31 & ~mask);
  } else if (pattern & 0x8000) {
    from = (i & ~3u) | (pattern >> (2 * (i & 3)) & 3);
  } else {
    from = ((i & mask) | (pattern >> 5 & 31)) ^ (pattern >> 10 & 31);
  }
  return (lane & 32) | int(from);
}
void swizzle(Wave &w, const Op &op) {
  const uint32_t *d = source(w, op, 1), pattern = uint32_t(op.imm) & 0xffff;
  const uint64_t exec = exec_of(w);
  for (int i = 0; i < 64; ++i) {
    const int from = swizzle_source(pattern, i);
    w.out[i] = exec >> from & 1 ? d[from] : 0;
  }
  write_rows(w, op, 1);
}
// Address = M0[15:0] + offset + 4 * lane.
inline void lane_addresses(Wave &w, uint32_t *a) {
  const uint32_t base = w.s[kM0] & 0xffff;
  LANES a[i] = base + 4 * uint32_t(i);
}
void read_addtid(Wave &w, const Op &op) {
  alignas(64) uint32_t lane[64], a[64];
  lane_addresses(w, lane);
  if (!addresses(w, op, lane, uint32_t(op.imm), 4, a)) return;
  gather<1>(w, a, 0);
  write_rows(w, op, 1);
}
void write_addtid(Wave &w, const Op &op) {
  alignas(64) uint32_t lane[64], a[64];
  lane_addresses(w, lane);
  if (!addresses(w, op, lane, uint32_t(op.imm), 4, a)) return;
  scatter<1>(w, a, row(w, op, 0));
}
void nop(Wave &, const Op &) {}

}  // namespace

const Row rows_lds[] = {
    {"ds_read_b32", "i=i", read<1>, kRowDs},
    {"ds_read_b64", "l=i", read<2>, kRowDs},
    {"ds_read_b96", "l=i", read<3>, kRowDs},
    {"ds_read_b128", "l=i", read<4>, kRowDs},
    {"ds_read_u8", "i=i", read_small<uint8_t, -1>, kRowDs},
    {"ds_read_i8", "i=i", read_small<int8_t, -1>, kRowDs},
    {"ds_read_u16", "i=i", read_small<uint16_t, -1>, kRowDs},
    {"ds_read_i16", "i=i", read_small<int16_t, -1>, kRowDs},
    {"ds_read_u8_d16", "i&i", read_small<uint8_t, 0>, kRowDs},
    {"ds_read_u8_d16_hi", "i&i", read_small<uint8_t, 16>, kRowDs},
    {"ds_read_i8_d16", "i&i", read_small<int8_t, 0>, kRowDs},
    {"ds_read_i8_d16_hi", "i&i", read_small<int8_t, 16>, kRowDs},
    {"ds_read_u16_d16", "i&i", read_small<uint16_t, 0>, kRowDs},
    {"ds_read_u16_d16_hi", "i&i", read_small<uint16_t, 16>, kRowDs},
    {"ds_read2_b32", "l=i", read2<1, 4>, kRowDs},
    {"ds_read2_b64", "l=i", read2<2, 8>, kRowDs},
    {"ds_read2st64_b32", "l=i", read2<1, 256>, kRowDs},
    {"ds_read2st64_b64", "l=i", read2<2, 512>, kRowDs},
    {"ds_read_b64_tr_b16", "l=i", read_transposed<16>, kRowDs},
    {"ds_read_b64_tr_b8", "l=i", read_transposed<8>, kRowDs},
    {"ds_read_b64_tr_b4", "l=i", read_transposed<4>, kRowDs},
    {"ds_read_b96_tr_b6", "l=i", read_transposed<6>, kRowDs},
    {"ds_write_b8", "=ii", write_small<uint8_t, 0>, kRowDs},
    {"ds_write_b8_d16_hi", "=ii", write_small<uint8_t, 16>, kRowDs},
    {"ds_write_b16", "=ii", write_small<uint16_t, 0>, kRowDs},
    {"ds_write_b16_d16_hi", "=ii", write_small<uint16_t, 16>, kRowDs},
    {"ds_write_b32", "=ii", write<1>, kRowDs},
    {"ds_write_b64", "=il", write<2>, kRowDs},
    {"ds_write_b96", "=il", write<3>, kRowDs},
    {"ds_write_b128", "=il", write<4>, kRowDs},
    {"ds_write2_b32", "=iii", write2<1, 4>, kRowDs},
    {"ds_write2_b64", "=ill", write2<2, 8>, kRowDs},
    {"ds_write2st64_b32", "=iii", write2<1, 256>, kRowDs},
    {"ds_write2st64_b64", "=ill", write2<2, 512>, kRowDs},
    {"ds_bpermute_b32", "i=ii", bpermute, kRowDs},
    {"ds_permute_b32", "i=ii", permute, kRowDs},
    {"ds_swizzle_b32", "i=i", swizzle, kRowDs},
    {"ds_read_addtid_b32", "i=", read_addtid, kRowDs},
    {"ds_write_addtid_b32", "=i", write_addtid, kRowDs},
    {"ds_nop", "=*", nop, kRowDs},
    {nullptr, nullptr, nullptr},
};

}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
