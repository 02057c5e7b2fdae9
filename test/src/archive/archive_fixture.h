// A small real archive, made by the writer, for tests of everything that reads archives.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "src/archive/writer.h"

namespace flydsl::test {

constexpr uint64_t kAbiId = 0x1122334455667788;

// Image of a pretend code object: compressible, different for every seed.
inline std::vector<unsigned char> fake_image(unsigned seed, size_t bytes = 3000) {
  std::vector<unsigned char> image(bytes);
  for (size_t i = 0; i < bytes; ++i)
    image[i] = static_cast<unsigned char>((i / 7 * 31 + seed * i * i / 64) & 0xFF);
  std::memcpy(image.data(), "\177ELF", 4);
  return image;
}

inline archive::KernelSpec fake_kernel(const std::string &name, uint64_t functional_key,
                                       unsigned seed) {
  archive::KernelSpec kernel;
  kernel.name = name;
  kernel.op = "op";
  kernel.backend = "native";
  kernel.target_id = "gfx950";
  kernel.symbol = name + "_symbol";
  kernel.kernarg_layout_id = 77;
  kernel.kernarg_bytes = 16;
  kernel.block[0] = 256;
  kernel.tile[0] = 128;
  kernel.tile[1] = 64;
  kernel.lds_static_bytes = 4096;
  kernel.vgpr_count = 100;
  kernel.sgpr_count = 50;
  kernel.functional_key = functional_key;
  kernel.image = fake_image(seed);
  return kernel;
}

// Three kernels; key 5 lists "b" (aligned) then "a", key 9 lists "c" (for Sq up to 100).
inline archive::ArchiveSpec small_spec() {
  archive::ArchiveSpec spec;
  spec.arch = "gfx950";
  spec.abi_id = kAbiId;
  spec.library_version = 100;
  spec.kernels = {fake_kernel("c", 9, 3), fake_kernel("a", 5, 1), fake_kernel("b", 5, 2)};
  spec.selection = {{"op", 9, {{"c", 2, 0, 100, 0, 1000}}},
                    {"op", 5, {{"b", 16, 0, 1000, 0, 1000}, {"a", 2, 0, 1000, 0, 1000}}}};
  return spec;
}

// The same with tuning rows of key 5: "a" is the fastest of few rows, "b" of many.
inline archive::ArchiveSpec tuned_spec() {
  archive::ArchiveSpec spec = small_spec();
  spec.tuning = {{"op",
                  5,
                  {{"a", 64, 100, 8, 16, 256, 1500, "model:x"},
                   {"b", 1000, 100, 8, 16, 256, 2500, "model:x"},
                   {"b", 1000, 100, 64, 16, 256, 9000, "model:x"}}},
                 {"op", 9, {{"c", 10, 10, 1, 16, 128, 7, "hip:y"}}}};
  return spec;
}

inline std::vector<unsigned char> build_or_die(const archive::ArchiveSpec &spec) {
  std::vector<unsigned char> file;
  archive::WriteReport report;
  const Status status = archive::build(spec, &file, &report);
  EXPECT_TRUE(status.ok()) << status.message();
  return file;
}

// A folder that disappears with the object.
class TempFolder {
 public:
  TempFolder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "flydsl_aot_test.XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string &path() const { return path_; }
  std::string file(const std::string &name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline void write_bytes(const std::string &path, const std::vector<unsigned char> &bytes) {
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream.write(reinterpret_cast<const char *>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  ASSERT_TRUE(stream.good()) << path;
}

// Sets an environment variable for a scope.
class ScopedEnv {
 public:
  ScopedEnv(const char *name, const char *value) : name_(name) {
    if (const char *old = getenv(name)) old_ = old, had_ = true;
    value ? setenv(name, value, 1) : unsetenv(name);
  }
  ~ScopedEnv() { had_ ? setenv(name_, old_.c_str(), 1) : unsetenv(name_); }
  ScopedEnv(const ScopedEnv &) = delete;
  ScopedEnv &operator=(const ScopedEnv &) = delete;

 private:
  const char *name_;
  std::string old_;
  bool had_ = false;
};

}  // namespace flydsl::test
