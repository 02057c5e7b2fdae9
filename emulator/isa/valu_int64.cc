// Integer operations with 64-bit operands on lanes.
#include "emulator/isa/lanes.h"

namespace flydsl::emu::FLYDSL_EMU_LEVEL {
namespace {

template <bool kSigned>
void mad64(Wave &w, const Op &op) {
  const uint32_t *a = source(w, op, 2), *b = source(w, op, 3), *c = source(w, op, 4);
  uint64_t carry = 0;
  for (int i = 0; i < 64; ++i) {
    const uint64_t add = wide(c, i);
    if (kSigned) {
      const int64_t product = int64_t(int32_t(a[i])) * int32_t(b[i]);
      const uint64_t r = uint64_t(product) + add;
      const __int128 exact = __int128(product) + __int128(int64_t(add));
      const bool over = exact != __int128(int64_t(r));
      carry |= uint64_t(exact >> 64 & 1) << i;  // bit 64 of the 65-bit sum (CDNA3 ISA)
      // Both addends have one sign when the sum leaves the range.
      const uint64_t limit = product < 0 ? uint64_t(1) << 63 : ~uint64_t(0) >> 1;
      set_wide(w.out, i, over && (op.flags & kClamp) ? limit : r);
    } else {
      const uint64_t r = uint64_t(a[i]) * b[i] + add;
      carry |= uint64_t(r < add) << i;
      set_wide(w.out, i, r < add && (op.flags & kClamp) ? ~uint64_t(0) : r);
    }
  }
  finish(w, op, w.out, 2);
  set_mask(w, op, 1, carry);
}
// Shift counts are the 32-bit first source.
template <auto F>
void shift(Wave &w, const Op &op) {
  const uint32_t *n = source(w, op, 1), *a = source(w, op, 2);
  for (int i = 0; i < 64; ++i) set_wide(w.out, i, F(wide(a, i), n[i] & 63));
  finish(w, op, w.out, 2);
}
inline uint64_t left(uint64_t a, uint32_t n) {
  return a << n;
}
inline uint64_t right(uint64_t a, uint32_t n) {
  return a >> n;
}
inline uint64_t arithmetic(uint64_t a, uint32_t n) {
  return uint64_t(int64_t(a) >> n);
}

// D = (S0 << S1[2:0]) + S2
void lshl_add(Wave &w, const Op &op) {
  const uint32_t *a = source(w, op, 1), *n = source(w, op, 2), *c = source(w, op, 3);
  LANES {
    const uint64_t r = (wide(a, i) << (n[i] & 7)) + wide(c, i);
    w.out[i] = uint32_t(r);
    w.out[64 + i] = uint32_t(r >> 32);
  }
  finish(w, op, w.out, 2);
}

}  // namespace

const Row rows_valu_int64[] = {
    {"v_mad_u64_u32", "lm=iil", mad64<false>, kRowIntClamp},
    {"v_mad_i64_i32", "lm=iiL", mad64<true>, kRowIntClamp},
    {"v_lshlrev_b64", "l=il", shift<left>},
    {"v_lshrrev_b64", "l=il", shift<right>},
    {"v_ashrrev_i64", "l=iL", shift<arithmetic>},
    {"v_lshl_add_u64", "l=lil", lshl_add},
    {nullptr, nullptr, nullptr},
};

}  // namespace flydsl::emu::FLYDSL_EMU_LEVEL
