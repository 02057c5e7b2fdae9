// A file in memory: thousands of versions of it are written.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace flydsl::test {

class MemoryFile {
 public:
  MemoryFile() : fd_(memfd_create("archive", MFD_CLOEXEC)) {}
  ~MemoryFile() { close(fd_); }
  MemoryFile(const MemoryFile &) = delete;
  MemoryFile &operator=(const MemoryFile &) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }
  [[nodiscard]] bool truncate(size_t bytes) {
    return ftruncate(fd_, static_cast<off_t>(bytes)) == 0;
  }
  [[nodiscard]] bool write(const std::vector<unsigned char> &bytes) {
    return truncate(bytes.size()) &&
           pwrite(fd_, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size());
  }

 private:
  int fd_;
};

}  // namespace flydsl::test
