#include "emulator/timing/constants.h"

#include <cerrno>
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

// Times may be none at all; what the model divides by, or counts with, may not.
bool may_be_zero(const ConstantRow &row) {
  const std::string unit = row.unit;
  for (const char *time : {"clocks", "slots", "times", "s", "-"})
    if (row.member != &Constants::slot_clocks && unit.substr(0, unit.find(' ')) == time)
      return true;
  return false;
}

// "" or what is wrong with the line.
std::string apply_line(const std::string &line, Constants &constants) {
  std::istringstream words(line.substr(0, line.find('#')));
  std::string name, text, more;
  if (!(words >> name)) return {};
  if (!(words >> text) || words >> more) return "'" + line + "' is not a name and a value";
  return set_constant(name, text, &constants);
}

}  // namespace

std::string set_constant(const std::string &name, const std::string &text, Constants *constants) {
  constexpr double kFarthest = 50;  // times the table's value, up and down
  const ConstantRow *row = find_row(name);
  if (!row) return "'" + name + "' is no constant of the timing model";
  char *end = nullptr;
  const double value = std::strtod(text.c_str(), &end), least = row->value / kFarthest,
               most = row->value * kFarthest;
  if (end != text.c_str() && !*end &&
      ((value >= least && value <= most) || (value == 0 && may_be_zero(*row)))) {
    constants->*row->member = value;
    return {};
  }
  char range[80];
  std::snprintf(range, sizeof range, "%s%g to %g", may_be_zero(*row) ? "0 or " : "", least, most);
  return "'" + text + "' is no value for " + name + ": " + range + " is";
}

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
  errno = 0;
  for (int number = 1; std::getline(file, line); ++number) {
    const std::string wrong = apply_line(line, constants);
    if (wrong.empty()) continue;
    *error = std::string(path) + ":" + std::to_string(number) + ": " + wrong;
    return unchanged;
  }
  if (file.bad()) {  // a folder opens, too
    *error = std::string(path) + ": " + std::strerror(errno ? errno : EIO);
    return unchanged;
  }
  return constants;
}

}  // namespace flydsl::emu::timing
