// Typed buffer accesses: MTBUF names its format, MUBUF takes it from the descriptor (CDNA3 ISA,
// "Buffer data types"). A lane is inside the buffer with its whole element or not at all.
#include "emulator/isa/buffer_address.h"
#include "emulator/isa/fp_lane.h"

namespace flydsl::emu::FLYDSL_EMU_LEVEL {
namespace {

using u32 = uint32_t;

// Bits of the components by data format, component 0 lowest in memory (LLVM SIDefines.h, DFMT_*).
struct Format {
  uint8_t bits[4];
};
constexpr Format kFormats[16] = {
    {{0, 0, 0, 0}},     {{8, 0, 0, 0}},    {{16, 0, 0, 0}},    {{8, 8, 0, 0}},
    {{32, 0, 0, 0}},    {{16, 16, 0, 0}},  {{11, 11, 10, 0}},  {{10, 11, 11, 0}},
    {{2, 10, 10, 10}},  {{10, 10, 10, 2}}, {{8, 8, 8, 8}},     {{32, 32, 0, 0}},
    {{16, 16, 16, 16}}, {{32, 32, 32, 0}}, {{32, 32, 32, 32}}, {{0, 0, 0, 0}}};
enum Number { kUnorm, kSnorm, kUscaled, kSscaled, kUint, kSint, kReserved, kFloat };

// Unsigned small floats of the 10- and 11-bit components: 5 bits of exponent.
inline float small_float(u32 x, int bits) {
  return half_value(x << (15 - bits));
}
inline u32 to_small_float(float x, int bits) {
  const u32 h = half_round(x), shift = u32(15 - bits), half = 1u << (shift - 1);
  if ((h & 0x7fff) > 0x7c00) return (0x7e00u >> shift);
  if (h & 0x8000) return 0;
  const u32 rounded = (h + half - 1 + (h >> shift & 1)) >> shift;
  const u32 infinity = 0x7c00u >> shift;
  return h == 0x7c00 ? infinity : rounded > infinity ? infinity : rounded;
}
inline int32_t sign_extended(u32 x, int bits) {
  return int32_t(x << (32 - bits)) >> (32 - bits);
}

// Register value of a component.
inline u32 decoded(u32 x, int bits, u32 number) {
  const double top = double((uint64_t(1) << bits) - 1), signed_top = double((1u << (bits - 1)) - 1);
  switch (number) {
    case kUnorm:
      return as_u(float(double(x) / top));
    case kSnorm: {
      const double v = double(sign_extended(x, bits)) / signed_top;
      return as_u(float(v < -1 ? -1 : v));
    }
    case kUscaled:
      return as_u(float(x));
    case kSscaled:
      return as_u(float(sign_extended(x, bits)));
    case kSint:
      return u32(sign_extended(x, bits));
    case kFloat:
      return bits == 32 ? x : as_u(bits == 16 ? half_value(x) : small_float(x, bits));
    default:
      return x;
  }
}
inline double clamped(double x, double low, double high) {
  return x != x ? 0 : x < low ? low : x > high ? high : x;
}
inline u32 encoded(u32 x, int bits, u32 number) {
  const double top = double((uint64_t(1) << bits) - 1), signed_top = double((1u << (bits - 1)) - 1);
  const u32 mask = bits == 32 ? ~0u : (1u << bits) - 1;
  const double v = double(as_f(x));
  switch (number) {
    case kUnorm:
      return u32(__builtin_roundeven(clamped(v, 0, 1) * top));
    case kSnorm:
      return u32(int32_t(__builtin_roundeven(clamped(v, -1, 1) * signed_top))) & mask;
    case kUscaled:
      return u32(clamped(__builtin_trunc(v), 0, top));
    case kSscaled:
      return u32(int32_t(clamped(__builtin_trunc(v), -signed_top - 1, signed_top))) & mask;
    case kUint:
      return x > mask ? mask : x;
    case kSint: {
      const int32_t high = int32_t(mask >> 1), s = int32_t(x);
      return u32(s > high ? high : s < -high - 1 ? -high - 1 : s) & mask;
    }
    case kFloat:
      return bits == 32 ? x : bits == 16 ? half_round(as_f(x)) : to_small_float(as_f(x), bits);
    default:
      return x & mask;
  }
}

// Components lie one after the other, lowest bits first.
inline u32 component(const u32 *words, int bit, int bits) {
  const uint64_t pair = words[bit / 32] | uint64_t(words[bit / 32 + 1]) << 32;
  return u32(pair >> (bit % 32) & ((uint64_t(1) << bits) - 1));
}
inline void put_component(u32 *words, int bit, u32 x) {
  const uint64_t shifted = uint64_t(x) << (bit % 32);
  words[bit / 32] |= u32(shifted);
  words[bit / 32 + 1] |= u32(shifted >> 32);
}

struct Typed {
  Format format;
  u32 number, bytes, select[4];  // select: 0 zero, 1 one, 4-7 component
};
// False after a fault.
template <bool kTyped>
inline bool typed_of(Wave &w, const Op &op, int n, Typed &t) {
  const u32 word3 = w.s[op.o[n + 1].index + 3];
  const u32 data = kTyped ? op.cbsz : word3 >> 15 & 15;
  t.format = kFormats[data];
  t.number = kTyped ? op.abid : word3 >> 12 & 7;
  u32 bits = 0;
  for (int c = 0; c < 4; ++c) {
    bits += t.format.bits[c];
    t.select[c] = kTyped ? 4 + u32(c) : word3 >> (3 * c) & 7;
  }
  t.bytes = bits / 8;
  if (!bits || t.number == kReserved) {
    fault_value(w, op, -1, "buffer format without meaning, data and number format",
                data << 4 | t.number);
    return false;
  }
  return true;
}
inline u32 as_short(u32 x, u32 number) {
  return number == kUint || number == kSint ? x & 0xffff : half_round(as_f(x));
}
inline u32 from_short(u32 x, u32 number) {
  return number == kUint   ? x & 0xffff
         : number == kSint ? u32(int32_t(int16_t(x)))
                           : as_u(half_value(x & 0xffff));
}

// fp16 in memory and in registers: no conversion, as integers.
template <int kShort>
inline u32 number_of(const Typed &t) {
  return kShort && t.number == kFloat && t.format.bits[0] == 16 ? u32(kUint) : t.number;
}

// kShort: 0 whole registers, 1 pairs of 16-bit values a register, 2 one value in the high half.
template <bool kTyped, int kCount, int kShort>
void load(Wave &w, const Op &op) {
  const bool lds = op.flags & kLdsCopy;
  const int n = lds ? 0 : 1;
  alignas(64) uint64_t a[64];
  u32 inside[64];
  Typed t;
  ++w.vm_issued;
  if (!typed_of<kTyped>(w, op, n, t)) return;
  if (!locate_checked(w, op, buffer_of(w, op, n, true), 0, t.bytes, 1, a, inside, false)) return;
  const u32 number = number_of<kShort>(t);
  const u32 one = t.number == kUint || t.number == kSint ? 1
                  : number == kUint                      ? 0x3c00
                                                         : as_u(1.0f);
  u32 *d = lds ? nullptr : w.v + op.o[0].index * 64;
  alignas(64) u32 copied[64] = {};
  FOR_EACH_LANE(i, exec_of(w)) {
    // MTBUF has an identity selection: X000, XY00, XYZ0 (CDNA4 ISA, "Buffer Data").
    u32 words[5] = {}, values[4] = {0, 0, 0, kTyped ? 0 : one}, out[4] = {};
    if (inside[i]) {
      memcpy(words, reinterpret_cast<const void *>(a[i]), t.bytes);
      for (int c = 0, bit = 0; c < 4; bit += t.format.bits[c++])
        if (t.format.bits[c])
          values[c] = decoded(component(words, bit, t.format.bits[c]), t.format.bits[c], number);
    }
    // Outside, components are 0, except those whose selection is 1 (the same, "Range Checking").
    for (int c = 0; c < kCount; ++c)
      out[c] = t.select[c] == 1 ? one : inside[i] && t.select[c] >= 4 ? values[t.select[c] - 4] : 0;
    if (lds) {
      copied[i] = out[0];
    } else if (kShort == 0) {
      for (int c = 0; c < kCount; ++c) d[64 * c + i] = out[c];
    } else if (kShort == 2) {
      d[i] = (d[i] & 0xffff) | as_short(out[0], number) << 16;
    } else {
      for (int c = 0; c < kCount; c += 2) {
        const u32 high =
            c + 1 < kCount ? as_short(out[c + 1], number) << 16 : d[32 * c + i] & 0xffff0000u;
        d[32 * c + i] = as_short(out[c], number) | high;
      }
    }
  }
  if (lds && exec_of(w))
    queue_lds_copy(w, op, copy_destination(w, op),
                   reinterpret_cast<const uint8_t *>(copied), exec_of(w), 4);
}
template <bool kTyped, int kCount, int kShort>
void store(Wave &w, const Op &op) {
  alignas(64) uint64_t a[64];
  u32 inside[64];
  Typed t;
  ++w.vm_issued;
  if (!typed_of<kTyped>(w, op, 1, t)) return;
  for (int c = 0; c < 4; ++c)
    if (t.format.bits[c] && t.select[c] != 4 + u32(c))
      return fault(w, op, -1, "formatted store through a descriptor that reorders components");
  if (!locate_checked(w, op, buffer_of(w, op, 1, true), 0, t.bytes, 1, a, inside, true)) return;
  const u32 *d = vrow(w, op, 0);
  const u32 number = number_of<kShort>(t);
  FOR_EACH_LANE(i, exec_of(w)) {
    if (!inside[i]) continue;
    u32 words[5] = {};
    for (int c = 0, bit = 0; c < 4; bit += t.format.bits[c++]) {
      if (!t.format.bits[c] || c >= kCount) continue;
      const u32 x = kShort == 0   ? d[64 * c + i]
                    : kShort == 2 ? from_short(d[i] >> 16, number)
                                  : from_short(d[c / 2 * 64 + i] >> (c % 2 * 16), number);
      put_component(words, bit, encoded(x, t.format.bits[c], number));
    }
    memcpy(reinterpret_cast<void *>(a[i]), words, t.bytes);
  }
}

}  // namespace

#define FORMAT(prefix, typed, name, count, is_short)                                 \
  {prefix "_load_format_" name, "*", load<typed, count, is_short>, kRowMemory}, {    \
    prefix "_store_format_" name, "=iooo", store<typed, count, is_short>, kRowMemory \
  }
#define FORMATS(prefix, typed)                                                     \
  FORMAT(prefix, typed, "x", 1, 0), FORMAT(prefix, typed, "xy", 2, 0),             \
      FORMAT(prefix, typed, "xyz", 3, 0), FORMAT(prefix, typed, "xyzw", 4, 0),     \
      FORMAT(prefix, typed, "d16_x", 1, 1), FORMAT(prefix, typed, "d16_xy", 2, 1), \
      FORMAT(prefix, typed, "d16_xyz", 3, 1), FORMAT(prefix, typed, "d16_xyzw", 4, 1)

const Row rows_buffer_format[] = {
    FORMATS("buffer", false),
    FORMATS("tbuffer", true),
    FORMAT("buffer", false, "d16_hi_x", 1, 2),
    {nullptr, nullptr, nullptr},
};

}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
