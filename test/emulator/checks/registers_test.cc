// The lists of registers that checks work with.
#include <gtest/gtest.h>

#include <string>

#include "emulator/checks/instruction.h"
#include "test/emulator/support/snippet.h"

namespace flydsl::emu::test {
namespace {

using checks::Instruction;

// "writes < reads"
std::string registers_of(const std::string &text) {
  const std::vector<uint8_t> code = assemble(text);
  const auto program = decode_program("gfx950", code.data(), code.size());
  const Instruction &i = (*checks::instructions_of(*program))[0];
  std::string s;
  const auto list = [&](const checks::Registers *r, int n) {
    for (int k = 0; k < n; ++k) {
      if (k) s += ' ';
      s += checks::register_name(r[k].first);
      if (r[k].count == 1) continue;
      s += ':';
      s += std::to_string(r[k].count);
    }
  };
  list(i.writes, i.write_count);
  s += " < ";
  list(i.reads, i.read_count);
  return s;
}

TEST(Registers, ComeFromOperandsAndImplicitOnes) {
  const struct {
    const char *text, *expected;
  } kRows[] = {
      {"v_add_f32 v1, v2, v3", "v1 < v2 v3 exec_lo:2"},
      {"v_fmac_f32 v1, v2, s3", "v1 < v1 v2 s3 exec_lo:2"},
      {"v_cmp_eq_u32 vcc, v1, v2", "vcc_lo:2 < v1 v2 exec_lo:2"},
      {"v_cmpx_eq_u32 s[4:5], v1, v2", "s4:2 exec_lo:2 < v1 v2 exec_lo:2"},
      {"v_cndmask_b32 v1, v2, v3, vcc", "v1 < v2 v3 vcc_lo:2 exec_lo:2"},
      {"v_div_fmas_f32 v1, v2, v3, v4", "v1 < v2 v3 v4 exec_lo:2 vcc_lo:2"},
      {"v_permlane32_swap_b32 v1, v2", "v1 v2 < v1 v2 exec_lo:2"},
      {"v_mfma_f32_32x32x16_bf16 a[0:15], v[0:3], v[4:7], a[0:15]", "a0:16 < v0:4 v4:4 a0:16"},
      {"v_readfirstlane_b32 s3, v4", "s3 < v4 exec_lo:2"},
      {"s_add_u32 s1, s2, s3", "s1 scc < s2 s3"},
      {"s_addc_u32 s1, s2, s3", "s1 scc < s2 s3 scc"},
      {"s_mul_i32 s1, s2, s3", "s1 < s2 s3"},
      {"s_cselect_b64 s[2:3], s[4:5], vcc", "s2:2 < s4:2 vcc_lo:2 scc"},
      {"s_cmp_eq_u32 s1, s2", "scc < s1 s2"},
      {"s_and_saveexec_b64 s[2:3], vcc", "s2:2 exec_lo:2 scc < vcc_lo:2 exec_lo:2"},
      {"s_load_dwordx4 s[4:7], s[0:1], s9", "s4:4 < s0:2 s9"},
      {"global_load_dwordx3 v[2:4], v[6:7], off", "v2:3 < v6:2 exec_lo:2"},
      {"global_store_dwordx2 v1, v[4:5], s[2:3]", " < v1 v4:2 s2:2 exec_lo:2"},
      {"global_load_lds_dwordx4 v1, s[2:3]", " < v1 s2:2 exec_lo:2 m0"},
      {"global_load_short_d16_hi v1, v[4:5], off", "v1 < v1 v4:2 exec_lo:2"},
      {"global_atomic_add v1, v2, s[2:3]", " < v1 v2 s2:2 exec_lo:2"},
      {"global_atomic_add v0, v1, v2, s[2:3] sc0", "v0 < v1 v2 s2:2 exec_lo:2"},
      {"buffer_load_dwordx4 v[4:7], v1, s[8:11], s3 offen", "v4:4 < v1 s8:4 s3 exec_lo:2"},
      {"buffer_load_dwordx4 v1, s[8:11], s3 offen lds", " < v1 s8:4 s3 exec_lo:2 m0"},
      {"buffer_store_dwordx2 v[4:5], v1, s[8:11], 0 offen", " < v4:2 v1 s8:4 exec_lo:2"},
      {"buffer_atomic_add_f32 v4, v1, s[8:11], 0 offen", " < v4 v1 s8:4 exec_lo:2"},
      {"buffer_atomic_add_f32 v4, v1, s[8:11], 0 offen sc0", "v4 < v4 v1 s8:4 exec_lo:2"},
      {"scratch_load_dword v1, off, s3", "v1 < s3 exec_lo:2"},
      {"scratch_store_dwordx2 v1, v[2:3], off", " < v1 v2:2 exec_lo:2"},
      {"ds_read_b128 v[4:7], v1", "v4:4 < v1 exec_lo:2"},
      {"ds_write2_b64 v1, v[2:3], v[4:5]", " < v1 v2:2 v4:2 exec_lo:2"},
      {"ds_add_rtn_u32 v1, v2, v3", "v1 < v2 v3 exec_lo:2"},
  };
  for (const auto &row : kRows) EXPECT_EQ(registers_of(row.text), row.expected) << row.text;
}

}  // namespace
}  // namespace flydsl::emu::test
