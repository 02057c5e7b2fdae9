#include "src/jit/disk_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>

#include "src/archive/checksum.h"
#include "src/log/log.h"
#include "src/paths/paths.h"
#include "src/status/status.h"

namespace flydsl::jit {
namespace {

constexpr char kMagic[8] = {'F', 'L', 'Y', 'D', 'S', 'L', 'J', 'C'};
constexpr uint64_t kFormatVersion = 1;
constexpr uint64_t kMaxImageBytes = uint64_t{64} << 20;
constexpr std::string_view kSuffix = ".co";
constexpr std::string_view kTemporarySuffix = ".tmp";
// A temporary file that is older was left by a process that ended while it wrote.
constexpr time_t kStaleSeconds = 3600;

// A file is this and the code object.
struct FileHeader {
  char magic[8];
  uint64_t format_version;
  uint64_t key_high, key_low;
  uint64_t image_bytes;
  uint64_t image_checksum;
  uint64_t header_checksum;  // of what stands before it
};
static_assert(sizeof(FileHeader) == 56);

uint64_t checksum_of(const FileHeader &header) {
  return archive::checksum(&header, offsetof(FileHeader, header_checksum));
}

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  File(const File &) = delete;
  File &operator=(const File &) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

bool read_all(int fd, void *to, size_t bytes) {
  char *at = static_cast<char *>(to);
  while (bytes > 0) {
    const ssize_t got = ::read(fd, at, bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

std::string cache_folder() {
  if (const char *own = std::getenv("FLYDSL_AOT_JIT_CACHE_DIR"); own && *own) return own;
  // A path that is not absolute is to be ignored (XDG Base Directory Specification 0.8).
  if (const char *base = std::getenv("XDG_CACHE_HOME"); base && *base == '/')
    return join_path(base, "flydsl_aot/jit");
  if (const char *home = std::getenv("HOME"); home && *home == '/')
    return join_path(home, ".cache/flydsl_aot/jit");
  return {};
}

int open_file(const char *path, int flags, mode_t mode) {
  return ::open(path, flags, mode);
}

}  // namespace

const FileCalls kFileCalls = {open_file, ::write, ::fsync, ::close, ::rename};

DiskCacheOptions DiskCacheOptions::from_environment() {
  DiskCacheOptions options;
  options.folder = cache_folder();
  if (const char *limit = std::getenv("FLYDSL_AOT_JIT_CACHE_BYTES"); limit && *limit) {
    char *end = nullptr;
    errno = 0;
    const unsigned long long bytes = std::strtoull(limit, &end, 10);
    if (errno == 0 && *end == '\0' && *limit >= '0' && *limit <= '9')
      options.most_bytes = bytes;
    else
      FLYDSL_LOG(Warn, "FLYDSL_AOT_JIT_CACHE_BYTES is '%.64s', no number of bytes: %llu", limit,
                 static_cast<unsigned long long>(options.most_bytes));
  }
  if (options.most_bytes == 0) options.folder.clear();
  return options;
}

DiskCache::DiskCache(DiskCacheOptions options, const FileCalls &calls)
    : options_(std::move(options)), calls_(calls) {}

std::string DiskCache::path_of(const Key &key) const {
  return join_path(options_.folder, key.text() + std::string(kSuffix));
}

std::optional<std::vector<unsigned char>> DiskCache::read(const Key &key) const {
  if (options_.folder.empty()) return {};
  const std::string path = path_of(key);
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info {};
  if (file.fd() < 0 || fstat(file.fd(), &info) != 0 || !folder_is_own()) return {};
  if (!S_ISREG(info.st_mode) || info.st_uid != geteuid() || (info.st_mode & (S_IWGRP | S_IWOTH))) {
    FLYDSL_LOG(Warn, "'%s' is not used: not a file that only its user can write", path.c_str());
    return {};
  }
  FileHeader header;
  const auto size = static_cast<uint64_t>(info.st_size);
  std::vector<unsigned char> image;
  bool good = read_all(file.fd(), &header, sizeof header) &&
              std::memcmp(header.magic, kMagic, sizeof kMagic) == 0 &&
              header.format_version == kFormatVersion &&
              checksum_of(header) == header.header_checksum && header.key_high == key.high &&
              header.key_low == key.low && header.image_bytes <= kMaxImageBytes &&
              header.image_bytes == size - sizeof header;
  if (good) {
    image.resize(header.image_bytes);
    good = read_all(file.fd(), image.data(), image.size()) &&
           archive::checksum(image.data(), image.size()) == header.image_checksum;
  }
  if (!good) {
    FLYDSL_LOG(Warn, "'%s' is damaged and will be made anew", path.c_str());
    unlink(path.c_str());
    return {};
  }
  // The time of its last use, for eviction.
  futimens(file.fd(), nullptr);
  return image;
}

bool DiskCache::make_folder() const {
  const std::string &folder = options_.folder;
  for (size_t slash = folder.find('/', 1);; slash = folder.find('/', slash + 1)) {
    const std::string part = folder.substr(0, slash);
    if (mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) {
      // A parent may exist and be hidden from this process's rights to make folders.
      struct stat info {};
      if (stat(part.c_str(), &info) != 0) {
        FLYDSL_LOG(Warn, "compiled kernels are not kept: folder '%s': %s", part.c_str(),
                   errno_text(errno).c_str());
        return false;
      }
    }
    if (slash == std::string::npos) break;
  }
  return folder_is_own();
}

// Whoever can write there decides which files are found, and what is in them will run.
bool DiskCache::folder_is_own() const {
  struct stat info {};
  if (stat(options_.folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
      info.st_uid == geteuid() && !(info.st_mode & (S_IWGRP | S_IWOTH)))
    return true;
  FLYDSL_LOG(Warn,
             "compiled kernels are not kept: '%s' is not a folder that only its user can write",
             options_.folder.c_str());
  return false;
}

bool DiskCache::write_file(const std::string &path, const Key &key,
                           const std::vector<unsigned char> &image) const {
  FileHeader header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.format_version = kFormatVersion;
  header.key_high = key.high;
  header.key_low = key.low;
  header.image_bytes = image.size();
  header.image_checksum = archive::checksum(image.data(), image.size());
  header.header_checksum = checksum_of(header);
  std::vector<unsigned char> bytes(sizeof header + image.size());
  std::memcpy(bytes.data(), &header, sizeof header);
  std::copy(image.begin(), image.end(), bytes.begin() + sizeof header);

  const int fd = calls_.open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  bool good = true;
  for (size_t at = 0; good && at < bytes.size();) {
    const ssize_t put = calls_.write(fd, bytes.data() + at, bytes.size() - at);
    if (put < 0 && errno == EINTR) continue;
    good = put > 0;
    if (good) at += static_cast<size_t>(put);
  }
  good = good && calls_.fsync(fd) == 0;
  const int number = errno;
  // Network file systems report a full disk here.
  const bool closed = calls_.close(fd) == 0;
  if (!good) errno = number;
  return good && closed;
}

bool DiskCache::write(const Key &key, const std::vector<unsigned char> &image) const {
  const uint64_t bytes = sizeof(FileHeader) + image.size();
  if (options_.folder.empty() || bytes > options_.most_bytes || image.size() > kMaxImageBytes)
    return false;
  // Beyond the process's own limit a write would end the process (SIGXFSZ).
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || bytes > limit.rlim_cur) return false;
  if (!make_folder()) return false;
  static std::atomic<unsigned> count{0};
  const std::string path = path_of(key);
  const std::string temporary = text("%s.%ld.%u%s", path.c_str(), static_cast<long>(getpid()),
                                     count.fetch_add(1), std::string(kTemporarySuffix).c_str());
  if (!write_file(temporary, key, image) || calls_.rename(temporary.c_str(), path.c_str()) != 0) {
    FLYDSL_LOG(Warn, "compiled kernels are not kept: '%s': %s", path.c_str(),
               errno_text(errno).c_str());
    unlink(temporary.c_str());
    return false;
  }
  // So that the name is as safe as the bytes; without it a crash can only lose the file.
  const File folder(::open(options_.folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.fd() >= 0) fsync(folder.fd());
  evict(path);
  return true;
}

// Removes those of the longest disuse while there are too many bytes, and what was left half written.
void DiskCache::evict(const std::string &keep) const {
  struct Kept {
    timespec used;
    std::string path;
    uint64_t bytes;
  };
  std::vector<Kept> files;
  uint64_t total = 0;
  DIR *stream = opendir(options_.folder.c_str());
  if (!stream) return;
  const time_t now = time(nullptr);
  while (const dirent *item = readdir(stream)) {
    const std::string_view name = item->d_name;
    const bool temporary = ends_with(name, kTemporarySuffix);
    if (!temporary && !ends_with(name, kSuffix)) continue;
    std::string path = join_path(options_.folder, std::string(name));
    struct stat info {};
    if (lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    if (temporary && now - info.st_mtim.tv_sec > kStaleSeconds) {
      unlink(path.c_str());
    } else if (!temporary) {
      total += static_cast<uint64_t>(info.st_size);
      files.push_back({info.st_mtim, std::move(path), static_cast<uint64_t>(info.st_size)});
    }
  }
  closedir(stream);
  std::sort(files.begin(), files.end(), [](const Kept &a, const Kept &b) {
    return a.used.tv_sec != b.used.tv_sec ? a.used.tv_sec < b.used.tv_sec
                                          : a.used.tv_nsec < b.used.tv_nsec;
  });
  for (const Kept &file : files) {
    if (total <= options_.most_bytes) return;
    if (file.path == keep) continue;
    if (unlink(file.path.c_str()) == 0 || errno == ENOENT) total -= file.bytes;
  }
}

}  // namespace flydsl::jit
