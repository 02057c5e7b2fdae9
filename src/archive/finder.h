// Finding the archive of an architecture.
#pragma once

#include <memory>
#include <string>

#include "src/archive/reader.h"
#include "src/status/status.h"

namespace flydsl::archive {

// Looks at `option_path` and nothing else if it is not null; else at each part of the environment
// variable FLYDSL_AOT_ARCHIVE_PATH (colon-separated) and nothing else if it names any; else at the
// directory of this library and its ../share/flydsl_aot. A place is an archive file, or a directory that holds
// flydsl_aot.<arch>.fda. What is absent, or is an archive of another architecture, is passed over;
// the first archive of this architecture is the answer, and when it is damaged or belongs to
// another build that is the answer too, never a silent use of the next one.
//
// Errors: as Archive::open; ARCHIVE_NOT_FOUND; UNSUPPORTED_ARCH when only archives of other
// architectures were found. Every message lists the places looked at.
Status find_archive(const std::string &arch, const char *option_path, uint64_t abi_id,
                    std::unique_ptr<Archive> *archive);

// Whether one of the places that were named, by `option_path` or else the environment, does not exist.
bool names_absent_place(const char *option_path);

}  // namespace flydsl::archive
