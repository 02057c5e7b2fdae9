// Compiled kernels in files (README.md). Whatever goes wrong here costs a compilation later, never a call.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/jit/key.h"

namespace flydsl::jit {

// The system calls that write, so that tests can make each of them fail.
struct FileCalls {
  int (*open)(const char *path, int flags, mode_t mode);
  ssize_t (*write)(int fd, const void *data, size_t bytes);
  int (*fsync)(int fd);
  int (*close)(int fd);
  int (*rename)(const char *from, const char *to);
};
extern const FileCalls kFileCalls;

constexpr uint64_t kDefaultCacheBytes = uint64_t{256} << 20;

struct DiskCacheOptions {
  std::string folder;  // empty: no cache
  uint64_t most_bytes = kDefaultCacheBytes;

  // As the environment says. A limit that is no number is taken as the default.
  static DiskCacheOptions from_environment();
};

// Safe from several threads and processes at a time: a reader sees a whole file or none.
class DiskCache {
 public:
  explicit DiskCache(DiskCacheOptions options, const FileCalls &calls = kFileCalls);

  // What was stored under the key; nothing if it is not there. A damaged file is removed.
  std::optional<std::vector<unsigned char>> read(const Key &key) const;
  // False, and a warning in the log, when it could not be kept.
  bool write(const Key &key, const std::vector<unsigned char> &image) const;

 private:
  bool make_folder() const;
  bool folder_is_own() const;
  bool write_file(const std::string &path, const Key &key,
                  const std::vector<unsigned char> &image) const;
  void evict(const std::string &keep) const;
  std::string path_of(const Key &key) const;

  DiskCacheOptions options_;
  const FileCalls &calls_;
};

}  // namespace flydsl::jit
