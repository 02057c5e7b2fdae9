// A random line of a case, put together setting by setting.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/verify/random.h"

namespace flydsl::verify {

class FuzzLine {
 public:
  // Named fuzz_<seed>.
  explicit FuzzLine(uint64_t seed);
  std::string text() && { return std::move(text_); }

 protected:
  Random &random() { return random_; }
  bool chance(double probability) { return random_.chance(probability); }
  std::string one_of(const std::vector<std::string> &values);
  int64_t one_of_numbers(const std::vector<int64_t> &values);

  void set(const std::string &key, const std::string &value) { text_ += " " + key + "=" + value; }
  void number(const std::string &key, int64_t value) { set(key, std::to_string(value)); }
  // A random part of `axes`, each with probability `share`, has stride 0.
  void zero(const std::string &tensor, const std::string &axes, double share);
  // Sometimes somewhere else than tight: one of the rules, those that end with ':' with 1 to 9 elements.
  void place(const std::string &tensor,
             const std::vector<std::string> &rules = {"bshd", "random", "random16", "slack",
                                                      "offset:", "pitch:"});

 private:
  Random random_;
  std::string text_;
};

}  // namespace flydsl::verify
