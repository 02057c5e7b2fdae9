// An environment variable for as long as the object lives.
#pragma once

#include <cstdlib>
#include <memory>
#include <string>

namespace flydsl::test {

// Of those that the emulator reads at each launch.
class Setting {
 public:
  Setting(const char *name, const std::string &value) : name_(name) {
    if (const char *before = std::getenv(name)) before_ = std::make_unique<std::string>(before);
    setenv(name, value.c_str(), 1);
  }
  ~Setting() {
    if (before_)
      setenv(name_, before_->c_str(), 1);
    else
      unsetenv(name_);
  }
  Setting(const Setting &) = delete;
  Setting &operator=(const Setting &) = delete;

 private:
  const char *name_;
  std::unique_ptr<std::string> before_;
};

}  // namespace flydsl::test
