#include "emulator/isa/text.h"

namespace flydsl::emu {
namespace {

std::string_view trim(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}

// The part of `s` before `separator` outside brackets and parentheses; removes it from s.
std::string_view take_until(std::string_view &s, char separator) {
  int depth = 0;
  for (size_t i = 0; i < s.size(); ++i) {
    const char c = s[i];
    if (c == '[' || c == '(') ++depth;
    if (c == ']' || c == ')') --depth;
    if (c == separator && depth == 0) {
      const std::string_view part = s.substr(0, i);
      s.remove_prefix(i + 1);
      return part;
    }
  }
  const std::string_view part = s;
  s = {};
  return part;
}

}  // namespace

Line split_line(std::string_view text) {
  Line line;
  text = trim(text);
  line.mnemonic = take_until(text, ' ');
  text = trim(text);
  while (!text.empty()) {
    std::string_view piece = trim(take_until(text, ','));
    line.operands.push_back(take_until(piece, ' '));
    piece = trim(piece);
    while (!piece.empty()) {
      const std::string_view word = take_until(piece, ' ');
      piece = trim(piece);
      if (word.empty()) continue;
      const size_t colon = word.find(':');
      if (colon == std::string_view::npos) {
        line.modifiers.emplace_back(word, std::string_view());
      } else {
        line.modifiers.emplace_back(word.substr(0, colon), word.substr(colon + 1));
      }
    }
  }
  return line;
}

}  // namespace flydsl::emu
