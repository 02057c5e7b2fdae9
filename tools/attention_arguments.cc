#include "tools/attention_arguments.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "tools/arguments.h"
#include "tools/exit_status.h"

namespace flydsl::tools {

Layout layout_of(const Settings &settings) {
  const auto layout = settings.find("layout");
  if (layout == settings.end()) return kBhsd;
  return static_cast<Layout>(
      parse_choice("layout", layout->second, {{"bhsd", kBhsd}, {"bshd", kBshd}}));
}

std::vector<ParameterSpec> shared_parameters() {
  return {
      {"dtype",
       "bf16 (default of shapes) | fp16 | e4m3 | e5m2: what uint16 and uint8 arrays hold, and what "
       "shapes stand for (float16, float32 and float64 arrays are themselves)"},
      {"kv_dtype", "the same for k and v; default dtype"},
      {"out_dtype", "bf16 | fp16; default q's, or bf16 if that has 8 bits"},
      {"scale", "number; default 1/sqrt(D)"},
      {"causal", "none (default) | top-left | bottom-right"},
      {"left", "keys seen left of the diagonal; -1 (default) is unlimited"},
      {"right", "keys seen right of the diagonal; -1 (default) is unlimited"},
      {"anchor", "top-left | bottom-right: the diagonal that left and right count from"},
      {"softcap", "number; default 0, none"},
      {"max_seqlen_k",
       "the longest sequence of keys; default what cu_seqlens_k says, or block_table has room for"},
      {"layout", "bhsd (default) | bshd: axis order of q, k, v and out in their files"}};
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
  if (layout == kBshd && tensor.rank >= 3) {
    const int head = tensor.rank - 3;
    std::swap(tensor.sizes[head], tensor.sizes[head + 1]);
    std::swap(tensor.strides[head], tensor.strides[head + 1]);
  }
  return tensor;
}

void InputBinder::bind(const char *name, flydsl_aot_tensor *tensor, size_t least_axes,
                       size_t most_axes, const char *what, Layout layout) {
  const auto found = inputs_.find(name);
  if (found == inputs_.end()) return;
  const HostArray &array = found->second;
  const size_t axes = array.shape.size();
  if (axes < least_axes || axes > most_axes) {
    bad_input(std::string(name) + " has " + std::to_string(axes) + " axes (" +
              format_shape(array.shape) + "); it must have " + std::to_string(least_axes) +
              (least_axes < most_axes ? " or " + std::to_string(most_axes) : "") + ": " + what);
  }
  *tensor = view_of(array.dtype, array.shape, layout);
  problem_->inputs.push_back({name, tensor, array.shape});
}

void InputBinder::bind_sequences(const char *name, flydsl_aot_tensor *tensor, bool packed,
                                 Layout layout) {
  const char *axes =
      layout == kBhsd ? "batch, head, sequence, head dim" : "batch, sequence, head, head dim";
  const char *packed_axes =
      layout == kBhsd ? "head, token, head dim (packed)" : "token, head, head dim (packed)";
  const size_t count = packed ? 3 : 4;
  bind(name, tensor, count, count, packed ? packed_axes : axes, layout);
}

std::vector<int64_t> InputBinder::numbers(const char *name) const {
  const auto found = inputs_.find(name);
  return found == inputs_.end() ? std::vector<int64_t>() : found->second.numbers;
}

flydsl_aot_dtype out_dtype_of(flydsl_aot_dtype q, const Settings &settings) {
  const bool narrow = flydsl_aot_dtype_bytes(q) == 1;
  return dtype_setting("out_dtype", settings, narrow ? FLYDSL_AOT_BF16 : q);
}

float number_of(const Settings &settings, const char *name, float otherwise,
                std::vector<std::string> &used) {
  const auto found = settings.find(name);
  if (found == settings.end()) return otherwise;
  used.push_back(std::string(name) + " = " + found->second);
  return parse_float(name, found->second);
}

int64_t integer_of(const Settings &settings, const char *name, int64_t otherwise,
                   std::vector<std::string> &used) {
  const auto found = settings.find(name);
  if (found == settings.end()) return otherwise;
  used.push_back(std::string(name) + " = " + found->second);
  return parse_integer(name, found->second);
}

int64_t paged_room(const flydsl_aot_tensor &block_table, const flydsl_aot_tensor &k,
                   int64_t max_seqlen_k) {
  int64_t room = 0;
  if (__builtin_mul_overflow(block_table.sizes[1], k.sizes[2], &room)) room = 0;
  return max_seqlen_k > 0 ? std::min(max_seqlen_k, room) : room;
}

double visible_pairs(const flydsl_aot_mask &mask, int64_t rows, int64_t keys) {
  double pairs = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t diagonal =
        mask.anchor == FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT ? row + keys - rows : row;
    const int64_t first =
        mask.left == FLYDSL_AOT_UNLIMITED ? 0 : std::max<int64_t>(0, diagonal - mask.left);
    const int64_t last =
        mask.right == FLYDSL_AOT_UNLIMITED ? keys - 1 : std::min(keys - 1, diagonal + mask.right);
    pairs += static_cast<double>(std::max<int64_t>(0, last - first + 1));
  }
  return pairs;
}

const char *causal_name(const flydsl_aot_mask &mask) {
  if (mask.left != FLYDSL_AOT_UNLIMITED) return "other";
  if (mask.right == FLYDSL_AOT_UNLIMITED) return "none";
  if (mask.right != 0) return "other";
  return mask.anchor == FLYDSL_AOT_ANCHOR_TOP_LEFT ? "top-left" : "bottom-right";
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
