#include "emulator/timing/constants.h"

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

namespace flydsl::emu::timing {

const ConstantRow kConstantRows[] = {
#define FLYDSL_TIMING_CONSTANT(name, value, unit, source) \
  {#name, double(value), unit, source, &Constants::name},
#include "emulator/timing/constants.inc"
#undef FLYDSL_TIMING_CONSTANT
};
const size_t kConstantRowCount = sizeof kConstantRows / sizeof *kConstantRows;

namespace {

const ConstantRow *find_row(const std::string &name) {
  for (const ConstantRow &row : kConstantRows)
    if (name == row.name) return &row;
  return nullptr;
}

// "" or what is wrong with the line.
std::string apply_line(const std::string &line, Constants &constants) {
  std::istringstream words(line.substr(0, line.find('#')));
  std::string name, text, more;
  if (!(words >> name)) return {};
  if (!(words >> text) || words >> more) return "'" + line + "' is not a name and a value";
  const ConstantRow *row = find_row(name);
  if (!row) return "'" + name + "' is no constant of the timing model";
  char *end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (*end || !std::isfinite(value) || value < 0)
    return "'" + text + "' is no value for " + name + ": a finite number, 0 or more, is";
  constants.*row->member = value;
  return {};
}

}  // namespace

// FNV-1a over "name=value\n" of each row, values with all their digits.
std::string constants_hash(const Constants &constants) {
  uint64_t hash = 0xcbf29ce484222325ull;
  char text[128];
  for (const ConstantRow &row : kConstantRows) {
    const int n = std::snprintf(text, sizeof text, "%s=%.17g\n", row.name, constants.*row.member);
    for (int i = 0; i < n; ++i) hash = (hash ^ uint8_t(text[i])) * 0x100000001b3ull;
  }
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

Constants constants_with_changes(const char *path, std::string *error) {
  const Constants unchanged;
  if (!path || !*path) return unchanged;
  std::ifstream file(path);
  if (!file) {
    *error = std::string(path) + ": " + std::strerror(errno);
    return unchanged;
  }
  Constants constants;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const std::string wrong = apply_line(line, constants);
    if (wrong.empty()) continue;
    *error = std::string(path) + ":" + std::to_string(number) + ": " + wrong;
    return unchanged;
  }
  return constants;
}

}  // namespace flydsl::emu::timing
