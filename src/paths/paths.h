// Where this library lies on disk: other parts of an installation are found relative to it.
#pragma once

#include <string>
#include <vector>

namespace flydsl {

// Directories of the loaded library (or program) that contains this code: as the loader names it,
// then with symbolic links resolved when that differs. Empty when the loader cannot tell.
std::vector<std::string> own_directories();

// "a/b" + "c" -> "a/b/c".
std::string join_path(const std::string &directory, const std::string &name);

}  // namespace flydsl
