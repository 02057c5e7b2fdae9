// Operations on the bytes of lanes: sums of absolute differences, averages, saturating packs.
#include "emulator/isa/saturate.h"

namespace flydsl::emu::FLYDSL_EMU_LEVEL {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;

inline u64 difference(u32 a, u32 b) {
  return a > b ? a - b : b - a;
}
// kMasked: a reference byte of 0 does not count.
template <bool kMasked>
inline u64 sad_bytes(u32 a, u32 b) {
  u64 sum = 0;
  for (int k = 0; k < 32; k += 8) {
    const u32 x = a >> k & 0xff, reference = b >> k & 0xff;
    if (!kMasked || reference) sum += difference(x, reference);
  }
  return sum;
}
template <bool kMasked>
inline u64 sad8(u32 a, u32 b, u32 c) {
  return sad_bytes<kMasked>(a, b) + c;
}

// Four sums of a window that slides over the 8 bytes of S0, against the 4 of S1 (CDNA3 ISA,
// V_QSAD_PK_U16_U8, V_MQSAD_PK_U16_U8).
template <bool kMasked>
void quad16(Wave &w, const Op &op) {
  const u32 *a = source(w, op, 1), *b = source(w, op, 2), *c = source(w, op, 3);
  for (int i = 0; i < 64; ++i) {
    const u64 data = wide(a, i), add = wide(c, i);
    u64 r = 0;
    for (int k = 0; k < 4; ++k) {
      const u64 sum = sad_bytes<kMasked>(u32(data >> (8 * k)), b[i]) + (add >> (16 * k) & 0xffff);
      r |= (op.flags & kClamp && sum > 0xffff ? 0xffff : sum & 0xffff) << (16 * k);
    }
    set_wide(w.out, i, r);
  }
  finish(w, op, w.out, 2);
}
// The sums are 32 bits wide, S2 and the result four registers.
void quad32(Wave &w, const Op &op) {
  const u32 *a = source(w, op, 1), *b = source(w, op, 2);
  const Operand &o = op.o[3];
  if (o.kind != Kind::kVector && o.kind != Kind::kScalar)
    return fault(w, op, -1, "128-bit constant operand");
  for (int i = 0; i < 64; ++i) {
    const u64 data = wide(a, i);
    for (u32 k = 0; k < 4; ++k) {
      const u32 add =
          o.kind == Kind::kVector ? w.base[0][(o.index + k) * 64 + u32(i)] : w.s[o.index + k];
      const u64 sum = sad_bytes<true>(u32(data >> (8 * k)), b[i]) + add;
      w.out[64 * k + u32(i)] = op.flags & kClamp ? saturate_u32(sum) : u32(sum);
    }
  }
  finish(w, op, w.out, 4);
}
// Averages of bytes; bit 0 of each byte of S2 rounds up.
inline u32 lerp(u32 a, u32 b, u32 c) {
  u32 r = 0;
  for (int k = 0; k < 32; k += 8) r |= ((a >> k & 0xff) + (b >> k & 0xff) + (c >> k & 1)) >> 1 << k;
  return r;
}
template <int kLow, int kHigh>
inline u32 clamp_byte(int32_t x) {
  return u32(x < kLow ? kLow : x > kHigh ? kHigh : x) & 0xff;
}
// S0 and S1 shifted right and saturated to a byte each, in the low half; the other half is kept
// (CDNA4 ISA, V_ASHR_PK_I8_I32, V_ASHR_PK_U8_I32).
template <int kLow, int kHigh>
inline u32 shift_pack(u32 a, u32 b, u32 n) {
  return clamp_byte<kLow, kHigh>(int32_t(a) >> (n & 31)) |
         clamp_byte<kLow, kHigh>(int32_t(b) >> (n & 31)) << 8;
}

}  // namespace

#define SAD(name, expr)                                                                   \
  {                                                                                       \
    name, "i=iii", unsigned3<[](u32 a, u32 b, u32 c) { return u64(expr); }>, kRowIntClamp \
  }

const Row rows_valu_byte[] = {
    SAD("v_sad_u8", sad8<false>(a, b, c)),
    SAD("v_sad_hi_u8", (sad_bytes<false>(a, b) << 16) + c),
    SAD("v_sad_u16", difference(a & 0xffff, b & 0xffff) + difference(a >> 16, b >> 16) + c),
    SAD("v_sad_u32", difference(a, b) + c),
    SAD("v_msad_u8", sad8<true>(a, b, c)),
    {"v_qsad_pk_u16_u8", "l=lil", quad16<false>, kRowIntClamp},
    {"v_mqsad_pk_u16_u8", "l=lil", quad16<true>, kRowIntClamp},
    {"v_mqsad_u32_u8", "l=lii", quad32, kRowIntClamp},
    {"v_lerp_u8", "i=iii", u_uuu<lerp>},
    {"v_sat_pk_u8_i16", "i=i", u_u<[](u32 a) {
       return clamp_byte<0, 255>(int16_t(a)) | clamp_byte<0, 255>(int16_t(a >> 16)) << 8;
     }>},
    {"v_ashr_pk_i8_i32", "s=iii", u_uuu<shift_pack<-128, 127>>, kRowOpSel},
    {"v_ashr_pk_u8_i32", "s=iii", u_uuu<shift_pack<0, 255>>, kRowOpSel},
    {nullptr, nullptr, nullptr},
};

}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
