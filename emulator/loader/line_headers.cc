#include "emulator/loader/line_headers.h"

#include <algorithm>
#include <cstring>

#include "llvm/BinaryFormat/Dwarf.h"

namespace flydsl::emu {
namespace {

// Reads forward; past the end it fails for good and gives zeros.
class Reader {
 public:
  Reader(const uint8_t *begin, const uint8_t *end) : at_(begin), end_(end) {}
  bool ok() const { return ok_; }
  bool more() const { return ok_ && at_ != end_; }

  uint64_t fixed(size_t bytes) {
    uint64_t value = 0;
    if (const uint8_t *from = take(bytes)) std::memcpy(&value, from, bytes);
    return value;
  }
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
    const auto *zero = static_cast<const uint8_t *>(ok_ ? std::memchr(at_, 0, size()) : nullptr);
    ok_ = zero != nullptr;
    if (ok_) at_ = zero + 1;
  }
  void skip(uint64_t bytes) { take(bytes); }
  // The next `bytes` bytes, which this one passes.
  Reader part(uint64_t bytes) {
    const uint8_t *begin = take(bytes);
    return begin ? Reader(begin, at_) : Reader(end_, end_);
  }
  void fail() { ok_ = false; }

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

// The forms that DWARF 5 allows there; all take bytes.
void skip_form(Reader &in, uint64_t form, unsigned offset_bytes) {
  using namespace llvm::dwarf;
  switch (form) {
    case DW_FORM_string:
      return in.text();
    case DW_FORM_line_strp:
    case DW_FORM_strp:
    case DW_FORM_strp_sup:
      return in.skip(offset_bytes);
    case DW_FORM_udata:
    case DW_FORM_strx:
      in.uleb();
      return;
    case DW_FORM_data1:
    case DW_FORM_strx1:
      return in.skip(1);
    case DW_FORM_data2:
    case DW_FORM_strx2:
      return in.skip(2);
    case DW_FORM_strx3:
      return in.skip(3);
    case DW_FORM_data4:
    case DW_FORM_strx4:
      return in.skip(4);
    case DW_FORM_data8:
      return in.skip(8);
    case DW_FORM_data16:
      return in.skip(16);
    case DW_FORM_block:
      return in.skip(in.uleb());
    default:
      return in.fail();
  }
}

// One list: its entries' format, their number, they themselves.
void skip_entries(Reader &in, unsigned offset_bytes) {
  std::vector<uint64_t> forms(in.fixed(1));
  for (uint64_t &form : forms) {
    in.uleb();  // what the field is
    form = in.uleb();
  }
  const uint64_t count = in.uleb();
  if (count != 0 && forms.empty()) in.fail();
  for (uint64_t i = 0; i < count && in.ok(); ++i)
    for (const uint64_t form : forms) skip_form(in, form, offset_bytes);
}

}  // namespace

bool line_headers_are_bounded(const std::vector<uint8_t> &section) {
  Reader units(section.data(), section.data() + section.size());
  while (units.more()) {
    unsigned offset_bytes = 4;
    uint64_t length = units.fixed(4);
    if (length == llvm::dwarf::DW_LENGTH_DWARF64) length = units.fixed(offset_bytes = 8);
    Reader unit = units.part(length);
    if (!units.ok()) return false;
    if (unit.fixed(2) != 5) continue;
    unit.skip(2);              // sizes of addresses and segment selectors
    unit.fixed(offset_bytes);  // header_length
    unit.skip(5);              // minimum_instruction_length to line_range
    const uint64_t opcode_base = unit.fixed(1);
    unit.skip(std::max<uint64_t>(opcode_base, 1) - 1);
    skip_entries(unit, offset_bytes);
    skip_entries(unit, offset_bytes);
    if (!unit.ok()) return false;
  }
  return true;
}

}  // namespace flydsl::emu
