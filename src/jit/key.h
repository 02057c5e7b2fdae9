// What names a compiled kernel: a digest of everything that decides about its code.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace flydsl::jit {

struct Key {
  uint64_t high = 0, low = 0;

  bool operator==(const Key &) const = default;
  // 32 hexadecimal digits.
  std::string text() const;
};

// One source file, by the name that others include it under.
struct Source {
  std::string_view name, text;
};

// The first source is the one that is compiled; the order of the others counts. `compiler`: version of hipRTC and of the compiler
// in it.
Key key_of(std::string_view compiler, std::string_view arch, std::span<const char *const> options,
           std::span<const Source> sources);

}  // namespace flydsl::jit
