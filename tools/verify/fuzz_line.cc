#include "tools/verify/fuzz_line.h"

namespace flydsl::verify {

FuzzLine::FuzzLine(uint64_t seed) : random_(seed), text_("fuzz_" + std::to_string(seed)) {
  set("seed", std::to_string(seed));
}

std::string FuzzLine::one_of(const std::vector<std::string> &values) {
  return values[static_cast<size_t>(random_.below(static_cast<int64_t>(values.size())))];
}

int64_t FuzzLine::one_of_numbers(const std::vector<int64_t> &values) {
  return values[static_cast<size_t>(random_.below(static_cast<int64_t>(values.size())))];
}

void FuzzLine::zero(const std::string &tensor, const std::string &axes, double share) {
  std::string letters;
  for (const char axis : axes) {
    if (chance(share)) letters += axis;
  }
  if (!letters.empty()) set(tensor + "_zero", letters);
}

void FuzzLine::place(const std::string &tensor, const std::vector<std::string> &rules) {
  if (chance(0.6)) return;
  std::string rule = one_of(rules);
  if (rule.back() == ':') rule += std::to_string(random_.between(1, 9));
  set(tensor + "_place", rule);
}

}  // namespace flydsl::verify
