// The code objects that CMakeLists.txt compiles, found beside the test program.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace flydsl::emu::test {

inline std::filesystem::path program_dir() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path();
}

inline std::string object_path(const std::string &name) {
  return (program_dir() / "emulator_objects" / name).string();
}

inline std::vector<char> read_object(const std::string &name) {
  std::ifstream file(object_path(name), std::ios::binary);
  EXPECT_TRUE(file) << object_path(name);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// An offload bundle as clang-offload-bundler lays it out: a host entry without bytes, then each
// code object at a multiple of 4096. Written here because that tool is not part of the packages
// that the build needs.
inline std::vector<char> make_bundle(
    const std::vector<std::pair<std::string, std::vector<char>>> &entries) {
  const auto u64 = [](uint64_t value) {
    return std::string(reinterpret_cast<const char *>(&value), sizeof value);
  };
  const std::string host = "host-x86_64-unknown-linux-gnu-";
  std::string table = "__CLANG_OFFLOAD_BUNDLE__" + u64(entries.size() + 1);
  table += u64(4096) + u64(0) + u64(host.size()) + host;
  std::vector<char> contents;
  for (const auto &[target, object] : entries) {
    contents.resize((contents.size() + 4095) / 4096 * 4096);
    table += u64(4096 + contents.size()) + u64(object.size()) + u64(target.size()) + target;
    contents.insert(contents.end(), object.begin(), object.end());
  }
  std::vector<char> bundle(table.begin(), table.end());
  bundle.resize(4096);
  bundle.insert(bundle.end(), contents.begin(), contents.end());
  return bundle;
}

// A compiled object, or "bundle.hipfb": one of gfx90a and gfx950.
inline std::vector<char> read_image(const std::string &name) {
  if (name != "bundle.hipfb") return read_object(name);
  return make_bundle({{"hipv4-amdgcn-amd-amdhsa--gfx90a", read_object("gfx90a.co")},
                      {"hipv4-amdgcn-amd-amdhsa--gfx950", read_object("gfx950_v5.co")}});
}

}  // namespace flydsl::emu::test
