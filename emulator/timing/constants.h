// The numbers of the timing model: one table, constants.inc, each row with its unit and source.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace flydsl::emu::timing {

struct Constants {
#define FLYDSL_TIMING_CONSTANT(name, value, unit, source) double name = value;
#include "emulator/timing/constants.inc"
#undef FLYDSL_TIMING_CONSTANT
};

struct ConstantRow {
  const char *name;
  double value;
  const char *unit;
  const char *source;  // begins with "fitted" where it was fitted (docs/timing-model.md)
  double Constants::*member;
};
extern const ConstantRow kConstantRows[];
extern const size_t kConstantRowCount;

// 16 hexadecimal digits over names and values: what a benchmark table quotes.
std::string constants_hash(const Constants &constants);

// Gives the constant `name` the number `text`; "" or what is wrong with them: no such constant, no number, or one
// so far from the table's that the model would divide by nothing or never end.
std::string set_constant(const std::string &name, const std::string &text, Constants *constants);

// The table, with the changes of a file of "name value" lines (FLYDSL_EMU_TIMING_CONSTANTS), if any.
// `error` is set and the table returned unchanged when the file cannot be read or names no constant.
Constants constants_with_changes(const char *path, std::string *error);

}  // namespace flydsl::emu::timing
