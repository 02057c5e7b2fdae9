// The archive's hash: XXH3-64. Seed 0 for checksums; the functional key seeds the selection table's
// hash.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace flydsl::archive {

uint64_t checksum(const void *data, size_t bytes) noexcept;
uint64_t selection_hash(std::string_view op, uint64_t functional_key) noexcept;

}  // namespace flydsl::archive
