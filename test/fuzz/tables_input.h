// An archive around tables of any content: the counts come first in the input, what it lacks is zero.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "src/archive/format.h"
#include "test/fuzz/repair.h"
#include "test/src/archive/archive_fixture.h"

namespace flydsl::test {

class TablesInput {
 public:
  TablesInput(const uint8_t *data, size_t bytes) : data_(data), bytes_(bytes) {}
  uint8_t byte() {
    if (bytes_ == 0) return 0;
    --bytes_;
    return *data_++;
  }
  // 0, or a power of two up to 16.
  uint32_t slots() {
    const uint8_t exponent = byte() % 6;
    return exponent == 0 ? 0 : 1u << (exponent - 1);
  }
  // The next bytes of the input.
  void fill(unsigned char *to, size_t count) {
    const size_t some = count < bytes_ ? count : bytes_;
    if (some > 0) std::memcpy(to, data_, some);
    data_ += some;
    bytes_ -= some;
  }

 private:
  const uint8_t *data_;
  size_t bytes_;
};

// Header with the counts that are set in it, and the index.
inline std::vector<unsigned char> file_with_index(archive::Header header,
                                                  const std::vector<unsigned char> &index) {
  constexpr size_t kRoomForFrames = 256;
  std::memcpy(header.magic, archive::kMagic, sizeof header.magic);
  header.format_version = archive::kFormatVersion;
  header.header_bytes = sizeof header;
  header.abi_id = kAbiId;
  std::strcpy(header.arch, "gfx950");
  header.index_bytes = index.size();
  header.file_bytes = sizeof header + index.size() + kRoomForFrames;
  std::vector<unsigned char> file(header.file_bytes);
  std::memcpy(file.data(), &header, sizeof header);
  std::copy(index.begin(), index.end(), file.begin() + sizeof header);
  repair_header(&file);
  return file;
}

}  // namespace flydsl::test
