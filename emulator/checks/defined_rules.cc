#include "emulator/checks/defined_rules.h"

#include <string>
#include <unordered_map>

namespace flydsl::emu::checks {
namespace {

using std::string_view;

struct Named {
  const char *name;
  Rule rule;
};

// Whole mnemonics; what is not here and has no prefix below is kUnion.
const Named kNames[] = {
    {"v_mov_b32", Rule::kBits},
    {"v_mov_b64", Rule::kBits},
    {"v_not_b32", Rule::kBits},
    {"v_accvgpr_read_b32", Rule::kBits},
    {"v_accvgpr_write_b32", Rule::kBits},
    {"v_accvgpr_mov_b32", Rule::kBits},
    {"v_xor_b32", Rule::kBits},
    {"v_xnor_b32", Rule::kBits},
    {"v_bitop3_b32", Rule::kBits},
    {"v_and_b32", Rule::kAnd},
    {"v_or_b32", Rule::kOr},
    {"v_and_or_b32", Rule::kAndOr},
    {"v_or3_b32", Rule::kOr3},
    {"v_bfi_b32", Rule::kBfi},
    {"v_lshlrev_b32", Rule::kShlRev},
    {"v_lshrrev_b32", Rule::kShrRev},
    {"v_ashrrev_i32", Rule::kSarRev},
    {"v_lshlrev_b64", Rule::kShlRev},
    {"v_lshrrev_b64", Rule::kShrRev},
    {"v_ashrrev_i64", Rule::kSarRev},
    {"v_lshl_or_b32", Rule::kShlOr},
    {"v_add_u32", Rule::kSum},
    {"v_sub_u32", Rule::kSum},
    {"v_subrev_u32", Rule::kSum},
    {"v_add_co_u32", Rule::kSum},
    {"v_sub_co_u32", Rule::kSum},
    {"v_subrev_co_u32", Rule::kSum},
    {"v_add3_u32", Rule::kSum},
    {"v_mul_lo_u32", Rule::kSum},
    {"v_xad_u32", Rule::kSum},
    {"v_mul_u32_u24", Rule::kSum24},
    {"v_mul_i32_i24", Rule::kUnion},
    {"v_mad_u32_u24", Rule::kSum24},
    {"v_mad_u64_u32", Rule::kSum},
    {"v_mad_i64_i32", Rule::kSum},
    {"v_lshl_add_u32", Rule::kShlAdd},
    {"v_lshl_add_u64", Rule::kShlAdd},
    {"v_add_lshl_u32", Rule::kAddShl},
    {"v_bfe_u32", Rule::kExtract},
    {"v_bfe_i32", Rule::kExtract},
    {"v_perm_b32", Rule::kPermute},
    {"v_alignbit_b32", Rule::kAlignBit},
    {"v_alignbyte_b32", Rule::kAlignByte},
    {"v_cndmask_b32", Rule::kSelect},
    {"v_pack_b32_f16", Rule::kPackLow},
    {"v_cvt_f32_ubyte0", Rule::kByte0},
    {"v_cvt_f32_ubyte1", Rule::kByte1},
    {"v_cvt_f32_ubyte2", Rule::kByte2},
    {"v_cvt_f32_ubyte3", Rule::kByte3},
    {"v_cvt_pk_bf16_f32", Rule::kHalves},
    {"v_cvt_pk_f16_f32", Rule::kHalves},
    {"v_cvt_pkrtz_f16_f32", Rule::kHalves},
    {"v_cvt_pknorm_i16_f32", Rule::kHalves},
    {"v_cvt_pknorm_u16_f32", Rule::kHalves},
    {"v_cvt_pk_i16_i32", Rule::kHalves},
    {"v_cvt_pk_u16_u32", Rule::kHalves},
    {"v_fma_mixlo_f16", Rule::kKeepHigh},
    {"v_fma_mixhi_f16", Rule::kKeepLow},
    {"v_pk_mov_b32", Rule::kPackedWords},
    {"v_pk_add_f32", Rule::kPackedWords},
    {"v_pk_mul_f32", Rule::kPackedWords},
    {"v_pk_fma_f32", Rule::kPackedWords},
    {"s_mov_b32", Rule::kBits},
    {"s_mov_b64", Rule::kBits},
    {"s_not_b32", Rule::kBits},
    {"s_not_b64", Rule::kBits},
    {"s_xor_b32", Rule::kBits},
    {"s_xor_b64", Rule::kBits},
    {"s_xnor_b32", Rule::kBits},
    {"s_xnor_b64", Rule::kBits},
    {"s_and_b32", Rule::kAnd},
    {"s_and_b64", Rule::kAnd},
    {"s_nand_b32", Rule::kAnd},
    {"s_nand_b64", Rule::kAnd},
    {"s_andn2_b32", Rule::kAndNot},
    {"s_andn2_b64", Rule::kAndNot},
    {"s_or_b32", Rule::kOr},
    {"s_or_b64", Rule::kOr},
    {"s_nor_b32", Rule::kOr},
    {"s_nor_b64", Rule::kOr},
    {"s_orn2_b32", Rule::kOrNot},
    {"s_orn2_b64", Rule::kOrNot},
    {"s_lshl_b32", Rule::kShl},
    {"s_lshl_b64", Rule::kShl},
    {"s_lshr_b32", Rule::kShr},
    {"s_lshr_b64", Rule::kShr},
    {"s_ashr_i32", Rule::kSar},
    {"s_ashr_i64", Rule::kSar},
    {"s_add_u32", Rule::kSum},
    {"s_add_i32", Rule::kSum},
    {"s_sub_u32", Rule::kSum},
    {"s_sub_i32", Rule::kSum},
    {"s_addc_u32", Rule::kSum},
    {"s_subb_u32", Rule::kSum},
    {"s_mul_i32", Rule::kSum},
    {"s_addk_i32", Rule::kSum},
    {"s_mulk_i32", Rule::kSum},
    {"s_bfe_u32", Rule::kExtractPacked},
    {"s_bfe_i32", Rule::kExtractPacked},
    {"s_pack_ll_b32_b16", Rule::kPackLow},
    {"s_pack_lh_b32_b16", Rule::kPackLowHigh},
    {"s_pack_hh_b32_b16", Rule::kPackHigh},
    {"s_sext_i32_i8", Rule::kSext8},
    {"s_sext_i32_i16", Rule::kSext16},
    {"s_brev_b32", Rule::kUnion},
};

uint64_t low_bits(uint64_t n) {
  return n >= 64 ? ~uint64_t(0) : (uint64_t(1) << n) - 1;
}
// From the lowest undefined bit upwards.
uint64_t carried(uint64_t x) {
  return x | (0 - x);
}
uint64_t any(uint64_t x) {
  return x ? ~uint64_t(0) : 0;
}
uint64_t and_bits(Bits a, Bits b) {
  return (a.undefined & b.undefined) | (a.undefined & b.value) | (b.undefined & a.value);
}
uint64_t or_bits(Bits a, Bits b) {
  return (a.undefined & b.undefined) | (a.undefined & ~b.value) | (b.undefined & ~a.value);
}
Bits inverted(Bits a) {
  return {a.undefined, ~a.value};
}
uint64_t sign_extended(uint64_t u, int bits) {
  const uint64_t field = low_bits(uint64_t(bits));
  return (u & field) | (u >> (bits - 1) & 1 ? ~field : 0);
}

uint64_t shifted(Rule rule, Bits a, Bits n, int width) {
  const uint64_t count_mask = uint64_t(width - 1);
  if (n.undefined & count_mask) return ~uint64_t(0);
  const uint64_t count = n.value & count_mask;
  if (rule == Rule::kShl || rule == Rule::kShlRev) return a.undefined << count;
  const uint64_t u = width == 32 ? a.undefined & 0xffffffff : a.undefined;
  if (rule == Rule::kShr || rule == Rule::kShrRev) return u >> count;
  return width == 32 ? uint64_t(int64_t(int32_t(uint32_t(u))) >> count)
                     : uint64_t(int64_t(u) >> count);
}

// Byte selectors: 0-3 bytes of b, 4-7 bytes of a, 8-11 signs of odd bytes, above a constant.
uint64_t permuted(Bits a, Bits b, Bits s) {
  const uint64_t both = (a.undefined & 0xffffffff) << 32 | (b.undefined & 0xffffffff);
  uint64_t result = 0;
  for (int k = 0; k < 32; k += 8) {
    const uint64_t sel = s.value >> k & 255;
    uint64_t byte = 0;
    if (s.undefined >> k & 255)
      byte = 255;
    else if (sel < 8)
      byte = both >> (8 * sel) & 255;
    else if (sel < 12)
      byte = both >> (16 * (sel - 8) + 15) & 1 ? 255 : 0;
    result |= byte << k;
  }
  return result;
}

}  // namespace

Rule rule_of(string_view m) {
  static const auto *const names = [] {
    auto *map = new std::unordered_map<string_view, Rule>;
    for (const Named &n : kNames) map->emplace(n.name, n.rule);
    return map;
  }();
  const auto found = names->find(m);
  if (found != names->end()) return found->second;
  if (m.substr(0, 5) == "v_pk_") return Rule::kPackedHalves;
  return Rule::kUnion;
}

uint64_t undefined_result(Rule rule, const Bits *s, int count, int width) {
  uint64_t all = 0;
  for (int n = 0; n < count; ++n) all |= s[n].undefined;
  if (!all) return 0;
  switch (rule) {
    case Rule::kBits:
      return all;
    case Rule::kAnd:
      return and_bits(s[0], s[1]);
    case Rule::kAndNot:
      return and_bits(s[0], inverted(s[1]));
    case Rule::kOr:
      return or_bits(s[0], s[1]);
    case Rule::kOrNot:
      return or_bits(s[0], inverted(s[1]));
    case Rule::kAndOr:
      return or_bits({and_bits(s[0], s[1]), s[0].value & s[1].value}, s[2]);
    case Rule::kOr3:
      return or_bits({or_bits(s[0], s[1]), s[0].value | s[1].value}, s[2]);
    case Rule::kBfi:
      return (s[1].undefined & s[0].value) | (s[2].undefined & ~s[0].value) |
             (s[0].undefined & ((s[1].value ^ s[2].value) | s[1].undefined | s[2].undefined));
    case Rule::kShl:
    case Rule::kShr:
    case Rule::kSar:
      return shifted(rule, s[0], s[1], width);
    case Rule::kShlRev:
    case Rule::kShrRev:
    case Rule::kSarRev:
      return shifted(rule, s[1], s[0], width);
    case Rule::kShlOr:
      return or_bits({shifted(Rule::kShl, s[0], s[1], 32), s[0].value << (s[1].value & 31)}, s[2]);
    case Rule::kSum:
      return carried(all);
    case Rule::kSum24:
      return carried(((s[0].undefined | s[1].undefined) & 0xffffff) |
                     (count > 2 ? s[2].undefined : 0));
    case Rule::kShlAdd:
      return carried(shifted(Rule::kShl, s[0], {s[1].undefined & 31, s[1].value & 31}, width) |
                     s[2].undefined);
    case Rule::kAddShl:
      return shifted(Rule::kShl, {carried(s[0].undefined | s[1].undefined), 0}, s[2], 32);
    case Rule::kExtract:
      if ((s[1].undefined | s[2].undefined) & 31) return ~uint64_t(0);
      return sign_extended(s[0].undefined >> (s[1].value & 31) & low_bits(s[2].value & 31), 32);
    case Rule::kExtractPacked:
      if (s[1].undefined) return ~uint64_t(0);
      return any(s[0].undefined >> (s[1].value & 31) & low_bits(s[1].value >> 16 & 127));
    case Rule::kPermute:
      return permuted(s[0], s[1], s[2]);
    case Rule::kAlignBit:
    case Rule::kAlignByte: {
      const uint64_t mask = rule == Rule::kAlignBit ? 31 : 3;
      if (s[2].undefined & mask) return ~uint64_t(0);
      const uint64_t both = (s[0].undefined & 0xffffffff) << 32 | (s[1].undefined & 0xffffffff);
      return both >> ((s[2].value & mask) * (mask == 3 ? 8 : 1));
    }
    case Rule::kSelect:
      if (s[2].undefined & 1) return s[0].undefined | s[1].undefined | (s[0].value ^ s[1].value);
      return s[2].value & 1 ? s[1].undefined : s[0].undefined;
    case Rule::kHalves:
      return (s[0].undefined & 0xffffffff ? 0xffff : 0) |
             (s[1].undefined & 0xffffffff ? 0xffff0000 : 0);
    case Rule::kPackLow:
      return (s[0].undefined & 0xffff) | (s[1].undefined & 0xffff) << 16;
    case Rule::kPackLowHigh:
      return (s[0].undefined & 0xffff) | (s[1].undefined & 0xffff0000);
    case Rule::kPackHigh:
      return (s[0].undefined >> 16 & 0xffff) | (s[1].undefined & 0xffff0000);
    case Rule::kByte0:
    case Rule::kByte1:
    case Rule::kByte2:
    case Rule::kByte3:
      return any(s[0].undefined >> (8 * (int(rule) - int(Rule::kByte0))) & 255);
    case Rule::kSext8:
      return sign_extended(s[0].undefined, 8);
    case Rule::kSext16:
      return sign_extended(s[0].undefined, 16);
    case Rule::kUnion:
    case Rule::kPackedHalves:
    case Rule::kPackedWords:
    case Rule::kKeepHigh:
    case Rule::kKeepLow:
      break;
  }
  return ~uint64_t(0);
}

}  // namespace flydsl::emu::checks
