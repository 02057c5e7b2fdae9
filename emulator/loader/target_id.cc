#include "emulator/loader/target_id.h"

#include <cstdio>

#include "llvm/BinaryFormat/ELF.h"

namespace flydsl::emu {
namespace {

using namespace llvm::ELF;

struct MachName {
  uint32_t mach;
  const char *name;
};

// Names of EF_AMDGPU_MACH values; the ones that are not here are reported by number.
constexpr MachName kMachNames[] = {
    {EF_AMDGPU_MACH_AMDGCN_GFX900, "gfx900"},
    {EF_AMDGPU_MACH_AMDGCN_GFX906, "gfx906"},
    {EF_AMDGPU_MACH_AMDGCN_GFX908, "gfx908"},
    {EF_AMDGPU_MACH_AMDGCN_GFX90A, "gfx90a"},
    {EF_AMDGPU_MACH_AMDGCN_GFX90C, "gfx90c"},
    {EF_AMDGPU_MACH_AMDGCN_GFX942, "gfx942"},
    {EF_AMDGPU_MACH_AMDGCN_GFX950, "gfx950"},
    {EF_AMDGPU_MACH_AMDGCN_GFX9_GENERIC, "gfx9-generic"},
    {EF_AMDGPU_MACH_AMDGCN_GFX9_4_GENERIC, "gfx9-4-generic"},
    {EF_AMDGPU_MACH_AMDGCN_GFX1010, "gfx1010"},
    {EF_AMDGPU_MACH_AMDGCN_GFX1011, "gfx1011"},
    {EF_AMDGPU_MACH_AMDGCN_GFX1012, "gfx1012"},
    {EF_AMDGPU_MACH_AMDGCN_GFX1013, "gfx1013"},
    {EF_AMDGPU_MACH_AMDGCN_GFX1030, "gfx1030"},
    {EF_AMDGPU_MACH_AMDGCN_GFX1031, "gfx1031"},
    {EF_AMDGPU_MACH_AMDGCN_GFX1032, "gfx1032"},
    {EF_AMDGPU_MACH_AMDGCN_GFX1033, "gfx1033"},
    {EF_AMDGPU_MACH_AMDGCN_GFX1034, "gfx1034"},
    {EF_AMDGPU_MACH_AMDGCN_GFX1035, "gfx1035"},
    {EF_AMDGPU_MACH_AMDGCN_GFX1036, "gfx1036"},
    {EF_AMDGPU_MACH_AMDGCN_GFX1100, "gfx1100"},
    {EF_AMDGPU_MACH_AMDGCN_GFX1101, "gfx1101"},
    {EF_AMDGPU_MACH_AMDGCN_GFX1102, "gfx1102"},
    {EF_AMDGPU_MACH_AMDGCN_GFX1103, "gfx1103"},
    {EF_AMDGPU_MACH_AMDGCN_GFX1150, "gfx1150"},
    {EF_AMDGPU_MACH_AMDGCN_GFX1151, "gfx1151"},
    {EF_AMDGPU_MACH_AMDGCN_GFX1152, "gfx1152"},
    {EF_AMDGPU_MACH_AMDGCN_GFX1153, "gfx1153"},
    {EF_AMDGPU_MACH_AMDGCN_GFX1200, "gfx1200"},
    {EF_AMDGPU_MACH_AMDGCN_GFX1201, "gfx1201"},
    {EF_AMDGPU_MACH_AMDGCN_GFX1250, "gfx1250"},
    {EF_AMDGPU_MACH_AMDGCN_GFX1251, "gfx1251"},
};

std::string quoted(const std::string &text) {
  std::string result(1, '"');
  result.append(text, 0, 80);
  result.push_back('"');
  return result;
}

bool parse_feature(const std::string &text, TargetId *id) {
  if (text.size() < 2) return false;
  const char sign = text.back();
  if (sign != '+' && sign != '-') return false;
  const auto value = sign == '+' ? TargetId::Feature::kOn : TargetId::Feature::kOff;
  const std::string name = text.substr(0, text.size() - 1);
  TargetId::Feature *field = name == "sramecc" ? &id->sramecc
                             : name == "xnack" ? &id->xnack
                                               : nullptr;
  if (field == nullptr || *field != TargetId::Feature::kAny) return false;
  *field = value;
  return true;
}

bool feature_fits(const char *name, TargetId::Feature device, TargetId::Feature code,
                  std::string *error) {
  if (code == TargetId::Feature::kAny || code == device) return true;
  *error = std::string("needs ") + name + (code == TargetId::Feature::kOn ? " on" : " off") +
           ", which the device has " + (device == TargetId::Feature::kOn ? "on" : "off");
  return false;
}

}  // namespace

bool parse_target_id(const std::string &text, TargetId *id, std::string *error) {
  *id = {};
  // In the long form the processor follows the triple, whose environment may be empty or not:
  // amdgcn-amd-amdhsa--gfx950, amdgpu9.50-amd-amdhsa-unknown-gfx950.
  const size_t long_form = text.rfind("-gfx");
  std::string rest = long_form == std::string::npos ? text : text.substr(long_form + 1);
  size_t colon = rest.find(':');
  id->processor = rest.substr(0, colon);
  if (id->processor.rfind("gfx", 0) != 0) {
    *error = quoted(text) + " is no AMDGPU target id (expected e.g. gfx950:xnack-)";
    return false;
  }
  while (colon != std::string::npos) {
    rest = rest.substr(colon + 1);
    colon = rest.find(':');
    if (!parse_feature(rest.substr(0, colon), id)) {
      *error = quoted(text) +
               ": target features are sramecc+, sramecc-, xnack+ and xnack-, each at most once";
      return false;
    }
  }
  return true;
}

std::string to_string(const TargetId &id) {
  const auto suffix = [](const char *name, TargetId::Feature value) {
    if (value == TargetId::Feature::kAny) return std::string();
    return std::string(":") + name + (value == TargetId::Feature::kOn ? "+" : "-");
  };
  return id.processor + suffix("sramecc", id.sramecc) + suffix("xnack", id.xnack);
}

bool target_id_of_elf(uint8_t abi_version, uint32_t e_flags, TargetId *id, std::string *error) {
  *id = {};
  const uint32_t mach = e_flags & EF_AMDGPU_MACH;
  for (const MachName &entry : kMachNames) {
    if (entry.mach == mach) id->processor = entry.name;
  }
  if (id->processor.empty()) {
    char text[80];
    std::snprintf(text, sizeof text, "unknown AMDGPU processor 0x%x in the ELF header's flags",
                  mach);
    *error = text;
    return false;
  }
  if (abi_version == ELFABIVERSION_AMDGPU_HSA_V3) {
    // One bit each; a clear bit says only that the code does not rely on the feature.
    if ((e_flags & EF_AMDGPU_FEATURE_XNACK_V3) != 0) id->xnack = TargetId::Feature::kOn;
    if ((e_flags & EF_AMDGPU_FEATURE_SRAMECC_V3) != 0) id->sramecc = TargetId::Feature::kOn;
    return true;
  }
  switch (e_flags & EF_AMDGPU_FEATURE_XNACK_V4) {
    case EF_AMDGPU_FEATURE_XNACK_ON_V4:
      id->xnack = TargetId::Feature::kOn;
      break;
    case EF_AMDGPU_FEATURE_XNACK_OFF_V4:
      id->xnack = TargetId::Feature::kOff;
      break;
    default:
      break;
  }
  switch (e_flags & EF_AMDGPU_FEATURE_SRAMECC_V4) {
    case EF_AMDGPU_FEATURE_SRAMECC_ON_V4:
      id->sramecc = TargetId::Feature::kOn;
      break;
    case EF_AMDGPU_FEATURE_SRAMECC_OFF_V4:
      id->sramecc = TargetId::Feature::kOff;
      break;
    default:
      break;
  }
  return true;
}

bool device_accepts(const TargetId &device, const TargetId &code, std::string *error) {
  // Generic processors: LLVM User Guide, table "AMDGPU Generic Processors".
  const bool covered = code.processor == "gfx9-4-generic" &&
                       (device.processor == "gfx942" || device.processor == "gfx950");
  if (code.processor != device.processor && !covered) {
    *error = "built for " + to_string(code) + ", the device is " + to_string(device);
    return false;
  }
  std::string reason;
  if (!feature_fits("sramecc", device.sramecc, code.sramecc, &reason) ||
      !feature_fits("xnack", device.xnack, code.xnack, &reason)) {
    *error = "built for " + to_string(code) + ": " + reason;
    return false;
  }
  return true;
}

}  // namespace flydsl::emu
