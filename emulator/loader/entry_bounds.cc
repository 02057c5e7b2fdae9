#include "emulator/loader/entry_bounds.h"

#include <map>
#include <unordered_map>
#include <utility>

#include "emulator/loader/byte_reader.h"
#include "llvm/BinaryFormat/Dwarf.h"

namespace flydsl::emu {
namespace {

using namespace llvm::dwarf;

// Nested scopes of real functions are tens deep.
constexpr uint32_t kDeepestTree = 1000;

struct Abbreviation {
  bool has_children = false;
  std::vector<uint16_t> forms;
};
using Table = std::unordered_map<uint64_t, Abbreviation>;

// False: damaged, or of a skeleton unit.
bool read_table(ByteReader in, Table *table) {
  while (const uint64_t code = in.uleb()) {
    if (code > UINT32_MAX) return false;  // LLVM keeps 32 bits
    const auto [place, added] = table->try_emplace(code);
    if (!added) return false;
    in.uleb();  // tag
    place->second.has_children = in.fixed(1) != 0;
    for (;;) {
      const uint64_t attribute = in.uleb(), form = in.uleb();
      if (attribute > UINT16_MAX || form > UINT16_MAX) return false;
      if (attribute == DW_AT_dwo_name || attribute == DW_AT_GNU_dwo_name) return false;
      if (form == DW_FORM_implicit_const) in.uleb();
      if (!in.ok()) return false;
      if (attribute == 0 && form == 0) break;
      place->second.forms.push_back(static_cast<uint16_t>(form));
    }
  }
  return in.ok();
}

void skip_form(ByteReader &in, unsigned form, unsigned version, unsigned offset_bytes) {
  switch (form) {
    case DW_FORM_flag_present:
    case DW_FORM_implicit_const:
      return;
    case DW_FORM_data1:
    case DW_FORM_flag:
    case DW_FORM_ref1:
    case DW_FORM_strx1:
    case DW_FORM_addrx1:
      return in.skip(1);
    case DW_FORM_data2:
    case DW_FORM_ref2:
    case DW_FORM_strx2:
    case DW_FORM_addrx2:
      return in.skip(2);
    case DW_FORM_strx3:
    case DW_FORM_addrx3:
      return in.skip(3);
    case DW_FORM_data4:
    case DW_FORM_ref4:
    case DW_FORM_strx4:
    case DW_FORM_addrx4:
      return in.skip(4);
    case DW_FORM_addr:
    case DW_FORM_data8:
    case DW_FORM_ref8:
    case DW_FORM_ref_sig8:
      return in.skip(8);
    case DW_FORM_data16:
      return in.skip(16);
    case DW_FORM_strp:
    case DW_FORM_line_strp:
    case DW_FORM_sec_offset:
      return in.skip(offset_bytes);
    case DW_FORM_ref_addr:
      return in.skip(version == 2 ? 8 : offset_bytes);
    case DW_FORM_sdata:
    case DW_FORM_udata:
    case DW_FORM_ref_udata:
    case DW_FORM_strx:
    case DW_FORM_addrx:
    case DW_FORM_loclistx:
    case DW_FORM_rnglistx:
      in.uleb();
      return;
    case DW_FORM_string:
      return in.text();
    case DW_FORM_block1:
      return in.skip(in.fixed(1));
    case DW_FORM_block2:
      return in.skip(in.fixed(2));
    case DW_FORM_block4:
      return in.skip(in.fixed(4));
    case DW_FORM_block:
    case DW_FORM_exprloc:
      return in.skip(in.uleb());
    default:
      return in.fail();
  }
}

bool entries_of(ByteReader &unit, const Table &table, unsigned version, unsigned offset_bytes) {
  uint32_t depth = 0;
  while (unit.more()) {
    const uint64_t code = unit.uleb();
    if (code == 0) {
      if (depth <= 1) break;
      --depth;
      continue;
    }
    const auto found = table.find(code);
    if (found == table.end()) return false;
    for (const uint16_t form : found->second.forms) skip_form(unit, form, version, offset_bytes);
    depth += found->second.has_children;
    if (depth > kDeepestTree) return false;
    if (depth == 0) break;
  }
  return unit.ok();
}

}  // namespace

bool entries_are_bounded(const std::vector<uint8_t> &info,
                         const std::vector<uint8_t> &abbreviations) {
  std::map<uint64_t, Table> tables;
  ByteReader units(info);
  while (units.more()) {
    unsigned offset_bytes = 4;
    uint64_t length = units.fixed(4);
    if (length == DW_LENGTH_DWARF64) length = units.fixed(offset_bytes = 8);
    ByteReader unit = units.part(length);
    const auto version = static_cast<unsigned>(unit.fixed(2));
    if (version < 2 || version > 5) return false;
    uint64_t table_at = 0, address_bytes = 0;
    if (version == 5) {
      const uint64_t type = unit.fixed(1);
      if (type != DW_UT_compile && type != DW_UT_partial && type != DW_UT_type) return false;
      address_bytes = unit.fixed(1);
      table_at = unit.fixed(offset_bytes);
      if (type == DW_UT_type) unit.skip(8 + offset_bytes);
    } else {
      table_at = unit.fixed(offset_bytes);
      address_bytes = unit.fixed(1);
    }
    if (!unit.ok() || address_bytes != 8 || table_at >= abbreviations.size()) return false;
    const auto [table, added] = tables.try_emplace(table_at);
    ByteReader at(abbreviations);
    at.skip(table_at);
    if (added && !read_table(at, &table->second)) return false;
    if (!entries_of(unit, table->second, version, offset_bytes)) return false;
  }
  return units.ok();
}

}  // namespace flydsl::emu
