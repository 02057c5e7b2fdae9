#include "tools/attention_arguments.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "tools/exit_status.h"

namespace flydsl::tools {

Layout layout_of(const Settings &settings) {
  const auto layout = settings.find("layout");
  if (layout == settings.end()) return kBhsd;
  return static_cast<Layout>(
      parse_choice("layout", layout->second, {{"bhsd", kBhsd}, {"bshd", kBshd}}));
}

void check_axes(const char *name, const HostArray &array, size_t axes, const char *what) {
  if (array.shape.size() == axes) return;
  bad_input(std::string(name) + " has " + std::to_string(array.shape.size()) + " axes (" +
            format_shape(array.shape) + "); it must have " + std::to_string(axes) + ": " + what);
}

flydsl_aot_tensor view_of(flydsl_aot_dtype dtype, const std::vector<int64_t> &shape,
                          Layout layout) {
  flydsl_aot_tensor tensor{};
  tensor.dtype = dtype;
  tensor.rank = static_cast<int32_t>(shape.size());
  int64_t stride = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    tensor.sizes[axis] = shape[axis];
    tensor.strides[axis] = stride;
    // Of an empty tensor the strides do not matter, but they must stay in range.
    if (__builtin_mul_overflow(stride, std::max<int64_t>(1, shape[axis]), &stride)) stride = 1;
  }
  if (layout == kBshd && tensor.rank == 4) {
    std::swap(tensor.sizes[1], tensor.sizes[2]);
    std::swap(tensor.strides[1], tensor.strides[2]);
  }
  return tensor;
}

flydsl_aot_mask mask_of(const Settings &settings, std::vector<std::string> &used) {
  const auto value = [&](const char *name) {
    const auto found = settings.find(name);
    return found == settings.end() ? nullptr : &found->second;
  };
  flydsl_aot_mask mask{FLYDSL_AOT_UNLIMITED, FLYDSL_AOT_UNLIMITED, FLYDSL_AOT_ANCHOR_NONE, 0};
  const std::string *causal = value("causal");
  if (causal) {
    if (value("left") || value("right") || value("anchor")) {
      bad_input("--set causal=" + *causal + ": give either causal or left, right and anchor");
    }
    mask.anchor = parse_choice("causal", *causal,
                               {{"none", FLYDSL_AOT_ANCHOR_NONE},
                                {"top-left", FLYDSL_AOT_ANCHOR_TOP_LEFT},
                                {"bottom-right", FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT}});
    if (mask.anchor != FLYDSL_AOT_ANCHOR_NONE) mask.right = 0;
    used.push_back("causal = " + *causal);
    return mask;
  }
  if (value("left")) mask.left = parse_integer("left", *value("left"));
  if (value("right")) mask.right = parse_integer("right", *value("right"));
  if (value("anchor")) {
    mask.anchor = parse_choice("anchor", *value("anchor"),
                               {{"top-left", FLYDSL_AOT_ANCHOR_TOP_LEFT},
                                {"bottom-right", FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT}});
  }
  if (!value("left") && !value("right")) {
    used.push_back("causal = none (default)");
  } else {
    used.push_back("left = " + std::to_string(mask.left) +
                   ", right = " + std::to_string(mask.right) +
                   ", anchor = " + (value("anchor") ? *value("anchor") : "not given"));
  }
  return mask;
}

float scale_of(const Settings &settings, int64_t head_dim, std::vector<std::string> &used) {
  const auto given = settings.find("scale");
  const float scale = given != settings.end() ? parse_float("scale", given->second)
                      : head_dim > 0
                          ? static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim)))
                          : 1.0f;
  char text[64];
  std::snprintf(text, sizeof text, "scale = %.9g%s", static_cast<double>(scale),
                given == settings.end() ? " (default 1/sqrt(D))" : "");
  used.push_back(text);
  return scale;
}

}  // namespace flydsl::tools
