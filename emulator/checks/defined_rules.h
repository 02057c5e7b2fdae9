// How undefined bits pass through arithmetic: a mask of undefined bits beside each value.
#pragma once

#include <cstdint>
#include <string_view>

namespace flydsl::emu::checks {

enum class Rule : uint8_t {
  kUnion,   // any undefined bit makes the whole result undefined
  kBits,    // bit for bit: mov, not, xor, bitop3
  kAnd,     // a defined 0 decides
  kAndNot,  // a & ~b
  kOr,      // a defined 1 decides
  kOrNot,   // a | ~b
  kAndOr,   // (a & b) | c
  kOr3,
  kBfi,     // (a & b) | (~a & c)
  kShl,     // a << b
  kShlRev,  // b << a
  kShr,
  kShrRev,
  kSar,
  kSarRev,
  kShlOr,          // (a << b) | c
  kSum,            // carries go upwards only: add, sub, low product
  kSum24,          // ... of 24-bit factors and an addend
  kShlAdd,         // (a << b) + c
  kAddShl,         // (a + b) << c
  kExtract,        // bfe: field of a at b, c bits
  kExtractPacked,  // s_bfe: offset and width in b
  kPermute,        // v_perm_b32
  kAlignBit,
  kAlignByte,
  kSelect,   // c ? b : a
  kHalves,   // low half from a, high half from b, each as a whole
  kPackLow,  // low halves of a and b, bit for bit
  kPackLowHigh,
  kPackHigh,
  kByte0,
  kByte1,
  kByte2,
  kByte3,  // one byte of a decides all
  kSext8,
  kSext16,
  kPackedHalves,  // VOP3P of two 16-bit operations
  kPackedWords,   // VOP3P of two 32-bit operations
  kKeepHigh,
  kKeepLow,  // a 16-bit result in the low or high half, the other kept
};

// By mnemonic, without encoding suffix.
Rule rule_of(std::string_view mnemonic);

struct Bits {
  uint64_t undefined, value;
};

// Undefined bits of the result of `width` (32 or 64) bits.
uint64_t undefined_result(Rule rule, const Bits *source, int count, int width);

}  // namespace flydsl::emu::checks
