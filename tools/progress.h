// How far a command is: a bar on a terminal, elsewhere a line for each piece of work.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace flydsl::tools {

// Writes to stderr. What else is written there meanwhile goes through note().
class Progress {
 public:
  explicit Progress(size_t all);
  ~Progress();  // leaves the bar's line
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

  void skip();                         // a piece that takes no time
  void step(const std::string &text);  // the piece `text` is done
  void note(const std::string &line);  // a line of its own

 private:
  std::string left() const;  // 0:01:05
  void draw(const std::string &text) const;

  using Clock = std::chrono::steady_clock;
  size_t all_, done_ = 0, worked_ = 0;
  bool bar_;
  Clock::time_point begin_ = Clock::now();
};

}  // namespace flydsl::tools
