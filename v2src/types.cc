#include "v2src/types.h"

namespace {

const flydsl::DtypeRow *find(flydsl_aot_dtype dtype) {
  for (const flydsl::DtypeRow &row : flydsl::kDtypes) {
    if (row.dtype == dtype) return &row;
  }
  return nullptr;
}

}  // namespace

extern "C" {

const char *flydsl_aot_dtype_name(flydsl_aot_dtype dtype) {
  const flydsl::DtypeRow *row = find(dtype);
  return row ? row->name : "invalid";
}

uint32_t flydsl_aot_dtype_bytes(flydsl_aot_dtype dtype) {
  return flydsl::dtype_bytes(dtype);
}

}  // extern "C"
