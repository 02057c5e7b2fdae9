// Recorded launches in files, for modelling them again without running the kernel. For use on the
// machine and by the version that wrote them: there is no other reader.
#pragma once

#include <string>

#include "emulator/timing/recorded_launch.h"

namespace flydsl::emu::timing {

// False with a sentence in *error.
bool save_launch(const RecordedLaunch &launch, const std::string &path, std::string *error);
// The code is decoded again. What is not such a file, or a part of one, is refused.
bool load_launch(const std::string &path, RecordedLaunch *launch, std::string *error);

}  // namespace flydsl::emu::timing
