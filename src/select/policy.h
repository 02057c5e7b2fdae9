// Which kernels of an archive the user of a handle allows, and which he asks for.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "src/archive/reader.h"
#include "src/status/status.h"

namespace flydsl::select {

// Nothing is barred and nothing forced where the lists are empty.
struct Policy {
  std::vector<uint8_t> barred;   // by entry: of a backend that is not allowed
  std::vector<uint32_t> forced;  // entries, in ascending order

  bool bars(uint32_t entry) const { return !barred.empty() && barred[entry] != 0; }
  bool forces(uint32_t entry) const;
};

// A list of names with commas, and what it is called in messages.
struct NameList {
  const char *source;
  const char *names;  // null or empty: nothing is said
};

// Errors: INVALID_ARGUMENT for a kernel that the archive does not have, for a backend that nobody has, for an empty name.
Status make_policy(const archive::Archive &archive, const NameList &force_kernel,
                   const NameList &backends, Policy *policy);

}  // namespace flydsl::select
