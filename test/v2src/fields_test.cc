// include/flydsl_aot/fields.h lists every member of the operators' parameters, once and in their order.
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "flydsl_aot/fields.h"
#include "flydsl_aot/flydsl_aot.h"

namespace flydsl::test {
namespace {

struct Part {
  std::string name;
  size_t offset, bytes;
};

// Bytes of a struct that no member of the list lies in.
std::vector<size_t> bytes_left(size_t struct_bytes, const std::vector<Part> &parts) {
  std::vector<int> covered(struct_bytes);
  size_t last = 0;
  for (const Part &part : parts) {
    EXPECT_GE(part.offset, last) << part.name << " is out of order";
    last = part.offset;
    for (size_t i = 0; i < part.bytes; ++i) EXPECT_EQ(covered[part.offset + i]++, 0) << part.name;
  }
  std::vector<size_t> left;
  for (size_t i = 0; i < struct_bytes; ++i)
    if (covered[i] == 0) left.push_back(i);
  return left;
}

// Members that lists leave out: struct_size, reserved ones, padding, and the workspace.
template <class Params>
std::vector<size_t> bytes_to_leave(const std::vector<size_t> &reserved) {
  std::vector<size_t> bytes = {0, 1, 2, 3};
  for (const size_t offset : reserved)
    for (size_t i = 0; i < 4; ++i) bytes.push_back(offset + i);
  if constexpr (requires(Params p) { p.workspace; })
    for (size_t i = 0; i < 16; ++i) bytes.push_back(offsetof(Params, workspace) + i);
  std::sort(bytes.begin(), bytes.end());
  return bytes;
}

#define PART(kind, member) {#member, offsetof(Params, member), sizeof(Params::member)},

#define EXPECT_COMPLETE(name, fields, ...)                                                       \
  {                                                                                              \
    using Params = flydsl_aot_##name##_params;                                                   \
    EXPECT_EQ(bytes_left(sizeof(Params), {fields(PART)}), bytes_to_leave<Params>({__VA_ARGS__})) \
        << #name;                                                                                \
  }

TEST(Fields, EveryMemberIsListed) {
  EXPECT_COMPLETE(attention_forward, FLYDSL_AOT_ATTENTION_FORWARD_FIELDS,
                  offsetof(Params, mask.reserved))
  EXPECT_COMPLETE(attention_backward, FLYDSL_AOT_ATTENTION_BACKWARD_FIELDS,
                  offsetof(Params, mask.reserved))
  EXPECT_COMPLETE(attention_decode, FLYDSL_AOT_ATTENTION_DECODE_FIELDS,
                  offsetof(Params, mask.reserved), offsetof(Params, softcap) + 4)
  EXPECT_COMPLETE(gemm, FLYDSL_AOT_GEMM_FIELDS, offsetof(Params, reserved))
  EXPECT_COMPLETE(grouped_gemm, FLYDSL_AOT_GROUPED_GEMM_FIELDS)
  EXPECT_COMPLETE(layer_norm, FLYDSL_AOT_LAYER_NORM_FIELDS, offsetof(Params, reserved))
  EXPECT_COMPLETE(layer_norm_backward, FLYDSL_AOT_LAYER_NORM_BACKWARD_FIELDS)
  EXPECT_COMPLETE(rms_norm_backward, FLYDSL_AOT_RMS_NORM_BACKWARD_FIELDS)
  EXPECT_COMPLETE(mx_quantise, FLYDSL_AOT_MX_QUANTISE_FIELDS, offsetof(Params, reserved))
  EXPECT_COMPLETE(rms_norm, FLYDSL_AOT_RMS_NORM_FIELDS, offsetof(Params, reserved))
  EXPECT_COMPLETE(scaled_gemm, FLYDSL_AOT_SCALED_GEMM_FIELDS)
  EXPECT_COMPLETE(topk, FLYDSL_AOT_TOPK_FIELDS)
  EXPECT_COMPLETE(topk_softmax, FLYDSL_AOT_TOPK_SOFTMAX_FIELDS)
}

}  // namespace
}  // namespace flydsl::test
