#include "emulator/isa/operand.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>

namespace flydsl::emu {
namespace {

struct Name {
  const char *name;
  Kind kind;
  uint32_t index;
  uint8_t words;
};
constexpr uint32_t id(Special s) {
  return uint32_t(s);
}
const Name kNames[] = {
    {"vcc", Kind::kScalar, 106, 2},
    {"vcc_lo", Kind::kScalar, 106, 1},
    {"vcc_hi", Kind::kScalar, 107, 1},
    {"exec", Kind::kScalar, 126, 2},
    {"exec_lo", Kind::kScalar, 126, 1},
    {"exec_hi", Kind::kScalar, 127, 1},
    {"m0", Kind::kScalar, 124, 1},
    {"flat_scratch", Kind::kScalar, 102, 2},
    {"flat_scratch_lo", Kind::kScalar, 102, 1},
    {"flat_scratch_hi", Kind::kScalar, 103, 1},
    {"xnack_mask", Kind::kScalar, 104, 2},
    {"xnack_mask_lo", Kind::kScalar, 104, 1},
    {"xnack_mask_hi", Kind::kScalar, 105, 1},
    {"off", Kind::kOff, 0, 0},
    {"src_vccz", Kind::kSpecial, id(Special::kVccz), 1},
    {"vccz", Kind::kSpecial, id(Special::kVccz), 1},
    {"src_execz", Kind::kSpecial, id(Special::kExecz), 1},
    {"execz", Kind::kSpecial, id(Special::kExecz), 1},
    {"src_scc", Kind::kSpecial, id(Special::kScc), 1},
    {"scc", Kind::kSpecial, id(Special::kScc), 1},
    {"src_shared_base", Kind::kSpecial, id(Special::kSharedBase), 2},
    {"src_shared_limit", Kind::kSpecial, id(Special::kSharedLimit), 2},
    {"src_private_base", Kind::kSpecial, id(Special::kPrivateBase), 2},
    {"src_private_limit", Kind::kSpecial, id(Special::kPrivateLimit), 2},
};

// fp32 -> fp16 for values that are exact in fp16 or the inline constant 1/(2 pi).
uint32_t half_constant(double value) {
  if (value > 0.159 && value < 0.1592) return 0x3118;
  uint32_t f;
  const float x = float(value);
  std::memcpy(&f, &x, 4);
  const uint32_t magnitude = f & 0x7fffffff;
  return (f >> 16 & 0x8000) | (magnitude ? (magnitude - 0x38000000u) >> 13 : 0);
}

bool parse_register(std::string_view text, char letter, uint32_t &first, uint32_t &words) {
  if (text.size() < 2 || text[0] != letter) return false;
  text.remove_prefix(1);
  if (text[0] == '[') {
    unsigned a = 0, b = 0;
    const char *end = text.data() + text.size();
    auto r = std::from_chars(text.data() + 1, end, a);
    if (r.ec != std::errc() || r.ptr == end || *r.ptr != ':') return false;
    r = std::from_chars(r.ptr + 1, end, b);
    if (r.ec != std::errc() || r.ptr == end || *r.ptr != ']' || b < a) return false;
    first = a;
    words = b - a + 1;
    return true;
  }
  const auto r = std::from_chars(text.data(), text.data() + text.size(), first);
  words = 1;
  return r.ec == std::errc() && r.ptr == text.data() + text.size();
}

bool parse_constant(std::string_view text, char type, uint64_t &value) {
  // A value that would fit an inline constant but is encoded as a literal.
  if (text.substr(0, 4) == "lit(" && text.back() == ')') text = text.substr(4, text.size() - 5);
  int64_t integer;
  if (parse_integer(text, integer)) {
    const bool literal = text.find('x') != std::string_view::npos;
    switch (type) {
      case 'd':  // a 32-bit literal is the high word; integers are inline constants with their
                 // 64-bit pattern
        value = literal && uint64_t(integer) <= 0xffffffffu ? uint64_t(integer) << 32
                                                            : uint64_t(integer);
        return true;
      case 'L':
        value = literal ? uint64_t(int64_t(int32_t(integer))) : uint64_t(integer);
        return true;
      case 'l':
      case 'm':
        value = literal ? uint64_t(integer) : uint64_t(integer);
        return true;
      case 'P':  // as every 64-bit operand
        value = uint64_t(integer);
        return true;
      default:
        value = uint32_t(integer);
        return true;
    }
  }
  const std::string copy(text);
  char *end = nullptr;
  const double d = std::strtod(copy.c_str(), &end);
  if (end == copy.c_str() || *end) return false;
  const float f = float(d);
  uint32_t bits;
  std::memcpy(&bits, &f, 4);
  switch (type) {
    case 'h':
    case 'p':
      value = half_constant(d);
      return true;
    case 'b':
    case 'B':
      value = bits >> 16;
      return true;
    case 'd':
    case 'l':
    case 'L':
    case 'm':
      std::memcpy(&value, &d, 8);
      return true;
    case 'P':  // the low word only: LLVM writes op_sel_hi:0 to have a constant in both results
      value = bits;
      return true;
    default:
      value = bits;
      return true;
  }
}

}  // namespace

bool parse_integer(std::string_view text, int64_t &value) {
  bool negative = false;
  if (!text.empty() && text[0] == '-') {
    negative = true;
    text.remove_prefix(1);
  }
  int base = 10;
  if (text.size() > 2 && text[0] == '0' && text[1] == 'x') {
    base = 16;
    text.remove_prefix(2);
  }
  uint64_t magnitude = 0;
  const auto r = std::from_chars(text.data(), text.data() + text.size(), magnitude, base);
  if (r.ec != std::errc() || r.ptr != text.data() + text.size() || text.empty()) return false;
  value = negative ? -int64_t(magnitude) : int64_t(magnitude);
  return true;
}

uint32_t ConstantPool::row_of(uint64_t value) {
  const auto at =
      std::lower_bound(sorted_.begin(), sorted_.end(), std::make_pair(value, uint32_t(0)));
  if (at != sorted_.end() && at->first == value) return at->second;
  const uint32_t row = uint32_t(rows_.size() / 64);
  rows_.insert(rows_.end(), 64, uint32_t(value));
  rows_.insert(rows_.end(), 64, uint32_t(value >> 32));
  sorted_.insert(at, {value, row});
  return row;
}

bool parse_operand(std::string_view text, char type, ConstantPool &pool, Operand &operand,
                   std::string &error) {
  operand = Operand{};
  operand.type = type;
  const std::string_view whole = text;
  auto unwrap = [&](std::string_view prefix, uint8_t mod) {
    if (text.size() > prefix.size() && text.substr(0, prefix.size()) == prefix &&
        text.back() == ')') {
      operand.mods |= mod;
      text = text.substr(prefix.size(), text.size() - prefix.size() - 1);
    }
  };
  uint64_t value = 0;
  unwrap("sext(", kSext);
  unwrap("neg(", kNeg);
  if (!parse_constant(text, type, value)) {
    if (!text.empty() && text[0] == '-') {
      operand.mods |= kNeg;
      text.remove_prefix(1);
    }
    if (text.size() > 2 && text.front() == '|' && text.back() == '|') {
      operand.mods |= kAbs;
      text = text.substr(1, text.size() - 2);
    }
    unwrap("abs(", kAbs);
  }
  for (const Name &name : kNames)
    if (text == name.name) {
      operand.kind = name.kind;
      operand.index = name.index;
      operand.words = name.words;
      return true;
    }
  uint32_t first = 0, words = 0;
  if (parse_register(text, 'v', first, words) || parse_register(text, 'a', first, words)) {
    if (first + words > 256) return error = "register out of range: " + std::string(whole), false;
    operand.kind = Kind::kVector;
    operand.index = first + (text[0] == 'a' ? 256 : 0);
    operand.words = uint8_t(words);
    return true;
  }
  if (parse_register(text, 's', first, words)) {
    if (first + words > 102) return error = "register out of range: " + std::string(whole), false;
    operand.kind = Kind::kScalar;
    operand.index = first;
    operand.words = uint8_t(words);
    return true;
  }
  if (text.substr(0, 4) == "ttmp") {
    if (parse_register(text.substr(3), 'p', first, words) && first + words <= 16) {
      operand.kind = Kind::kScalar;
      operand.index = 108 + first;
      operand.words = uint8_t(words);
      return true;
    }
  }
  if (parse_constant(text, type, value)) {
    operand.kind = Kind::kConstant;
    operand.index = pool.row_of(value);
    return true;
  }
  error = "operand not understood: " + std::string(whole);
  return false;
}

}  // namespace flydsl::emu
