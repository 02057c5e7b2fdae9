#include "emulator/checks/hazard_info.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "emulator/isa/operand.h"
#include "emulator/isa/text.h"

namespace flydsl::emu::checks {
namespace {

bool starts(std::string_view s, std::string_view prefix) {
  return s.substr(0, prefix.size()) == prefix;
}
bool ends(std::string_view s, std::string_view suffix) {
  return s.size() >= suffix.size() && s.substr(s.size() - suffix.size()) == suffix;
}
bool has(std::string_view s, std::string_view part) {
  return s.find(part) != std::string_view::npos;
}
bool starts_with_any(std::string_view s, std::initializer_list<const char *> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(), [&](const char *p) { return starts(s, p); });
}

struct Suffixes {
  bool dpp = false, sdwa = false;
};
std::string_view bare(std::string_view m, Suffixes &found) {
  auto take = [&](std::string_view suffix) {
    if (!ends(m, suffix)) return false;
    m.remove_suffix(suffix.size());
    return true;
  };
  found.dpp = take("_dpp");
  found.sdwa = take("_sdwa");
  if (!take("_e32")) take("_e64");
  return m;
}

uint32_t hash_of(std::string_view s) {
  uint32_t h = 2166136261u;
  for (const char c : s) h = (h ^ uint8_t(c)) * 16777619u;
  return h;
}

std::string_view modifier(const Line &line, std::string_view name) {
  for (const auto &[n, value] : line.modifiers)
    if (n == name) return value.empty() ? n : value;
  return {};
}

// "v[0:3]", "a5", "s[4:5]", "vcc", "m0", "exec", "-v1", "|v2|", "abs(v1)": the registers named.
Units units_of(std::string_view text) {
  ConstantPool pool;
  Operand o;
  std::string error;
  if (!parse_operand(text, 'o', pool, o, error)) return {};
  if (o.kind == Kind::kVector) return {uint16_t(o.index), uint16_t(o.words)};
  if (o.kind == Kind::kScalar) return {uint16_t(kFirstScalar + o.index), uint16_t(o.words)};
  return {};
}

// Passes (4 clocks each) of matrix instructions: LLVM SISchedule.td, the InstRW lines of the
// SIDPFull (gfx90a), GFX940 and GFX950 models. `m`: bare mnemonic.
uint8_t passes_of(std::string_view m, const Line &line, uint8_t arch) {
  if (starts(m, "v_mfma_f64_4x4x")) return 4;
  if (starts(m, "v_mfma_f64_16x16x")) return arch == kGfx950 ? 16 : 8;
  if (starts(m, "v_smfmac")) return has(m, "_16x16x") ? 4 : 8;
  if (has(m, "_4x4x")) return 2;
  const bool wide = has(m, "_32x32x");
  if (arch == kGfx90a) return wide ? 16 : 8;
  if (has(m, "f8f6f4")) {
    // Formats 0 and 1 are 8 bits wide; cbsz names A's, blgp B's.
    auto eight = [&](const char *name) {
      const std::string_view v = modifier(line, name);
      return v.empty() || v == "0" || v == "1";
    };
    const bool any8 = eight("cbsz") || eight("blgp");
    return uint8_t((wide ? 8 : 4) * (any8 ? 2 : 1));
  }
  const size_t at = m.find(wide ? "_32x32x" : "_16x16x") + 7;
  const int k = std::atoi(std::string(m.substr(at)).c_str());
  if (ends(m, "xf32")) return wide ? 8 : 4;
  if (wide) return k <= 4 ? 16 : 8;
  return k <= 4 ? 8 : 4;
}

bool is_trans(std::string_view m) {
  return starts_with_any(m,
                         {"v_exp_", "v_log_", "v_rcp_", "v_rsq_", "v_sqrt_", "v_sin_", "v_cos_"});
}

// Results that are shifted into part of the destination (LLVM GCNHazardRecognizer,
// getDstSelForwardingOperand).
bool is_dst_sel(std::string_view m, const Line &line, const Suffixes &suffixes, int sources) {
  if (suffixes.sdwa) {
    const std::string_view sel = modifier(line, "dst_sel");
    if (!sel.empty() && sel != "DWORD") return true;
  }
  if (starts_with_any(m, {"v_cvt_scalef32_pk_fp4_", "v_cvt_scalef32_sr_pk_fp4_"})) return true;
  const std::string_view sel = modifier(line, "op_sel");
  if (sel.empty() || starts(m, "v_pk_") || starts(m, "v_dot")) return false;
  std::vector<bool> bits;
  for (const char c : sel)
    if (c == '0' || c == '1') bits.push_back(c == '1');
  const bool fp8 = starts_with_any(
      m, {"v_cvt_sr_fp8_", "v_cvt_sr_bf8_", "v_cvt_scalef32_sr_fp8_", "v_cvt_scalef32_sr_bf8_"});
  if (fp8) return bits.size() >= 4 && (bits[2] || bits[3]);
  // One bit per source and, last, the destination's.
  return bits.size() > size_t(sources) && bits.back();
}

// The destination is read too. (DPP keeps it in lanes that are masked off, which is no read through
// the lanes. An SDWA comparison has no dst_unused: it writes the whole mask.)
bool reads_destination(std::string_view m, const Suffixes &suffixes) {
  return (suffixes.sdwa && !starts(m, "v_cmp")) || has(m, "_d16") ||
         starts_with_any(m,
                         {"v_fmac_", "v_mac_", "v_pk_fmac_", "v_writelane", "v_smfmac_", "v_dot2c_",
                          "v_dot4c_", "v_dot8c_", "v_cvt_pk_fp8_", "v_cvt_pk_bf8_", "v_cvt_sr_fp8_",
                          "v_cvt_sr_bf8_", "v_swap_", "v_permlane16_swap", "v_permlane32_swap"});
}

uint64_t valu_classes(std::string_view m, const Line &line, const Suffixes &suffixes,
                      uint8_t arch) {
  uint64_t c = kIsValu;
  if (starts(m, "v_mfma_") || starts(m, "v_smfmac_")) {
    c |= kIsMfma;
    if (starts(m, "v_mfma_f64")) c |= kIsDgemm;
    const bool single = ends(m, "f32") && !ends(m, "xf32");  // fp32 inputs
    if (!(c & kIsDgemm) && (arch == kGfx90a || !single)) c |= kIsXdl;
  }
  if (starts(m, "v_dot")) c |= kIsDot;
  if (is_trans(m)) c |= kIsTrans;
  if (suffixes.dpp) c |= kIsDpp;
  if (m == "v_readlane_b32") c |= kIsRwLane | kIsReadLane | kIsAnyLane;
  if (m == "v_readfirstlane_b32") c |= kIsReadLane | kIsAnyLane;
  if (m == "v_writelane_b32") c |= kIsRwLane | kIsAnyLane;
  if (starts(m, "v_div_fmas")) c |= kIsDivFmas;
  if (starts(m, "v_permlane16_swap") || starts(m, "v_permlane32_swap")) c |= kIsPermlaneSwap;
  if (starts(m, "v_cmpx")) c |= kIsCmpx;
  if (m == "v_fma_f64" || m == "v_fmac_f64") c |= kIsFma64;
  const int sources = int(line.operands.size()) - 1;
  if (is_dst_sel(m, line, suffixes, sources)) c |= kIsDstSel;
  for (size_t i = 1; i < line.operands.size(); ++i)
    if (ends(line.operands[i], "vccz") || ends(line.operands[i], "execz")) c |= kReadsZeroFlags;
  return c;
}

uint64_t vmem_classes(std::string_view m, const Line &line) {
  uint64_t c = kIsVmem;
  if (has(m, "_load_lds_") || !modifier(line, "lds").empty()) c |= kIsLdsDma;
  return c;
}

// How many leading operands are written.
int destinations(std::string_view m, const Line &line, uint64_t classes) {
  if (classes & kIsVmem) {
    if (classes & kIsLdsDma) return 0;
    if (has(m, "_load_")) return 1;
    const bool returns = !modifier(line, "sc0").empty() || !modifier(line, "glc").empty();
    return has(m, "_atomic_") && returns ? 1 : 0;
  }
  if (classes & kIsDs)
    return starts(m, "ds_read") || has(m, "_rtn_") || has(m, "permute") || has(m, "swizzle");
  if (starts(m, "v_permlane16_swap") || starts(m, "v_permlane32_swap") || m == "v_swap_b32")
    return 2;
  if (m == "v_nop") return 0;
  if (starts_with_any(m, {"v_div_scale", "v_add_co", "v_sub_co", "v_subrev_co", "v_addc_co",
                          "v_subb_co", "v_subbrev_co", "v_mad_u64_u32", "v_mad_i64_i32"}))
    return 2;
  if (starts_with_any(m, {"s_cmp",     "s_bitcmp", "s_setreg",  "s_nop",    "s_wait",
                          "s_barrier", "s_branch", "s_cbranch", "s_endpgm", "s_setprio",
                          "s_sleep",   "s_setpc",  "s_dcache",  "s_icache", "s_sendmsg",
                          "s_set_gpr", "s_trap",   "s_ttrace",  "s_store",  "s_scratch_store"}))
    return 0;
  return 1;
}

}  // namespace

uint8_t hazard_arch(Architecture architecture) {
  return architecture == Architecture::kGfx90a   ? kGfx90a
         : architecture == Architecture::kGfx942 ? kGfx940
                                                 : kGfx950;
}

HazardInfo hazard_info(const Op &op, const std::string &text, uint8_t arch) {
  HazardInfo info;
  const Line line = split_line(text);
  Suffixes suffixes;
  const std::string_view m = bare(line.mnemonic, suffixes);
  info.mnemonic = hash_of(m);
  if (starts(m, "v_"))
    info.classes = valu_classes(m, line, suffixes, arch);
  else if (starts_with_any(m, {"buffer_", "global_", "flat_", "scratch_", "tbuffer_"}))
    info.classes = vmem_classes(m, line);
  else if (starts(m, "ds_"))
    info.classes = kIsDs;
  else if (starts_with_any(
               m, {"s_load", "s_buffer", "s_store", "s_scratch", "s_atomic", "s_dcache", "s_mem"}))
    info.classes = 0;
  else
    info.classes = kIsSalu;

  if (m == "s_nop") info.wait_states = uint16_t((op.imm & 15) + 1);
  if (m == "s_getreg_b32") info.classes |= kIsGetreg;
  if (starts(m, "s_setreg")) info.classes |= kIsSetreg;
  for (const std::string_view operand : line.operands)
    if (starts(operand, "hwreg("))
      info.hardware_register = hash_of(operand.substr(0, operand.find_first_of(",)")));
  if (starts_with_any(
          m, {"s_movrel", "s_sendmsg", "s_ttracedata", "ds_read_addtid", "ds_write_addtid"}) ||
      !modifier(line, "gds").empty())
    info.classes |= kIsM0Reader;
  if (info.classes & kIsMfma) info.passes = passes_of(m, line, arch);

  auto define = [&](Units u) {
    if (u.count && info.defs < 4) info.def[info.defs++] = u;
  };
  auto use = [&](Units u) {
    if (u.count && info.uses < 8) info.use[info.uses++] = u;
  };
  const int written = destinations(m, line, info.classes);
  const bool reads_result = reads_destination(m, suffixes) || (info.classes & kIsDstSel);
  for (int i = 0; i < int(line.operands.size()); ++i) {
    const Units u = units_of(line.operands[size_t(i)]);
    if (i < written) define(u);
    if (i >= written || reads_result) {
      const int source = i - written;
      const bool tied = starts_with_any(m, {"v_smfmac_", "v_dot2c_", "v_dot4c_", "v_dot8c_"});
      const bool accumulator = tied ? i == 0 : source == 2;
      if (u.count && (info.classes & (kIsMfma | kIsDot)) && accumulator)
        info.source_c = int8_t(info.uses);
      if (u.count && (info.classes & kIsRwLane) && source == 1 && !u.vector())
        info.lane_select = int8_t(info.uses);
      use(u);
    }
  }
  if (info.classes & kIsCmpx) define({uint16_t(kFirstScalar + kExec), 2});
  if (info.classes & kIsDivFmas) use({uint16_t(kFirstScalar + kVcc), 2});
  if (starts(m, "s_") && has(m, "saveexec")) define({uint16_t(kFirstScalar + kExec), 2});
  if (starts(m, "s_set_gpr_idx")) define({uint16_t(kFirstScalar + kM0), 1});

  if ((info.classes & kIsVmem) && (has(m, "_store_") || has(m, "_atomic_"))) {
    const bool buffer = starts(m, "buffer_") || starts(m, "tbuffer_");
    const size_t data = size_t(written) + (buffer ? 0 : 1);
    Units u = data < line.operands.size() ? units_of(line.operands[data]) : Units{};
    // A buffer atomic that returns has one operand for both.
    if (buffer && written) u = info.def[0];
    const bool scalar_offset = buffer && line.operands.size() > 3 &&
                               units_of(line.operands[3]).count && !has(m, "_atomic_");
    if (u.vector() && u.count > 2 && !scalar_offset) {
      info.classes |= kIsWideStore;
      info.store_data = u;
    }
  }
  return info;
}

}  // namespace flydsl::emu::checks
