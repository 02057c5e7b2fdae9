// A drawing as the bytes of a PNG file, through cairo, which is opened when it is needed: a command
// that writes no picture does not need it.
#pragma once

#include <string>

#include "tools/report/drawing.h"

namespace flydsl::tools {

// `pixels_per_unit` enlarges the picture. Throws std::runtime_error that says what is missing where
// cairo is not installed.
std::string png(const Drawing &drawing, double pixels_per_unit = 2);

}  // namespace flydsl::tools
