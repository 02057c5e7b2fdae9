// Numbers and escapes that the reports share.
#pragma once

#include <string>

namespace flydsl::tools {

// printf into a string.
std::string format(const char *format, ...) __attribute__((format(printf, 1, 2)));
// 0.1234 -> "12.3 %"
std::string percent(double share);
// 0.00123 -> "1.230 ms"
std::string duration(double seconds);
// Text for SVG and HTML, in content and in attribute values.
std::string escape_markup(const std::string &text);

}  // namespace flydsl::tools
