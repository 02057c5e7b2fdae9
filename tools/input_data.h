// The data of a bound problem's inputs on their way to the device: from files, from lists of numbers, or made up.
#pragma once

#include <string>

#include "tools/library_handle.h"
#include "tools/problem_arguments.h"

namespace flydsl::tools {

// Fills the inputs, whose memory there is. Returns a sentence on what they hold. Of the host's memory at most 4 GiB
// are filled with random values: the emulator's is sparse, and what is not written costs nothing and reads as zero.
std::string upload_inputs(const LibraryHandle &library, const BoundProblem &bound);

}  // namespace flydsl::tools
