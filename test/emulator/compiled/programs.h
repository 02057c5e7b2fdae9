// Small programs that the host and the device compile from the same text: id and 8 input words to
// one 64-bit result. Nothing here is undefined or contracted, so both must agree to the bit.
#pragma once

#ifdef __HIP__
#define PROGRAM static inline __attribute__((device))
#define OUT_OF_LINE static __attribute__((device, noinline))
#define TABLE static __attribute__((device))
#else
#define PROGRAM static inline
#define OUT_OF_LINE static __attribute__((noinline))
#define TABLE static
#endif

namespace programs {

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;

PROGRAM u64 bits_of(double x) {
  return __builtin_bit_cast(u64, x);
}
PROGRAM u64 bits_of(float x) {
  return __builtin_bit_cast(u32, x);
}
PROGRAM u64 join(u32 low, u32 high) {
  return u64(high) << 32 | low;
}

// 32- and 64-bit arithmetic, signed and unsigned division by variables.
PROGRAM u64 integers(u32 id, const u32 *in) {
  const u64 a = join(in[0], in[1]), b = join(in[2], in[3]) | 1;
  const i64 sa = i64(a), sb = i64(b) >> (id & 31) | 1;
  u64 r = a * b + (a ^ b);
  r += a / b + a % b;
  r ^= u64(sb == -1 ? sa : sa / sb) + u64(sb == -1 ? 0 : sa % sb);
  r += (a << (id & 63)) ^ (b >> (id & 63)) ^ u64(sa >> (id & 63));
  r += in[4] / (in[5] | 1) * 3 + in[4] % (in[5] | 1);
  const i32 d = i32(in[7]) | 1;
  r -= u64(i64(d == -1 ? 0 : i32(in[6]) / d + i32(in[6]) % d));
  r ^= u64((unsigned __int128)(a)*b >> 64);
  return r + (a < b ? 17 : 0) + (sa < sb ? 33 : 0);
}

// Bytes and halves, conversions between widths, bit counts.
PROGRAM u64 narrow(u32 id, const u32 *in) {
  const u8 a = u8(in[0]), b = u8(in[0] >> 8);
  const i8 c = i8(in[1]), d = i8(in[1] >> 9);
  const u16 e = u16(in[2]), f = u16(in[2] >> 16);
  const i16 g = i16(in[3]), h = i16(in[3] >> 15);
  u64 r = u64(u8(a + b)) << 56 | u64(u8(a * b)) << 48 | u64(u16(e * f)) << 32;
  r += u64(i64(i16(g - h)) * c) + u64(i64(i8(c ^ d)));
  r ^= u64(u16(e << (id & 15))) + u64(i64(i16(g >> (id & 15))));
  r += u64(__builtin_popcount(in[4])) << 8 | u64(__builtin_clz(in[5] | 1)) << 16 |
       u64(__builtin_ctz(in[6] | 0x80000000u));
  r ^= u64(__builtin_bswap32(in[7])) << 3;
  r += u64(__builtin_popcountll(join(in[4], in[5]))) + u64(__builtin_clzll(join(in[6], in[7]) | 1));
  i32 sum;
  r += __builtin_add_overflow(i32(in[4]), i32(in[5]), &sum) ? 1u << 20 : u64(u32(sum));
  const u32 rotated = in[6] << (id & 31) | in[6] >> (-id & 31);
  return r ^ rotated;
}

// A dense switch, a sparse one, a loop that lanes leave at different times.
PROGRAM u64 branches(u32 id, const u32 *in) {
  u64 r = id;
  for (u32 i = 0; i < 8; ++i) {
    switch ((in[i] >> (id & 7)) % 11) {
      case 0:
        r += in[i];
        break;
      case 1:
        r ^= in[i] * 3u;
        break;
      case 2:
        r = r << 7 | r >> 57;
        break;
      case 3:
        r -= in[(i + 1) & 7];
        [[fallthrough]];
      case 4:
        r *= 0x9e3779b97f4a7c15ull;
        break;
      case 5:
        if (r & 1) continue;
        r >>= 1;
        break;
      case 6:
        r = ~r;
        break;
      case 7:
        r += r >> 33;
        break;
      case 8:
        if (i > 5) return r;
        break;
      default:
        r ^= 0x5555;
    }
    switch (in[i] & 0xff00) {
      case 0x1200:
        r += 1;
        break;
      case 0x8100:
        r += 2;
        break;
      case 0xff00:
        r += 3;
        break;
    }
    u32 n = in[i] >> 26;
    while (n != 1 && n) {
      r += n;
      n = n & 1 ? (n * 3 + 1) & 63 : n >> 1;
      if ((r & 0xff) == 7) break;
    }
  }
  return r;
}

OUT_OF_LINE u32 ackermann(u32 m, u32 n) {
  if (m == 0) return n + 1;
  if (n == 0) return ackermann(m - 1, 1);
  return ackermann(m - 1, ackermann(m, n - 1));
}
OUT_OF_LINE u64 tree(u32 depth, u64 seed) {
  if (depth == 0) return seed;
  return tree(depth - 1, seed * 6364136223846793005ull + 1) ^ tree(depth - 1, seed >> 3);
}
PROGRAM u64 recursion(u32 id, const u32 *in) {
  return ackermann(1 + (id & 1), in[0] & 3) + tree(in[1] & 3, join(in[2], in[3]));
}

OUT_OF_LINE u32 f_add(u32 a, u32 b) {
  return a + b;
}
OUT_OF_LINE u32 f_sub(u32 a, u32 b) {
  return a - b;
}
OUT_OF_LINE u32 f_mix(u32 a, u32 b) {
  return (a ^ b) * 2654435761u;
}
OUT_OF_LINE u32 f_loop(u32 a, u32 b) {
  u32 r = b;
  for (u32 i = 0; i < (a & 15); ++i) r = r * 5 + a;
  return r;
}
// Calls through pointers that differ between lanes.
PROGRAM u64 pointers(u32 id, const u32 *in) {
  u32 (*const functions[4])(u32, u32) = {f_add, f_sub, f_mix, f_loop};
  u32 r = id;
  for (u32 i = 0; i < 8; ++i) r = functions[(in[i] + id) & 3](r, in[i]);
  return join(r, functions[r & 3](in[0], in[1]));
}

// Arrays and structures on the stack, with indices that are known at run time only.
struct Item {
  u32 key;
  u16 tag;
  u8 letters[6];
  double weight;
};
PROGRAM u64 stack(u32 id, const u32 *in) {
  Item items[8];
  for (u32 i = 0; i < 8; ++i) {
    items[i].key = in[i] ^ id;
    items[i].tag = u16(in[i] >> 11);
    for (u32 k = 0; k < 6; ++k) items[i].letters[k] = u8(in[(i + k) & 7] >> k);
    items[i].weight = double(i32(in[i])) * 0.125;
  }
  for (u32 i = 1; i < 8; ++i)
    for (u32 k = i; k && items[k - 1].key > items[k].key; --k) {
      const Item other = items[k];
      items[k] = items[k - 1];
      items[k - 1] = other;
    }
  u64 r = 0;
  double sum = 0;
  for (u32 i = 0; i < 8; ++i) {
    r = r * 31 + items[i].key + items[i].tag + items[i].letters[(id + i) % 6];
    sum += items[i].weight;
  }
  return r ^ bits_of(sum);
}

// IEEE arithmetic in both widths.
PROGRAM u64 floats(u32 id, const u32 *in) {
  const double a = double(i64(join(in[0], in[1]))) * 0x1p-30, b = double(in[2]) + 0.75,
               c = double(i32(in[3])) * 0x1p-9;
  const float x = float(i32(in[4])) * 0x1p-12f, y = float(in[5] | 1), z = float(i32(in[6])) * 3.0f;
  u64 r = bits_of(a / b) + bits_of(a * c - b) + bits_of(__builtin_sqrt(b));
  r ^= bits_of(__builtin_floor(c)) + bits_of(__builtin_trunc(a)) + bits_of(__builtin_fma(a, b, c));
  r += bits_of(x / y) * 3 + bits_of(x * y + z) + bits_of(__builtin_sqrtf(y));
  r ^= bits_of(__builtin_fmaf(x, y, z)) << 20;
  r += u64(i64(c)) + u64(i32(x)) + u64(b) + u32(y * 0.25f);
  r ^= bits_of(float(a)) << 7 ^ bits_of(double(x));
  r += bits_of(__builtin_fabs(a) < b ? __builtin_ceil(c) : -c);
  return r + (x < y ? 1 : 0) + (a >= c ? 2 : 0) + (z != x ? id : 0);
}

// Tables in memory, bytes read and written at odd places.
TABLE const u16 crc_steps[16] = {0x0000, 0xcc01, 0xd801, 0x1400, 0xf001, 0x3c00, 0x2800, 0xe401,
                                 0xa001, 0x6c00, 0x7800, 0xb401, 0x5000, 0x9c01, 0x8801, 0x4400};
PROGRAM u64 bytes(u32 id, const u32 *in) {
  u8 text[40];
  for (u32 i = 0; i < 32; ++i) text[(i + id) & 31] = u8(in[i / 4] >> (i % 4 * 8));
  text[32] = 0;
  u16 crc = u16(id);
  u32 length = 0;
  for (; length < 32 && text[length] != 0x42; ++length) {
    crc = u16(crc >> 4 ^ crc_steps[(crc ^ text[length]) & 15]);
    crc = u16(crc >> 4 ^ crc_steps[(crc ^ text[length] >> 4) & 15]);
  }
  u32 unaligned;
  __builtin_memcpy(&unaligned, text + (id & 7) + 1, 4);
  return join(crc | length << 16, unaligned);
}

}  // namespace programs

// Every program, for whoever wants to run them all.
#define EACH_PROGRAM(X) \
  X(integers) X(narrow) X(branches) X(recursion) X(pointers) X(stack) X(floats) X(bytes)
