// The made-up launch that the tests of reports read, and looks into the text of a report.
#pragma once

#include <fstream>
#include <string>

#include "tools/report/timing_report.h"

namespace flydsl::tools {

inline const Json &sample() {
  static const Json json = Json::parse(std::ifstream(FLYDSL_TEST_REPORT));
  return json;
}

// The line of `text` that holds `word`; empty if there is none.
inline std::string line_with(const std::string &text, const std::string &word) {
  const size_t at = text.find(word);
  if (at == std::string::npos) return "";
  const size_t begin = text.rfind('\n', at) + 1;  // npos + 1 is 0
  return text.substr(begin, text.find('\n', at) - begin);
}

inline bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

}  // namespace flydsl::tools
