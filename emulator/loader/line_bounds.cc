#include "emulator/loader/line_bounds.h"

#include <array>

#include "emulator/loader/byte_reader.h"
#include "llvm/BinaryFormat/Dwarf.h"

namespace flydsl::emu {
namespace {

// The forms that DWARF 5 allows there; all take bytes.
void skip_form(ByteReader &in, uint64_t form, unsigned offset_bytes) {
  using namespace llvm::dwarf;
  switch (form) {
    case DW_FORM_string:
      return in.text();
    case DW_FORM_line_strp:
    case DW_FORM_strp:
    case DW_FORM_strp_sup:
      return in.skip(offset_bytes);
    case DW_FORM_udata:
    case DW_FORM_strx:
      in.uleb();
      return;
    case DW_FORM_data1:
    case DW_FORM_strx1:
      return in.skip(1);
    case DW_FORM_data2:
    case DW_FORM_strx2:
      return in.skip(2);
    case DW_FORM_strx3:
      return in.skip(3);
    case DW_FORM_data4:
    case DW_FORM_strx4:
      return in.skip(4);
    case DW_FORM_data8:
      return in.skip(8);
    case DW_FORM_data16:
      return in.skip(16);
    case DW_FORM_block:
      return in.skip(in.uleb());
    default:
      return in.fail();
  }
}

// One list: its entries' format, their number, they themselves.
void skip_entries(ByteReader &in, unsigned offset_bytes) {
  std::vector<uint64_t> forms(in.fixed(1));
  for (uint64_t &form : forms) {
    in.uleb();  // what the field is
    form = in.uleb();
  }
  const uint64_t count = in.uleb();
  if (count != 0 && forms.empty()) in.fail();
  for (uint64_t i = 0; i < count && in.ok(); ++i)
    for (const uint64_t form : forms) skip_form(in, form, offset_bytes);
}

// The opcodes of a line number program, as far as finding the next one goes.
void skip_program(ByteReader &in, uint64_t opcode_base,
                  const std::array<uint8_t, 256> &operand_counts) {
  using namespace llvm::dwarf;
  while (in.more()) {
    const uint64_t opcode = in.fixed(1);
    if (opcode == 0) {
      in.skip(in.uleb());
    } else if (opcode < opcode_base) {
      switch (opcode) {
        case DW_LNS_copy:
        case DW_LNS_negate_stmt:
        case DW_LNS_set_basic_block:
        case DW_LNS_const_add_pc:
        case DW_LNS_set_prologue_end:
        case DW_LNS_set_epilogue_begin:
          break;
        case DW_LNS_advance_pc:
        case DW_LNS_advance_line:
        case DW_LNS_set_file:
        case DW_LNS_set_column:
        case DW_LNS_set_isa:
          in.uleb();
          break;
        case DW_LNS_fixed_advance_pc:
          in.skip(2);
          break;
        default:
          for (unsigned n = 0; n < operand_counts[opcode]; ++n) in.uleb();
      }
    }
  }
}

}  // namespace

bool line_tables_are_bounded(const std::vector<uint8_t> &section) {
  ByteReader units(section);
  while (units.more()) {
    unsigned offset_bytes = 4;
    uint64_t length = units.fixed(4);
    if (length == llvm::dwarf::DW_LENGTH_DWARF64) length = units.fixed(offset_bytes = 8);
    ByteReader unit = units.part(length);
    const uint64_t version = unit.fixed(2);
    if (!unit.ok() || version < 2 || version > 5) return false;
    if (version == 5) unit.skip(2);  // sizes of addresses and segment selectors
    ByteReader header = unit.part(unit.fixed(offset_bytes));
    header.skip(version >= 4 ? 5 : 4);  // minimum_instruction_length to line_range
    const uint64_t opcode_base = header.fixed(1);
    std::array<uint8_t, 256> operand_counts = {};
    for (uint64_t opcode = 1; opcode < opcode_base; ++opcode)
      operand_counts[opcode] = uint8_t(header.fixed(1));
    if (version == 5) {
      skip_entries(header, offset_bytes);
      skip_entries(header, offset_bytes);
    }
    skip_program(unit, opcode_base, operand_counts);
    if (!header.ok() || !unit.ok()) return false;
  }
  return units.ok();
}

}  // namespace flydsl::emu
