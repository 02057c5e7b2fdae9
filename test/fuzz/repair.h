// Right checksums for a file whose bytes were changed: without them nothing behind the first comparison would ever run.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "src/archive/checksum.h"
#include "src/archive/format.h"

namespace flydsl::test {

inline void repair_header(std::vector<unsigned char> *file) {
  archive::Header header;
  if (file->size() < sizeof header) return;
  std::memcpy(&header, file->data(), sizeof header);
  if (header.index_bytes <= file->size() - sizeof header)
    header.index_checksum = archive::checksum(file->data() + sizeof header, header.index_bytes);
  header.header_checksum = archive::checksum(&header, offsetof(archive::Header, header_checksum));
  std::memcpy(file->data(), &header, sizeof header);
}

// Those of the compressed code objects, where they lie in the file.
inline void repair_frames(std::vector<unsigned char> *file) {
  archive::Header header;
  if (file->size() < sizeof header) return;
  std::memcpy(&header, file->data(), sizeof header);
  const size_t entries =
      std::min<size_t>(header.entry_count, (file->size() - sizeof header) / sizeof(archive::Entry));
  for (size_t i = 0; i < entries; ++i) {
    unsigned char *const at = file->data() + sizeof header + i * sizeof(archive::Entry);
    archive::Entry entry;
    std::memcpy(&entry, at, sizeof entry);
    if (entry.frame_offset > file->size() || entry.frame_bytes > file->size() - entry.frame_offset)
      continue;
    entry.frame_checksum = archive::checksum(file->data() + entry.frame_offset, entry.frame_bytes);
    std::memcpy(at, &entry, sizeof entry);
  }
}

}  // namespace flydsl::test
