// Reads forward through bytes that may be anything. Past the end it fails for good and gives zeros.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace flydsl::emu {

class ByteReader {
 public:
  ByteReader(const uint8_t *begin, const uint8_t *end) : at_(begin), end_(end) {}
  explicit ByteReader(const std::vector<uint8_t> &bytes)
      : ByteReader(bytes.data(), bytes.data() + bytes.size()) {}
  bool ok() const { return ok_; }
  bool more() const { return ok_ && at_ != end_; }
  void fail() { ok_ = false; }

  uint64_t fixed(size_t bytes) {
    uint64_t value = 0;
    if (const uint8_t *from = take(bytes)) std::memcpy(&value, from, bytes);
    return value;
  }
  // LEB128 without a sign; of one with a sign, something.
  uint64_t uleb() {
    uint64_t value = 0;
    for (unsigned shift = 0; ok_; shift += 7) {
      const uint64_t byte = fixed(1);
      if (shift < 64) value |= (byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    return value;
  }
  void text() {
    const void *zero = ok_ && size() != 0 ? std::memchr(at_, 0, size()) : nullptr;
    ok_ = zero != nullptr;
    if (ok_) at_ = static_cast<const uint8_t *>(zero) + 1;
  }
  void skip(uint64_t bytes) { take(bytes); }
  // The next `bytes` bytes, which this one passes.
  ByteReader part(uint64_t bytes) {
    const uint8_t *begin = take(bytes);
    ByteReader inner = begin ? ByteReader(begin, at_) : ByteReader(end_, end_);
    inner.ok_ = ok_;
    return inner;
  }

 private:
  size_t size() const { return size_t(end_ - at_); }
  const uint8_t *take(uint64_t bytes) {
    ok_ = ok_ && bytes <= size();
    if (!ok_) return nullptr;
    at_ += bytes;
    return at_ - bytes;
  }

  const uint8_t *at_, *end_;
  bool ok_ = true;
};

}  // namespace flydsl::emu
