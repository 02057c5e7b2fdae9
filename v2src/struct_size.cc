#include "v2src/struct_size.h"

namespace flydsl {

Status check_struct_size(const char *type, uint32_t seen, size_t first, size_t known,
                         const void *caller_struct, bool is_input) {
  if (seen < first || seen > kMaxStructBytes) {
    return error(
        FLYDSL_AOT_INVALID_STRUCT_SIZE,
        "%s.struct_size is %u; allowed: %zu (sizeof the struct), an earlier version's from %zu, or "
        "more up to %zu if the rest is zero",
        type, seen, known, first, static_cast<size_t>(kMaxStructBytes));
  }
  if (!is_input) return {};
  const unsigned char *bytes = static_cast<const unsigned char *>(caller_struct);
  for (size_t i = known; i < seen; ++i) {
    if (bytes[i] != 0) {
      return error(FLYDSL_AOT_INVALID_STRUCT_SIZE,
                   "%s.struct_size is %u and byte %zu is not zero: a field that this library "
                   "(version %d, %zu bytes) "
                   "does not know is in use",
                   type, seen, i, FLYDSL_AOT_VERSION, known);
    }
  }
  return {};
}

}  // namespace flydsl
