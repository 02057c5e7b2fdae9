// What the attention operators' --set arguments have in common. `used` receives each parameter as used.
#pragma once

#include <string>
#include <vector>

#include "tools/operators.h"

namespace flydsl::tools {

// Order of the axes of 4-axis arrays in their files.
enum Layout { kBhsd, kBshd };
Layout layout_of(const Settings &settings);

// Refuses an array with another number of axes; `what` names them.
void check_axes(const char *name, const HostArray &array, size_t axes, const char *what);

// A dense array in the given memory layout, as the library wants to see it: axes in (B, H, S, D)
// order.
flydsl_aot_tensor view_of(flydsl_aot_dtype dtype, const std::vector<int64_t> &shape, Layout layout);

// causal, or left, right and anchor.
flydsl_aot_mask mask_of(const Settings &settings, std::vector<std::string> &used);

float scale_of(const Settings &settings, int64_t head_dim, std::vector<std::string> &used);

}  // namespace flydsl::tools
