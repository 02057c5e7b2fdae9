#include "emulator/loader/target_id.h"

#include <gtest/gtest.h>

#include "llvm/BinaryFormat/ELF.h"

namespace flydsl::emu {
namespace {

TargetId parsed(const std::string &text) {
  TargetId id;
  std::string error;
  EXPECT_TRUE(parse_target_id(text, &id, &error)) << error;
  return id;
}

TEST(TargetId, ReadsShortAndLongForms) {
  EXPECT_EQ(to_string(parsed("gfx950")), "gfx950");
  EXPECT_EQ(to_string(parsed("gfx950:xnack-")), "gfx950:xnack-");
  EXPECT_EQ(to_string(parsed("gfx90a:sramecc+:xnack-")), "gfx90a:sramecc+:xnack-");
  EXPECT_EQ(to_string(parsed("amdgcn-amd-amdhsa--gfx950:sramecc-")), "gfx950:sramecc-");
  EXPECT_EQ(to_string(parsed("amdgcn-amd-amdhsa-unknown-gfx950")), "gfx950");
  EXPECT_EQ(to_string(parsed("amdgpu9.50-amd-amdhsa-unknown-gfx950:xnack-")), "gfx950:xnack-");
  EXPECT_EQ(to_string(parsed("hipv4-amdgcn-amd-amdhsa--gfx942:xnack+")), "gfx942:xnack+");
  EXPECT_EQ(to_string(parsed("gfx9-4-generic")), "gfx9-4-generic");
  EXPECT_EQ(to_string(parsed("amdgcn-amd-amdhsa--gfx9-4-generic")), "gfx9-4-generic");
}

TEST(TargetId, RefusesOtherTexts) {
  for (const char *text :
       {"", "sm_90", "gfx950:", "gfx950:xnack", "gfx950:xnack-:xnack-", "gfx950:foo+",
        "gfx950:xnack*", ":xnack-", "host-x86_64-unknown-linux--", "amdgcn-amd-amdhsa-unknown"}) {
    TargetId id;
    std::string error;
    EXPECT_FALSE(parse_target_id(text, &id, &error)) << text;
    EXPECT_NE(error, "") << text;
  }
}

// LLVM User Guide for AMDGPU Backend, "Target ID": a feature that the code does not state fits any
// setting.
TEST(TargetId, DeviceAcceptsByFeature) {
  const TargetId device = parsed("gfx950:sramecc+:xnack-");
  std::string error;
  for (const char *fits :
       {"gfx950", "gfx950:sramecc+", "gfx950:xnack-", "gfx950:sramecc+:xnack-", "gfx9-4-generic"})
    EXPECT_TRUE(device_accepts(device, parsed(fits), &error)) << fits << ": " << error;
  for (const char *other :
       {"gfx942", "gfx950:sramecc-", "gfx950:xnack+", "gfx950:sramecc+:xnack+", "gfx9-generic"}) {
    error.clear();
    EXPECT_FALSE(device_accepts(device, parsed(other), &error)) << other;
    EXPECT_NE(error.find(other), std::string::npos) << "the reason names the target: " << error;
  }
  EXPECT_FALSE(device_accepts(parsed("gfx90a:sramecc+:xnack-"), parsed("gfx9-4-generic"), &error));
}

TEST(TargetId, ReadsElfFlagsOfEachVersion) {
  using namespace llvm::ELF;
  TargetId id;
  std::string error;
  const uint32_t gfx950 = EF_AMDGPU_MACH_AMDGCN_GFX950;
  ASSERT_TRUE(target_id_of_elf(ELFABIVERSION_AMDGPU_HSA_V3, gfx950 | EF_AMDGPU_FEATURE_XNACK_V3,
                               &id, &error));
  EXPECT_EQ(to_string(id), "gfx950:xnack+");
  ASSERT_TRUE(target_id_of_elf(
      ELFABIVERSION_AMDGPU_HSA_V5,
      gfx950 | EF_AMDGPU_FEATURE_XNACK_OFF_V4 | EF_AMDGPU_FEATURE_SRAMECC_ON_V4, &id, &error));
  EXPECT_EQ(to_string(id), "gfx950:sramecc+:xnack-");
  ASSERT_TRUE(target_id_of_elf(
      ELFABIVERSION_AMDGPU_HSA_V5,
      gfx950 | EF_AMDGPU_FEATURE_XNACK_ANY_V4 | EF_AMDGPU_FEATURE_SRAMECC_ANY_V4, &id, &error));
  EXPECT_EQ(to_string(id), "gfx950");
  EXPECT_FALSE(target_id_of_elf(ELFABIVERSION_AMDGPU_HSA_V5, 0x0ff, &id, &error));
  EXPECT_NE(error.find("0xff"), std::string::npos) << error;
}

}  // namespace
}  // namespace flydsl::emu
