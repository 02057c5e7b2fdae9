#include "src/archive/checksum.h"

// Header-only use: no run-time dependency on libxxhash.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace flydsl::archive {

uint64_t checksum(const void *data, size_t bytes) noexcept {
  return XXH3_64bits(data, bytes);
}

uint64_t selection_hash(std::string_view op, uint64_t functional_key) noexcept {
  return XXH3_64bits_withSeed(op.data(), op.size(), functional_key);
}

}  // namespace flydsl::archive
