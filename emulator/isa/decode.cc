#include "emulator/isa/decode.h"

#include <cstdlib>
#include <cstring>
#include <string_view>

#include "emulator/isa/text.h"

namespace flydsl::emu {
namespace {

bool ends_with(std::string_view s, std::string_view suffix) {
  return s.size() >= suffix.size() && s.substr(s.size() - suffix.size()) == suffix;
}

// Removes encoding suffixes and notes those that change the meaning.
std::string_view bare(std::string_view mnemonic, uint16_t &flags) {
  if (ends_with(mnemonic, "_dpp")) {
    flags |= kDpp;
    mnemonic.remove_suffix(4);
  }
  if (ends_with(mnemonic, "_sdwa")) {
    flags |= kSdwa;
    mnemonic.remove_suffix(5);
  }
  if (ends_with(mnemonic, "_e32") || ends_with(mnemonic, "_e64")) mnemonic.remove_suffix(4);
  return mnemonic;
}

// gfx90a and gfx942 spell a copy to LDS as a load with the modifier lds.
std::string row_name(std::string_view mnemonic, const Line &line) {
  for (const std::string_view space : {"global_load_", "scratch_load_"})
    if (mnemonic.substr(0, space.size()) == space)
      for (const auto &modifier : line.modifiers)
        if (modifier.first == "lds")
          return std::string(space) + "lds_" + std::string(mnemonic.substr(space.size()));
  return std::string(mnemonic);
}

// "[1,0,1]" -> bits 0, 1, 2
bool bit_list(std::string_view text, uint8_t &bits) {
  bits = 0;
  int n = 0;
  for (const char c : text) {
    if (c == '0' || c == '1')
      bits |= uint8_t((c - '0') << n++);
    else if (c != '[' && c != ']' && c != ',')
      return false;
  }
  return true;
}

bool is_one_of(std::string_view s, std::initializer_list<const char *> names) {
  for (const char *name : names)
    if (s == name) return true;
  return false;
}

// False: not understood.
bool apply_modifier(std::string_view name, std::string_view value, const Row &row, Op &op,
                    std::string &refusal) {
  int64_t number = 0;
  const bool numeric = parse_integer(value, number);
  auto unsupported = [&] { refusal = "modifier " + std::string(name) + " is not emulated here"; };
  if (op.flags & (kDpp | kSdwa)) {
    // Their fields are taken from the encoding.
    if (is_one_of(name, {"quad_perm", "row_shl", "row_shr", "row_ror", "row_mirror",
                         "row_half_mirror", "row_bcast", "row_newbcast", "wave_shl", "wave_rol",
                         "wave_shr", "wave_ror", "row_mask", "bank_mask", "bound_ctrl", "dst_sel",
                         "dst_unused", "src0_sel", "src1_sel"}))
      return true;
  }
  if (name == "clamp") {
    op.flags |= kClamp;
  } else if (name == "mul" && numeric) {
    op.omod = number == 2 ? 1 : 2;
  } else if (name == "div") {
    op.omod = 3;
  } else if (name == "op_sel") {
    if (row.flags & kRowSelect) return true;
    if (!(row.flags & (kRowPacked | kRowOpSel)) || !bit_list(value, op.op_sel)) unsupported();
    if (row.flags & kRowOpSel) op.flags |= kOpSel;
  } else if (name == "op_sel_hi") {
    if (!(row.flags & kRowPacked) || !bit_list(value, op.op_sel_hi)) unsupported();
  } else if (name == "neg_lo") {
    if (!(row.flags & kRowPacked) || !bit_list(value, op.neg_lo)) unsupported();
  } else if (name == "neg_hi") {
    if (!(row.flags & kRowPacked) || !bit_list(value, op.neg_hi)) unsupported();
  } else if (name == "neg") {  // of fp64 matrix operands
    if (!(row.flags & kRowMfma) || !std::strstr(row.name, "_f64") || !bit_list(value, op.neg_lo))
      unsupported();
  } else if (is_one_of(name, {"cbsz", "abid", "blgp"}) && numeric) {
    if (!(row.flags & kRowMfma) || std::strstr(row.name, "_f64")) unsupported();
    (name == "cbsz" ? op.cbsz : name == "abid" ? op.abid : op.blgp) = uint8_t(number);
  } else if (name == "bitop3" && numeric) {
    op.imm = int32_t(number);
  } else if (row.flags & kRowDs) {
    if (name != "offset" && name != "offset0" && name != "offset1")
      unsupported();  // value: from the encoding
  } else if (row.flags & kRowMemory) {
    if (name == "offset" && numeric)
      op.imm = int32_t(number);
    else if (name == "sc0" || name == "glc")
      op.flags |= kGlc;
    else if (name == "lds")
      op.flags |= kLdsCopy;
    else if (name == "offen")
      op.flags |= kOffen;
    else if (name == "idxen")
      op.flags |= kIdxen;
    else if (!is_one_of(name, {"sc1", "nt", "slc", "scc", "format"}))
      unsupported();
  } else {
    unsupported();
  }
  return refusal.empty();
}

// Packed integers: v_pk_add_u16, v_pk_lshlrev_b16, v_pk_mov_b32.
bool packed_integer(std::string_view name) {
  return name.substr(0, 5) == "v_pk_" && name[name.rfind('_') + 1] != 'f';
}

FpClass class_of(const char *shape, bool integer_family) {
  if (integer_family) return FpClass::kNone;
  if (std::strchr(shape, 'd')) return FpClass::kF64;
  if (*shape == 'h' || std::strchr(shape, 'p')) return FpClass::kF16;
  if (std::strpbrk(shape, "fP")) return FpClass::kF32;
  if (std::strchr(shape, 'h')) return FpClass::kF16;
  return FpClass::kDefault;
}

bool float_type(char t) {
  return t == 'f' || t == 'h' || t == 'd' || t == 'P';
}

// Consistency of what was parsed with what the semantics take.
std::string check(const Row &row, const Op &op) {
  for (int n = 0; n < op.operands; ++n) {
    const Operand &o = op.o[n];
    if (o.mods & (kNeg | kAbs) && !float_type(o.type) && o.type != 'b')
      return "sign modifier on an operand that is not floating point";
    if (o.mods && (row.flags & kRowMfma)) return "sign modifier on a matrix operand";
  }
  const char to = op.first_source ? op.o[0].type : 0;
  const bool packed = row.flags & kRowPacked;
  // Of a comparison, clamp only says which NaNs raise exceptions.
  if (op.flags & kClamp && !float_type(to) && to != 'm' && !packed && !(row.flags & kRowIntClamp))
    return "modifier clamp is not emulated here";
  if (op.omod && !float_type(to)) return "output modifier on a result that is not floating point";
  if ((op.flags & (kDpp | kSdwa)) && (row.flags & kRowNoVop))
    return "DPP or SDWA form is not emulated";
  return {};
}

}  // namespace

Architecture architecture_of(const std::string &target) {
  const std::string_view processor = std::string_view(target).substr(0, target.find(':'));
  if (processor == "gfx90a") return Architecture::kGfx90a;
  if (processor == "gfx940" || processor == "gfx941" || processor == "gfx942")
    return Architecture::kGfx942;
  return Architecture::kGfx950;
}

Decoded decode_instruction(Level level, Architecture architecture, const std::string &text,
                           const uint8_t *bytes, size_t size, ConstantPool &pool) {
  Decoded d;
  Op &op = d.op;
  op.architecture = architecture;
  const Line line = split_line(text);
  const std::string_view mnemonic = bare(line.mnemonic, op.flags);
  const Found found = find_row(level, row_name(mnemonic, line));
  if (!found.row) {
    d.refusal = "this instruction is not emulated";
    return d;
  }
  const Row &row = *found.row;
  op.run = row.run;
  op.fp = row.flags & (kRowMfma | kRowRoundEven)
              ? FpClass::kDefault
              : class_of(row.shape, found.integer_family || packed_integer(row.name));
  uint32_t words[2] = {};
  std::memcpy(words, bytes, size < 8 ? size : 8);
  op.control = words[1];
  op.imm = 0;
  if (mnemonic.substr(0, 2) == "v_") op.flags |= kVector;
  if (mnemonic.substr(0, 8) == "tbuffer_") {
    op.cbsz = uint8_t(words[0] >> 19 & 15);  // data format
    op.abid = uint8_t(words[0] >> 23 & 7);   // number format
  }
  // Bits 11:8 of the first dword: the second operand of s_set_gpr_idx_on.
  if (mnemonic == "s_set_gpr_idx_on") op.imm = int32_t(words[0] >> 8 & 15);
  // The text leaves out a default op_sel_hi: all ones (Op), but 0 for v_fma_mix*.
  if (mnemonic.substr(0, 9) == "v_fma_mix") op.op_sel_hi = 0;
  // OPSEL of the VOP3 encoding, bits 14:11.
  if ((row.flags & kRowSelect) && words[0] >> 26 == 0x34) op.op_sel = words[0] >> 11 & 15;
  if (row.flags & kRowMfma) {
    const char *model = std::getenv("FLYDSL_EMU_MFMA");
    const std::string_view name = model ? model : "fma";
    if (name == "measured") op.flags |= kMeasured;
    if (name != "measured" && name != "fma") d.refusal = "FLYDSL_EMU_MFMA must be fma or measured";
  }
  if (row.flags & kRowDs) op.imm = int32_t(words[0] & 0xffff);
  if ((op.flags & kDpp) && (words[1] >> 18 & 1)) d.refusal = "DPP fetch-inactive is not emulated";

  size_t next = 0;
  const char *shape = row.shape;
  bool simm16 = false, open_ended = false;
  for (; *shape; ++shape) {
    const char c = *shape;
    if (c == '=' || c == '&') {
      op.first_source = op.operands;
    } else if (c == 'k') {
      op.imm = int16_t(words[0] & 0xffff);
      simm16 = true;
    } else if (c == 'x') {
      ++next;
    } else if (c == '*') {
      open_ended = true;
      for (; next < line.operands.size() && op.operands < 6; ++next)
        if (!parse_operand(line.operands[next], 'i', pool, op.o[op.operands++], d.refusal))
          return d;
    } else {
      if (next >= line.operands.size()) {
        d.refusal = "fewer operands than expected";
        return d;
      }
      if (!parse_operand(line.operands[next++], c, pool, op.o[op.operands++], d.refusal)) return d;
    }
  }
  if (!simm16 && !open_ended && next != line.operands.size()) {
    d.refusal = "more operands than expected";
    return d;
  }
  if (!simm16)
    for (const auto &[name, value] : line.modifiers)
      if (!apply_modifier(name, value, row, op, d.refusal)) return d;
  d.branch = row.flags & kRowBranch;
  // Three-source fp16 and 16-bit integer operations of gfx9 keep the other half of the register
  // (LLVM SIInstrInfo, the _gfx9 opcodes), as every operation does whose op_sel was written out.
  const char to = op.first_source ? op.o[0].type : 0;
  const bool half = to == 'h' || to == 's';
  const bool gfx9_form =
      op.operands - op.first_source == 3 || is_one_of(row.name, {"v_add_i16", "v_sub_i16"});
  if (half && gfx9_form && (row.flags & kRowOpSel)) op.flags |= kOpSel;
  if ((op.flags & (kSdwa | kDpp)) || op.omod || ((op.flags & kClamp) && float_type(to)) ||
      ((op.flags & kOpSel) && half))
    op.flags |= kWriteSpecial;
  if (d.refusal.empty()) d.refusal = check(row, op);
  return d;
}

}  // namespace flydsl::emu
