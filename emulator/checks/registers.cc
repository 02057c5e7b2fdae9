// Which registers an instruction reads and writes: from the operands of its text, its shape in the
// instruction table, and a list of implicit ones.
#include <cstring>
#include <mutex>
#include <string>

#include "emulator/checks/instruction.h"
#include "emulator/isa/table.h"

namespace flydsl::emu::checks {
namespace {

using std::string_view;

bool starts(string_view s, string_view with) {
  return s.substr(0, with.size()) == with;
}
bool ends(string_view s, string_view with) {
  return s.size() >= with.size() && s.substr(s.size() - with.size()) == with;
}
bool contains(string_view s, string_view part) {
  return s.find(part) != string_view::npos;
}
bool starts_with_any(string_view s, std::initializer_list<const char *> prefixes) {
  for (const char *p : prefixes)
    if (starts(s, p)) return true;
  return false;
}

string_view bare_mnemonic(string_view text) {
  string_view m = text.substr(0, text.find(' '));
  for (const char *suffix : {"_dpp", "_sdwa", "_e32", "_e64"})
    if (ends(m, suffix)) m.remove_suffix(std::strlen(suffix));
  return m;
}

Family family_of(string_view m) {
  if (starts_with_any(m, {"v_mfma", "v_smfmac"})) return Family::kMatrix;
  if (starts(m, "v_")) return Family::kVector;
  if (starts(m, "ds_")) return Family::kLds;
  if (starts(m, "global_")) return Family::kGlobal;
  if (starts(m, "flat_")) return Family::kFlat;
  if (starts(m, "scratch_")) return Family::kScratch;
  if (starts_with_any(m, {"buffer_inv", "buffer_wb", "s_dcache", "s_icache"}))
    return Family::kCache;
  if (starts_with_any(m, {"buffer_", "tbuffer_"})) return Family::kBuffer;
  if (starts_with_any(
          m, {"s_load_", "s_buffer_load_", "s_scratch_load_", "s_memtime", "s_memrealtime"}))
    return Family::kScalarMemory;
  if (starts_with_any(m, {"s_branch", "s_cbranch", "s_setpc", "s_swappc", "s_call"}))
    return Family::kBranch;
  if (m == "s_waitcnt") return Family::kWait;
  if (m == "s_barrier") return Family::kBarrier;
  if (starts(m, "s_endpgm")) return Family::kEnd;
  if (starts(m, "s_sendmsg")) return Family::kMessage;
  if (starts(m, "s_")) return Family::kScalar;
  return Family::kOther;
}

// CDNA3 ISA, "SALU instructions": what leaves SCC alone.
bool writes_scc(string_view m, Family family) {
  if (family != Family::kScalar) return false;
  return !starts_with_any(
      m,
      {"s_mov",     "s_cmov",          "s_brev",         "s_ff",      "s_flbit",   "s_sext",
       "s_bitset",  "s_getpc",         "s_bitreplicate", "s_cselect", "s_mul",     "s_bfm",
       "s_pack",    "s_nop",           "s_sleep",        "s_setprio", "s_sethalt", "s_wakeup",
       "s_incperf", "s_decperf",       "s_ttrace",       "s_trap",    "s_getreg",  "s_setreg",
       "s_set_gpr", "s_inst_prefetch", "s_clause",       "s_rfe",     "s_version", "s_code_end"});
}
bool reads_scc(string_view m) {
  return starts_with_any(m, {"s_addc_", "s_subb_", "s_cselect", "s_cmov", "s_cbranch_scc"});
}
bool writes_exec(string_view m) {
  return starts(m, "v_cmpx") || contains(m, "saveexec") || contains(m, "wrexec");
}
bool reads_exec(string_view m, Family family) {
  return contains(m, "saveexec") || contains(m, "wrexec") || starts(m, "s_cbranch_exec") ||
         family == Family::kVector || family == Family::kLds || family == Family::kGlobal ||
         family == Family::kFlat || family == Family::kScratch || family == Family::kBuffer;
}
bool reads_m0(string_view m, uint16_t flags) {
  return (flags & kCopiesToLds) ||
         starts_with_any(m, {"s_movrel", "s_sendmsg", "ds_append", "ds_consume", "ds_gws"});
}
// Their destinations are sources as well, though the table's shape does not say so.
bool swaps(string_view m) {
  return starts(m, "v_swap") || (starts(m, "v_permlane") && ends(m, "_swap_b32"));
}

// Bytes that one lane moves with one address, from the type in the mnemonic.
uint32_t memory_bytes(string_view m, Family family) {
  if (family == Family::kLds) {
    string_view type = m;
    const size_t transposed = type.find("_tr_");
    if (transposed != string_view::npos) type = type.substr(0, transposed);
    while (ends(type, "_d16") || ends(type, "_hi")) type.remove_suffix(ends(type, "_hi") ? 3 : 4);
    if (contains(m, "_pk_")) return 4;
    const struct {
      const char *suffix;
      uint32_t bytes;
    } kSuffixes[] = {{"b128", 16}, {"b96", 12}, {"64", 8}, {"32", 4}, {"16", 2}, {"8", 1}};
    for (const auto &s : kSuffixes)
      if (ends(type, s.suffix)) return s.bytes;
    return 0;
  }
  if (contains(m, "_atomic_")) {
    if (ends(m, "_x2") || ends(m, "64")) return 8;
    return 4;
  }
  for (const char *small : {"ubyte", "sbyte", "_byte"})
    if (contains(m, small)) return 1;
  for (const char *small : {"ushort", "sshort", "_short"})
    if (contains(m, small)) return 2;
  if (contains(m, "dwordx16")) return 64;
  if (contains(m, "dwordx8")) return 32;
  if (contains(m, "dwordx4")) return 16;
  if (contains(m, "dwordx3")) return 12;
  if (contains(m, "dwordx2")) return 8;
  if (contains(m, "dword")) return 4;
  return starts(m, "s_mem") ? 8 : 0;
}

uint16_t memory_flags(string_view m, Family family, const Op &op) {
  uint16_t flags = 0;
  if (contains(m, "_d16_hi")) flags |= kHighHalf;
  switch (family) {
    case Family::kLds:
      if (starts_with_any(m, {"ds_bpermute", "ds_permute", "ds_swizzle", "ds_nop"})) return 0;
      if (starts(m, "ds_read")) flags |= kLoads;
      if (starts(m, "ds_write")) flags |= kStores;
      if (starts_with_any(m, {"ds_read2", "ds_write2"})) flags |= kTwoAddresses;
      if (contains(m, "st64")) flags |= kStride64;
      if (!(flags & (kLoads | kStores))) flags |= kAtomic;
      if ((flags & kAtomic) && op.first_source) flags |= kReturns;
      break;
    case Family::kGlobal:
    case Family::kFlat:
    case Family::kScratch:
    case Family::kBuffer:
      if (contains(m, "_load")) flags |= kLoads;
      if (contains(m, "_store")) flags |= kStores;
      if (contains(m, "_atomic")) flags |= kAtomic;
      if ((op.flags & kLdsCopy) || contains(m, "_load_lds")) flags |= kCopiesToLds;
      if ((flags & kAtomic) && (op.flags & kGlc)) flags |= kReturns;
      break;
    case Family::kScalarMemory:
      return kLoads;
    default:
      return 0;
  }
  if ((flags & kLoads) && ends(m, "_d16")) flags |= kLowHalf;
  return flags;
}

void add(Registers *list, uint8_t &count, uint32_t first, uint32_t number, int operand) {
  list[count++] = {uint16_t(first), uint8_t(number), int8_t(operand)};
}

// False when the operand is no register.
bool registers_of(const Operand &o, uint32_t &first, uint32_t &count) {
  count = o.words;
  if (o.kind == Kind::kVector) return first = o.index, true;
  if (o.kind == Kind::kScalar) return first = kFirstScalar + o.index, true;
  if (o.kind == Kind::kSpecial && Special(o.index) == Special::kScc)
    return first = kSccRegister, count = 1, true;
  return false;
}

// Operands before this one are destinations.
int destinations(const Instruction &i, const Op &op) {
  if (!i.is_vector_memory()) return op.first_source;
  if (i.has(kCopiesToLds) || i.has(kStores)) return 0;
  return i.has(kLoads | kReturns) ? 1 : 0;
}

void list_registers(Instruction &i, const Op &op, const char *shape) {
  const string_view m = i.mnemonic;
  const int to = destinations(i, op);
  const bool buffer_atomic = i.family == Family::kBuffer && i.has(kAtomic);
  const bool first_is_read = (shape && std::strchr(shape, '&')) || buffer_atomic;
  for (int n = 0; n < op.operands; ++n) {
    uint32_t first, count;
    if (!registers_of(op.o[n], first, count)) continue;
    if (n < to) add(i.writes, i.write_count, first, count, n);
    if (n >= to || (n == 0 && first_is_read) || swaps(m))
      add(i.reads, i.read_count, first, count, n);
  }
  if (reads_exec(m, i.family)) add(i.reads, i.read_count, kFirstScalar + kExec, 2, -1);
  if (writes_exec(m)) add(i.writes, i.write_count, kFirstScalar + kExec, 2, -1);
  if (starts_with_any(m, {"v_div_fmas", "s_cbranch_vcc"}))
    add(i.reads, i.read_count, kFirstScalar + kVcc, 2, -1);
  if (reads_scc(m)) add(i.reads, i.read_count, kSccRegister, 1, -1);
  if (writes_scc(m, i.family)) add(i.writes, i.write_count, kSccRegister, 1, -1);
  if (reads_m0(m, i.flags)) add(i.reads, i.read_count, kFirstScalar + kM0, 1, -1);
  if (starts_with_any(m, {"s_set_gpr_idx_on", "s_set_gpr_idx_idx", "s_set_gpr_idx_mode"}))
    add(i.writes, i.write_count, kFirstScalar + kM0, 1, -1);
}

}  // namespace

InstructionTable::InstructionTable(const Program &program) : instructions_(program.ops.size()) {
  for (uint32_t n = 0; n < program.ops.size(); ++n) {
    Instruction &i = instructions_[n];
    const Op &op = program.ops[n];
    const string_view all = program.text;
    i.mnemonic = bare_mnemonic(
        all.substr(program.text_begin[n], program.text_begin[n + 1] - program.text_begin[n]));
    if (program.refusals.count(n)) continue;  // stops when it is reached
    i.family = family_of(i.mnemonic);
    i.flags = memory_flags(i.mnemonic, i.family, op);
    if (i.flags & (kLoads | kStores | kAtomic)) i.bytes = memory_bytes(i.mnemonic, i.family);
    if (reads_exec(i.mnemonic, i.family)) i.flags |= kUnderExec;
    const Found found = find_row(host_level(), i.mnemonic);
    list_registers(i, op, found.row ? found.row->shape : nullptr);
  }
}

std::shared_ptr<const InstructionTable> instructions_of(const Program &program) {
  std::lock_guard<std::mutex> lock(program.table_mutex);
  if (!program.table) program.table = std::make_shared<InstructionTable>(program);
  return program.table;
}

Instruction with_operands_of(const Instruction &instruction, const Op &op, const Op &moved) {
  Instruction i = instruction;
  for (auto *list : {i.reads, i.writes})
    for (int n = 0; n < (list == i.reads ? i.read_count : i.write_count); ++n)
      if (list[n].operand >= 0)
        list[n].first =
            uint16_t(list[n].first + moved.o[list[n].operand].index - op.o[list[n].operand].index);
  return i;
}

std::string register_name(uint32_t r) {
  const auto numbered = [](const char *prefix, uint32_t n) {
    std::string name(prefix);
    name += std::to_string(n);
    return name;
  };
  if (r < 256) return numbered("v", r);
  if (r < kFirstScalar) return numbered("a", r - 256);
  if (r == kSccRegister) return "scc";
  r -= kFirstScalar;
  if (r == kM0) return "m0";
  if (r == kVcc) return "vcc_lo";
  if (r == kVcc + 1) return "vcc_hi";
  if (r == kExec) return "exec_lo";
  if (r == kExec + 1) return "exec_hi";
  if (r >= 108 && r < 124) return numbered("ttmp", r - 108);
  return numbered("s", r);
}

}  // namespace flydsl::emu::checks
