// AMDGPU target ids, e.g. "gfx950:sramecc+:xnack-", and which code objects a device accepts.
// LLVM "User Guide for AMDGPU Backend", sections "Target ID" and "ELF Header".
#pragma once

#include <cstdint>
#include <string>

namespace flydsl::emu {

struct TargetId {
  // kAny: the code runs with either setting; the id does not mention the feature.
  enum class Feature : uint8_t { kAny, kOff, kOn };

  std::string processor;
  Feature sramecc = Feature::kAny;
  Feature xnack = Feature::kAny;
};

// Reads "gfx950", "gfx950:sramecc+:xnack-" or the long form "amdgcn-amd-amdhsa--gfx950:xnack-" (an
// offload-bundle entry carries "hip-" or "hipv4-" in front). False with a reason when the text is
// none of these.
bool parse_target_id(const std::string &text, TargetId *id, std::string *error);
std::string to_string(const TargetId &id);

// The target id in an ELF header. `abi_version` is e_ident[EI_ABIVERSION] (1: code object v3 ... 4:
// v6).
bool target_id_of_elf(uint8_t abi_version, uint32_t e_flags, TargetId *id, std::string *error);

// Whether a device runs such code: the same processor (or a generic one that covers it), and each
// feature that the code states must be the device's.
bool device_accepts(const TargetId &device, const TargetId &code, std::string *error);

}  // namespace flydsl::emu
