// Check "align".
#include "test/emulator/checks/check_launch.h"

namespace flydsl::emu::test {
namespace {

using testing::HasSubstr;

class AlignCheck : public CheckLaunch {
 protected:
  std::string with_offset(uint32_t offset, const std::string &code) {
    kernel_.lds_bytes = 4096;
    return fault_of("align",
                    "s_load_dwordx2 s[6:7], s[0:1], 0x0\n v_lshlrev_b32 v1, 4, v0\n"
                    "v_add_u32 v1, " +
                        std::to_string(offset) +
                        ", v1\n v_mov_b32 v2, 0\n v_mov_b32 v3, 0\n s_mov_b32 m0, " +
                        std::to_string(offset) + "\n s_waitcnt lgkmcnt(0)\n" + code);
  }
  void needs(uint32_t alignment, const std::string &code, const std::string &complaint) {
    EXPECT_EQ(with_offset(alignment, code), "");
    EXPECT_THAT(with_offset(alignment / 2, code),
                HasSubstr(complaint + " is not a multiple of " + std::to_string(alignment)));
  }
};

TEST_F(AlignCheck, WhatNeedsItsOwnAlignment) {
  needs(4, "ds_write2_b32 v1, v2, v3 offset0:1 offset1:2",
        "k: work-group (0,0,0) wave 0 lane 0 at 0x20 `ds_write2_b32 v1, v2, v3 offset0:1 "
        "offset1:2`: align: LDS address 0x6");
  needs(8, "ds_read2_b64 v[4:7], v1 offset1:1", "align: LDS address 0x4");
  needs(4, "ds_add_u32 v1, v2", "align: LDS address 0x2");
  needs(8, "ds_read_b64_tr_b16 v[4:5], v1", "align: LDS address 0x4");
  needs(4, "v_mov_b32 v5, 0\n global_load_lds_dword v5, s[6:7]", "align: LDS address 0x2");
  EXPECT_EQ(with_offset(8, "global_atomic_add_x2 v1, v[2:3], s[6:7]"), "");
  EXPECT_THAT(with_offset(4, "global_atomic_add_x2 v1, v[2:3], s[6:7]"),
              HasSubstr("is not a multiple of 8"));
}

TEST_F(AlignCheck, PlainAccessesMayHaveAnyAddress) {
  for (const char *code :
       {"ds_read_b128 v[4:7], v1", "ds_write_b32 v1, v2", "global_load_dwordx4 v[4:7], v1, s[6:7]",
        "global_store_short v1, v2, s[6:7]"})
    EXPECT_EQ(with_offset(3, code), "") << code;
}

}  // namespace
}  // namespace flydsl::emu::test
