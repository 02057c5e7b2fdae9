// The instruction table. One row per mnemonic: its operands and its semantics.
//
// To add an instruction: one row in the table of its family (the file named after it), normally
// with the semantics written in the row as a lambda over one lane, and one vector in
// test/emulator/isa.
//
// Shape: destinations, '=', sources, one letter per operand in the order of the disassembler's
// text:
//   i 32 bits   l 64 bits, 32-bit literals zero-extended   L 64 bits, literals sign-extended
//   f fp32      d fp64      h fp16      b bf16      s 16-bit integer
//   p packed pair of fp16      B packed pair of bf16      P packed pair of fp32      m lane mask
//   (scalar pair)      o address operand, may be `off`      k (last) nothing is parsed: simm16 of
//   the encoding      x the text operand is skipped
//   * (last) any number of further operands
// '&' instead of '=': the first destination is read as well.
#pragma once

#include "emulator/isa/op.h"

namespace flydsl::emu {

enum RowFlag : uint32_t {
  kRowBranch = 1,    // simm16 is a branch distance in dwords
  kRowDs = 2,        // the encoding's 16-bit offset field goes to Op::imm
  kRowMemory = 4,    // may have offset:, sc0, nt, ...
  kRowIntClamp = 8,  // integer result: the semantics handle clamp themselves
  kRowPacked = 16,   // op_sel, op_sel_hi, neg_lo, neg_hi are handled
  kRowOpSel = 32,    // op_sel is handled
  kRowMfma = 64,
  kRowNoVop = 128,      // vector operands but not under EXEC, or moves only: modifiers are refused
  kRowSelect = 256,     // op_sel is the VOP3 field as it is, for the semantics to interpret
  kRowRoundEven = 512,  // rounds to nearest even with denormals whatever MODE says
};

struct Row {
  const char *name;  // without _e32, _e64, _dpp, _sdwa; nullptr ends a table
  const char *shape;
  Handler run;
  uint32_t flags = 0;
};

// One table per family and SIMD level.
// clang-format off: one family a line, so that additions do not meet
#define FLYDSL_EMU_FAMILIES(X) \
  X(salu)                      \
  X(control)                   \
  X(smem)                      \
  X(smem_write)                \
  X(valu_f32)                  \
  X(valu_f64)                  \
  X(valu_f16)                  \
  X(valu_int)                  \
  X(valu_int16)                \
  X(valu_int64)                \
  X(valu_byte)                 \
  X(valu_cmp)                  \
  X(convert)                   \
  X(convert_small)             \
  X(convert_scale)             \
  X(packed)                    \
  X(dot)                       \
  X(lane)                      \
  X(mfma)                      \
  X(mfma_f64)                  \
  X(mfma_scaled)               \
  X(smfmac)                    \
  X(lds)                       \
  X(lds_atomic)                \
  X(global)                    \
  X(atomic)                    \
  X(buffer)                    \
  X(buffer_atomic)             \
  X(buffer_format)
// clang-format on

#define FLYDSL_EMU_DECLARE(family) extern const Row rows_##family[];
namespace base {
FLYDSL_EMU_FAMILIES(FLYDSL_EMU_DECLARE)
}
namespace avx2 {
FLYDSL_EMU_FAMILIES(FLYDSL_EMU_DECLARE)
}
namespace avx512 {
FLYDSL_EMU_FAMILIES(FLYDSL_EMU_DECLARE)
}
#undef FLYDSL_EMU_DECLARE

}  // namespace flydsl::emu
