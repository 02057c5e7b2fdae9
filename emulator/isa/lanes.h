// Operands as arrays of 64 lanes, results under EXEC, and the templates that turn a function of one
// lane into an instruction.
#pragma once

#include <immintrin.h>
#include <string.h>

#include "emulator/isa/half.h"
#include "emulator/isa/row.h"
#include "emulator/isa/runtime.h"
#include "emulator/isa/soft_float.h"

// Lanes never depend on each other: rows are either the same row or disjoint.
#if defined(__clang__)
#define LANES _Pragma("clang loop vectorize(assume_safety)") for (int i = 0; i < 64; ++i)
#else
#define LANES _Pragma("GCC ivdep") for (int i = 0; i < 64; ++i)
#endif

// For instructions that must touch enabled lanes only.
#define FOR_EACH_LANE(lane, mask)                          \
  for (uint64_t rest_ = (mask); rest_; rest_ &= rest_ - 1) \
    if (const int lane = __builtin_ctzll(rest_); true)

namespace flydsl::emu::FLYDSL_EMU_LEVEL {
namespace {

using u64a = uint64_t __attribute__((may_alias));

inline uint64_t &exec_of(Wave &w) {
  return *reinterpret_cast<u64a *>(w.s + kExec);
}
inline uint64_t &vcc_of(Wave &w) {
  return *reinterpret_cast<u64a *>(w.s + kVcc);
}

inline float as_f(uint32_t x) {
  return __builtin_bit_cast(float, x);
}
inline uint32_t as_u(float x) {
  return __builtin_bit_cast(uint32_t, x);
}
inline double as_d(uint64_t x) {
  return __builtin_bit_cast(double, x);
}
inline uint64_t as_q(double x) {
  return __builtin_bit_cast(uint64_t, x);
}

// Where the rows of a vector or constant operand are.
inline const uint32_t *rows_of(Wave &w, const Operand &o) {
  return o.kind == Kind::kVector ? w.base[0] : w.base[1];
}

// ---- scalar operands
// -------------------------------------------------------------------------------------------

inline uint32_t scalar32(Wave &w, const Op &op, int n) {
  const Operand &o = op.o[n];
  if (o.kind == Kind::kScalar) return w.s[o.index];
  if (o.kind == Kind::kSpecial) return uint32_t(special_value(w, o.index));
  if (o.kind == Kind::kOff) return 0;
  return rows_of(w, o)[o.index * 64];
}
inline uint64_t scalar64(Wave &w, const Op &op, int n) {
  const Operand &o = op.o[n];
  if (o.kind == Kind::kScalar) return w.s[o.index] | uint64_t(w.s[o.index + 1]) << 32;
  if (o.kind == Kind::kSpecial) return special_value(w, o.index);
  if (o.kind == Kind::kOff) return 0;
  const uint32_t *row = rows_of(w, o) + o.index * 64;
  return row[0] | uint64_t(row[64]) << 32;
}
inline void set32(Wave &w, const Op &op, int n, uint32_t x) {
  w.s[op.o[n].index] = x;
}
inline void set64(Wave &w, const Op &op, int n, uint64_t x) {
  w.s[op.o[n].index] = uint32_t(x);
  w.s[op.o[n].index + 1] = uint32_t(x >> 32);
}

// ---- vector sources
// --------------------------------------------------------------------------------------------

// Bit of `type` that holds the sign, for neg and abs; 64-bit types have it in the second row.
inline uint32_t sign_bit(char type) {
  return type == 'h' || type == 'b' ? 0x8000u : 0x80000000u;
}
inline bool is_wide(char type) {
  return type == 'd' || type == 'l' || type == 'L' || type == 'P' || type == 'm';
}

// Source lane of a DPP control for each lane, or -1 when it is out of bounds (CDNA3 ISA, "DPP").
inline int dpp_source(uint32_t ctrl, int lane) {
  const int row = lane & ~15, in_row = lane & 15;
  if (ctrl < 0x100) return (lane & ~3) | (ctrl >> (2 * (lane & 3)) & 3);
  const int n = int(ctrl & 15);
  if (ctrl > 0x100 && ctrl < 0x110) return in_row + n < 16 ? lane + n : -1;  // row_shl
  if (ctrl > 0x110 && ctrl < 0x120) return in_row - n >= 0 ? lane - n : -1;  // row_shr
  if (ctrl > 0x120 && ctrl < 0x130) return row | ((in_row - n) & 15);        // row_ror
  if (ctrl >= 0x150 && ctrl < 0x160) return row | n;                         // row_newbcast
  switch (ctrl) {
    case 0x130:
      return lane < 63 ? lane + 1 : -1;  // wave_shl:1
    case 0x134:
      return (lane + 1) & 63;  // wave_rol:1
    case 0x138:
      return lane - 1;  // wave_shr:1
    case 0x13c:
      return (lane - 1) & 63;  // wave_ror:1
    case 0x140:
      return row | (15 - in_row);  // row_mirror
    case 0x141:
      return (lane & ~7) | (7 - (lane & 7));  // row_half_mirror
    case 0x142:
      return lane < 16 ? -1 : row - 1;  // row_bcast:15
    case 0x143:
      return lane < 32 ? -1 : 31;  // row_bcast:31
  }
  return -1;
}
inline bool dpp_bound_ctrl(const Op &op) {
  return op.control >> 19 & 1;
}

// Lanes that a DPP instruction may write: row and bank masks, and the source lane must exist and be
// enabled unless bound_ctrl supplies zero.
inline uint64_t dpp_write_mask(Wave &w, const Op &op) {
  const uint32_t ctrl = op.control >> 8 & 0x1ff, banks = op.control >> 24 & 15,
                 rows = op.control >> 28;
  const uint64_t exec = exec_of(w);
  uint64_t mask = 0;
  for (int lane = 0; lane < 64; ++lane) {
    const int from = dpp_source(ctrl, lane);
    const bool valid = from >= 0 && (exec >> from & 1);
    if ((rows >> (lane >> 4) & 1) && (banks >> (lane >> 2 & 3) & 1) &&
        (valid || dpp_bound_ctrl(op)))
      mask |= uint64_t(1) << lane;
  }
  return mask;
}

inline uint32_t sdwa_select(uint32_t x, uint32_t sel, bool sext) {
  if (sel < 4) return sext ? uint32_t(int32_t(int8_t(x >> (8 * sel)))) : x >> (8 * sel) & 0xff;
  if (sel < 6)
    return sext ? uint32_t(int32_t(int16_t(x >> (16 * (sel - 4)))))
                : x >> (16 * (sel - 4)) & 0xffff;
  return x;
}

// Denormals of `rows` rows of values of `type` to zeros of their sign.
inline void flush_rows(uint32_t *t, char type, int rows) {
  if (type == 'd') {
    LANES {
      const bool small = !(t[64 + i] & 0x7ff00000);
      t[i] = small ? 0 : t[i];
      t[64 + i] = small ? t[64 + i] & 0x80000000u : t[64 + i];
    }
  } else if (type == 'f' || type == 'P') {
    for (int i = 0; i < 64 * rows; ++i) t[i] = t[i] & 0x7f800000 ? t[i] : t[i] & 0x80000000u;
  } else if (type == 'h' || type == 'p') {
    LANES {
      const uint32_t low = t[i] & 0x7c00 ? t[i] & 0xffff : t[i] & 0x8000;
      const uint32_t high = t[i] & 0x7c000000 ? t[i] & 0xffff0000u : t[i] & 0x80000000u;
      t[i] = low | (type == 'p' ? high : t[i] & 0xffff0000u);
    }
  }
}
// MODE's denormal bits for values of `type`: bit 0 keeps them in sources, bit 1 in results.
inline uint32_t denormals_of(const Wave &w, char type) {
  return w.mode >> (type == 'f' || type == 'P' ? 4 : 6) & 3;
}

// Everything but plain rows: scalars are spread over the lanes, DPP and SDWA select, then |x| and
// -x.
[[maybe_unused]] __attribute__((noinline)) const uint32_t *source_slow(Wave &w, const Op &op,
                                                                       int n) {
  const Operand &o = op.o[n];
  uint32_t *t = w.tmp[n];
  const int rows = is_wide(o.type) ? 2 : 1;
  if (o.kind == Kind::kVector || o.kind == Kind::kConstant) {
    memcpy(t, rows_of(w, o) + o.index * 64, size_t(rows) * 256);
  } else {
    const uint64_t x = rows == 2 ? scalar64(w, op, n) : scalar32(w, op, n);
    for (int r = 0; r < rows; ++r) {
      const uint32_t word = uint32_t(x >> (32 * r));
      LANES t[64 * r + i] = word;
    }
  }
  const int source = n - op.first_source;
  if ((op.flags & kDpp) && source == 0) {
    const uint32_t ctrl = op.control >> 8 & 0x1ff;
    uint32_t copy[128];
    memcpy(copy, t, size_t(rows) * 256);
    for (int i = 0; i < 64; ++i) {
      const int from = dpp_source(ctrl, i);
      const bool valid = from >= 0 && (exec_of(w) >> from & 1);
      for (int r = 0; r < rows; ++r) t[64 * r + i] = valid ? copy[64 * r + from] : 0;
    }
  }
  if ((op.flags & kSdwa) && source < 2) {
    const uint32_t sel = source == 0 ? op.control >> 16 & 7 : op.control >> 24 & 7;
    const bool sext = o.mods & kSext;
    if (sel != 6) LANES t[i] = sdwa_select(t[i], sel, sext);
  }
  if ((o.type == 'h' || o.type == 's') && (op.flags & kOpSel) && (op.op_sel >> source & 1))
    LANES t[i] >>= 16;
  if ((op.flags & kMode) && !(denormals_of(w, o.type) & 1)) flush_rows(t, o.type, rows);
  if (o.mods & (kNeg | kAbs)) {
    const uint32_t sign = sign_bit(o.type);
    uint32_t *top = rows == 2 ? t + 64 : t;
    if (o.mods & kAbs) LANES top[i] &= ~sign;
    if (o.mods & kNeg) LANES top[i] ^= sign;
  }
  return t;
}

// 64 lanes of source operand n (and 64 more of the high words for 64-bit types).
inline const uint32_t *source(Wave &w, const Op &op, int n) {
  const Operand &o = op.o[n];
  if (__builtin_expect(
          o.kind <= Kind::kConstant && !o.mods && !(op.flags & (kDpp | kSdwa | kOpSel | kMode)), 1))
    return rows_of(w, o) + o.index * 64;
  return source_slow(w, op, n);
}

// The destination as a source: `rows` rows.
inline const uint32_t *accumulator(Wave &w, const Op &op, int rows) {
  const Operand &o = op.o[0];
  const uint32_t *row = w.v + o.index * 64;
  if (!(op.flags & kMode) || (denormals_of(w, o.type) & 1)) return row;
  memcpy(w.tmp[5], row, size_t(rows) * 256);
  flush_rows(w.tmp[5], o.type, rows);
  return w.tmp[5];
}

// ---- results
// ---------------------------------------------------------------------------------------------------

// d[i] = s[i] for the lanes of mask.
inline void store_masked(uint32_t *d, const uint32_t *s, uint64_t mask) {
#if defined(__AVX512F__)
  for (int i = 0; i < 64; i += 16)
    _mm512_mask_store_epi32(d + i, __mmask16(mask >> i), _mm512_load_si512(s + i));
#elif defined(__AVX2__)
  const __m256i bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  for (int i = 0; i < 64; i += 8) {
    const __m256i m =
        _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(int(mask >> i & 0xff)), bit), bit);
    _mm256_maskstore_epi32(reinterpret_cast<int *>(d + i), m,
                           _mm256_load_si256(reinterpret_cast<const __m256i *>(s + i)));
  }
#else
  for (int i = 0; i < 64; ++i)
    if (mask >> i & 1) d[i] = s[i];
#endif
}

// Bit i of the result is set when t[i] is not zero; t holds 0 or ~0.
inline uint64_t mask_of(const uint32_t *t) {
  uint64_t m = 0;
#if defined(__AVX512F__)
  for (int i = 0; i < 64; i += 16) {
    const __m512i x = _mm512_load_si512(t + i);
    m |= uint64_t(_mm512_test_epi32_mask(x, x)) << i;
  }
#elif defined(__AVX2__)
  for (int i = 0; i < 64; i += 8)
    m |= uint64_t(uint32_t(_mm256_movemask_ps(
             _mm256_castsi256_ps(_mm256_load_si256(reinterpret_cast<const __m256i *>(t + i))))))
         << i;
#else
  for (int i = 0; i < 64; i += 4)
    m |= uint64_t(uint32_t(_mm_movemask_ps(
             _mm_castsi128_ps(_mm_load_si128(reinterpret_cast<const __m128i *>(t + i))))))
         << i;
#endif
  return m;
}
// The converse: t[i] = bit ? ~0 : 0.
inline void spread_mask(uint64_t mask, uint32_t *t) {
#if defined(__AVX512F__)
  for (int i = 0; i < 64; i += 16)
    _mm512_store_si512(t + i, _mm512_maskz_set1_epi32(__mmask16(mask >> i), -1));
#else
  for (int i = 0; i < 64; ++i) t[i] = uint32_t(-int32_t(mask >> i & 1));
#endif
}

// MODE's rounding of fp16, with FP16_OVFL: an fp16 result that overflows becomes the largest number (CDNA3 ISA,
// "MODE register"); what is infinite without overflow stays.
inline bool fp16_saturates(const Wave &w) {
  return w.mode & kModeFp16Ovfl;
}
inline uint32_t half_rounding(const Wave &w) {
  return (w.mode >> 2 & 3) | (fp16_saturates(w) ? kSaturate : 0);
}

// omod and clamp. A zero or denormal under omod becomes +0; what it makes denormal keeps its sign.
template <class F>
inline uint64_t modify_output(uint64_t x, int power, uint32_t round, bool clamp, bool dx10_clamp) {
  if (power && !F::is_nan(x) && !F::is_inf(x)) {
    if (F::exponent(x) == 0) {
      x = 0;
    } else if (F::exponent(x) + power <= 0) {
      x &= F::sign;
    } else {
      x = F::scale(x, power, round);
    }
  }
  if (!clamp) return x;
  if (F::is_nan(x)) return dx10_clamp ? 0 : x;
  const uint64_t one = uint64_t(F::bias) << F::fraction;
  return x & F::sign ? 0 : x > one ? one : x;
}

[[maybe_unused]] __attribute__((noinline)) void finish_slow(Wave &w, const Op &op, uint32_t *out,
                                                            int rows) {
  const Operand &o = op.o[0];
  uint32_t *row = w.v + o.index * 64;
  const bool dx10_clamp = w.mode >> 8 & 1;
  const bool keeps_denormals = denormals_of(w, o.type) & 2;
  if ((op.flags & kMode) && !keeps_denormals) flush_rows(out, o.type, rows);
  // The output multiplier acts only where denormals are flushed and MODE.IEEE is 0 (CDNA3 ISA, "Output Modifiers").
  const int power = keeps_denormals || (w.mode >> 9 & 1) ? 0 : op.omod == 3 ? -1 : int(op.omod);
  const uint32_t round = o.type == 'f' || o.type == 'P' ? w.mode & 3
                         : o.type == 'h'                ? half_rounding(w)
                                                        : w.mode >> 2 & 3;
  if (power ||
      ((op.flags & kClamp) && (o.type == 'f' || o.type == 'h' || o.type == 'd' || o.type == 'P'))) {
    for (int r = 0; r < (o.type == 'P' ? 2 : 1); ++r)
      for (int i = 0; i < 64; ++i) {
        if (o.type == 'd') {
          const uint64_t x = modify_output<SoftDouble>(out[i] | uint64_t(out[64 + i]) << 32, power,
                                                       round, op.flags & kClamp, dx10_clamp);
          out[i] = uint32_t(x);
          out[64 + i] = uint32_t(x >> 32);
        } else if (o.type == 'h') {
          out[i] = uint32_t(
              modify_output<SoftHalf>(out[i], power, round, op.flags & kClamp, dx10_clamp));
        } else {
          out[64 * r + i] = uint32_t(modify_output<SoftSingle>(out[64 * r + i], power, round,
                                                               op.flags & kClamp, dx10_clamp));
        }
      }
  }
  uint64_t mask = exec_of(w);
  if (op.flags & kDpp) mask &= dpp_write_mask(w, op);
  if (op.flags & kSdwa) {
    const uint32_t sel = op.control >> 8 & 7, unused = op.control >> 11 & 3;
    if (sel != 6) {
      const uint32_t shift = sel < 4 ? 8 * sel : 16 * (sel - 4), bits = sel < 4 ? 8 : 16;
      const uint32_t field = ((1u << bits) - 1) << shift;
      for (int i = 0; i < 64; ++i) {
        const uint32_t x = out[i] << shift & field;
        const bool negative = x >> (shift + bits - 1) & 1;
        const uint32_t above = shift + bits < 32 ? ~0u << (shift + bits) : 0;
        out[i] = x | (unused == 2 ? row[i] & ~field : unused == 1 && negative ? above : 0);
      }
    }
  }
  // 16-bit results keep the other half of the register when op_sel chooses one; without it gfx9
  // clears the high half.
  if ((o.type == 'h' || o.type == 's') && (op.flags & kOpSel)) {
    const bool high = op.op_sel >> (op.operands - op.first_source) & 1;
    for (int i = 0; i < 64; ++i)
      out[i] =
          high ? (out[i] << 16 | (row[i] & 0xffff)) : ((row[i] & 0xffff0000u) | (out[i] & 0xffff));
  }
  for (int r = 0; r < rows; ++r) store_masked(row + 64 * r, out + 64 * r, mask);
}

// Where to write the result of `rows` rows: the register itself when all lanes are enabled.
inline uint32_t *result(Wave &w, const Op &op) {
  if (__builtin_expect(exec_of(w) == ~uint64_t(0) && !(op.flags & kWriteSpecial), 1))
    return w.v + op.o[0].index * 64;
  return w.out;
}
inline void finish(Wave &w, const Op &op, uint32_t *out, int rows = 1) {
  if (out != w.out) return;
  if (op.flags & kWriteSpecial) return finish_slow(w, op, out, rows);
  uint32_t *row = w.v + op.o[0].index * 64;
  for (int r = 0; r < rows; ++r) store_masked(row + 64 * r, out + 64 * r, exec_of(w));
}

// Lane mask result in operand n: disabled lanes read 0.
inline void set_mask(Wave &w, const Op &op, int n, uint64_t mask) {
  set64(w, op, n, mask & exec_of(w));
}

// ---- instructions from functions of one lane
// ----------------------------------------------------------------------- Names say the operand
// types: u 32-bit, f fp32, q 64-bit, d fp64; F receives the sources in the order of the text.

template <auto F>
void u_u(Wave &w, const Op &op) {
  const uint32_t *a = source(w, op, 1);
  uint32_t *d = result(w, op);
  LANES d[i] = F(a[i]);
  finish(w, op, d);
}
template <auto F>
void u_uu(Wave &w, const Op &op) {
  const uint32_t *a = source(w, op, 1), *b = source(w, op, 2);
  uint32_t *d = result(w, op);
  LANES d[i] = F(a[i], b[i]);
  finish(w, op, d);
}
template <auto F>
void u_uuu(Wave &w, const Op &op) {
  const uint32_t *a = source(w, op, 1), *b = source(w, op, 2), *c = source(w, op, 3);
  uint32_t *d = result(w, op);
  LANES d[i] = F(a[i], b[i], c[i]);
  finish(w, op, d);
}
// The destination is the third source.
template <auto F>
void u_uuD(Wave &w, const Op &op) {
  const uint32_t *a = source(w, op, 1), *b = source(w, op, 2), *c = accumulator(w, op, 1);
  uint32_t *d = result(w, op);
  LANES d[i] = F(a[i], b[i], c[i]);
  finish(w, op, d);
}
template <auto F>
void f_f(Wave &w, const Op &op) {
  u_u<[](uint32_t a) { return as_u(F(as_f(a))); }>(w, op);
}
template <auto F>
void f_ff(Wave &w, const Op &op) {
  u_uu<[](uint32_t a, uint32_t b) { return as_u(F(as_f(a), as_f(b))); }>(w, op);
}
template <auto F>
void f_fff(Wave &w, const Op &op) {
  u_uuu<[](uint32_t a, uint32_t b, uint32_t c) { return as_u(F(as_f(a), as_f(b), as_f(c))); }>(w,
                                                                                               op);
}
template <auto F>
void f_ffD(Wave &w, const Op &op) {
  u_uuD<[](uint32_t a, uint32_t b, uint32_t c) { return as_u(F(as_f(a), as_f(b), as_f(c))); }>(w,
                                                                                               op);
}

inline uint64_t wide(const uint32_t *p, int i) {
  return p[i] | uint64_t(p[64 + i]) << 32;
}
inline void set_wide(uint32_t *p, int i, uint64_t x) {
  p[i] = uint32_t(x);
  p[64 + i] = uint32_t(x >> 32);
}
template <auto F>
void q_q(Wave &w, const Op &op) {
  const uint32_t *a = source(w, op, 1);
  uint32_t *d = result(w, op);
  for (int i = 0; i < 64; ++i) set_wide(d, i, F(wide(a, i)));
  finish(w, op, d, 2);
}
template <auto F>
void q_qq(Wave &w, const Op &op) {
  const uint32_t *a = source(w, op, 1), *b = source(w, op, 2);
  // A 64-bit result may overlap a source in another alignment: never in place.
  for (int i = 0; i < 64; ++i) set_wide(w.out, i, F(wide(a, i), wide(b, i)));
  finish(w, op, w.out, 2);
}
template <auto F>
void q_qqq(Wave &w, const Op &op) {
  const uint32_t *a = source(w, op, 1), *b = source(w, op, 2), *c = source(w, op, 3);
  for (int i = 0; i < 64; ++i) set_wide(w.out, i, F(wide(a, i), wide(b, i), wide(c, i)));
  finish(w, op, w.out, 2);
}

}  // namespace
}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
