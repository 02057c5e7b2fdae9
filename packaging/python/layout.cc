// Writes flydsl_aot/_layout.py: offsets, sizes and numbers of the C ABI as the compiler sees them, so that the Python binding
// cannot drift from the headers.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <type_traits>

#include "flydsl_aot/fields.h"
#include "flydsl_aot/flydsl_aot.h"

namespace {

// The kinds of fields.h, and those of the few structs that it does not list: what the binding packs and reads.
template <class Member>
constexpr const char *kind_of() {
  using T = std::remove_cv_t<Member>;
  if (std::is_same_v<T, flydsl_aot_tensor>) return "tensor";
  if (std::is_same_v<T, float>) return "f32";
  if (std::is_same_v<T, int32_t>) return "i32";
  if (std::is_same_v<T, uint32_t>) return "u32";
  if (std::is_same_v<T, int64_t>) return "i64";
  if (std::is_same_v<T, uint64_t>) return "u64";
  if (std::is_same_v<T, const uint64_t *>) return "in64";
  if (std::is_same_v<T, uint64_t *>) return "out64";
  if (std::is_same_v<T, const char *>) return "string";
  if (std::is_same_v<T, void *>) return "pointer";
  if (std::is_array_v<T>) return "array";
  return nullptr;
}

#define MEMBER(kind, member)                                      \
  static_assert(kind_of<decltype(Struct::member)>() != nullptr,   \
                "a type that the binding does not know");         \
  std::fprintf(file, "        \"%s\": (\"%s\", %zu),\n", #member, \
               kind_of<decltype(Struct::member)>(), offsetof(Struct, member));

template <class Struct>
void write_workspace(std::FILE *file) {
  if constexpr (requires(Struct p) { p.workspace; }) {
    MEMBER(, workspace)
    MEMBER(, workspace_bytes)
  }
}

#define OPERATOR(name, fields)                                          \
  {                                                                     \
    using Struct = flydsl_aot_##name##_params;                          \
    std::fprintf(file, "    \"%s\": (%zu, {\n", #name, sizeof(Struct)); \
    fields(MEMBER) write_workspace<Struct>(file);                       \
    std::fprintf(file, "    }),\n");                                    \
  }

#define STRUCT(name, type, fields)                                     \
  {                                                                    \
    using Struct = type;                                               \
    std::fprintf(file, "    \"%s\": (%zu, {\n", name, sizeof(Struct)); \
    fields(MEMBER) std::fprintf(file, "    }),\n");                    \
  }

// clang-format off
#define TENSOR_FIELDS(FIELD) FIELD(, data) FIELD(, dtype) FIELD(, rank) FIELD(, sizes) FIELD(, strides)
#define OPEN_FIELDS(FIELD) \
  FIELD(, device) FIELD(, device_library) FIELD(, arch) FIELD(, archive_path) FIELD(, max_loaded_kernels) \
  FIELD(, jit) FIELD(, force_kernel) FIELD(, backends)
#define INFO_FIELDS(FIELD) \
  FIELD(, device) FIELD(, device_library) FIELD(, device_name) FIELD(, arch) FIELD(, target_id) \
  FIELD(, archive_path) FIELD(, runtime_version) FIELD(, compute_units) FIELD(, kernel_count) FIELD(, device_count)
#define QUERY_FIELDS(FIELD) \
  FIELD(, status) FIELD(, workspace_bytes) FIELD(, kernel) FIELD(, backend) FIELD(, reason)
#define CANDIDATE_FIELDS(FIELD) \
  FIELD(, taken) FIELD(, kernel) FIELD(, backend) FIELD(, reason) FIELD(, fits) FIELD(, main) FIELD(, problem)
// clang-format on

#define NUMBER(name, value) std::fprintf(file, "    \"%s\": %d,\n", name, static_cast<int>(value));

void write(std::FILE *file) {
  std::fprintf(file,
               "\"\"\"Generated from include/flydsl_aot by packaging/python/layout.cc: do not "
               "edit.\"\"\"\n\n"
               "VERSION = %d\n"
               "MAX_RANK = %d\n\n"
               "# Operator -> (bytes, field -> (kind, offset)).\n"
               "PARAMETERS = {\n",
               FLYDSL_AOT_VERSION, FLYDSL_AOT_MAX_RANK);
  FLYDSL_AOT_OPERATORS(OPERATOR)
  std::fprintf(file, "}\n\nSTRUCTS = {\n");
  STRUCT("tensor", flydsl_aot_tensor, TENSOR_FIELDS)
  STRUCT("open_options", flydsl_aot_open_options, OPEN_FIELDS)
  STRUCT("info", flydsl_aot_info, INFO_FIELDS)
  STRUCT("query_result", flydsl_aot_query_result, QUERY_FIELDS)
  STRUCT("candidate", flydsl_aot_candidate, CANDIDATE_FIELDS)
  std::fprintf(file, "}\n\nDTYPES = {\n");
  NUMBER("fp64", FLYDSL_AOT_FP64)
  NUMBER("fp32", FLYDSL_AOT_FP32)
  NUMBER("fp16", FLYDSL_AOT_FP16)
  NUMBER("bf16", FLYDSL_AOT_BF16)
  NUMBER("e4m3", FLYDSL_AOT_E4M3)
  NUMBER("e5m2", FLYDSL_AOT_E5M2)
  NUMBER("e4m3_fnuz", FLYDSL_AOT_E4M3_FNUZ)
  NUMBER("e5m2_fnuz", FLYDSL_AOT_E5M2_FNUZ)
  NUMBER("e8m0", FLYDSL_AOT_E8M0)
  NUMBER("e2m1x2", FLYDSL_AOT_E2M1X2)
  NUMBER("int32", FLYDSL_AOT_INT32)
  NUMBER("int64", FLYDSL_AOT_INT64)
  NUMBER("bool", FLYDSL_AOT_BOOL)
  std::fprintf(file, "}\n\nDEVICES = {\n");
  NUMBER("default", FLYDSL_AOT_DEVICE_DEFAULT)
  NUMBER("hip", FLYDSL_AOT_DEVICE_HIP)
  NUMBER("emulator", FLYDSL_AOT_DEVICE_EMULATOR)
  NUMBER("none", FLYDSL_AOT_DEVICE_NONE)
  std::fprintf(file, "}\n\nJIT = {\n");
  NUMBER("default", FLYDSL_AOT_JIT_DEFAULT)
  NUMBER("off", FLYDSL_AOT_JIT_OFF)
  NUMBER("on", FLYDSL_AOT_JIT_ON)
  std::fprintf(file, "}\n\nANCHORS = {\n");
  NUMBER("none", FLYDSL_AOT_ANCHOR_NONE)
  NUMBER("top-left", FLYDSL_AOT_ANCHOR_TOP_LEFT)
  NUMBER("bottom-right", FLYDSL_AOT_ANCHOR_BOTTOM_RIGHT)
  std::fprintf(file, "}\n\nACTIVATIONS = {\n");
  NUMBER("none", FLYDSL_AOT_ACTIVATION_NONE)
  NUMBER("relu", FLYDSL_AOT_ACTIVATION_RELU)
  NUMBER("gelu", FLYDSL_AOT_ACTIVATION_GELU)
  NUMBER("gelu_tanh", FLYDSL_AOT_ACTIVATION_GELU_TANH)
  NUMBER("silu", FLYDSL_AOT_ACTIVATION_SILU)
  std::fprintf(file, "}\n\nSCALE_LAYOUTS = {\n");
  NUMBER("plain", FLYDSL_AOT_SCALES_PLAIN)
  NUMBER("shuffled-32-8", FLYDSL_AOT_SCALES_SHUFFLED_32_8)
  std::fprintf(file, "}\n\nROUNDINGS = {\n");
  NUMBER("nearest-even", FLYDSL_AOT_ROUND_NEAREST_EVEN)
  NUMBER("stochastic", FLYDSL_AOT_ROUND_STOCHASTIC)
  std::fprintf(file, "}\n");
}

}  // namespace

int main(int count, char **arguments) {
  std::FILE *file = count == 2 ? std::fopen(arguments[1], "w") : nullptr;
  if (!file) {
    std::fprintf(stderr, "usage: layout FILE\n");
    return 2;
  }
  write(file);
  return std::fclose(file) == 0 ? 0 : 1;
}
