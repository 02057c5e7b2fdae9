#include "tools/verify/case_line.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <sstream>

namespace flydsl::verify {

CaseLine::CaseLine(const std::string &text) {
  std::istringstream words(text);
  words >> name_;
  if (name_.empty() || name_.find('=') != std::string::npos)
    throw CaseError("'" + text + "': a case begins with its name");
  for (std::string setting; words >> setting;) {
    const size_t equals = setting.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == setting.size())
      throw CaseError("case " + name_ + ": '" + setting + "' must be key=value");
    if (!settings_.emplace(setting.substr(0, equals), setting.substr(equals + 1)).second)
      throw CaseError("case " + name_ + ": '" + setting.substr(0, equals) + "' is given twice");
  }
}

void CaseLine::fail(const std::string &key, const std::string &what) const {
  const auto found = settings_.find(key);
  throw CaseError("case " + name_ + ": " + key +
                  (found == settings_.end() ? "" : "=" + found->second) + ": " + what);
}

const std::string *CaseLine::find(const std::string &key) {
  known_.insert(key);
  const auto found = settings_.find(key);
  return found == settings_.end() ? nullptr : &found->second;
}

bool CaseLine::has(const std::string &key) {
  return find(key) != nullptr;
}

std::string CaseLine::word(const std::string &key, const std::string &fallback) {
  const std::string *value = find(key);
  return value ? *value : fallback;
}

int64_t CaseLine::to_integer(const std::string &key, const std::string &text, int64_t lowest,
                             int64_t highest) const {
  char *end = nullptr;
  errno = 0;
  const long long value = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end != 0 || errno != 0 || value < lowest || value > highest) {
    fail(key, "'" + text + "' must be an integer from " + std::to_string(lowest) + " to " +
                  std::to_string(highest));
  }
  return value;
}

double CaseLine::to_number(const std::string &key, const std::string &text) const {
  char *end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != 0) fail(key, "'" + text + "' must be a number");
  return value;
}

int64_t CaseLine::integer(const std::string &key, int64_t fallback, int64_t lowest,
                          int64_t highest) {
  const std::string *value = find(key);
  return value ? to_integer(key, *value, lowest, highest) : fallback;
}

uint64_t CaseLine::bits(const std::string &key, uint64_t fallback) {
  const std::string *value = find(key);
  if (!value) return fallback;
  char *end = nullptr;
  errno = 0;
  const unsigned long long number = std::strtoull(value->c_str(), &end, 0);
  if ((*value)[0] == '-' || *end != 0 || errno != 0)
    fail(key, "must be an integer from 0 to 2^64 - 1");
  return number;
}

double CaseLine::number(const std::string &key, double fallback) {
  const std::string *value = find(key);
  return value ? to_number(key, *value) : fallback;
}

std::vector<double> CaseLine::numbers(const std::string &key) {
  std::vector<double> values;
  if (const std::string *text = find(key)) {
    for (const std::string &part : split(*text, ',')) values.push_back(to_number(key, part));
  }
  return values;
}

size_t CaseLine::choice(const std::string &key, size_t fallback,
                        const std::vector<std::string> &names) {
  const std::string *value = find(key);
  if (!value) return fallback;
  const auto found = std::find(names.begin(), names.end(), *value);
  if (found == names.end()) {
    std::string allowed;
    for (const std::string &name : names) allowed += (allowed.empty() ? "" : ", ") + name;
    fail(key, "must be one of " + allowed);
  }
  return static_cast<size_t>(found - names.begin());
}

std::string CaseLine::letters(const std::string &key, const std::string &fallback,
                              const std::string &allowed) {
  const std::string *value = find(key);
  if (!value) return fallback;
  size_t next = 0;
  for (const char letter : *value) {
    const size_t place = allowed.find(letter, next);
    if (place == std::string::npos) fail(key, "must be letters of " + allowed + ", in this order");
    next = place + 1;
  }
  return *value;
}

void CaseLine::finish() const {
  for (const auto &[key, value] : settings_) {
    if (known_.count(key)) continue;
    std::string all;
    for (const std::string &known : known_) all += (all.empty() ? "" : ", ") + known;
    throw CaseError("case " + name_ + ": key '" + key + "' is unknown; there is " + all);
  }
}

std::vector<std::string> split(const std::string &text, char separator) {
  std::vector<std::string> parts;
  if (text.empty()) return parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace flydsl::verify
