// One line of a case list: a name, then settings, "smoke_causal d=64 mask=causal:top-left".
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace flydsl::verify {

// What is wrong with a line; names the case, the key and the value.
class CaseError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The readers return `fallback` if the key is absent and throw CaseError on a value that is not allowed.
class CaseLine {
 public:
  explicit CaseLine(const std::string &text);
  const std::string &name() const { return name_; }

  bool has(const std::string &key);
  std::string word(const std::string &key, const std::string &fallback);
  int64_t integer(const std::string &key, int64_t fallback, int64_t lowest, int64_t highest);
  uint64_t bits(const std::string &key, uint64_t fallback);
  double number(const std::string &key, double fallback);
  std::vector<double> numbers(const std::string &key);
  // The place of the value in `names`.
  size_t choice(const std::string &key, size_t fallback, const std::vector<std::string> &names);
  // Letters of `allowed`, each at most once, in its order.
  std::string letters(const std::string &key, const std::string &fallback,
                      const std::string &allowed);

  // Once every key has been asked for: throws CaseError if the line has another.
  void finish() const;
  [[noreturn]] void fail(const std::string &key, const std::string &what) const;

  // Of part of a value.
  int64_t to_integer(const std::string &key, const std::string &text, int64_t lowest,
                     int64_t highest) const;
  double to_number(const std::string &key, const std::string &text) const;

 private:
  const std::string *find(const std::string &key);

  std::string name_;
  std::map<std::string, std::string> settings_;
  std::set<std::string> known_;
};

// "a,b,c" at commas; "" has no parts.
std::vector<std::string> split(const std::string &text, char separator);

}  // namespace flydsl::verify
