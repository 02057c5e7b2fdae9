#include "v2src/parts_of_k.h"

namespace flydsl {

Status check_workspace_of_parts(const void *workspace, uint64_t bytes, uint64_t needed,
                                const char *query) {
  constexpr uint64_t kAlignment = 16;
  if (needed == 0) return {};
  if (bytes < needed || !workspace) {
    return error(FLYDSL_AOT_INVALID_WORKSPACE,
                 "workspace is %s, workspace_bytes %llu; the problem needs %llu bytes (see %s)",
                 workspace ? "given" : "NULL", static_cast<unsigned long long>(bytes),
                 static_cast<unsigned long long>(needed), query);
  }
  if (reinterpret_cast<uint64_t>(workspace) % kAlignment == 0) return {};
  return error(FLYDSL_AOT_INVALID_WORKSPACE, "workspace is at %p; it must be 16-byte aligned",
               workspace);
}

}  // namespace flydsl
