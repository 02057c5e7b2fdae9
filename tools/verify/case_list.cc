#include "tools/verify/case_list.h"

#include <map>
#include <regex>

#include "tools/verify/case_line.h"

namespace flydsl::verify {
namespace {

std::string name_of(const std::string &line) {
  return line.substr(0, line.find_first_of(" \t"));
}

}  // namespace

std::vector<std::string> case_lines(const std::string &origin, const std::string &content) {
  std::vector<std::string> lines;
  std::map<std::string, size_t> places;
  size_t number = 0;
  for (std::string line : split(content, '\n')) {
    ++number;
    line = line.substr(0, line.find('#'));
    const size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string::npos) continue;
    line = line.substr(begin, line.find_last_not_of(" \t\r") + 1 - begin);
    const auto [known, added] = places.emplace(name_of(line), number);
    if (!added) {
      throw CaseError(origin + ":" + std::to_string(number) + ": case " + known->first +
                      " is also line " + std::to_string(known->second));
    }
    lines.push_back(line);
  }
  return lines;
}

std::vector<std::string> select_cases(const std::vector<std::string> &lines,
                                      const std::string &suite, const std::string &pattern) {
  const std::regex expression(pattern);
  std::vector<std::string> selected;
  for (const std::string &line : lines) {
    const std::string name = name_of(line);
    if (!suite.empty() && !name.starts_with(suite + "_")) continue;
    if (pattern.empty() || std::regex_search(name, expression)) selected.push_back(line);
  }
  return selected;
}

}  // namespace flydsl::verify
