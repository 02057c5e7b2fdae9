// AMDGPU target ids: "gfx950", "gfx950:sramecc+:xnack-". Rules: LLVM "User Guide for AMDGPU
// Backend", Target ID.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace flydsl::archive {

enum class Feature { Any, Off, On };  // Any: the id does not mention it

struct TargetId {
  std::string processor;
  Feature sramecc = Feature::Any;
  Feature xnack = Feature::Any;
};

// Parses a target id; features may come in any order, each at most once. nullopt for anything else.
std::optional<TargetId> parse_target_id(std::string_view text);

// Whether a feature that a code object states as `code` is so on the device.
inline bool feature_fits(Feature code, Feature device) {
  return code == Feature::Any || code == device;
}
// Whether a code object built for `code` runs on `device`: same processor, and every feature the
// code object fixes is set the same way on the device.
inline bool compatible(const TargetId &code, const TargetId &device) {
  return code.processor == device.processor && feature_fits(code.sramecc, device.sramecc) &&
         feature_fits(code.xnack, device.xnack);
}
// The same; on refusal `reason` says why.
bool compatible(const TargetId &code, const TargetId &device, std::string *reason);

}  // namespace flydsl::archive
