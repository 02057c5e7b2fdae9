// Property: any bytes as a kernel that was compiled before are refused, or are the code object that was stored under the key.
// Input: a byte (1: checksums are made right), the file.
#include <fcntl.h>

#include "src/archive/checksum.h"
#include "src/jit/disk_cache.h"
#include "test/fuzz/use_archive.h"

namespace {

// Places in the file (src/jit/disk_cache.cc).
constexpr size_t kImageChecksum = 40, kHeaderChecksum = 48, kHeaderBytes = 56;

void put(std::vector<unsigned char> *file, size_t at, uint64_t value) {
  std::memcpy(file->data() + at, &value, sizeof value);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
  using namespace flydsl;
  using namespace flydsl::test;
  static const TempFolder folder;
  static const jit::DiskCache cache({folder.path()});
  constexpr jit::Key kKey = {1, 2};
  static const std::string path = folder.file(kKey.text() + ".co");
  if (bytes == 0) return 0;
  std::vector<unsigned char> file(data + 1, data + bytes);
  if ((data[0] & 1) && file.size() >= kHeaderBytes) {
    put(&file, kImageChecksum,
        archive::checksum(file.data() + kHeaderBytes, file.size() - kHeaderBytes));
    put(&file, kHeaderChecksum, archive::checksum(file.data(), kHeaderChecksum));
  }
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  require(fd >= 0 && write(fd, file.data(), file.size()) == static_cast<ssize_t>(file.size()),
          "no room for the file");
  close(fd);
  if (const auto image = cache.read(kKey)) {
    require(image->size() == file.size() - kHeaderBytes, "another size than the file has");
    require(std::equal(image->begin(), image->end(), file.begin() + kHeaderBytes),
            "other bytes than the file has");
  } else {
    require(access(path.c_str(), F_OK) != 0, "a damaged file stays");
  }
  return 0;
}
