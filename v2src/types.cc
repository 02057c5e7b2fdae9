#include "v2src/types.h"

namespace {

struct DtypeRow {
  flydsl_aot_dtype dtype;
  const char *name;
  uint32_t bytes;
};

constexpr DtypeRow kDtypes[] = {
    {FLYDSL_AOT_FP64, "fp64", 8},           {FLYDSL_AOT_FP32, "fp32", 4},
    {FLYDSL_AOT_FP16, "fp16", 2},           {FLYDSL_AOT_BF16, "bf16", 2},
    {FLYDSL_AOT_E4M3, "e4m3", 1},           {FLYDSL_AOT_E5M2, "e5m2", 1},
    {FLYDSL_AOT_E4M3_FNUZ, "e4m3_fnuz", 1}, {FLYDSL_AOT_E5M2_FNUZ, "e5m2_fnuz", 1},
    {FLYDSL_AOT_E8M0, "e8m0", 1},           {FLYDSL_AOT_E2M1X2, "e2m1x2", 1},
    {FLYDSL_AOT_INT32, "int32", 4},         {FLYDSL_AOT_INT64, "int64", 8},
    {FLYDSL_AOT_BOOL, "bool", 1},
};

const DtypeRow *find(flydsl_aot_dtype dtype) {
  for (const DtypeRow &row : kDtypes) {
    if (row.dtype == dtype) return &row;
  }
  return nullptr;
}

}  // namespace

namespace flydsl {

bool known_dtype(flydsl_aot_dtype dtype) {
  return find(dtype) != nullptr;
}

}  // namespace flydsl

extern "C" {

const char *flydsl_aot_dtype_name(flydsl_aot_dtype dtype) {
  const DtypeRow *row = find(dtype);
  return row ? row->name : "invalid";
}

uint32_t flydsl_aot_dtype_bytes(flydsl_aot_dtype dtype) {
  const DtypeRow *row = find(dtype);
  return row ? row->bytes : 0;
}

}  // extern "C"
