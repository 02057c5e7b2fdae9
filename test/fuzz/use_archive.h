// What a fuzz target does with an archive that opened, or did not: all that the library would.
#pragma once

#include <cstdio>
#include <cstdlib>

#include "src/archive/reader.h"
#include "src/select/select.h"
#include "test/src/archive/archive_fixture.h"
#include "test/src/archive/memory_file.h"

namespace flydsl::test {

inline void require(bool condition, const char *what) {
  if (condition) return;
  std::fprintf(stderr, "fuzz target: %s\n", what);
  std::abort();
}

inline void use_selection(const archive::Archive &archive) {
  static const archive::TargetId kDevice = *archive::parse_target_id("gfx950:sramecc+:xnack-");
  const select::Policy policy;
  for (const archive::Entry &entry : archive.entries()) {
    for (const uint64_t size : {uint64_t{0}, uint64_t{100}, UINT64_MAX}) {
      select::Problem problem{archive.string(entry.op), entry.functional_key, size | 1, size, size};
      problem.fallback_keys[0] = entry.functional_key + 1;
      problem.fallbacks = 1;
      problem.parallel = size;
      const select::Context context{archive, kDevice, policy, size == 0 ? 1 : UINT32_MAX};
      const auto choice = select::select(context, problem);
      if (choice) {
        require(choice->entry < archive.entries().size(), "a kernel that is not there");
        require(!choice->row || !select::describe(archive, *choice->row).empty(),
                "a row without words");
        require(archive.entries()[choice->entry].functional_key - entry.functional_key <= 1,
                "a kernel of another key");
      } else {
        require(!select::why_none(context, problem).empty(), "no reason");
      }
    }
  }
}

// Opens the bytes as a file. `images`: whether the code objects are read, too.
inline void use_archive(const std::vector<unsigned char> &bytes, bool images) {
  static MemoryFile file;
  require(file.write(bytes), "no memory for the file");
  std::unique_ptr<archive::Archive> archive;
  const Status status = archive::Archive::open(file.path(), kAbiId, &archive);
  require(status.ok() == (archive != nullptr), "an archive exactly if the status is OK");
  if (!archive) {
    require(!status.message().empty() && FLYDSL_AOT_STATUS_FAMILY(status.code()) == 3,
            "a reason of the archive's");
    return;
  }
  use_selection(*archive);
  if (!images) return;
  for (uint32_t i = 0; i < archive->entries().size(); ++i) {
    std::vector<unsigned char> image;
    if (archive->read(i, &image).ok())
      require(image.size() == archive->entries()[i].image_bytes,
              "another size than the index says");
  }
}

}  // namespace flydsl::test
