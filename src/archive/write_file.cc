#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "src/archive/writer.h"

namespace flydsl::archive {
namespace {

Status io_error(const char *action, const std::string &path) {
  return error(FLYDSL_AOT_ARCHIVE_IO, "%s '%s': %s", action, path.c_str(), std::strerror(errno));
}

Status write_all(int fd, const std::string &path, const std::vector<unsigned char> &file) {
  size_t done = 0;
  while (done < file.size()) {
    const ssize_t wrote = write(fd, file.data() + done, file.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return io_error("writing", path);
    done += static_cast<size_t>(wrote);
  }
  // mkstemp made it private to its owner; an archive is read by everyone the umask allows.
  const mode_t mask = umask(0);
  umask(mask);
  if (fchmod(fd, 0666 & ~mask) != 0) return io_error("setting the mode of", path);
  return fsync(fd) == 0 ? Status() : io_error("syncing", path);
}

}  // namespace

Status write_file(const std::string &path, const std::vector<unsigned char> &file) {
  std::string temporary = path + ".XXXXXX";
  const int fd = mkstemp(temporary.data());
  if (fd < 0) return io_error("creating", temporary);
  Status status = write_all(fd, temporary, file);
  if (close(fd) != 0 && status.ok()) status = io_error("closing", temporary);
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0)
    status = io_error("renaming to", path);
  if (!status.ok()) unlink(temporary.c_str());
  return status;
}

}  // namespace flydsl::archive
