#include "src/archive/target_id.h"

#include <algorithm>

namespace flydsl::archive {
namespace {

bool valid_processor(std::string_view text) {
  // Generic processors have dashes ("gfx9-4-generic"). NVIDIA's ("sm_90") are there for development (src/device/cuda).
  const bool known = text.substr(0, 3) == "gfx" || text.substr(0, 3) == "sm_";
  return known && text.size() > 3 && text.size() < 24 &&
         std::all_of(text.begin() + 3, text.end(), [](unsigned char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
         });
}

Feature *feature_slot(TargetId *id, std::string_view name) {
  if (name == "sramecc") return &id->sramecc;
  if (name == "xnack") return &id->xnack;
  return nullptr;
}

const char *spelled(Feature feature) {
  switch (feature) {
    case Feature::On:
      return "on";
    case Feature::Off:
      return "off";
    case Feature::Any:
      break;
  }
  return "unstated";
}

std::string needs(const char *name, Feature code, Feature device) {
  return std::string("needs ") + name + " " + spelled(code) + ", the device has it " +
         spelled(device);
}

}  // namespace

std::optional<TargetId> parse_target_id(std::string_view text) {
  TargetId id;
  size_t colon = text.find(':');
  const std::string_view processor = text.substr(0, colon);
  if (!valid_processor(processor)) return std::nullopt;
  id.processor = processor;
  while (colon != std::string_view::npos) {
    text.remove_prefix(colon + 1);
    colon = text.find(':');
    const std::string_view feature = text.substr(0, colon);
    if (feature.empty()) return std::nullopt;
    Feature *slot = feature_slot(&id, feature.substr(0, feature.size() - 1));
    const char sign = feature.back();
    if (!slot || *slot != Feature::Any || (sign != '+' && sign != '-')) return std::nullopt;
    *slot = sign == '+' ? Feature::On : Feature::Off;
  }
  return id;
}

bool compatible(const TargetId &code, const TargetId &device, std::string *reason) {
  if (compatible(code, device)) return true;
  if (code.processor != device.processor)
    *reason = "built for " + code.processor + ", the device is " + device.processor;
  else if (!feature_fits(code.sramecc, device.sramecc))
    *reason = needs("sramecc", code.sramecc, device.sramecc);
  else
    *reason = needs("xnack", code.xnack, device.xnack);
  return false;
}

}  // namespace flydsl::archive
