#include "tools/npy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace flydsl::tools {
namespace {

constexpr size_t kMaxHeaderBytes = 1 << 16;
constexpr size_t kMaxRank = 8;
constexpr uint8_t kMagic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

[[noreturn]] void fail(const std::string &message) {
  throw std::runtime_error(message);
}
[[noreturn]] void fail_errno(const std::string &what) {
  fail(what + ": " + std::strerror(errno));
}

struct File {
  int descriptor = -1;
  ~File() {
    if (descriptor >= 0) close(descriptor);
  }
};

void read_exactly(int descriptor, uint8_t *data, size_t bytes, uint64_t offset) {
  while (bytes > 0) {
    const ssize_t count = pread(descriptor, data, bytes, static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_errno("cannot be read");
    if (count == 0) fail("became shorter while it was read");
    data += count;
    offset += static_cast<uint64_t>(count);
    bytes -= static_cast<size_t>(count);
  }
}

// The header is a Python dictionary literal with exactly the keys descr, fortran_order and shape.
class HeaderParser {
 public:
  explicit HeaderParser(const std::string &text) : text_(text) {}

  void parse(std::string &descr, bool &fortran_order, std::vector<int64_t> &shape) {
    bool seen[3] = {};
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      const int which = key == "descr" ? 0 : key == "fortran_order" ? 1 : key == "shape" ? 2 : -1;
      if (which < 0) fail("has an unknown key '" + key + "' in its header");
      if (std::exchange(seen[which], true)) fail("names '" + key + "' twice in its header");
      expect(':');
      if (which == 0) {
        if (peek() == '[') fail("holds a structured type; only plain numbers are read");
        descr = string();
      } else if (which == 1) {
        fortran_order = boolean();
      } else {
        shape = tuple();
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (position_ != text_.size()) malformed();
    if (!seen[0] || !seen[1] || !seen[2]) fail("lacks descr, fortran_order or shape in its header");
  }

 private:
  [[noreturn]] void malformed() const {
    fail("has a malformed header at character " + std::to_string(position_));
  }
  void skip_space() {
    while (position_ < text_.size() && std::strchr(" \t\n\r", text_[position_]) &&
           text_[position_] != '\0') {
      ++position_;
    }
  }
  char peek() {
    skip_space();
    return position_ < text_.size() ? text_[position_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c) return false;
    ++position_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) malformed();
  }
  std::string string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') malformed();
    const size_t end = text_.find(quote, ++position_);
    if (end == std::string::npos || end - position_ > 64) malformed();
    std::string value = text_.substr(position_, end - position_);
    for (const char c : value) {
      if (c < ' ' || c > '~') malformed();
    }
    position_ = end + 1;
    return value;
  }
  bool boolean() {
    skip_space();
    for (const auto &[word, value] : {std::pair{"True", true}, std::pair{"False", false}}) {
      if (text_.compare(position_, std::strlen(word), word) == 0) {
        position_ += std::strlen(word);
        return value;
      }
    }
    malformed();
  }
  int64_t integer() {
    int64_t value = 0;
    const char first = peek();
    if (first < '0' || first > '9') malformed();
    for (; position_ < text_.size() && text_[position_] >= '0' && text_[position_] <= '9';
         ++position_) {
      if (__builtin_mul_overflow(value, 10, &value) ||
          __builtin_add_overflow(value, text_[position_] - '0', &value)) {
        fail("has an axis longer than 2^63 in its header");
      }
    }
    return value;
  }
  std::vector<int64_t> tuple() {
    std::vector<int64_t> values;
    expect('(');
    while (!accept(')')) {
      if (values.size() == kMaxRank) fail("has more than 8 axes");
      values.push_back(integer());
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return values;
  }

  const std::string &text_;
  size_t position_ = 0;
};

// Fortran order (first axis fastest) to C order.
std::vector<uint8_t> to_c_order(const std::vector<uint8_t> &source,
                                const std::vector<int64_t> &shape, size_t element_bytes) {
  std::vector<uint8_t> result(source.size());
  std::vector<int64_t> index(shape.size(), 0);
  for (size_t target = 0; target < source.size(); target += element_bytes) {
    size_t offset = 0;
    for (size_t axis = shape.size(); axis-- > 0;) {
      offset = offset * static_cast<size_t>(shape[axis]) + static_cast<size_t>(index[axis]);
    }
    std::memcpy(&result[target], &source[offset * element_bytes], element_bytes);
    for (size_t axis = shape.size(); axis-- > 0;) {
      if (++index[axis] < shape[axis]) break;
      index[axis] = 0;
    }
  }
  return result;
}

}  // namespace

size_t npy_element_bytes(const std::string &descr) {
  for (const auto &[name, bytes] :
       {std::pair{"|u1", 1}, std::pair{"|i1", 1}, std::pair{"|b1", 1}, std::pair{"<u2", 2},
        std::pair{"<f2", 2}, std::pair{"<f4", 4}, std::pair{"<i4", 4}, std::pair{"<f8", 8},
        std::pair{"<i8", 8}}) {
    if (descr == name) return static_cast<size_t>(bytes);
  }
  return 0;
}

NpyArray read_npy(const std::string &path) {
  File file;
  file.descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file.descriptor < 0) fail_errno("cannot be opened");
  struct stat info;
  if (fstat(file.descriptor, &info) != 0) fail_errno("cannot be examined");
  if (!S_ISREG(info.st_mode)) fail("is not a regular file");
  const uint64_t file_bytes = static_cast<uint64_t>(info.st_size);

  uint8_t prefix[12] = {};
  if (file_bytes < 10)
    fail("is not a .npy file: it has only " + std::to_string(file_bytes) + " bytes");
  read_exactly(file.descriptor, prefix, 10, 0);
  if (std::memcmp(prefix, kMagic, sizeof kMagic) != 0) fail("is not a .npy file: wrong magic");
  const unsigned version = prefix[6];
  if (version < 1 || version > 3) {
    fail("has .npy format version " + std::to_string(version) + "; 1, 2 and 3 are read");
  }
  const size_t prefix_bytes = version == 1 ? 10 : 12;
  if (file_bytes < prefix_bytes) fail("is truncated inside its header");
  read_exactly(file.descriptor, prefix, prefix_bytes, 0);
  uint64_t header_bytes = prefix[8] | (prefix[9] << 8);
  if (version > 1) header_bytes |= (uint64_t{prefix[10]} << 16) | (uint64_t{prefix[11]} << 24);
  if (header_bytes > kMaxHeaderBytes) {
    fail("claims a header of " + std::to_string(header_bytes) + " bytes; at most " +
         std::to_string(kMaxHeaderBytes) + " are read");
  }
  if (header_bytes > file_bytes - prefix_bytes) fail("is truncated inside its header");
  std::string header(header_bytes, '\0');
  read_exactly(file.descriptor, reinterpret_cast<uint8_t *>(header.data()), header.size(),
               prefix_bytes);

  NpyArray array;
  bool fortran_order = false;
  HeaderParser(header).parse(array.descr, fortran_order, array.shape);
  if (array.descr.starts_with('>')) {
    fail("is big-endian ('" + array.descr + "'); save it little-endian");
  }
  const size_t element_bytes = npy_element_bytes(array.descr);
  if (element_bytes == 0) {
    fail("has element type '" + array.descr + "'; |u1 |i1 |b1 <u2 <f2 <f4 <i4 <f8 <i8 are read");
  }
  uint64_t data_bytes = element_bytes;
  bool empty = false;
  for (const int64_t size : array.shape) empty = empty || size == 0;
  for (const int64_t size : array.shape) {
    if (!empty && __builtin_mul_overflow(data_bytes, static_cast<uint64_t>(size), &data_bytes)) {
      fail("claims more than 2^64 bytes of data in its header");
    }
  }
  if (empty) data_bytes = 0;
  const uint64_t present_bytes = file_bytes - prefix_bytes - header_bytes;
  if (data_bytes != present_bytes) {
    fail("claims " + std::to_string(data_bytes) + " bytes of data in its header but holds " +
         std::to_string(present_bytes));
  }
  array.bytes.resize(data_bytes);
  read_exactly(file.descriptor, array.bytes.data(), array.bytes.size(),
               prefix_bytes + header_bytes);
  if (fortran_order) array.bytes = to_c_order(array.bytes, array.shape, element_bytes);
  return array;
}

void write_npy(OutputFile &file, const NpyArray &array) {
  std::string shape = "(";
  for (const int64_t size : array.shape) shape += std::to_string(size) + ", ";
  if (array.shape.size() > 1) shape.resize(shape.size() - 2);
  std::string header =
      "{'descr': '" + array.descr + "', 'fortran_order': False, 'shape': " + shape + "), }";
  // The data begins at a multiple of 64 bytes (numpy/lib/format.py, ARRAY_ALIGN); the header ends
  // with a newline.
  header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 10 - 1, ' ');
  header += '\n';
  const uint8_t length[] = {1, 0, static_cast<uint8_t>(header.size() & 0xff),
                            static_cast<uint8_t>(header.size() >> 8)};
  file.write(kMagic, sizeof kMagic);
  file.write(length, sizeof length);
  file.write(header);
  file.write(array.bytes.data(), array.bytes.size());
}

}  // namespace flydsl::tools
