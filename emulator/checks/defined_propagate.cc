// Compiled with a SIMD level of its own name only to share the decoding of DPP and SDWA with the
// semantics.
#include <cstring>

#include "emulator/checks/defined_rules.h"
#include "emulator/checks/defined_state.h"
#include "emulator/isa/lanes.h"

namespace flydsl::emu::checks {
namespace {

using namespace FLYDSL_EMU_LEVEL;
using std::string_view;

bool is_register(const Operand &o) {
  return o.kind == Kind::kVector || o.kind == Kind::kScalar;
}
uint32_t number_of(const Operand &o) {
  return o.kind == Kind::kVector ? o.index : kFirstScalar + o.index;
}
bool contains(string_view s, string_view part) {
  return s.find(part) != string_view::npos;
}
bool starts(string_view s, string_view with) {
  return s.substr(0, with.size()) == with;
}

class Propagation {
 public:
  Propagation(RegisterShadow &shadow, Wave &wave, const Op &op, const Instruction &i)
      : shadow_(shadow), wave_(wave), op_(op), i_(i), exec_(exec_of(wave)) {}

  void scalar();
  void vector();
  void matrix();
  void crossbar();  // DS instructions without memory

 private:
  Bits word(int n, int word, int lane) const;
  Bits source(int n, int lane) const;
  Bits packed_half(int n, int lane, int half) const;
  uint64_t lane_result(Rule rule, int lane) const;
  void write_vector(int n, const uint64_t *undefined, uint64_t mask);
  void write_scalar(int n, uint64_t undefined);

  RegisterShadow &shadow_;
  Wave &wave_;
  const Op &op_;
  const Instruction &i_;
  uint64_t exec_;
};

// Words `word` of operand n as it stands in its register.
Bits Propagation::word(int n, int word, int lane) const {
  const Operand &o = op_.o[n];
  if (is_register(o)) {
    const uint32_t r = number_of(o) + uint32_t(word);
    const uint32_t value = o.kind == Kind::kVector ? wave_.v[r * 64 + uint32_t(lane)]
                                                   : wave_.s[o.index + uint32_t(word)];
    return {shadow_.word(r, lane), value};
  }
  if (o.kind == Kind::kConstant)
    return {0, wave_.base[1][(o.index + uint32_t(word)) * 64 + uint32_t(lane)]};
  if (o.kind == Kind::kSpecial && Special(o.index) == Special::kScc)
    return {word ? 0u : shadow_.scalars[128], wave_.scc};
  return {0, 0};
}

// Operand n as a number of its type, after DPP, SDWA and op_sel.
Bits Propagation::source(int n, int lane) const {
  const Operand &o = op_.o[n];
  const int which = n - op_.first_source;
  int from = lane;
  if ((op_.flags & kDpp) && which == 0) {
    from = dpp_source(op_.control >> 8 & 0x1ff, lane);
    if (from < 0 || !(exec_ >> from & 1)) return {0, 0};
  }
  Bits b = word(n, 0, from);
  const bool mask = o.type == 'm';
  if (is_wide(o.type) && !mask) {
    const Bits high = word(n, 1, from);
    b.undefined |= high.undefined << 32;
    b.value |= high.value << 32;
  }
  if (mask) {
    const Bits high = word(n, 1, from);
    const Bits both = {b.undefined | high.undefined << 32, b.value | high.value << 32};
    return {both.undefined >> lane & 1, both.value >> lane & 1};
  }
  if ((op_.flags & kSdwa) && which < 2) {
    const uint32_t sel = which == 0 ? op_.control >> 16 & 7 : op_.control >> 24 & 7;
    if (sel != 6) {
      const bool sext = o.mods & kSext;
      b.undefined = sdwa_select(uint32_t(b.undefined), sel, sext);
      b.value = sdwa_select(uint32_t(b.value), sel, sext);
    }
  }
  if (o.type == 'h' || o.type == 'b') {
    if ((op_.flags & kOpSel) && (op_.op_sel >> which & 1)) b = {b.undefined >> 16, b.value >> 16};
    b.undefined &= 0xffff;
  }
  return b;
}

Bits Propagation::packed_half(int n, int lane, int half) const {
  const int which = n - op_.first_source;
  const uint32_t select = (half ? op_.op_sel_hi : op_.op_sel) >> which & 1;
  const Bits b = word(n, 0, lane);
  return {b.undefined >> (16 * select) & 0xffff, b.value >> (16 * select) & 0xffff};
}

// Undefined bits of the vector result in one lane.
uint64_t Propagation::lane_result(Rule rule, int lane) const {
  const bool accumulates = i_.read_count && i_.reads[0].operand == 0 && op_.first_source;
  if (rule == Rule::kPackedHalves || rule == Rule::kPackedWords) {
    uint64_t result = 0;
    for (int half = 0; half < 2; ++half) {
      uint64_t u = 0;
      for (int n = op_.first_source; n < op_.operands; ++n) {
        if (rule == Rule::kPackedHalves) {
          u |= packed_half(n, lane, half).undefined;
        } else if (!contains(i_.mnemonic, "mov") || n - op_.first_source == half) {
          const int which = n - op_.first_source;
          const bool move = contains(i_.mnemonic, "mov");
          const uint32_t select = (half && !move ? op_.op_sel_hi : op_.op_sel) >> which & 1;
          u |= word(n, int(select), lane).undefined;
        }
      }
      if (accumulates) u |= word(0, 0, lane).undefined >> (16 * half) & 0xffff;
      if (u)
        result |= rule == Rule::kPackedHalves ? uint64_t(0xffff) << (16 * half)
                                              : uint64_t(0xffffffff) << (32 * half);
    }
    return result;
  }
  Bits s[7];
  int count = 0;
  for (int n = op_.first_source; n < op_.operands; ++n) s[count++] = source(n, lane);
  if (accumulates) s[count++] = word(0, 0, lane);
  if (starts(i_.mnemonic, "v_div_fmas"))
    s[count++] = {(shadow_.scalars[kVcc + (lane >> 5)] >> (lane & 31)) & 1u, 0};
  const bool wide = is_wide(op_.o[0].type) && op_.o[0].type != 'm';
  const uint64_t u = undefined_result(rule, s, count, wide ? 64 : 32);
  if (rule == Rule::kKeepHigh || rule == Rule::kKeepLow) {
    const uint64_t old = word(0, 0, lane).undefined;
    return rule == Rule::kKeepHigh ? (u & 0xffff) | (old & 0xffff0000)
                                   : (u & 0xffff0000) | (old & 0xffff);
  }
  if (op_.o[0].type == 'h' || op_.o[0].type == 'b') {
    const uint64_t half = u ? 0xffff : 0;
    if (!(op_.flags & kOpSel)) return half;
    const uint64_t old = word(0, 0, lane).undefined;
    const bool high = op_.op_sel >> (op_.operands - op_.first_source) & 1;
    return high ? half << 16 | (old & 0xffff) : (old & 0xffff0000) | half;
  }
  if (op_.flags & kSdwa) {
    const uint32_t sel = op_.control >> 8 & 7, unused = op_.control >> 11 & 3;
    if (sel != 6) {
      const uint32_t shift = sel < 4 ? 8 * sel : 16 * (sel - 4), bits = sel < 4 ? 8 : 16;
      const uint64_t field = ((uint64_t(1) << bits) - 1) << shift;
      return (u << shift & field) | (unused == 2 ? word(0, 0, lane).undefined & ~field : 0);
    }
  }
  return u;
}

void Propagation::write_vector(int n, const uint64_t *undefined, uint64_t mask) {
  const Operand &o = op_.o[n];
  for (uint32_t w = 0; w < o.words; ++w) {
    uint32_t row[64];
    for (int lane = 0; lane < 64; ++lane)
      row[lane] = w < 2 ? uint32_t(undefined[lane] >> (32 * w)) : undefined[lane] ? ~0u : 0;
    shadow_.set_row(number_of(o) + w, row, mask);
  }
}
void Propagation::write_scalar(int n, uint64_t undefined) {
  const Operand &o = op_.o[n];
  for (uint32_t w = 0; w < o.words; ++w)
    shadow_.set_scalar(number_of(o) + w, w < 2       ? uint32_t(undefined >> (32 * w))
                                         : undefined ? ~0u
                                                     : 0);
}

void Propagation::vector() {
  const string_view m = i_.mnemonic;
  if (m == "v_readlane_b32" || m == "v_readfirstlane_b32") {
    int lane = exec_ ? __builtin_ctzll(exec_) : 0;
    if (m == "v_readlane_b32") {
      const Bits which = word(2, 0, 0);
      if (which.undefined & 63) return write_scalar(0, ~0u);
      lane = int(which.value & 63);
    }
    return write_scalar(0, word(1, 0, lane).undefined);
  }
  if (m == "v_writelane_b32") {
    const Bits which = word(2, 0, 0);
    uint64_t u[64];
    for (uint64_t &x : u) x = word(1, 0, 0).undefined;
    return write_vector(0, u, uint64_t(1) << (which.value & 63));
  }
  if (starts(m, "v_permlane") && contains(m, "swap")) {
    const int row = contains(m, "32") ? 32 : 16;
    uint32_t d[64], s[64];
    std::memcpy(d, shadow_.row(op_.o[0].index), sizeof d);
    std::memcpy(s, shadow_.row(op_.o[1].index), sizeof s);
    for (int pair = 0; pair < 64; pair += 2 * row)
      for (int k = 0; k < row; ++k) {
        const uint32_t from_s = s[pair + k], from_d = d[pair + k + row];
        if (exec_ >> (pair + k + row) & 1) d[pair + k + row] = from_s;
        if (exec_ >> (pair + k) & 1) s[pair + k] = from_d;
      }
    shadow_.set_row(op_.o[0].index, d, ~uint64_t(0));
    shadow_.set_row(op_.o[1].index, s, ~uint64_t(0));
    return;
  }
  if (m == "v_swap_b32") {
    uint64_t d[64], s[64];
    for (int lane = 0; lane < 64; ++lane) {
      d[lane] = word(0, 0, lane).undefined;
      s[lane] = word(1, 0, lane).undefined;
    }
    write_vector(0, s, exec_);
    return write_vector(1, d, exec_);
  }
  const Rule rule = rule_of(m);
  uint64_t u[64], flags = 0;
  uint64_t mask = exec_;
  if (op_.flags & kDpp) mask &= dpp_write_mask(wave_, op_);
  for (int lane = 0; lane < 64; ++lane) {
    u[lane] = exec_ >> lane & 1 ? lane_result(rule, lane) : 0;
    flags |= uint64_t(u[lane] != 0) << lane;
  }
  for (int n = 0; n < op_.first_source; ++n)
    if (op_.o[n].kind == Kind::kVector)
      write_vector(n, u, mask);
    else if (op_.o[n].kind == Kind::kScalar)
      write_scalar(n, flags);  // a mask: one bit a lane
  if (starts(m, "v_cmpx"))
    for (uint32_t w = 0; w < 2; ++w)
      shadow_.set_scalar(kFirstScalar + kExec + w, uint32_t(flags >> (32 * w)));
}

void Propagation::scalar() {
  const string_view m = i_.mnemonic;
  Bits s[7];
  int count = 0;
  uint64_t all = 0;
  for (int n = op_.first_source; n < op_.operands; ++n) {
    Bits b = word(n, 0, 0);
    if (is_wide(op_.o[n].type)) {
      const Bits high = word(n, 1, 0);
      b = {b.undefined | high.undefined << 32, b.value | high.value << 32};
    }
    all |= b.undefined;
    s[count++] = b;
  }
  const bool wide = op_.first_source && is_wide(op_.o[0].type);
  const bool reads_scc = i_.read_count && i_.reads[i_.read_count - 1].first == kSccRegister;
  const uint64_t scc = reads_scc ? shadow_.scalars[128] : 0;
  const bool destination_read =
      i_.read_count && op_.first_source && i_.reads[0].operand == 0 && op_.operands;
  if (destination_read) {
    s[count] = word(0, 0, 0);
    all |= s[count++].undefined;
  }
  uint64_t u;
  if (starts(m, "s_cselect")) {
    u = scc ? ~uint64_t(0) : s[wave_.scc ? 0 : 1].undefined;
  } else if (starts(m, "s_cmov")) {
    if (!scc && !wave_.scc) return;
    u = scc ? ~uint64_t(0) : count ? s[0].undefined : 0;
  } else {
    if (scc) s[count++] = {1, wave_.scc};
    u = undefined_result(rule_of(m), s, count, wide ? 64 : 32);
  }
  const bool saves = contains(m, "saveexec") || contains(m, "wrexec");
  if (saves) {
    // The saved mask is EXEC, which is defined; the new one holds the source's undefined bits.
    const uint64_t exec_u = contains(m, "and") ? all & exec_ : all;
    for (uint32_t w = 0; w < 2; ++w)
      shadow_.set_scalar(kFirstScalar + kExec + w, uint32_t(exec_u >> (32 * w)));
    u = contains(m, "wrexec") ? exec_u : 0;
    all = exec_u;
  }
  if (!wide) u &= 0xffffffff;
  if (op_.first_source) write_scalar(0, u);
  for (int n = 0; n < i_.write_count; ++n)
    if (i_.writes[n].first == kSccRegister)
      shadow_.set_scalar(kSccRegister, (op_.first_source && !saves ? u : all | scc) ? 1 : 0);
}

// D[i][j] is undefined where row i of A, column j of B or C[i][j] is; of forms with one block. Rows
// and columns of others are not told apart.
void Propagation::matrix() {
  const string_view m = i_.mnemonic;
  const int size = contains(m, "_32x32x") ? 32 : contains(m, "_16x16x") ? 16 : 0;
  const bool blocks = contains(m, "b_") || contains(m, "_4x4x") || !size || contains(m, "f64");
  bool a[32] = {}, b[32] = {}, any = false;
  for (int n = 1; n < op_.operands && n < 6; ++n) {
    if (n == 3) continue;
    const Operand &o = op_.o[n];
    if (!is_register(o)) continue;
    for (uint32_t w = 0; w < o.words; ++w)
      for (int lane = 0; lane < 64; ++lane)
        if (shadow_.word(number_of(o) + w, lane)) {
          any = true;
          if (size) (n == 1 || n == 4 ? a : b)[lane % size] = true;
        }
  }
  const Operand &d = op_.o[0];
  uint32_t rows[32][64];
  for (uint32_t r = 0; r < d.words && r < 32; ++r)
    for (int lane = 0; lane < 64; ++lane) {
      bool u = op_.operands > 3 && is_register(op_.o[3]) &&
               shadow_.word(number_of(op_.o[3]) + (r < op_.o[3].words ? r : 0), lane);
      if (blocks) {
        u |= any;
      } else {
        const int row =
            size == 32 ? int(8 * (r / 4) + r % 4) + 4 * (lane / 32) : 4 * (lane / 16) + int(r % 4);
        u |= a[row % size] || b[lane % size];
      }
      rows[r][lane] = u ? ~0u : 0;
    }
  for (uint32_t r = 0; r < d.words && r < 32; ++r)
    shadow_.set_row(number_of(d) + r, rows[r], ~uint64_t(0));
}

void Propagation::crossbar() {
  const string_view m = i_.mnemonic;
  if (!op_.first_source) return;
  uint64_t u[64] = {};
  const int data = m == "ds_swizzle_b32" ? 1 : 2;
  uint64_t any = 0;
  for (int lane = 0; lane < 64; ++lane)
    if (exec_ >> lane & 1)
      for (int n = 1; n < op_.operands; ++n) any |= word(n, 0, lane).undefined;
  for (int lane = 0; lane < 64; ++lane) {
    int from = -1;
    if (m == "ds_bpermute_b32") {
      const Bits at = word(1, 0, lane);
      if (at.undefined & 0xff) {
        u[lane] = ~0u;
        continue;
      }
      from = int((uint32_t(at.value) + uint32_t(op_.imm)) >> 2 & 63);
    } else if (m == "ds_swizzle_b32" && (op_.imm & 0xffff) < 0xc000) {
      const uint32_t p = uint32_t(op_.imm) & 0xffff;
      from = p & 0x8000 ? (lane & ~3) | int(p >> (2 * (lane & 3)) & 3)
                        : (lane & 32) | int(((uint32_t(lane & 31) & (p & 31)) | (p >> 5 & 31)) ^
                                            (p >> 10 & 31));
    }
    if (from >= 0)
      u[lane] = exec_ >> from & 1 ? word(data, 0, from).undefined : 0;
    else
      u[lane] = any ? ~0u : 0;
  }
  write_vector(0, u, exec_);
}

}  // namespace

void propagate(RegisterShadow &shadow, Wave &wave, const Op &op, const Instruction &i) {
  Propagation p(shadow, wave, op, i);
  switch (i.family) {
    case Family::kVector:
      return p.vector();
    case Family::kMatrix:
      return p.matrix();
    case Family::kLds:
      return p.crossbar();
    default:
      return p.scalar();
  }
}

}  // namespace flydsl::emu::checks
