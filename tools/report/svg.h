// A drawing as an SVG element, to stand in a file or in HTML.
#pragma once

#include <string>

#include "tools/report/drawing.h"

namespace flydsl::tools {

std::string svg(const Drawing &drawing);

}  // namespace flydsl::tools
